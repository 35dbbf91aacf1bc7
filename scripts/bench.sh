#!/usr/bin/env bash
# Measures the rooms one by one, each beside its reference where it has one, and then the
# whole pipeline: a log through mutual TLS into the embedded engines. Figures that are kept
# go into docs/bench.md, with the machine.
set -eu
echo "== machine"
awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo
echo "$(nproc) processors, $(go version)"

run() { # package, pattern, time
  echo "== $1 $2"
  CGO_ENABLED=0 go test "./$1" -run '^$' -bench "$2" -benchtime "${3:-1s}" | grep -E '^(Benchmark|ok|FAIL|---)'
}

run ingest/event 'Normalise|DecodeList|Redact|AppendJSON'
run ingest/webhook 'Post'
run ingest/spool 'Produce'
run ingest/stream 'Produce/.*snappy|Fetch/.*snappy'
run rbacindex 'Authorize/' 200ms
run rbacindex 'Apply|Build' 200ms
run rbacindex 'WhoCan|Can|Hygiene|NearestMiss' 200ms
run replay/evaluate 'Replay|Identity'
run analysis/detect 'Tag|Observe'
run replay/runner 'Settle'
run storage 'Insert' 2s
run replay/runner 'LateBinding' 3x

echo "== the whole pipeline"
bin/retrial bench pipeline --repeat "${REPEAT:-4}" --runs "${RUNS:-5}"
