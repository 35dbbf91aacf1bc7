#!/usr/bin/env bash
# Builds the programs of one Kubernetes release from its Go module, for make test-e2e:
# kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, and of test/apiserver/cmd
# the kubelet without containers and, if it is named, the end-to-end suite (e2e). A module is
# generated for the release, with its own requirements: what the release's go.mod replaces by
# its staging folders is replaced by the published modules of the same release. Programs that
# were built are not built again.
#
#   scripts/build-release.sh 1.28 [PROGRAM...]      prints the folder they are in
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'build-release: %s\n' "$*" >&2; }
release=${1:?which release, such as 1.28}
shift
programs=("$@")
[ $# -gt 0 ] || programs=(kube-apiserver kube-controller-manager kube-scheduler kubectl hollow-kubelet)

# The newest patch release whose module and staging modules can be had.
case $release in
  1.28) version=1.28.15 ;;
  1.33) version=1.33.13 ;;
  1.36) version=$(awk '$1 == "k8s.io/kubernetes" { print substr($2, 2) }' test/apiserver/go.mod) ;;
  1.37) version=1.37.2 ;;
  1.*.*) version=$release ;;
  *) say "no such release: $release (1.28, 1.33, 1.36, 1.37 or a patch release)"; exit 2 ;;
esac
staging=v0.${version#1.}
minor=${version#1.} minor=${minor%.*}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/retrial
folder=$cache/releases/v$version
module=$folder/module
mkdir -p "$module/hollow-kubelet" "$module/e2e"
export CGO_ENABLED=0 GOFLAGS=-mod=mod

source=$(go mod download -json "k8s.io/kubernetes@v$version" | awk -F'"' '$2 == "Dir" { print $4 }')
[ -d "$source" ] || { say "k8s.io/kubernetes@v$version is not available"; exit 1; }
# replace OLD puts OLD.new in its place if it is another one, so that times tell what is stale.
replace() { if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi; }
sed -e "s,^module .*,module example.com/release," \
  -e "s,=> ./staging/src/\(k8s.io/[a-z-]*\),=> \1 $staging," "$source/go.mod" > "$module/generated.mod.new"
go mod edit -require="k8s.io/kubernetes@v$version" "$module/generated.mod.new"
replace "$module/generated.mod"
if [ ! -f "$module/go.mod" ] || [ "$module/generated.mod" -nt "$module/go.mod" ]; then
  install -m 644 "$module/generated.mod" "$module/go.mod"
  install -m 644 "$source/go.sum" "$module/go.sum"
fi
# What moved between releases.
kubelet=$module/hollow-kubelet/main.go
sed_args=(-e '')
[ "$minor" -ge 31 ] || sed_args+=(-e 's,"k8s.io/cri-client/pkg/fake","k8s.io/kubernetes/pkg/kubelet/cri/remote/fake",')
grep -q 'func InitializeTLS(ctx' "$source/cmd/kubelet/app/server.go" || sed_args+=(-e 's/InitializeTLS(ctx, /InitializeTLS(/')
sed "${sed_args[@]}" test/apiserver/cmd/hollow-kubelet/main.go > "$kubelet.new"
replace "$kubelet"
cp test/apiserver/cmd/e2e/main.go "$module/e2e/main.go.new"
replace "$module/e2e/main.go"

ldflags="-s -w"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags="$ldflags -X $p.gitVersion=v$version -X $p.gitMajor=1 -X $p.gitMinor=$minor"
done
for program in "${programs[@]}"; do
  package=k8s.io/kubernetes/cmd/$program
  newest=$module/generated.mod
  case $program in
    hollow-kubelet | e2e)
      package=./$program
      [ "$module/$program/main.go" -ot "$newest" ] || newest=$module/$program/main.go
      ;;
  esac
  [ ! "$folder/$program" -nt "$newest" ] || continue
  say "building $program v$version"
  go -C "$module" build -buildvcs=false -p "$(nproc)" -ldflags "$ldflags" -o "$folder/" "$package" >&2
done
echo "$folder"
