#!/usr/bin/env bash
# Runs the tests of test/apiserver: a real control plane with nodes, an aggregated API server
# and etcd, built from their Go modules, with Retrial beside them. The first build takes about
# eight minutes of two cores and 4 GB of Go's build cache; later ones take seconds. What is
# built goes into
#   ${XDG_CACHE_HOME:-~/.cache}/retrial/apiserver
#
#   scripts/test-apiserver.sh [build | flags for go test, such as -run TestConnected -v]
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'test-apiserver: %s\n' "$*" >&2; }
# What cannot run on this machine is named, and under CI=1 it is a failure.
lack() {
  echo "NOT RUN: test/apiserver: $1"
  case "${CI:-}" in 1 | true) exit 1 ;; esac
  exit 0
}

[ "$(uname -s)/$(uname -m)" = Linux/x86_64 ] || lack "the embedded store needs linux/amd64"
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
[ -n "$cache" ] || lack "no cache folder: set HOME or XDG_CACHE_HOME"
folder=$cache/retrial/apiserver
mkdir -p "$folder"
# One set of flags for everything here: packages are then compiled once and shared with the
# tests. CGO off, as the released binaries are built.
export CGO_ENABLED=0

version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' test/apiserver/go.mod)
[ -n "$version" ] || { say "test/apiserver/go.mod does not require k8s.io/kubernetes"; exit 1; }
minor=${version#v*.} minor=${minor%%.*}
ldflags="-s -w"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags="$ldflags -X $p.gitVersion=$version -X $p.gitMajor=1 -X $p.gitMinor=$minor"
done

if [ ! -x "$folder/hollow-kubelet" ]; then
  gocache=$(go env GOCACHE)
  mkdir -p "$gocache"
  free=$(df -Pk "$gocache" | awk 'NR == 2 { print int($4 / 1024) }')
  [ "$free" -ge 6000 ] || lack "$free MB free below $gocache, about 6,000 MB are needed to build kube-apiserver"
  say "building Kubernetes $version and etcd; the first time takes about eight minutes of two idle cores"
fi
go -C test/apiserver build -buildvcs=false -p "$(nproc)" -ldflags "$ldflags" -o "$folder/" ./cmd/etcd ./cmd/kube-apiserver ./cmd/sample-apiserver ./cmd/hollow-kubelet \
  k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kubectl
go build -buildvcs=false -ldflags "-s -w" -o "$folder/retrial" ./cmd/retrial
[ "${1:-}" != build ] || exit 0
scripts/fetch-libchdb.sh

export RETRIAL_APISERVER_BIN=$folder
go -C test/apiserver vet ./...
if [ $# -gt 0 ]; then
  exec go -C test/apiserver test -count=1 -timeout 20m "$@" ./...
fi
exec env -C test/apiserver "$PWD/scripts/gotest.sh" -count=1 -timeout 20m ./...
