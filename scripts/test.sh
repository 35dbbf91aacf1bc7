#!/usr/bin/env bash
# Runs every test. What cannot run on this machine is listed at the end as NOT RUN with the
# reason; under CI=1 that is a failure.
set -u
ci=${CI:-}
log=$(mktemp)
fetched=$(mktemp)
trap 'rm -f "$log" "$fetched" "$fetched.apt"' EXIT
status=0
export RETRIAL_REQUIRE_ALL=
case "$ci" in 1|true) export RETRIAL_REQUIRE_ALL=1 ;; esac

# fetch gets what some tests need and not every machine has. Where it cannot be had, those tests are NOT RUN.
fetch() {
  # The browser of the page's tests: an installed one, else Debian's when we may install it.
  if ! command -v chromium >/dev/null 2>&1 && ! command -v chromium-browser >/dev/null 2>&1 && ! command -v google-chrome >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
      echo "installing chromium to test the page"
      (apt-get update -q && apt-get install -y -q --no-install-recommends chromium) >"$fetched.apt" 2>&1 || tail -n 5 "$fetched.apt"
    fi
  fi
  scripts/fetch-kafka.sh # the Kafka the pipeline's test runs on
  # What builds the pages, to compare what is committed.
  if command -v npm >/dev/null 2>&1; then make --no-print-directory dashboards/web/node_modules/.package-lock.json; fi
}

step() {
  echo "== $*"
  "$@" 2>&1 | tee -a "$log"
  [ "${PIPESTATUS[0]}" -eq 0 ] || status=1
}

fetch >"$fetched" 2>&1 & # beside the first compilation
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then echo "not gofmt'ed: $unformatted"; status=1; fi
step go vet ./...
wait
cat "$fetched"
# Tests of servers, stores and browsers wait for much: one package more than there are processors runs at once, and the longest begin.
beside=$(($(nproc) + 1))
step scripts/gotest.sh -p "$beside" -timeout 60m ./storage ./cmd/retrial ./analysis/detect ./...
# Modules of their own: what they compare with (Kubernetes' own code, Prometheus' engine)
# stays out of the product's dependencies.
for module in rbacindex/oracle test/prometheus; do
  step go -C "$module" vet ./...
  step env -C "$module" "$PWD/scripts/gotest.sh" -timeout 40m ./...
done
# The pages: what their components do. Builds of them are compared by dashboards/ui.
if [ -e dashboards/web/node_modules/.package-lock.json ]; then
  step npm --prefix dashboards/web run --silent test
else
  echo "NOT RUN: tests of dashboards/web: no npm, or its packages could not be fetched" | tee -a "$log"
fi
# The race detector needs cgo and a C compiler. scripts/race.txt says where it has something to see.
if command -v "${CC:-gcc}" >/dev/null 2>&1; then
  step env CGO_ENABLED=1 scripts/gotest.sh -race -short -p "$beside" -timeout 60m ./cmd/retrial ./storage ./replay/runner \
    $(awk '!/^#/ && NF == 1 { print "./" $1 }' scripts/race.txt)
  step env CGO_ENABLED=1 scripts/gotest.sh -race -short -timeout 40m -run "$(awk '!/^#/ && NF == 2 { print $2 }' scripts/race.txt | sort -u | paste -sd '|')" \
    $(awk '!/^#/ && NF == 2 { print "./" $1 }' scripts/race.txt)
else
  echo "NOT RUN: race detector: no C compiler; install gcc and run: CGO_ENABLED=1 go test -race -short ./..." | tee -a "$log"
fi

not_run() { awk '/^=== SKIP: / { test = $3 " " $4 ": " } /^===/ { next } /NOT RUN/ { sub(/^.*NOT RUN/, "NOT RUN"); print test $0 } /^$/ { test = "" }' "$log" | sort -u; }
if not_run | grep .; then
  [ -n "$RETRIAL_REQUIRE_ALL" ] && { echo "CI: everything listed as NOT RUN must run"; status=1; }
fi
[ $status -eq 0 ] && echo "all tests passed" || echo "tests failed"
exit $status
