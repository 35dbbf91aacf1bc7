#!/usr/bin/env bash
# Runs every fuzz target of the module in turn, each for the time given.
set -eu
time=${1:-30s}
for file in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$file"); do
    echo "== $target in $(dirname "$file")"
    go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
