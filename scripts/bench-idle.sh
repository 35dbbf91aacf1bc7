#!/usr/bin/env bash
# Measures what an idle server takes: serve with the sample in it, nobody asking, for a minute
# after it has settled. Fails above 1 % of a core. Linux: it reads /proc.
#
#   SETTLE=90 SECONDS_MEASURED=60 scripts/bench-idle.sh BINARY
set -euo pipefail

binary=$1
settle=${SETTLE:-90} measured=${SECONDS_MEASURED:-60}
dir=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$dir"
}
trap finish EXIT

"$binary" serve --sample --data-dir "$dir/data" --key-file "$dir/key" --webhook-listen 127.0.0.1:0 --ui-listen 127.0.0.1:0 \
  --log-level warn >"$dir/out" 2>"$dir/log" &
server=$!
until grep -q 'The sample is in' "$dir/out"; do
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$dir/log" >&2
    exit 1
  fi
  sleep 1
done
sleep "$settle"

# Processor time of all threads, in nanoseconds.
used() { cat /proc/"$server"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

before=$(used)
sleep "$measured"
after=$(used)
awk -v ns="$((after - before))" -v s="$measured" 'BEGIN {
  share = ns / 1e7 / s
  printf "an idle server takes %.2f %% of a core (%d s)\n", share, s
  exit share > 1
}'
