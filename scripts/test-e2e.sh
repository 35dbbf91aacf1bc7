#!/usr/bin/env bash
# Lets a whole Kubernetes of one release live for some minutes (test/apiserver/life), connected
# to Retrial, and judges the recording. Long: the first run of a release builds its programs,
# ten minutes of two cores. The recording stays:
#   ${XDG_CACHE_HOME:-~/.cache}/retrial/life/RELEASE-seedSEED/{audit.jsonl,config,report.txt}
#
#   RELEASE=1.36 MINUTES=5 SEED=1 scripts/test-e2e.sh
set -euo pipefail
cd "$(dirname "$0")/.."
release=${RELEASE:-1.36} seed=${SEED:-1}

scripts/test-apiserver.sh build
scripts/fetch-libchdb.sh
cache=${XDG_CACHE_HOME:-$HOME/.cache}/retrial
folder=$cache/apiserver
if [ "$release" != 1.36 ]; then
  folder=$(scripts/build-release.sh "$release")
  for program in etcd retrial; do # of these, there is one for all
    ln -sf "$cache/apiserver/$program" "$folder/$program"
  done
fi
keep=$cache/life/$release-seed$seed
rm -rf "$keep"
mkdir -p "$keep"
echo "recording: $keep"
export CGO_ENABLED=0 RETRIAL_APISERVER_BIN=$folder RETRIAL_LIFE_KEEP=$keep RETRIAL_LIFE_SEED=$seed RETRIAL_LIFE_MINUTES=${MINUTES:-5}
exec go -C test/apiserver test -count=1 -timeout $((${MINUTES:-5} + 25))m -v ./life
