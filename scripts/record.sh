#!/usr/bin/env bash
# Records the control planes of test/apiserver/configurations again: logs, states,
# configurations and what was meant, into replay/testdata/recordings. Builds what is needed,
# as scripts/test-apiserver.sh does.
#
#   scripts/record.sh [flags for go test, such as -run TestOIDC -v]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/test-apiserver.sh build
export CGO_ENABLED=0 RETRIAL_RECORDINGS=$PWD/replay/testdata/recordings
exec go -C test/apiserver test -count=1 -timeout 20m ./configurations "$@"
