#!/usr/bin/env bash
# Checks that this machine has what `make run` or `make test` needs, before anything is
# downloaded, and names the alternative for what is missing.
set -u
goal=${1:-run}
missing=0

say() { printf '%s\n' "$*" >&2; }
lack() { missing=1; say "missing: $1"; say "         $2"; }

if command -v go >/dev/null 2>&1; then
  want=$(awk '$1 == "go" {print $2; exit}' go.mod)
  have=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
  if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ] && [ "$(go env GOTOOLCHAIN)" = local ]; then
    lack "Go $want or newer (found $have)" "install it from your distribution or the Go project; or allow GOTOOLCHAIN=auto"
  fi
else
  lack "Go" "install Go $(awk '$1 == "go" {print $2; exit}' go.mod) or newer"
fi

os=$(uname -s) arch=$(uname -m)
if [ "$os/$arch" != Linux/x86_64 ]; then
  lack "Linux on x86-64 for the embedded store (this is $os/$arch)" \
    "evaluate works anywhere: make build && bin/retrial evaluate --state FILE --events FILE; or serve with --clickhouse-dsn"
else
  grep -qm1 '\bavx2\b' /proc/cpuinfo 2>/dev/null || lack "a CPU with AVX2 for the embedded store" \
    "use a real ClickHouse: bin/retrial serve --clickhouse-dsn http://USER@HOST:8123/DATABASE"
  if ldd --version 2>&1 | grep -qi musl; then
    lack "glibc for the embedded store (this is musl)" "use a glibc distribution, or a real ClickHouse with --clickhouse-dsn"
  fi
fi

version=$(sed -n 's/^version=//p' scripts/fetch-libchdb.sh | head -n 1 | tr -d "\"'")
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
if [ -z "$cache" ]; then
  lack "a home (HOME is not set)" "set HOME, or XDG_CACHE_HOME and XDG_CONFIG_HOME, to folders you own"
elif [ -z "${RETRIAL_LIBCHDB:-}" ] && [ ! -f "$cache/retrial/libchdb/$version/libchdb.so" ]; then
  if [ -z "${RETRIAL_LIBCHDB_TGZ:-}" ] && ! command -v npm >/dev/null 2>&1; then
    lack "npm, which fetches the embedded store (libchdb $version)" \
      "install Node.js with npm, or name a libchdb.so you have: RETRIAL_LIBCHDB=/path/to/libchdb.so"
  fi
  there=$cache # in a new home there is no cache folder yet
  while [ ! -d "$there" ] && [ "$there" != / ] && [ "$there" != . ]; do there=$(dirname "$there"); done
  free=$(df -Pk "$there" 2>/dev/null | awk 'NR == 2 {print int($4 / 1024)}')
  if [ -n "$free" ] && [ "$free" -lt 1500 ]; then
    lack "1.5 GB of disk below $cache for the embedded store (free: ${free} MB)" "set XDG_CACHE_HOME to a folder with enough space"
  fi
fi

if [ $missing -ne 0 ]; then
  say "nothing was downloaded; make $goal stops here."
  exit 1
fi
