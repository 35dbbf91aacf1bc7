package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	certsv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// generator makes a cluster and what becomes of it. Names come from small pools, so that
// objects share what they refer to, and names are used again by others.
type generator struct {
	*rand.Rand
	now   int64
	uids  int
	begin int // writes before the first request
	// plausible leaves out what no apiserver or controller does: a state may take it that a
	// pod's claims are made once and its spec stays.
	plausible                                  bool
	nodes, pods, namespaces                    []string
	accounts, secrets, configs, claims, gadget []string

	livePods        map[string]*corev1.Pod
	liveVolumes     map[string]*corev1.PersistentVolume
	liveAttachments map[string]*storagev1.VolumeAttachment
	liveSlices      map[string]*resourcev1.ResourceSlice
	liveRequests    map[string]*certsv1beta1.PodCertificateRequest
}

func newGenerator(seed, n uint64) generator {
	g := generator{
		Rand:     rand.New(rand.NewPCG(seed, n)),
		livePods: map[string]*corev1.Pod{}, liveVolumes: map[string]*corev1.PersistentVolume{},
		liveAttachments: map[string]*storagev1.VolumeAttachment{}, liveSlices: map[string]*resourcev1.ResourceSlice{},
		liveRequests: map[string]*certsv1beta1.PodCertificateRequest{},
	}
	// Most clusters are small and dense; some have crowds that refer to the same few objects.
	podNames, nodeNames, spaces, referred := 3+g.IntN(20), 1+g.IntN(6), 1+g.IntN(4), 1+g.IntN(6)
	g.begin = g.IntN(60)
	if g.one(8) {
		podNames, nodeNames, spaces, referred, g.begin = 600, 2+g.IntN(60), 1+g.IntN(2), 1+g.IntN(3), 700
	}
	g.nodes = pool("node-", nodeNames)
	g.pods = pool("p", podNames)
	g.namespaces = append(pool("ns", spaces), "kube-node-lease")
	g.accounts, g.secrets, g.configs = pool("sa", referred), pool("s", referred), pool("cm", referred)
	g.claims, g.gadget = pool("c", referred), pool("gpu", referred)
	return g
}

func pool(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i)
	}
	return list
}

// one is true in one of n cases.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

// live picks one of the objects there are, nil if there is none.
func live[T any](g *generator, m map[string]*T) *T {
	if len(m) == 0 {
		return nil
	}
	return m[pick(g, slices.Sorted(maps.Keys(m)))]
}

func (g *generator) meta(namespace, name string) metav1.ObjectMeta {
	g.uids++
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("u" + strconv.Itoa(g.uids)),
		CreationTimestamp: metav1.NewTime(momentOf(g.now + 1)),
	}
}

// change makes one write: an object before and after it, nil where it was not there. Both are
// nil if the turn is passed.
func (g *generator) change() (before, after any) {
	switch n := g.IntN(20); {
	case n < 12:
		return g.changePod()
	case n < 16:
		return g.changeVolume()
	case n < 18:
		return g.changeAttachment()
	case n < 19:
		return g.changeSlice()
	}
	return g.changeRequest()
}

func (g *generator) changePod() (any, any) {
	name, namespace := pick(g, g.pods), pick(g, g.namespaces)
	key := namespace + "/" + name
	old := g.livePods[key]
	switch {
	case old == nil:
		pod := &corev1.Pod{ObjectMeta: g.meta(namespace, name), Spec: g.podSpec()}
		if g.one(12) {
			pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		}
		if g.one(2) {
			pod.Spec.NodeName = pick(g, g.nodes)
		}
		g.livePods[key] = pod
		return nil, pod
	case g.one(4):
		delete(g.livePods, key)
		return old, nil
	}
	pod := old.DeepCopy()
	switch g.IntN(8) {
	case 0, 1, 2:
		if pod.Spec.NodeName == "" {
			pod.Spec.NodeName = pick(g, g.nodes)
		}
	case 3:
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon(g.container()),
		})
	case 4:
		pod.Status.ResourceClaimStatuses = g.statuses(pod)
	case 5:
		// Not refreshed for, until something else is.
		if g.plausible && pod.Status.ExtendedResourceClaimStatus != nil {
			return nil, nil
		}
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: pick(g, g.gadget)}
	case 6:
		// No apiserver lets this change; the graph would not look.
		if g.plausible {
			return nil, nil
		}
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pick(g, g.secrets)}}
	case 7:
		if pod.Spec.NodeName != "" { // gone and made anew between two looks
			pod = &corev1.Pod{ObjectMeta: g.meta(namespace, name), Spec: g.podSpec()}
			pod.Spec.NodeName = pick(g, g.nodes)
		}
	}
	g.livePods[key] = pod
	return old, pod
}

// statuses returns the claims made for a pod's templates, as far as they are made yet.
func (g *generator) statuses(pod *corev1.Pod) []corev1.PodResourceClaimStatus {
	var list []corev1.PodResourceClaimStatus
	if g.plausible {
		list = slices.Clone(pod.Status.ResourceClaimStatuses)
	}
	for _, c := range pod.Spec.ResourceClaims {
		made := slices.ContainsFunc(list, func(s corev1.PodResourceClaimStatus) bool { return s.Name == c.Name })
		if made || c.ResourceClaimTemplateName == nil || g.one(3) {
			continue
		}
		s := corev1.PodResourceClaimStatus{Name: c.Name}
		if !g.one(4) {
			s.ResourceClaimName = ptr(pick(g, g.gadget))
		}
		list = append(list, s)
	}
	return list
}

func ptr[T any](v T) *T { return &v }

func (g *generator) podSpec() corev1.PodSpec {
	var s corev1.PodSpec
	if !g.one(6) {
		s.ServiceAccountName = pick(g, g.accounts)
	}
	if g.one(4) {
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pick(g, g.secrets)}, {Name: ""}}
	}
	for range g.IntN(2) {
		s.InitContainers = append(s.InitContainers, g.container())
	}
	for range 1 + g.IntN(2) {
		s.Containers = append(s.Containers, g.container())
	}
	for i := range g.IntN(4) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: "v" + strconv.Itoa(i), VolumeSource: g.podVolume()})
	}
	for i := range g.IntN(3) {
		c := corev1.PodResourceClaim{Name: "r" + strconv.Itoa(i)}
		switch g.IntN(5) {
		case 0, 1:
			c.ResourceClaimName = ptr(pick(g, g.gadget))
		case 2, 3:
			c.ResourceClaimTemplateName = ptr("template")
		}
		s.ResourceClaims = append(s.ResourceClaims, c)
	}
	return s
}

func (g *generator) container() corev1.Container {
	c := corev1.Container{Name: "c", Image: "i"}
	if g.one(4) {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: g.secret()}})
	}
	if g.one(4) {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: g.config()}})
	}
	if g.one(4) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "plain"}, corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: g.secret(), Key: "k"},
		}})
	}
	if g.one(4) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "C", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: g.config(), Key: "k"},
		}})
	}
	return c
}

func (g *generator) secret() corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: pick(g, g.secrets)}
}

func (g *generator) config() corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: pick(g, g.configs)}
}

// local returns a reference to a secret, or none.
func (g *generator) local() *corev1.LocalObjectReference {
	if g.one(5) {
		return nil
	}
	return ptr(g.secret())
}

func (g *generator) podVolume() (v corev1.VolumeSource) {
	switch g.IntN(17) {
	case 0:
		v.Secret = &corev1.SecretVolumeSource{SecretName: g.secret().Name}
	case 1:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: g.config()}
	case 2:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: g.config()}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: g.secret()}},
		}}
	case 3:
		v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}
	case 4:
		v.AzureFile = &corev1.AzureFileVolumeSource{SecretName: g.secret().Name, ShareName: "s"}
	case 5:
		v.CephFS = &corev1.CephFSVolumeSource{SecretRef: g.local()}
	case 6:
		v.Cinder = &corev1.CinderVolumeSource{SecretRef: g.local()}
	case 7:
		v.FlexVolume = &corev1.FlexVolumeSource{SecretRef: g.local()}
	case 8:
		v.RBD = &corev1.RBDVolumeSource{SecretRef: g.local()}
	case 9:
		v.ScaleIO = &corev1.ScaleIOVolumeSource{SecretRef: g.local()}
	case 10:
		v.ISCSI = &corev1.ISCSIVolumeSource{SecretRef: g.local()}
	case 11:
		v.StorageOS = &corev1.StorageOSVolumeSource{SecretRef: g.local()}
	case 12:
		v.CSI = &corev1.CSIVolumeSource{NodePublishSecretRef: g.local()}
	case 13:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	default:
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick(g, g.claims)}
	}
	return v
}

// changes of the other kinds: made, changed or deleted.

func (g *generator) changeVolume() (any, any) {
	name := fmt.Sprintf("pv%d", g.IntN(2+2*len(g.claims)))
	old := g.liveVolumes[name]
	if old != nil && g.one(3) {
		delete(g.liveVolumes, name)
		return old, nil
	}
	v := &corev1.PersistentVolume{ObjectMeta: g.meta("", name)}
	if old != nil {
		v.UID = old.UID
	}
	v.Spec.PersistentVolumeSource = g.volumeSource()
	if !g.one(5) {
		claim := pick(g, g.claims)
		if g.one(5) {
			claim = pick(g, g.pods) + "-v0"
		}
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: pick(g, g.namespaces), Name: claim}
	}
	g.liveVolumes[name] = v
	if old == nil {
		return nil, v
	}
	return old, v
}

// remote returns a reference to a secret with or without a namespace, or none.
func (g *generator) remote() *corev1.SecretReference {
	if g.one(5) {
		return nil
	}
	r := &corev1.SecretReference{Name: g.secret().Name}
	if !g.one(3) {
		r.Namespace = pick(g, g.namespaces)
	}
	return r
}

func (g *generator) volumeSource() (v corev1.PersistentVolumeSource) {
	switch g.IntN(12) {
	case 0:
		v.AzureFile = &corev1.AzureFilePersistentVolumeSource{SecretName: g.secret().Name}
		if g.one(2) {
			v.AzureFile.SecretNamespace = ptr(pick(g, append([]string{""}, g.namespaces...)))
		}
	case 1:
		v.CephFS = &corev1.CephFSPersistentVolumeSource{SecretRef: g.remote()}
	case 2:
		v.Cinder = &corev1.CinderPersistentVolumeSource{SecretRef: g.remote()}
	case 3:
		v.FlexVolume = &corev1.FlexPersistentVolumeSource{SecretRef: g.remote()}
	case 4:
		v.RBD = &corev1.RBDPersistentVolumeSource{SecretRef: g.remote()}
	case 5:
		v.ScaleIO = &corev1.ScaleIOPersistentVolumeSource{SecretRef: g.remote()}
	case 6:
		v.ISCSI = &corev1.ISCSIPersistentVolumeSource{SecretRef: g.remote()}
	case 7:
		v.StorageOS = &corev1.StorageOSPersistentVolumeSource{}
		if r := g.remote(); r != nil {
			v.StorageOS.SecretRef = &corev1.ObjectReference{Namespace: r.Namespace, Name: r.Name}
		}
	case 8:
		v.HostPath = &corev1.HostPathVolumeSource{Path: "/"}
	default:
		v.CSI = &corev1.CSIPersistentVolumeSource{
			ControllerPublishSecretRef: g.remote(), ControllerExpandSecretRef: g.remote(),
			NodePublishSecretRef: g.remote(), NodeStageSecretRef: g.remote(), NodeExpandSecretRef: g.remote(),
		}
	}
	return v
}

func (g *generator) changeAttachment() (any, any) {
	name := "va" + strconv.Itoa(g.IntN(6))
	old := g.liveAttachments[name]
	if old != nil && g.one(3) {
		delete(g.liveAttachments, name)
		return old, nil
	}
	v := &storagev1.VolumeAttachment{ObjectMeta: g.meta("", name)}
	if !g.one(8) {
		v.Spec.NodeName = pick(g, g.nodes)
	}
	g.liveAttachments[name] = v
	if old == nil {
		return nil, v
	}
	return old, v
}

func (g *generator) changeSlice() (any, any) {
	name := "slice" + strconv.Itoa(g.IntN(6))
	old := g.liveSlices[name]
	if old != nil {
		delete(g.liveSlices, name)
		return old, nil
	}
	v := &resourcev1.ResourceSlice{ObjectMeta: g.meta("", name)}
	if !g.one(5) {
		v.Spec.NodeName = ptr(pick(g, g.nodes))
	}
	g.liveSlices[name] = v
	return nil, v
}

func (g *generator) changeRequest() (any, any) {
	namespace, name := pick(g, g.namespaces), "pcr"+strconv.Itoa(g.IntN(4))
	key := namespace + "/" + name
	old := g.liveRequests[key]
	if old != nil {
		delete(g.liveRequests, key)
		return old, nil
	}
	v := &certsv1beta1.PodCertificateRequest{ObjectMeta: g.meta(namespace, name)}
	v.Spec.NodeName = types.NodeName(pick(g, g.nodes))
	g.liveRequests[key] = v
	return nil, v
}
