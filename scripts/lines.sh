#!/usr/bin/env bash
# Counts the production lines of the main module after reflow, a room a line: scripts/lines.sh [COMMIT [COMMIT [PART…]]]
# (tools/lines says what counts). Parts are commits whose own lines are taken from the difference, such as new capabilities.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(mktemp)
trap 'rm -f "$program"' EXIT
CGO_ENABLED=0 go -C tools build -o "$program" ./lines
"$program" "$@"
