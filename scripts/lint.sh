#!/usr/bin/env bash
# Static checks. Tools that are not installed and cannot be had are named, not skipped in silence.
set -u
status=0
out=$(gofmt -l $(git ls-files '*.go')); [ -z "$out" ] || { echo "not gofmt'ed: $out"; status=1; }
go vet ./... || status=1
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
