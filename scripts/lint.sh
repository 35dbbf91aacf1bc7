#!/usr/bin/env bash
# Static checks. Tools that are not installed and cannot be had are named, not skipped in silence.
set -u
cd "$(dirname "$0")/.."
status=0
# tool NAME ARGS runs a tool whose version tools/go.mod holds.
tool() {
  local path
  path=$(CGO_ENABLED=0 go -C tools tool -n "$1") || return 1
  "$path" "${@:2}"
}
out=$(gofmt -l $(git ls-files '*.go')); [ -z "$out" ] || { echo "not gofmt'ed: $out"; status=1; }
go vet ./... || status=1
tool staticcheck ./... || status=1
# What no program and no test reaches. rbacindex/oracle, a module of its own, asks the advisor for its questions.
unreachable=$(tool deadcode -test ./...) || status=1
unreachable=$(grep -v ' Advisor.Questions$' <<<"$unreachable")
[ -z "$unreachable" ] || { echo "$unreachable"; status=1; }
# The pages: types and rules of their source.
if command -v npm >/dev/null 2>&1 && make --no-print-directory dashboards/web/node_modules/.package-lock.json; then
  npm --prefix dashboards/web run --silent lint || status=1
else
  echo "NOT RUN: lint of dashboards/web: no npm, or its packages could not be fetched"
fi
if command -v golangci-lint >/dev/null 2>&1; then
  golangci-lint run ./... || status=1
else
  echo "NOT RUN: golangci-lint: not installed (configuration: .golangci.yml)"
fi
if go run golang.org/x/vuln/cmd/govulncheck@latest -version >/dev/null 2>&1; then
  go run golang.org/x/vuln/cmd/govulncheck@latest ./... || {
    code=$?
    # 3: vulnerabilities found; anything else: the database was not reached.
    [ $code -eq 3 ] && status=1 || echo "NOT RUN: govulncheck: its database could not be reached"
  }
else
  echo "NOT RUN: govulncheck: could not be fetched"
fi
exit $status
