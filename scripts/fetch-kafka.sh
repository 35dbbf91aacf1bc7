#!/usr/bin/env bash
# Fetches Apache Kafka for the tests, once per user and version: its jars from Maven Central
# (about 45 MB), each compared with the SHA-256 in test/kafkatest, into
#   ${XDG_CACHE_HOME:-~/.cache}/retrial/kafka/<version>/*.jar
# where the tests look for them. Does nothing for a version that is there. Needs a Java runtime
# of 17 or newer, and Maven; both are installed from Debian's packages when that is allowed
# (root, apt-get).
#
#   scripts/fetch-kafka.sh [VERSION…]     without: the version `make test` runs
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'fetch-kafka: %s\n' "$*" >&2; }
fail() {
  say "$1"
  say "without it: the tests against a real Kafka say NOT RUN; the embedded broker needs none of this"
  exit 1
}

[ $# -gt 0 ] || set -- 4.1.2
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
[ -n "$cache" ] || fail "no cache folder: set HOME or XDG_CACHE_HOME"

lacking=
command -v java >/dev/null || lacking=" default-jre-headless"
for version; do
  [ -d "$cache/retrial/kafka/$version" ] || command -v mvn >/dev/null || { lacking="$lacking maven"; break; }
done
if [ -n "$lacking" ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "missing:$lacking; install a Java runtime (17 or newer) and Maven"
  say "installing$lacking"
  # shellcheck disable=SC2086 # a list of packages
  { apt-get update -q && apt-get install -y -q --no-install-recommends $lacking; } >/dev/null 2>&1 || fail "apt-get could not install$lacking"
fi
java=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${java:-0}" -ge 17 ] || fail "Java 17 or newer is needed, $(command -v java) is ${java:-of an unknown version}"

for version; do
  sums=$PWD/test/kafkatest/jars-$version.sha256
  [ -f "$sums" ] || fail "unknown version $version: want one of $(cd test/kafkatest && ls jars-*.sha256 | sed 's/^jars-//; s/\.sha256$//' | tr '\n' ' ')"
  folder=$cache/retrial/kafka/$version
  if [ -d "$folder" ]; then
    say "found $folder"
    continue
  fi
  mkdir -p "${folder%/*}"
  work=$(mktemp -d "${folder%/*}/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
  # slf4j-simple writes Kafka's log; without a binding there is none.
  cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.retrial</groupId><artifactId>kafka-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  say "downloading Apache Kafka $version through Maven (about 45 MB)"
  mvn -q -B -f "$work/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DoutputDirectory="$work/jars" -DincludeScope=runtime >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; fail "Maven could not fetch Kafka $version"; }
  (cd "$work/jars" && sha256sum --check --quiet --strict "$sums") >&2 || fail "the jars of Kafka $version do not have the expected SHA-256"
  [ "$(ls "$work/jars" | wc -l)" = "$(wc -l <"$sums")" ] || fail "Maven fetched jars of Kafka $version that $sums does not list"
  # On the same file system it appears whole or not at all; another fetch may have been faster.
  mv -T "$work/jars" "$folder" 2>/dev/null || [ -d "$folder" ] || fail "cannot create $folder"
  rm -rf "$work"
  say "$folder is ready"
done
