package admission

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// FuzzPodParts holds what is read of a pod to what decoding all of it gives.
func FuzzPodParts(f *testing.F) {
	for _, body := range []string{
		`{}`,
		`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"x","other":"y"}},` +
			`"spec":{"serviceAccountName":"a","serviceAccount":"b"}}`,
		`{"metadata":{"annotations":{"kubernetes.io/config.mirror":null}}}`,
		`{"metadata":{"annotations":null},"spec":{"volumes":[{"name":"v","secret":{"secretName":"s"}},{"secret":null}]}}`,
		`{"spec":{"volumes":[{"projected":{"sources":[{"serviceAccountToken":{"path":"t"}},{"secret":{"name":"s"}}]}}]}}`,
		`{"spec":{"containers":[{"name":"c","env":[{"name":"e","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]}}`,
		`{"spec":{"initContainers":[{"envFrom":[{"secretRef":{"name":"s"}},{"configMapRef":{"name":"m"}}]}],` +
			`"imagePullSecrets":[{"name":"p"}]}}`,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}},"ports":[{"containerPort":80}]}],"nodeName":"n"},` +
			`"Spec":{"serviceAccountName":"x"}}`,
		`{"spec":{"serviceAccountName":"a"},"spec":{"serviceAccount":"b","volumes":[]}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var whole corev1.Pod
		if kjson.UnmarshalCaseSensitivePreserveInts(body, &whole) != nil {
			return // no apiserver admits it; TestServiceAccount has one
		}
		var parts podParts
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &parts); err != nil {
			t.Fatalf("a pod that decodes: %v", err)
		}
		_, mirror := whole.Annotations[corev1.MirrorPodAnnotationKey]
		if got := parts.Metadata.Annotations.Mirror; bool(got) != mirror {
			t.Errorf("mirror %v, want %v", got, mirror)
		}
		got := [2]string{parts.Spec.ServiceAccountName, parts.Spec.DeprecatedServiceAccount}
		if want := [2]string{whole.Spec.ServiceAccountName, whole.Spec.DeprecatedServiceAccount}; got != want {
			t.Errorf("accounts %q, want %q", got, want)
		}
		if got, want := holdsSecrets(&parts), wholeHoldsSecrets(&whole); got != want {
			t.Errorf("holds secrets %v, want %v", got, want)
		}
		token := slices.ContainsFunc(whole.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
				return s.ServiceAccountToken != nil
			})
		})
		if got := projectsToken(&parts); got != token {
			t.Errorf("projects a token %v, want %v", got, token)
		}
	})
}

func wholeHoldsSecrets(pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil }) || len(pod.Spec.ImagePullSecrets) > 0 {
		return true
	}
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil }) ||
			slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool { return e.SecretRef != nil })
	})
}
