#!/usr/bin/env bash
# Builds controllers that clusters run, from their Go modules, for make test-e2e, and puts the
# roles they publish beside them, as NAME.yaml. A module is generated for each.
#
#   scripts/build-controllers.sh      prints the folder they are in
#
# Not among them: kube-state-metrics 2.17, argo-rollouts 1.10 (it wants a newer Go), whose modules cannot be had here.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${XDG_CACHE_HOME:-$HOME/.cache}/retrial/controllers
export CGO_ENABLED=0 GOFLAGS=-mod=mod

# source PATH VERSION prints the folder of a module.
source() { go mod download -json "$1@$2" | awk -F'"' '$2 == "Dir" { print $4 }'; }

# compile NAME DIR PACKAGE builds a package in the module generated for a controller, whose
# requirements are generated.mod.new; DIR is where the controller's own module lies.
compile() {
  local name=$1 dir=$2 package=$3 module=$folder/$1-module
  if ! cmp -s "$module/generated.mod.new" "$module/generated.mod"; then
    mv "$module/generated.mod.new" "$module/generated.mod"
    cp "$module/generated.mod" "$module/go.mod"
    cat "$dir/go.sum" test/apiserver/go.sum | sort -u > "$module/go.sum"
  fi
  go -C "$module" build -buildvcs=false -ldflags "-s -w" -o "$folder/$name" "$package" >&2
}

# publish NAME DIR FILE... puts what a module publishes into NAME.yaml.
publish() {
  local name=$1 dir=$2 file
  shift 2
  for file in "$@"; do
    echo "---"
    cat "$dir/$file"
  done > "$folder/$name.yaml"
}

# controller NAME MODULE VERSION PACKAGE FILE...: FILEs are what it publishes. On standard input:
# replacements, where its own requirements cannot be had or another version is compiled anyway.
controller() {
  local name=$1 path=$2 version=$3 package=$4 module=$folder/$1-module dir
  shift 4
  mkdir -p "$module"
  {
    echo "module example.com/$name"
    echo "go $(awk '$1 == "go" { print $2 }' test/apiserver/go.mod)"
    echo "require $path $version"
    cat
  } > "$module/generated.mod.new"
  dir=$(source "$path" "$version")
  compile "$name" "$dir" "$package"
  publish "$name" "$dir" "$@"
}

controller kube-state-metrics k8s.io/kube-state-metrics/v2 v2.18.0 k8s.io/kube-state-metrics/v2 \
  examples/standard/{service-account,cluster-role,cluster-role-binding}.yaml < /dev/null
# Of the same release as test/apiserver: what they share is compiled once, but for the client of
# Prometheus, whose interface has changed since.
awk '$1 ~ /[.].*\// && $2 ~ /^v/ && $2 != "v0.0.0" && $1 !~ /retrial|prometheus/ { print "replace " $1 " => " $1 " " $2 }' test/apiserver/go.mod |
  controller descheduler sigs.k8s.io/descheduler v0.36.0 sigs.k8s.io/descheduler/cmd/descheduler kubernetes/base/rbac.yaml
controller prometheus-operator github.com/prometheus-operator/prometheus-operator v0.85.0 github.com/prometheus-operator/prometheus-operator/cmd/operator \
  example/rbac/prometheus-operator/prometheus-operator-{service-account,cluster-role,cluster-role-binding}.yaml example/rbac/prometheus-operator-crd/prometheus-operator-crd-cluster-roles.yaml \
  example/prometheus-operator-crd/monitoring.coreos.com_{alertmanagerconfigs,alertmanagers,podmonitors,probes,prometheusagents,prometheuses,prometheusrules,scrapeconfigs,servicemonitors,thanosrulers}.yaml < /dev/null
controller metrics-server sigs.k8s.io/metrics-server v0.9.0 sigs.k8s.io/metrics-server/cmd/metrics-server manifests/base/{rbac,service,apiservice}.yaml < /dev/null

# cert-manager's command is a module of its own, which cannot be had: another takes
# its place. What it publishes is a chart.
own=test/apiserver/guests/cert-manager module=$folder/cert-manager-module
mkdir -p "$module/chart"
cp "$own/go.mod" "$module/generated.mod.new"
cp "$own/main.go" "$module/"
cp "$own/chart/main.go" "$module/chart/"
dir=$(source github.com/cert-manager/cert-manager "$(awk '$1 == "github.com/cert-manager/cert-manager" { print $2 }' "$own/go.mod")")
compile cert-manager "$dir" .
go -C "$module" build -buildvcs=false -ldflags "-s -w" -o "$folder/chart" ./chart >&2
publish cert-manager "$dir" deploy/crds/{acme.cert-manager.io_challenges,acme.cert-manager.io_orders,cert-manager.io_certificaterequests,cert-manager.io_certificates,cert-manager.io_clusterissuers,cert-manager.io_issuers}.yaml
"$folder/chart" "$dir/deploy/charts/cert-manager" cert-manager serviceaccount.yaml rbac.yaml >> "$folder/cert-manager.yaml"
echo "$folder"
