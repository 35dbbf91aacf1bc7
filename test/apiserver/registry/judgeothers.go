package registry

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// namespace asks about a namespace.
func (q *question) namespace() {
	is := object[corev1.Namespace](q.judge, q.m, q.full)
	said := q.st.Namespace(q.name, q.m.at, q.m.at)
	known := state.Present
	switch said {
	case state.NamespaceUnknown, state.NamespaceChanging:
		known = state.Unknown
	case state.NamespaceAbsent:
		known = state.Absent
	}
	if q.answered(known, is != nil) && (said == state.NamespaceTerminating) != (is.DeletionTimestamp != nil) {
		q.differs("said to be %v, is deleted at %v", said, is.DeletionTimestamp)
	}
}

// secret asks about a Secret.
func (q *question) secret() {
	is := object[corev1.Secret](q.judge, q.m, q.full)
	said, known := q.st.Secret(q.ns, q.name, q.m.at)
	if !q.answered(known, is != nil) {
		return
	}
	if said.UID != "" && said.UID != string(is.UID) {
		q.differs("said to have uid %s, has %s", said.UID, is.UID)
		return
	}
	if said.Incomplete {
		return
	}
	if said.Deleting != (is.DeletionTimestamp != nil) {
		q.differs("said to be deleted: %v, is at %v", said.Deleting, is.DeletionTimestamp)
	}
	for _, text := range [][2]string{
		{said.Type, string(is.Type)}, {said.ServiceAccount, is.Annotations[corev1.ServiceAccountNameKey]},
		{said.ServiceAccountUID, is.Annotations[corev1.ServiceAccountUIDKey]},
		{said.LastUsed, is.Labels["kubernetes.io/legacy-token-last-used"]},
	} {
		if text[0] != text[1] {
			q.differs("said to hold %q, holds %q", text[0], text[1])
		}
	}
	if b := said.Bootstrap; b != nil && (b.ID != string(is.Data["token-id"]) ||
		b.Authentication != (string(is.Data["usage-bootstrap-authentication"]) == "true")) {
		q.differs("said to hold the bootstrap token %v, holds %s", b, is.Data)
	}
}

// signing asks about a certificate signing request.
func (q *question) signing() {
	is := object[certificatesv1.CertificateSigningRequest](q.judge, q.m, q.full)
	q.life(is != nil, meta(is))
	if signer, known := q.st.Signer(q.name, q.m.at); known == state.Present && is != nil && signer != is.Spec.SignerName && !q.changing() {
		q.differs("said to ask %s, asks %s", signer, is.Spec.SignerName)
	}
}

// other asks about an object of which its life is kept, and what the node authorizer follows.
func (q *question) other() {
	var is *metav1.ObjectMeta
	switch q.resource {
	case kept.ServiceAccounts:
		is = meta(object[corev1.ServiceAccount](q.judge, q.m, q.full))
	case kept.Nodes:
		is = meta(object[corev1.Node](q.judge, q.m, q.full))
	case kept.PersistentVolumes:
		is = meta(object[corev1.PersistentVolume](q.judge, q.m, q.full))
	case kept.VolumeAttachments:
		is = meta(object[storagev1.VolumeAttachment](q.judge, q.m, q.full))
	case kept.ResourceSlices:
		is = meta(object[resourcev1.ResourceSlice](q.judge, q.m, q.full))
	}
	q.life(is != nil, is)
}

// life reports whether an object is there, and its uid.
func (q *question) life(there bool, is *metav1.ObjectMeta) {
	said, known := q.st.Version(q.resource, q.ns, q.name, q.m.at)
	if q.answered(known, there) && said.UID != "" && said.UID != string(is.UID) {
		q.differs("said to have uid %s, has %s", said.UID, is.UID)
	}
}

// meta returns the metadata of an object, nil of none.
func meta[T any, P interface {
	*T
	GetObjectMeta() metav1.Object
}](o P) *metav1.ObjectMeta {
	if o == nil {
		return nil
	}
	return o.GetObjectMeta().(*metav1.ObjectMeta)
}

// relation is one question of the node authorizer.
type relation struct{ node, group, resource, namespace, name string }

// relations returns what leads to nodes at a moment: as the node authorizer has it, through pods that
// are bound, the volumes of their claims, attachments and slices.
func (j *judge) relations(m *moment) map[relation]bool {
	out := map[relation]bool{}
	claims := map[[3]string]bool{} // namespace, name, node
	for _, full := range j.objects {
		parts := strings.Split(full, "/")
		switch parts[0] {
		case kept.Pods:
			p := object[corev1.Pod](j, m, full)
			if p == nil || p.Spec.NodeName == "" {
				continue
			}
			add := func(resource, name string) {
				out[relation{p.Spec.NodeName, "", resource, p.Namespace, name}] = true
			}
			add("pods", p.Name)
			add("serviceaccounts", p.Spec.ServiceAccountName)
			from := func(list []corev1.EnvFromSource) {
				for _, e := range list {
					if e.SecretRef != nil {
						add("secrets", e.SecretRef.Name)
					}
					if e.ConfigMapRef != nil {
						add("configmaps", e.ConfigMapRef.Name)
					}
				}
			}
			for _, c := range p.Spec.Containers {
				from(c.EnvFrom)
			}
			for _, c := range p.Spec.EphemeralContainers {
				from(c.EnvFrom)
			}
			for _, v := range p.Spec.Volumes {
				switch {
				case v.Secret != nil:
					add("secrets", v.Secret.SecretName)
				case v.ConfigMap != nil:
					add("configmaps", v.ConfigMap.Name)
				case v.PersistentVolumeClaim != nil:
					add("persistentvolumeclaims", v.PersistentVolumeClaim.ClaimName)
					claims[[3]string{p.Namespace, v.PersistentVolumeClaim.ClaimName, p.Spec.NodeName}] = true
				}
			}
		case kept.VolumeAttachments:
			if a := object[storagev1.VolumeAttachment](j, m, full); a != nil {
				out[relation{a.Spec.NodeName, "storage.k8s.io", "volumeattachments", "", a.Name}] = true
			}
		case kept.ResourceSlices:
			if s := object[resourcev1.ResourceSlice](j, m, full); s != nil && s.Spec.NodeName != nil {
				out[relation{*s.Spec.NodeName, "resource.k8s.io", "resourceslices", "", s.Name}] = true
			}
		}
	}
	for _, full := range j.objects {
		if !strings.HasPrefix(full, kept.PersistentVolumes+"/") {
			continue
		}
		v := object[corev1.PersistentVolume](j, m, full)
		if v == nil || v.Spec.ClaimRef == nil {
			continue
		}
		for c := range claims {
			if c[0] == v.Spec.ClaimRef.Namespace && c[1] == v.Spec.ClaimRef.Name {
				out[relation{c[2], "", "persistentvolumes", "", v.Name}] = true
				if r := v.Spec.CSI.NodePublishSecretRef; r != nil {
					out[relation{c[2], "", "secrets", r.Namespace, r.Name}] = true
				}
			}
		}
	}
	return out
}

// related reports whether paths lead from objects to nodes.
func (j *judge) related(st *state.State, m *moment, live bool) {
	var ask []relation
	concerned := false
	for _, full := range j.objects {
		parts := strings.Split(full, "/")
		for _, node := range []string{"m1", "m2"} {
			switch parts[0] {
			case kept.Pods:
				ask = append(ask, relation{node, "", "pods", parts[1], parts[2]})
				concerned = true
			case kept.PersistentVolumes:
				ask = append(ask, relation{node, "", "persistentvolumes", "", parts[2]})
			case kept.VolumeAttachments:
				ask = append(ask, relation{node, "storage.k8s.io", "volumeattachments", "", parts[2]})
			case kept.ResourceSlices:
				ask = append(ask, relation{node, "resource.k8s.io", "resourceslices", "", parts[2]})
			}
		}
	}
	if concerned {
		for _, node := range []string{"m1", "m2"} {
			for _, of := range [][2]string{{"secrets", "x"}, {"secrets", "y"}, {"secrets", "z"}, {"secrets", "w"}, {"configmaps", "x"},
				{"configmaps", "y"},
				{"persistentvolumeclaims", "p"}, {"serviceaccounts", "s1"}, {"serviceaccounts", "s2"}} {
				ask = append(ask, relation{node, "", of[0], "n1", of[1]})
			}
		}
	}
	if len(ask) == 0 {
		return
	}
	is := j.relations(m)
	for _, r := range ask {
		said := st.RelatedWithin(m.at, m.at, r.node, r.group, r.resource, r.namespace, r.name)
		c := j.counts["paths to nodes"]
		c.Answers++
		known := state.Absent
		if is[r] {
			known = state.Present
		}
		if said.Has(state.Unknown) {
			c.Unknown++
		} else if !said.Has(known) {
			q := question{judge: j, m: m, live: live, full: r.resource + "/" + r.namespace + "/" + r.name}
			q.differs("said of a path to %s: %v, it is %v", r.node, said, known)
		}
		j.counts["paths to nodes"] = c
	}
}
