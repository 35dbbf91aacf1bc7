// cert-manager's command is a module of its own, which cannot be had: this one takes its place.
// scripts/build-controllers.sh adds what is required indirectly.
module github.com/retrial-io/retrial/test/apiserver/guests/cert-manager

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	helm.sh/helm/v3 v3.22.0
)
