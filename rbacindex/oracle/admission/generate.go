package admission

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/rand/v2"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accounts are the service accounts that are there; strict ones are held to the secrets they list.
var accounts = []*corev1.ServiceAccount{
	account("web", ""), account("default", ""), account("strict", "true"), account("lax", "false"), account("odd", "maybe"),
}

func account(name, enforced string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Secrets: []corev1.ObjectReference{{Name: "a"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "b"}}}
	if enforced != "" {
		a.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": enforced}
	}
	return a
}

const namespace = "d"

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func secret(r *rand.Rand) string { return pick(r, "a", "b", "c") }

// pod makes a pod: as any, as one that mirrors a node's own, with and without secrets.
func pod(r *rand.Rand) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace}}
	if r.IntN(4) == 0 {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: pick(r, "", "1")}
	}
	mirror := p.Annotations != nil
	if !mirror || r.IntN(4) == 0 {
		p.Spec.ServiceAccountName = pick(r, "", "web", "web", "strict", "lax", "odd", "ghost", "gone")
		p.Spec.DeprecatedServiceAccount = pick(r, "", "", p.Spec.ServiceAccountName, "ghost", "web")
	}
	few := func() int { return max(0, r.IntN(5)-3) }
	for i := range few() + few() {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: volume(r)})
	}
	for range few() {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret(r)})
	}
	for range few() {
		p.Spec.InitContainers = append(p.Spec.InitContainers, container(r))
	}
	p.Spec.Containers = append(p.Spec.Containers, container(r))
	return p
}

func container(r *rand.Rand) corev1.Container {
	c := corev1.Container{Name: "c", Image: "i"}
	switch r.IntN(8) {
	case 0:
		key := &corev1.SecretKeySelector{Key: "k", LocalObjectReference: corev1.LocalObjectReference{Name: secret(r)}}
		c.Env = []corev1.EnvVar{{Name: "e", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: key}}}
	case 1:
		from := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret(r)}}
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: from}}
	case 2:
		from := &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}
		c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: from}}
	case 3:
		field := &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}
		c.Env = []corev1.EnvVar{{Name: "e", Value: "v"}, {Name: "n", ValueFrom: &corev1.EnvVarSource{FieldRef: field}}}
	}
	return c
}

// volume makes one of the volumes that refer to a secret, or of those that do not.
func volume(r *rand.Rand) (v corev1.VolumeSource) {
	local := &corev1.LocalObjectReference{Name: secret(r)}
	switch r.IntN(13) {
	case 0:
		v.Secret = &corev1.SecretVolumeSource{SecretName: pick(r, secret(r), "")}
	case 1:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: *local}}}}
	case 2:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{}}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}
	case 3:
		v.AzureFile = &corev1.AzureFileVolumeSource{SecretName: secret(r), ShareName: "s"}
	case 4:
		v.CephFS = &corev1.CephFSVolumeSource{SecretRef: pick(r, local, nil)}
	case 5:
		v.Cinder = &corev1.CinderVolumeSource{SecretRef: pick(r, local, nil)}
	case 6:
		v.FlexVolume = &corev1.FlexVolumeSource{SecretRef: pick(r, local, nil)}
	case 7:
		v.RBD = &corev1.RBDVolumeSource{SecretRef: pick(r, local, nil)}
	case 8:
		v.ScaleIO = &corev1.ScaleIOVolumeSource{SecretRef: pick(r, local, nil)}
	case 9:
		v.ISCSI = &corev1.ISCSIVolumeSource{SecretRef: pick(r, local, nil)}
	case 10:
		v.StorageOS = &corev1.StorageOSVolumeSource{SecretRef: pick(r, local, nil)}
	case 11:
		v.CSI = &corev1.CSIVolumeSource{NodePublishSecretRef: pick(r, local, nil)}
	default:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return v
}

// signings makes requests for certificates. Keys are few, as making them is dear.
type signings struct {
	texts [][]byte
}

func newSignings(r *rand.Rand) (*signings, error) {
	s := &signings{texts: [][]byte{nil, []byte("x"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})}}
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(r.Uint32())
	}
	key := ed25519.NewKeyFromSeed(seed)
	for _, groups := range [][]string{
		nil, {"system:masters"}, {"users"}, {"users", "system:masters"}, {"system:master"}, {"System:Masters"}, {"system:masters "},
	} {
		der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x", Organization: groups,
			OrganizationalUnit: pick(r, nil, []string{"system:masters"})}}, key)
		if err != nil {
			return nil, err
		}
		for _, kind := range []string{"CERTIFICATE REQUEST", "CERTIFICATE"} {
			text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
			s.texts = append(s.texts, text, append([]byte("before\n"), append(text, "behind"...)...))
		}
	}
	return s, nil
}

func (s *signings) make(r *rand.Rand) *certificatesv1.CertificateSigningRequest {
	client := certificatesv1.KubeAPIServerClientSignerName
	return &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: pick(r, s.texts...),
			SignerName: pick(r, client, client, certificatesv1.KubeAPIServerClientKubeletSignerName, "example.com/s")},
	}
}
