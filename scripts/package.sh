#!/usr/bin/env bash
# Makes the archives of a release: dist/retrial_VERSION_linux_ARCH.tar.gz with the program, its man pages, and the file by which kubectl
# completes the plugin (deploy/kubectl). VERSION names the release.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${VERSION:-$(git describe --tags --always --dirty)}
mkdir -p dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go run ./cmd/retrial man "$work/man"
for arch in amd64 arm64; do
	rm -rf "$work/$arch"
	mkdir -p "$work/$arch/man"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags "-s -w -X github.com/retrial-io/retrial/internal/version.Version=$version" \
		-o "$work/$arch/retrial" ./cmd/retrial
	cp -r "$work/man" "$work/$arch/"
	cp ./deploy/kubectl/kubectl_complete-retrial ./LICENSE "$work/$arch/"
	tar -C "$work/$arch" --sort=name --owner=0 --group=0 -czf "dist/retrial_${version}_linux_${arch}.tar.gz" .
	echo "dist/retrial_${version}_linux_${arch}.tar.gz"
done
