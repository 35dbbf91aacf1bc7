#!/usr/bin/env bash
# Builds what the pipeline is measured beside, outside of the tree, and has `retrial bench peers`
# measure it: VictoriaLogs and an OpenTelemetry Collector (test/otel), from their Go modules. What
# cannot be built is named with the reason, and the others are measured. docs/peer.md says what is
# compared. The first build takes minutes and 1.5 GB of Go's caches.
#
#   scripts/bench-peers.sh [build | flags of bench peers: --peers retrial,victorialogs --rates 0]
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
version=${VICTORIALOGS:-v1.52.1}
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
[ -n "$cache" ] || { echo "bench-peers: no cache folder: set HOME or XDG_CACHE_HOME" >&2; exit 1; }
folder=$cache/retrial/peers
mkdir -p "$folder"

# build NAME COMMAND…: what it says is kept beside the program; bench peers reads why there is none.
build() {
  rm -f "$folder/$1"
  "${@:2}" >"$folder/$1.log" 2>&1 || { rm -f "$folder/$1"; echo "bench-peers: $1 cannot be built: $(tail -n 1 "$folder/$1.log")" >&2; }
}

# VictoriaLogs compresses with the zstd in C where there is a compiler, as its releases do. Versions
# that the module proxy does not have are built from its repository.
victoria_logs() {
  CGO_ENABLED=0
  if command -v "${CC:-gcc}" >/dev/null 2>&1; then CGO_ENABLED=1; fi
  export CGO_ENABLED
  GOBIN=$folder "$GO" install -ldflags "-s -w" "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@$version" && return
  local source=$folder/source-$version
  [ -d "$source" ] || git clone -q --depth 1 --branch "$version" "${VICTORIALOGS_GIT:-https://github.com/VictoriaMetrics/VictoriaLogs}" "$source" || return
  "$GO" build -C "$source" -ldflags "-s -w" -o "$folder/" ./app/victoria-logs
}
build victoria-logs victoria_logs
export CGO_ENABLED=0
build collector "$GO" build -C test/otel -ldflags "-s -w" -o "$folder/" ./collector
"$GO" build -o "$folder/" ./cmd/retrial ./cmd/retrial-bench ./test/chserver/cmd/chserver ./test/kafkatest/withkafka
[ "${1:-}" != build ] || exit 0
scripts/fetch-libchdb.sh
bench=("$folder/retrial-bench" peers --runs "${N:-5}" ${EVENTS:+--events "$EVENTS"} ${STATE:+--state "$STATE"} "$@")
# Without a Kafka everybody is measured who needs none.
scripts/fetch-kafka.sh || exec "${bench[@]}"
exec "$folder/withkafka" -heap 512 "${bench[@]}"
