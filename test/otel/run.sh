#!/usr/bin/env bash
# Builds an OpenTelemetry Collector from Go modules and puts it beside the pipeline: the same
# events, the same Kafka, the same ClickHouse engine. docs/peer.md says what is compared. The
# first build takes minutes and 1 GB of Go's build cache.
#
#   test/otel/run.sh [flags of the comparison: --repeat N, --forms raw,parsed, --lean, --ours=false]
#   EVENTS=audit.jsonl STATE=state.json test/otel/run.sh   another log than the sample
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
[ -n "$cache" ] || { echo "test/otel: no cache folder: set HOME or XDG_CACHE_HOME" >&2; exit 1; }
folder=$cache/retrial/otel
mkdir -p "$folder"
scripts/fetch-libchdb.sh
scripts/fetch-kafka.sh
export CGO_ENABLED=0
GO=${GO:-go}
"$GO" build -C test/otel -o "$folder/" ./collector ./peer
"$GO" build -o "$folder/" ./test/chserver/cmd/chserver ./test/kafkatest/withkafka
"$GO" build -o "$folder/" ./cmd/retrial ./cmd/retrial-bench
exec "$folder/withkafka" -heap 512 "$folder/peer" --retrial "$folder/retrial" --collector "$folder/collector" --chserver "$folder/chserver" \
  --events "${EVENTS:-internal/sample/audit.jsonl.zst}" --state "${STATE:-internal/sample/state.json.zst}" "$@"
