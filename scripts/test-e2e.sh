#!/usr/bin/env bash
# Lets a whole Kubernetes of one release live for some minutes (test/apiserver/life), connected
# to Retrial, and judges the recording. kube-state-metrics, the descheduler, cert-manager, the
# operator of Prometheus and metrics-server run there under their published roles. On 1.36 and
# 1.37 Kubernetes' own end-to-end suite then runs for as long, on a cluster of its own. Long:
# the first run of a release builds its programs, ten minutes of two idle cores, and the first
# of all the controllers, ten more. The recordings stay:
#   ${XDG_CACHE_HOME:-~/.cache}/retrial/life/RELEASE-seedSEED/TEST/{audit.jsonl,config,report.txt}
#
# EVERY is how many seconds lie between the beginnings of two namespaces; 0 is as fast as they go.
#
#   RELEASE=1.36 MINUTES=5 SEED=1 EVERY=0 scripts/test-e2e.sh
set -euo pipefail
cd "$(dirname "$0")/.."
release=${RELEASE:-1.36} seed=${SEED:-1}

scripts/test-apiserver.sh build
scripts/fetch-libchdb.sh
cache=${XDG_CACHE_HOME:-$HOME/.cache}/retrial
folder=$cache/apiserver
export CGO_ENABLED=0
RETRIAL_LIFE_CONTROLLERS=$(scripts/build-controllers.sh)
export RETRIAL_LIFE_CONTROLLERS
tests=. suite=(kubectl e2e)
case $release in
  1.28 | 1.33) tests=TestLife suite=() ;;
esac
if [ "$release" = 1.36 ]; then
  version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' test/apiserver/go.mod)
  go -C test/apiserver build -buildvcs=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$folder/" ./cmd/e2e k8s.io/kubernetes/cmd/kubectl
else
  folder=$(scripts/build-release.sh "$release" kube-apiserver kube-controller-manager kube-scheduler hollow-kubelet "${suite[@]}")
  for program in etcd retrial sample-apiserver; do # of these, there is one for all
    ln -sf "$cache/apiserver/$program" "$folder/$program"
  done
fi
keep=$cache/life/$release-seed$seed
rm -rf "$keep"
mkdir -p "$keep"
echo "recordings: $keep"
export RETRIAL_APISERVER_BIN=$folder RETRIAL_LIFE_KEEP=$keep RETRIAL_LIFE_SEED=$seed RETRIAL_LIFE_MINUTES=${MINUTES:-5} RETRIAL_LIFE_EVERY=${EVERY:-0}
exec go -C test/apiserver test -count=1 -timeout $((2 * ${MINUTES:-5} + 30))m -v -run "$tests" ./life
