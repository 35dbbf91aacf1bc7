#!/usr/bin/env bash
# Fetches libchdb, the embedded ClickHouse, once per user: about 180 MB to download and
# 570 MB on disk, from the npm package pinned below, into
#   ${XDG_CACHE_HOME:-~/.cache}/retrial/libchdb/<version>/libchdb.so
# where retrial looks for it. Does nothing when it is there. Checks the machine and the tools
# before it downloads anything, and the package's SHA-512 before it unpacks.
#
#   RETRIAL_LIBCHDB=/path/libchdb.so   uses that library; nothing is fetched
#   RETRIAL_LIBCHDB_TGZ=/path/x.tgz    unpacks a package fetched before (checked all the same)
set -euo pipefail

package=@chdb/lib-linux-x64-gnu
release=26.7.3-stable.1
version=26.7.3
sha512=5cff7b98caa7739b59a4a432c11f0dedc2d3b073624e61ebdf4a42e66ce8de35a6ba48ca9f62016bad1cd81fe059435cb858ce3235a8a2b408082a81563e70a7

say() { printf 'fetch-libchdb: %s\n' "$*" >&2; }
fail() {
  say "$1"
  say "without it: use a ClickHouse server (--clickhouse-dsn), or evaluate files offline (retrial evaluate)"
  exit 1
}

if [ -n "${RETRIAL_LIBCHDB:-}" ]; then
  [ -f "$RETRIAL_LIBCHDB" ] || fail "RETRIAL_LIBCHDB names $RETRIAL_LIBCHDB, which is not a file"
  say "using $RETRIAL_LIBCHDB"
  exit 0
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/retrial/libchdb/$version
library=$folder/libchdb.so
if [ -f "$library" ]; then
  say "found $library"
  exit 0
fi

# The machine first: no download can help with any of this.
os=$(uname -s) arch=$(uname -m)
[ "$os/$arch" = Linux/x86_64 ] || fail "the embedded store needs linux/amd64, this is $os/$arch"
grep -qw avx2 /proc/cpuinfo || fail "the CPU lacks AVX2, which the embedded store needs"
compgen -G '/lib*/ld-linux-x86-64.so.2' >/dev/null || compgen -G '/usr/lib*/ld-linux-x86-64.so.2' >/dev/null ||
  fail "the C library is not glibc, which the embedded store needs"
command -v sha512sum >/dev/null || fail "sha512sum is missing (package coreutils)"
command -v tar >/dev/null || fail "tar is missing"
if [ -z "${RETRIAL_LIBCHDB_TGZ:-}" ]; then
  command -v node >/dev/null || fail "node is missing: install Node.js with npm"
  command -v npm >/dev/null || fail "npm is missing: install it with Node.js, or fetch $package@$release elsewhere and set RETRIAL_LIBCHDB_TGZ"
fi
mkdir -p "$folder" || fail "cannot create $folder"
free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
[ "$free" -ge 1000000 ] || fail "$folder has $((free / 1024)) MB free, about 1,000 MB are needed while unpacking"

work=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

if [ -n "${RETRIAL_LIBCHDB_TGZ:-}" ]; then
  tgz=$RETRIAL_LIBCHDB_TGZ
else
  say "downloading $package@$release through npm (about 180 MB)"
  (cd "$work" && npm pack --silent "$package@$release" >/dev/null) || fail "npm could not fetch $package@$release"
  tgz=$(ls "$work"/*.tgz)
fi
echo "$sha512  $tgz" | sha512sum --check --status || fail "$tgz does not have the expected SHA-512"
say "unpacking (about 570 MB)"
tar -xzf "$tgz" -C "$work" package/libchdb.so || fail "cannot unpack $tgz"
mv "$work/package/libchdb.so" "$library" # same file system: it appears whole or not at all
say "$library is ready"
