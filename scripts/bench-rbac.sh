#!/usr/bin/env bash
# Measures rbacindex beside the RBAC authorizer of k8s.io/kubernetes in one process: a table of
# decisions by size and kind of request, then changes, memory, who can, floods and scaling. The
# last lines are the medians, one a size. Two minutes of CPU, by CPU time, so that other work
# on the machine disturbs it little; what is kept goes into docs/bench.md with the machine.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
echo "== machine"
awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo
echo "$(nproc) processors, $(go version)"

if [ -d analysis/escalation ]; then
  echo "== closure (go test ./analysis/escalation -bench .)"
  go test ./analysis/escalation -run '^$' -bench . -benchtime "${CLOSURE_TIME:-1x}" | grep -E '^(Benchmark|FAIL|---)' || true
fi

echo "== decisions"
exec go -C rbacindex/oracle run ./bench "$@"
