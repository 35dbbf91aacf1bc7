package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

// podObject is what is read of a pod.
type podObject struct {
	Metadata struct {
		Name        string `json:"name"`
		Annotations struct {
			Mirror *string `json:"kubernetes.io/config.mirror"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		NodeName            string                        `json:"nodeName"`
		ServiceAccountName  string                        `json:"serviceAccountName"`
		ImagePullSecrets    []corev1.LocalObjectReference `json:"imagePullSecrets"`
		InitContainers      []container                   `json:"initContainers"`
		Containers          []container                   `json:"containers"`
		EphemeralContainers []container                   `json:"ephemeralContainers"`
		Volumes             []corev1.Volume               `json:"volumes"`
		ResourceClaims      []podClaim                    `json:"resourceClaims"`
	} `json:"spec"`
	Status struct {
		ResourceClaimStatuses       []corev1.PodResourceClaimStatus `json:"resourceClaimStatuses"`
		ExtendedResourceClaimStatus *struct {
			ResourceClaimName string `json:"resourceClaimName"`
		} `json:"extendedResourceClaimStatus"`
	} `json:"status"`
}

// podClaim is an entry of spec.resourceClaims; up to 1.30 what it is made of lies in source.
type podClaim struct {
	Name string `json:"name"`
	claimSource
	Source claimSource `json:"source"`
}

type claimSource struct {
	ResourceClaimName         *string `json:"resourceClaimName"`
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName"`
}

// container is what is read of a container of any sort.
type container struct {
	EnvFrom []corev1.EnvFromSource `json:"envFrom"`
	Env     []struct {
		ValueFrom *corev1.EnvVarSource `json:"valueFrom"`
	} `json:"env"`
}

// PodContent reads what the graph needs of a pod, in JSON as the apiserver writes it: everything the node authorizer takes for a reference
// (k8s.io/kubernetes plugin/pkg/auth/authorizer/node, pkg/api/v1/pod). The claims of generic ephemeral volumes are named after the pod, so
// metadata.name is required.
func PodContent(object []byte) (Content, error) {
	var p podObject
	if err := json.UnmarshalCaseSensitivePreserveInts(object, &p); err != nil {
		return Content{}, fmt.Errorf("read pod: %w", err)
	}
	c := Content{
		Node:      p.Spec.NodeName,
		Ephemeral: uint16(min(len(p.Spec.EphemeralContainers), 1<<16-1)),
		Statuses:  digestStatuses(p.Status.ResourceClaimStatuses),
	}
	if p.Metadata.Annotations.Mirror != nil {
		return c, nil // or else a kubelet could make up a pod and read what it names
	}
	c.Refs = refsOf(p.refs())
	return c, nil
}

// PodSecrets reports whether a pod, in JSON as the apiserver writes it, names secrets.
func PodSecrets(object []byte) (bool, error) {
	var p podObject
	if err := json.UnmarshalCaseSensitivePreserveInts(object, &p); err != nil {
		return false, fmt.Errorf("read pod: %w", err)
	}
	return slices.ContainsFunc(p.refs(), func(r ref) bool { return r.kind == refSecret }), nil
}

// refs returns the pod's references in any order.
func (p *podObject) refs() []ref {
	var rs []ref
	add := func(kind refKind, name string) {
		if name != "" {
			rs = append(rs, ref{kind: kind, name: name})
		}
	}
	add(refServiceAccount, p.Spec.ServiceAccountName)
	for i := range p.Spec.ImagePullSecrets {
		add(refSecret, p.Spec.ImagePullSecrets[i].Name)
	}
	for _, list := range [][]container{p.Spec.InitContainers, p.Spec.Containers, p.Spec.EphemeralContainers} {
		for i := range list {
			list[i].refs(add)
		}
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		add(refSecret, podVolumeSecret(&v.VolumeSource))
		switch {
		case v.Projected != nil:
			for j := range v.Projected.Sources {
				source := &v.Projected.Sources[j]
				if source.Secret != nil {
					add(refSecret, source.Secret.Name)
				}
				if source.ConfigMap != nil {
					add(refConfigMap, source.ConfigMap.Name)
				}
			}
		case v.ConfigMap != nil:
			add(refConfigMap, v.ConfigMap.Name)
		case v.PersistentVolumeClaim != nil:
			add(refClaim, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil && p.Metadata.Name != "":
			add(refClaim, p.Metadata.Name+"-"+v.Name)
		}
	}
	for i := range p.Spec.ResourceClaims {
		add(refResourceClaim, p.resourceClaim(&p.Spec.ResourceClaims[i]))
	}
	if ext := p.Status.ExtendedResourceClaimStatus; ext != nil {
		add(refResourceClaim, ext.ResourceClaimName)
	}
	return rs
}

func (c *container) refs(add func(refKind, string)) {
	for i := range c.EnvFrom {
		if s := c.EnvFrom[i].SecretRef; s != nil {
			add(refSecret, s.Name)
		}
		if m := c.EnvFrom[i].ConfigMapRef; m != nil {
			add(refConfigMap, m.Name)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		if from.SecretKeyRef != nil {
			add(refSecret, from.SecretKeyRef.Name)
		}
		if from.ConfigMapKeyRef != nil {
			add(refConfigMap, from.ConfigMapKeyRef.Name)
		}
	}
}

// resourceClaim returns the name of the claim behind an entry of spec.resourceClaims: named
// there, or in the status once it was made from a template. "" while it does not exist.
func (p *podObject) resourceClaim(c *podClaim) string {
	from := c.claimSource
	if c.Source != (claimSource{}) {
		from = c.Source
	}
	if from.ResourceClaimName != nil {
		return *from.ResourceClaimName
	}
	if from.ResourceClaimTemplateName == nil {
		return ""
	}
	for i := range p.Status.ResourceClaimStatuses {
		if s := &p.Status.ResourceClaimStatuses[i]; s.Name == c.Name {
			if s.ResourceClaimName == nil {
				return ""
			}
			return *s.ResourceClaimName
		}
	}
	return ""
}

// podVolumeSecret returns the secret a volume of a pod names itself, "" for none. Projected volumes, which name several, are not asked.
func podVolumeSecret(v *corev1.VolumeSource) string {
	var local *corev1.LocalObjectReference
	switch {
	case v.Secret != nil:
		return v.Secret.SecretName
	case v.AzureFile != nil:
		return v.AzureFile.SecretName
	case v.CephFS != nil:
		local = v.CephFS.SecretRef
	case v.Cinder != nil:
		local = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		local = v.FlexVolume.SecretRef
	case v.RBD != nil:
		local = v.RBD.SecretRef
	case v.ScaleIO != nil:
		local = v.ScaleIO.SecretRef
	case v.ISCSI != nil:
		local = v.ISCSI.SecretRef
	case v.StorageOS != nil:
		local = v.StorageOS.SecretRef
	case v.CSI != nil:
		local = v.CSI.NodePublishSecretRef
	}
	if local == nil {
		return ""
	}
	return local.Name
}

// digestStatuses returns a digest of claim statuses: names, claim names and whether one exists, in order; 0 for none.
func digestStatuses(list []corev1.PodResourceClaimStatus) uint32 {
	if len(list) == 0 {
		return 0
	}
	var text []byte
	for i := range list {
		text = appendText(text, list[i].Name)
		if n := list[i].ResourceClaimName; n != nil {
			text = appendText(append(text, '+'), *n)
		}
	}
	return uint32(xxhash.Sum64(text)) | 1
}

// volumeObject is what is read of a persistent volume.
type volumeObject struct {
	Spec struct {
		ClaimRef *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"claimRef"`
		corev1.PersistentVolumeSource `json:",inline"`
	} `json:"spec"`
}

// VolumeContent reads a persistent volume: the claim it is bound to and the secrets that kubelets, not only controllers, need for it. A
// volume that is not bound has no content.
func VolumeContent(object []byte) (Content, error) {
	var v volumeObject
	if err := json.UnmarshalCaseSensitivePreserveInts(object, &v); err != nil {
		return Content{}, fmt.Errorf("read persistent volume: %w", err)
	}
	claim := v.Spec.ClaimRef
	if claim == nil {
		return Content{}, nil
	}
	rs := []ref{{refVolumeClaim, claim.Namespace, claim.Name}}
	for _, s := range volumeSecrets(&v.Spec.PersistentVolumeSource, claim.Namespace) {
		if s != nil && s.Name != "" {
			rs = append(rs, ref{refVolumeSecret, s.Namespace, s.Name})
		}
	}
	return Content{Refs: refsOf(rs)}, nil
}

// volumeSecrets returns the secrets of a volume that kubelets see; nil entries are none. Most
// sorts of volume fall back to the namespace of the claim.
func volumeSecrets(v *corev1.PersistentVolumeSource, claim string) []*corev1.SecretReference {
	var s *corev1.SecretReference
	switch {
	case v.AzureFile != nil:
		s = &corev1.SecretReference{Name: v.AzureFile.SecretName}
		if v.AzureFile.SecretNamespace != nil {
			s.Namespace = *v.AzureFile.SecretNamespace
		}
	case v.CephFS != nil:
		s = v.CephFS.SecretRef
	case v.Cinder != nil:
		return []*corev1.SecretReference{v.Cinder.SecretRef}
	case v.FlexVolume != nil:
		s = v.FlexVolume.SecretRef
	case v.RBD != nil:
		s = v.RBD.SecretRef
	case v.ScaleIO != nil:
		s = v.ScaleIO.SecretRef
	case v.ISCSI != nil:
		s = v.ISCSI.SecretRef
	case v.StorageOS != nil:
		if r := v.StorageOS.SecretRef; r != nil {
			return []*corev1.SecretReference{{Namespace: r.Namespace, Name: r.Name}}
		}
	case v.CSI != nil:
		return []*corev1.SecretReference{v.CSI.NodePublishSecretRef, v.CSI.NodeStageSecretRef, v.CSI.NodeExpandSecretRef}
	}
	if s != nil && s.Namespace == "" {
		s = &corev1.SecretReference{Namespace: claim, Name: s.Name}
	}
	return []*corev1.SecretReference{s}
}

// NodeContent reads an object of which only spec.nodeName counts: a volume attachment, a resource slice, a pod certificate request.
func NodeContent(object []byte) (Content, error) {
	var o struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
		NodeName string `json:"nodeName"` // of a resource slice of v1alpha2
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(object, &o); err != nil {
		return Content{}, fmt.Errorf("read spec.nodeName: %w", err)
	}
	return Content{Node: cmp.Or(o.Spec.NodeName, o.NodeName)}, nil
}

// ContentOf reads an object of a kind.
func ContentOf(kind Kind, object []byte) (Content, error) {
	switch kind {
	case Pod:
		return PodContent(object)
	case Volume:
		return VolumeContent(object)
	}
	return NodeContent(object)
}
