#!/usr/bin/env bash
# The long set of fault schedules (test/faults): written and drawn schedules in simulated
# time, schedules with real processes, mutants. SEED and N choose drawn schedules; with SEED
# only those are played. The last line counts what was played.
set -u
cd "$(dirname "$0")/.."
scripts/fetch-libchdb.sh || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go test -c -o "$dir/faults.test" ./test/faults || exit 1
bin=$dir/faults.test
n=${N:-1000}
root=$PWD
run() { (cd "$root/test/faults" && exec "$bin" -test.timeout 0 -test.v "$@"); }
if [ -n "${SEED:-}" ]; then
  RETRIAL_FAULTS_SEED=$SEED RETRIAL_FAULTS_N=${N:-1} run -test.run '^TestSimulated$' | grep -v '^=== '
  exit "${PIPESTATUS[0]}"
fi
export RETRIAL_FAULTS_LONG=1
shards=$(nproc)
[ "$shards" -gt 8 ] && shards=8
each=$(((n + shards - 1) / shards))
status=0
pids=()
for ((i = 0; i < shards; i++)); do
  RETRIAL_FAULTS_SEED=$((1 + i * each)) RETRIAL_FAULTS_N=$each RETRIAL_FAULTS_VERBOSE=1 run -test.run '^TestSimulated$' >"$dir/drawn-$i" 2>&1 &
  pids+=($!)
done
for p in "${pids[@]}"; do wait "$p" || status=1; done
run -test.run '^TestSteered$' >"$dir/written" 2>&1 || status=1
CGO_ENABLED=0 go build -o "$dir/retrial" ./cmd/retrial || status=1
RETRIAL_FAULTS_REAL=1 RETRIAL_FAULTS_BIN=$dir/retrial run -test.run '^TestReal$' >"$dir/real" 2>&1 || status=1
run -test.run '^TestMutants$' >"$dir/mutants" 2>&1 || status=1
# Everything that failed, what each mutant was noticed by, and what could not run.
[ $status -eq 0 ] || grep -hv '^=== \|^seed ' "$dir"/drawn-* "$dir/written" "$dir/real" "$dir/mutants" | grep -v -- '--- PASS'
grep -h 'noticed by' "$dir/mutants"
grep -h 'NOT RUN' "$dir"/*  2>/dev/null
drawn=$(cat "$dir"/drawn-* | grep -c '^seed ')
written=$(grep -c -- '--- PASS: TestSteered/' "$dir/written")
real=$(grep -c -- '--- PASS: TestReal/' "$dir/real")
mutants=$(grep -c 'noticed by' "$dir/mutants")
echo "faults: $drawn drawn and $written written schedules, $real with real processes, $mutants mutants noticed: $([ $status -eq 0 ] && echo ok || echo FAILED)"
exit $status
