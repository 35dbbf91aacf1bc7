#!/usr/bin/env bash
# Runs go test in the current module and reports it with gotestsum: a line for each package, what
# failed tests wrote, every skipped test with its reason, and the counts. go vet is a step of its own,
# with more checks than go test has: it is not run a second time here.
#
#   scripts/gotest.sh FLAGS PACKAGES
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
gotestsum=$(CGO_ENABLED=0 go -C "$scripts/../tools" tool -n gotestsum)
exec "$gotestsum" --no-color --format pkgname --format-icons text --format-hide-empty-pkg \
  --post-run-command "$scripts/counts.sh" -- -vet=off "$@"
