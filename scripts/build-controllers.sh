#!/usr/bin/env bash
# Builds controllers that clusters run, from their Go modules, for make test-e2e, and puts the
# roles they publish beside them, as NAME.yaml. A module is generated for each.
#
#   scripts/build-controllers.sh      prints the folder they are in
#
# Not among them: cert-manager, whose controller is a module of its own with the clients of every
# cloud's DNS; kube-state-metrics 2.17, whose module the proxy does not serve.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${XDG_CACHE_HOME:-$HOME/.cache}/retrial/controllers
export CGO_ENABLED=0 GOFLAGS=-mod=mod

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
  dir=$(go mod download -json "$path@$version" | awk -F'"' '$2 == "Dir" { print $4 }')
  if ! cmp -s "$module/generated.mod.new" "$module/generated.mod"; then
    mv "$module/generated.mod.new" "$module/generated.mod"
    cp "$module/generated.mod" "$module/go.mod"
    cat "$dir/go.sum" test/apiserver/go.sum | sort -u > "$module/go.sum"
  fi
  go -C "$module" build -buildvcs=false -ldflags "-s -w" -o "$folder/$name" "$package" >&2
  for file in "$@"; do
    echo "---"
    cat "$dir/$file"
  done > "$folder/$name.yaml"
}

controller kube-state-metrics k8s.io/kube-state-metrics/v2 v2.18.0 k8s.io/kube-state-metrics/v2 \
  examples/standard/{service-account,cluster-role,cluster-role-binding}.yaml < /dev/null
# Of the same release as test/apiserver: what they share is compiled once, but for the client of
# Prometheus, whose interface has changed since.
awk '$1 ~ /[.].*\// && $2 ~ /^v/ && $2 != "v0.0.0" && $1 !~ /retrial|prometheus/ { print "replace " $1 " => " $1 " " $2 }' test/apiserver/go.mod |
  controller descheduler sigs.k8s.io/descheduler v0.36.0 sigs.k8s.io/descheduler/cmd/descheduler kubernetes/base/rbac.yaml
echo "$folder"
