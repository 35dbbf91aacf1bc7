#!/usr/bin/env bash
# Runs everything that concerns a real Kafka, on every version the tests know, over PLAINTEXT
# and over SASL_SSL: the stream's suite on brokers that only serve, its tests that refuse,
# stop and restart brokers, the whole pipeline, and the two halves as several processes.
#
#   scripts/test-kafka.sh [stream | pipeline]     without: both
set -uo pipefail
cd "$(dirname "$0")/.."
part=${1:-all}
export RETRIAL_TEST_KAFKA_ALL=1 RETRIAL_REQUIRE_ALL=1
versions="3.9.2 4.1.2"
# shellcheck disable=SC2086 # a list of versions
scripts/fetch-kafka.sh $versions || exit 1
scripts/fetch-libchdb.sh || exit 1

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/" ./test/kafkatest/withkafka || exit 1
status=0
tests() {
  echo "== $*"
  "$@" || status=1
}

if [ "$part" != pipeline ]; then
  for version in $versions; do
    for access in PLAINTEXT SCRAM-SHA-256 SCRAM-SHA-512; do
      tests "$tools/withkafka" -version "$version" -access "$access" -grant test- \
        scripts/gotest.sh -count=1 -timeout 10m -skip TestRealKafka ./ingest/stream
    done
  done
  tests scripts/gotest.sh -count=1 -timeout 20m -run 'TestRealKafka' ./ingest/stream
fi
if [ "$part" != stream ]; then
  tests scripts/gotest.sh -count=1 -timeout 40m -run 'OnKafka$' ./cmd/retrial
fi
[ $status -eq 0 ] && echo "all tests on Kafka $versions passed" || echo "tests failed"
exit $status
