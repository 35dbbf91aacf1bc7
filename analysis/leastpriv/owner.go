package leastpriv

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnerOf says what writes an object again when it is changed, by its metadata: a Helm release, an application of Argo CD, what Flux
// applies, an operator of OLM, or an owner; "" where nothing is known to.
func OwnerOf(meta *metav1.ObjectMeta) string {
	label := func(names ...string) string {
		for _, n := range names {
			if v := cmp.Or(meta.Labels[n], meta.Annotations[n]); v != "" {
				return v
			}
		}
		return ""
	}
	named := func(what, namespace, name string) string {
		if namespace != "" {
			name = namespace + "/" + name
		}
		return what + " " + name
	}
	if name := label("helm.toolkit.fluxcd.io/name"); name != "" {
		return named("Flux HelmRelease", label("helm.toolkit.fluxcd.io/namespace"), name)
	}
	if name := label("kustomize.toolkit.fluxcd.io/name"); name != "" {
		return named("Flux Kustomization", label("kustomize.toolkit.fluxcd.io/namespace"), name)
	}
	if id := label("argocd.argoproj.io/tracking-id"); id != "" {
		app, _, _ := strings.Cut(id, ":")
		return "Argo CD application " + app
	}
	if app := label("argocd.argoproj.io/instance"); app != "" {
		return "Argo CD application " + app
	}
	if name := label("meta.helm.sh/release-name"); name != "" {
		return named("Helm release", label("meta.helm.sh/release-namespace"), name)
	}
	if meta.Labels[Label] == "Helm" {
		return "a Helm release"
	}
	if name := label("olm.owner"); name != "" {
		return named("OLM "+cmp.Or(label("olm.owner.kind"), "owner"), label("olm.owner.namespace"), name)
	}
	if len(meta.OwnerReferences) > 0 {
		return meta.OwnerReferences[0].Kind + " " + meta.OwnerReferences[0].Name
	}
	return ""
}
