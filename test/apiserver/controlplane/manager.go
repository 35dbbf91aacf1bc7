package controlplane

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ControllerManager runs kube-controller-manager until the test ends: every controller with a
// service account of its own, certificates signed for the given time.
func (c *Cluster) ControllerManager(t testing.TB, certificates time.Duration, extra ...string) *Process {
	t.Helper()
	file := func(name string) string { return filepath.Join(c.dir, name) }
	return Run(t, c.dir, nil, Binary(t, "kube-controller-manager"), append([]string{
		"--kubeconfig=" + c.kubeconfig(t, "kube-controller-manager", "system:kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--secure-port=0",
		"--leader-elect=true",
		"--root-ca-file=" + file("ca.crt"),
		"--service-account-private-key-file=" + file("sa.key"),
		"--cluster-signing-cert-file=" + file("ca.crt"),
		"--cluster-signing-key-file=" + write(t, file("ca.key"), keyPEM(t, c.ca.key)),
		"--cluster-signing-duration=" + certificates.String(),
		"--allocate-node-cidrs=false",
		"--concurrent-namespace-syncs=4",
		"--namespace-sync-period=30s",
	}, extra...)...)
}

// Scheduler runs kube-scheduler until the test ends.
func (c *Cluster) Scheduler(t testing.TB) *Process {
	t.Helper()
	kubeconfig := c.kubeconfig(t, "kube-scheduler", "system:kube-scheduler")
	return Run(t, c.dir, nil, Binary(t, "kube-scheduler"), "--kubeconfig="+kubeconfig, "--leader-elect=true", "--secure-port=0")
}

// kubeconfig writes one for a component with a certificate, and returns its path.
func (c *Cluster) kubeconfig(t testing.TB, name, user string, groups ...string) string {
	t.Helper()
	path := filepath.Join(c.dir, name+".kubeconfig")
	Kubeconfig(t, path, c.User(t, user, groups...))
	return path
}

// bootstrappers is the group of those who join with a token of AllowJoining.
const bootstrappers = "system:bootstrappers:kubeadm:default-node-token"

// AllowJoining makes what kubeadm makes before nodes can join by TLS bootstrap: a bootstrap
// token, the roles to ask for certificates with it and to have them approved. The apiserver
// must run with --enable-bootstrap-token-auth. It returns the token's client.
func (c *Cluster) AllowJoining(t testing.TB, admin kubernetes.Interface) *rest.Config {
	t.Helper()
	random := make([]byte, 11)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	id, secret := hex.EncodeToString(random[:3]), hex.EncodeToString(random[3:])
	_, err := admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing": "true", "auth-extra-groups": bootstrappers}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct{ role, group string }{
		"kubeadm:kubelet-bootstrap": {"system:node-bootstrapper", bootstrappers},
		"kubeadm:node-autoapprove-bootstrap": {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
			bootstrappers},
		"kubeadm:node-autoapprove-certificate-rotation": {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
			"system:nodes"},
	} {
		_, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: of.role},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: of.group}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c.Bearer(id + "." + secret)
}

// Joined is a node whose kubelet runs.
type Joined struct {
	*Process
	Name  string
	start func() *Process
}

// Join runs a kubelet without containers (cmd/hollow-kubelet) until the test ends, which joins
// by TLS bootstrap with the given client. Nodes have processors of their own, which the control
// plane does not wait for: here the kubelet yields to it.
func (c *Cluster) Join(t testing.TB, name string, with *rest.Config) *Joined {
	t.Helper()
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	Kubeconfig(t, file("bootstrap.kubeconfig"), with)
	port := strconv.Itoa(Port(t))
	j := &Joined{Name: name}
	j.start = func() *Process {
		t.Helper()
		return Run(t, dir, nil, "nice", "-n", "10", Binary(t, "hollow-kubelet"), "--name="+name, "--root-dir="+dir, "--port="+port,
			"--kubeconfig="+file("kubeconfig"), "--bootstrap-kubeconfig="+file("bootstrap.kubeconfig"),
			"--client-ca-file="+filepath.Join(c.dir, "ca.crt"))
	}
	j.Process = j.start()
	return j
}

// Restart ends the kubelet, as a crash would, and starts it again.
func (j *Joined) Restart() {
	j.Kill()
	j.Process = j.start()
}

// Ready waits until the node is.
func (j *Joined) Ready(t testing.TB, admin kubernetes.Interface) {
	t.Helper()
	Poll(t, "node "+j.Name+" to be ready", func(ctx context.Context) (bool, string) {
		if j.Ended() {
			t.Fatalf("the kubelet of %s ended before it was ready", j.Name)
		}
		node, err := admin.CoreV1().Nodes().Get(ctx, j.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0, condition.Message
			}
		}
		return false, "no such condition"
	})
}

// ApproveServing approves what kubelets ask for their servers, as an operator's controller
// does: kube-controller-manager approves nobody's serving certificate. It watches until ctx
// ends.
func ApproveServing(ctx context.Context, admin kubernetes.Interface) error {
	requests := admin.CertificatesV1().CertificateSigningRequests()
	w, err := requests.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		r, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok || r.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(r.Status.Conditions) > 0 ||
			!strings.HasPrefix(r.Spec.Username, "system:node:") {
			continue
		}
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type:   certificatesv1.CertificateApproved,
			Status: corev1.ConditionTrue, Reason: "ServingApproved"})
		if _, err := requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return ctx.Err()
}
