package configurations

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

// tokenFile has people, and names that are not theirs to have.
const tokenFile = `t-alice-81c2,alice,uid-1,"team:a,org:dev"
t-bob-old-81c2,bob,uid-2,"team:b"
t-bob-new-81c2,bob,uid-2,"team:b,oncall"
t-robot-81c2,system:serviceaccount:team-b:robot,forged-uid
t-node-81c2,system:node:node-1,uid-4,"some:group"
t-nodes-81c2,not-a-node,uid-5,"system:nodes"
t-system-81c2,system:backup-agent,uid-6,"org:dev"
t-both-81c2,both,uid-7,"system:authenticated,system:unauthenticated"
t-root-81c2,root,uid-8,"system:masters"
`

const identityRoles = roles + `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: team-a, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{kind: Group, name: "team:a"}, {kind: Group, name: "system:bootstrappers:team-a"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: Group, name: "team:a"}, {kind: Group, name: "oncall"}, {kind: User, name: carol}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robots, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: robot, namespace: team-b}, {kind: ServiceAccount, name: legacy, namespace: team-b}, {kind: ServiceAccount, name: brief, namespace: team-b}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acts-as-anybody}
rules:
- {apiGroups: [""], resources: [users, groups, serviceaccounts], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [uids, userextras/reason], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acts-as-carol}
rules:
- {apiGroups: [""], resources: [users], resourceNames: [carol], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: acts-as-anybody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acts-as-anybody}
subjects: [{kind: User, name: ivan}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: anonymous-acts-as-carol}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acts-as-carol}
subjects: [{kind: User, name: "system:anonymous"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: approves}
rules:
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [get, list, create]}
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]}
- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kube-apiserver-client], verbs: [approve]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: approves}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: approves}
subjects: [{kind: User, name: petra}]
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: legacy, namespace: team-b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: brief, namespace: team-b}}
---
{apiVersion: v1, kind: Pod, metadata: {name: short, namespace: team-b}, spec: {nodeName: node-2, serviceAccountName: robot, containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-2}}
---
{apiVersion: v1, kind: Secret, metadata: {name: binding, namespace: team-b}}
`

// TestIdentities: every credential that a usual apiserver knows, and what can be wrong with
// each.
func TestIdentities(t *testing.T) {
	front := newFrontProxy(t)
	files := front.files
	files["tokens.csv"] = []byte(tokenFile)
	recorded := front.recorded
	recorded["tokens.csv"] = []byte(redactedTokens())
	r := recorder.Start(t, recorder.Config{
		Name:  "identities",
		Flags: append(front.flags, "--token-auth-file=DIR/tokens.csv", "--enable-bootstrap-token-auth=true"),
		Files: files, Recorded: recorded,
	})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, identityRoles)
	r.Decided(t, true, "x", []string{"oncall"}, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "team-a"})
	r.Decided(t, true, "system:serviceaccount:team-b:brief", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods",
		Namespace: "team-b"})
	r.Decided(t, true, "petra", nil, authorizationv1.ResourceAttributes{Verb: "create", Group: "certificates.k8s.io",
		Resource: "certificatesigningrequests"})
	r.Decided(t, true, "system:anonymous", nil, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: "carol"})
	r.Decided(t, true, "ivan", nil, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: "x"})
	d := identities{r, front}
	d.tokenFile(t)
	d.bootstrap(t)
	d.legacy(t)
	d.bound(t)
	d.proxied(t)
	d.mixed(t)
	d.impersonations(t)
	d.hidden(t)
	dir := r.Finish(t)
	served(t, dir, judge(t, dir))
}

// redactedTokens returns the token file as people hand it over.
func redactedTokens() string {
	var out strings.Builder
	for l := range strings.Lines(tokenFile) {
		_, rest, _ := strings.Cut(l, ",")
		out.WriteString("redacted," + rest)
	}
	return out.String()
}

type identities struct {
	*recorder.Recorder
	front *frontProxy
}

const (
	podsA = "GET /api/v1/namespaces/team-a/pods"
	podsB = "GET /api/v1/namespaces/team-b/pods"
)

func (r *identities) tokenFile(t *testing.T) {
	r.Scenario("token file")
	actor := func(name string) *recorder.Actor {
		return r.Actor(t, name, "token-file", r.Bearer("t-"+name+"-81c2"))
	}
	alice := actor("alice")
	alice.May(t, podsA, "GET /version", "POST /api/v1/namespaces/team-a/configmaps {}")
	alice.MayNot(t, podsB, "GET /api/v1/secrets")
	alice.Sweep(t, "team-a", "team-b")
	alice.Try(t, hostile...)
	actor("bob-old").MayNot(t, podsA)
	actor("bob-new").May(t, podsA)
	robot := actor("robot").Found(t, "sa-groups-mismatch", "sa-uid-mismatch", "sa-no-credential-id")
	robot.May(t, podsB) // RBAC goes by the name
	robot.MayNot(t, podsA)
	actor("node").Found(t, "node-identity-malformed").MayNot(t, "GET /api/v1/nodes/node-1")
	actor("nodes").Found(t, "node-identity-malformed").MayNot(t, "GET /api/v1/nodes/node-1")
	actor("system").Found(t, "reserved-system-name").MayNot(t, podsA)
	actor("both").Found(t, "both-auth-groups").May(t, "GET /version")
	actor("root").By("masters").May(t, "GET /api/v1/secrets")
}

func bootstrapSecret(id, expires, auth, groups string) string {
	return fmt.Sprintf(
		`{apiVersion: v1, kind: Secret, metadata: {name: bootstrap-token-%[1]s, namespace: kube-system}, type: bootstrap.kubernetes.io/token,
  stringData: {token-id: %[1]q, token-secret: "0123456789abcdef", expiration: %[2]q, usage-bootstrap-authentication: %[3]q, auth-extra-groups: %[4]q}}
---
`, id, expires, auth, groups)
}

func (r *identities) bootstrap(t *testing.T) {
	r.Scenario("bootstrap tokens")
	r.Apply(t, bootstrapSecret("aaaaaa", "2099-01-01T00:00:00Z", "true", "system:bootstrappers:team-a,system:bootstrappers:nodes")+
		bootstrapSecret("bbbbbb", "2099-01-01T00:00:00Z", "true", "")+
		bootstrapSecret("cccccc", "2020-01-01T00:00:00Z", "true", "")+
		bootstrapSecret("dddddd", "2099-01-01T00:00:00Z", "false", ""))
	actor := func(id, authenticator string) *recorder.Actor {
		return r.Actor(t, "bootstrap "+id, authenticator, r.Bearer(id+".0123456789abcdef"))
	}
	a := actor("aaaaaa", "bootstrap-token")
	ready(t, a, actor("bbbbbb", "bootstrap-token")) // the apiserver reads Secrets from a watch
	a.May(t, "POST /api/v1/namespaces/team-a/configmaps {}", "GET /version")
	a.MayNot(t, podsB, podsA)
	actor("bbbbbb", "bootstrap-token").MayNot(t, podsA)
	actor("cccccc", "").Nobody(t, 401, podsA)
	actor("dddddd", "").Nobody(t, 401, podsA)
	actor("eeeeee", "").Nobody(t, 401, podsA)
	r.Actor(t, "bootstrap with a wrong secret", "", r.Bearer("aaaaaa.fedcba9876543210")).Nobody(t, 401, podsA)
}

// legacyToken returns one that lies in a Secret and never ends.
func (r *identities) legacyToken(t *testing.T, secret string, named bool) string {
	t.Helper()
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(r.Folder(), "sa.key"))
	if err != nil {
		t.Fatal(err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		t.Fatal(err)
	}
	accounts := r.Client.CoreV1().ServiceAccounts("team-b")
	account, err := accounts.Get(t.Context(), "legacy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: "team-b",
		Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name, corev1.ServiceAccountUIDKey: string(account.UID)}},
		Type: corev1.SecretTypeServiceAccountToken}
	public, private := serviceaccount.LegacyClaims(*account, *s)
	token, err := generator.GenerateToken(t.Context(), public, private)
	if err != nil {
		t.Fatal(err)
	}
	s.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}
	if _, err := r.Client.CoreV1().Secrets("team-b").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if named {
		account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: secret})
		if _, err := accounts.Update(t.Context(), account, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return token
}

func (r *identities) legacy(t *testing.T) {
	r.Scenario("legacy tokens")
	manual := r.Actor(t, "legacy manual", "service-account-legacy", r.Bearer(r.legacyToken(t, "legacy-manual", false))).Found(t,
		"sa-legacy-token-use")
	made := r.Actor(t, "legacy autogenerated", "service-account-legacy", r.Bearer(r.legacyToken(t, "legacy-token-x7x7x", true))).Found(t,
		"sa-legacy-token-use")
	ready(t, manual, made)
	for _, a := range []*recorder.Actor{manual, made} {
		a.May(t, podsB, "GET /version")
		a.MayNot(t, podsA, "GET /api/v1/nodes")
	}
	manual.Sweep(t, "team-b")
	r.Remove(t, "Secret", "team-b", "legacy-manual")
	r.until(t, 401, manual)
}

// until makes a request again and again until it is answered with a code.
func (r *identities) until(t *testing.T, code int, a *recorder.Actor) {
	t.Helper()
	controlplane.Poll(t, "another answer", func(context.Context) (bool, string) {
		got, text := a.Do(t, podsB, &recorder.Scenario{})
		return got == code, text
	})
}

func (r *identities) token(t *testing.T, account string, ref *authenticationv1.BoundObjectReference) *rest.Config {
	t.Helper()
	answer, err := r.Client.CoreV1().ServiceAccounts("team-b").CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: ref}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Bearer(answer.Status.Token)
}

func (r *identities) bound(t *testing.T) {
	r.Scenario("bound tokens")
	actor := func(name string, cfg *rest.Config) *recorder.Actor {
		return r.Actor(t, name, "service-account-bound", cfg)
	}
	ref := func(kind, name string) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name}
	}
	robot := actor("robot", r.token(t, "robot", nil))
	robot.Sweep(t, "team-a", "team-b")
	pod, secret, node := actor("robot in pod short", r.token(t, "robot", ref("Pod", "short"))), actor("robot of a secret",
		r.token(t, "robot", ref("Secret", "binding"))),
		actor("robot of node-2", r.token(t, "robot", ref("Node", "node-2")))
	for _, a := range []*recorder.Actor{robot, pod, secret, node} {
		a.May(t, podsB, "GET /version")
		a.MayNot(t, podsA)
	}
	for what, name := range map[string]string{"Pod": "short", "Secret": "binding"} {
		r.Remove(t, what, "team-b", name)
	}
	r.Remove(t, "Node", "", "node-2")
	for _, a := range []*recorder.Actor{pod, secret, node} {
		r.until(t, 401, a)
		a.Nobody(t, 401, podsB)
	}
	r.Scenario("an account that comes again")
	brief := actor("brief", r.token(t, "brief", nil))
	brief.May(t, podsB)
	r.Remove(t, "ServiceAccount", "team-b", "brief")
	r.Apply(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: brief, namespace: team-b}}`)
	r.until(t, 401, brief)
	actor("brief again", r.token(t, "brief", nil)).May(t, podsB)
	r.Scenario("a token for others")
	elsewhere, err := r.Client.CoreV1().ServiceAccounts("team-b").CreateToken(t.Context(), "robot",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Actor(t, "robot for vault", "", r.Bearer(elsewhere.Status.Token)).Nobody(t, 401, podsB)
}

func (r *identities) proxied(t *testing.T) {
	r.Scenario("front proxy")
	proxy := r.Actor(t, "front proxy", "request-header", r.front.client(t, r.Anonymous(), "front-proxy-client"))
	proxy.As("X-Remote-User", "carol", "X-Remote-Group", "org:dev").May(t, podsA, "GET /version")
	proxy.As("X-Remote-User", "carol", "X-Remote-Group", "team:a", "X-Remote-Group", "system:authenticated", "X-Remote-Extra-Scopes",
		"read").May(t, "POST /api/v1/namespaces/team-a/configmaps {}")
	proxy.As("X-Remote-User", "carol", "X-Remote-Uid", "7").MayNot(t, podsB)
	proxy.Found(t, "jti-unissued", "sa-uid-mismatch").As("X-Remote-User", "system:serviceaccount:team-b:robot", "X-Remote-Uid", "made-up",
		"X-Remote-Group", "system:serviceaccounts",
		"X-Remote-Group", "system:serviceaccounts:team-b", "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id",
		"JTI=5a1d8a8e-0000-4000-8000-000000000000").May(t, podsB)
	proxy.Found(t, "cred-id-format").As("X-Remote-User", "carol", "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id",
		"mine").May(t, podsA)
	// Without a name the proxy's certificate is nobody's: it is of another authority than clients'.
	proxy.Nobody(t, 401, podsA)
	r.Actor(t, "another certificate of the proxy's authority", "", r.front.client(t, r.Anonymous(), "somebody")).As("X-Remote-User",
		"carol").Nobody(t, 401, podsA)
	r.Actor(t, "dave", "x509", r.User(t, "dave")).As("X-Remote-User", "carol", "X-Remote-Group", "system:masters").MayNot(t, podsA)
}

func (r *identities) mixed(t *testing.T) {
	r.Scenario("mixed credentials")
	cfg := r.User(t, "carol")
	carol := r.Actor(t, "carol", "x509", cfg)
	carol.As("Authorization", "Bearer not-a-token").May(t, podsA)
	carol.As("User-Agent", strings.Repeat("x", 2000)).May(t, podsA)
	carol.As("Audit-ID", "chosen").Found(t, "audit-id-reused").Try(t, podsA)
	r.Actor(t, "dave", "x509", r.User(t, "dave")).As("Audit-ID", "chosen").Found(t, "audit-id-reused").Try(t, podsA)
	anybody := r.Actor(t, "anonymous", "anonymous", r.Anonymous())
	anybody.May(t, "GET /version", "GET /healthz", "GET /livez")
	anybody.MayNot(t, podsA, "GET /api")
	anybody.As("Authorization", "Basic YTpi").MayNot(t, podsA)
	anybody.As("Authorization", "Bearer  two-spaces").MayNot(t, podsA)
	anybody.As("Authorization", "Bearer nothing", "Accept", "text/plain").Nobody(t, 401, podsA)
	r.Actor(t, "outsider", "", recorder.Outsider(t, r.Recorder, "alice", "system:masters")).Nobody(t, 401, podsA, "GET /version")

	r.Scenario("certificates")
	node := r.Actor(t, "node-9 without a request", "x509", r.User(t, "system:node:node-9", "system:nodes")).Found(t, "node-unknown")
	node.MayNot(t, "GET /api/v1/nodes", podsA, "GET /api/v1/namespaces/team-a/secrets/s0")
	requested := r.Actor(t, "node-3", "x509", r.requested(t, "system:node:node-3", "system:nodes",
		certificatesv1.KubeAPIServerClientKubeletSignerName))
	requested.May(t, `POST /api/v1/nodes {"metadata":{"name":"node-3"}}`, "GET /api/v1/nodes/node-3")
	r.Actor(t, "node-3 with another certificate", "x509", r.User(t, "system:node:node-3", "system:nodes")).Found(t, "cert-unknown-issue").
		May(t, "GET /api/v1/nodes/node-3")
	r.Actor(t, "gina", "x509", r.requested(t, "gina", "team:a", certificatesv1.KubeAPIServerClientSignerName)).May(t, podsA)
}

// requested returns a client with a certificate that a request in the cluster led to.
func (r *identities) requested(t *testing.T, name, group, signer string) *rest.Config {
	t.Helper()
	cfg := r.User(t, name, group)
	key, err := keyutil.ParsePrivateKeyPEM(cfg.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name,
		Organization: []string{group}}}, key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	requests := r.Client.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-" + strings.ReplaceAll(name, ":", "-")},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue, Reason: "Test"}}
	if csr, err = requests.UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	csr.Status.Certificate = cfg.CertData
	if _, err = requests.UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (r *identities) impersonations(t *testing.T) {
	r.Scenario("impersonation")
	ivan := r.Actor(t, "ivan", "x509", r.User(t, "ivan"))
	ivan.MayNot(t, podsA)
	ivan.As("Impersonate-User", "carol").May(t, podsA)
	ivan.As("Impersonate-User", "dave", "Impersonate-Group", "team:a", "Impersonate-Uid", "9", "Impersonate-Extra-Reason", "test").May(
		t, podsA)
	ivan.As("Impersonate-User", "dave", "Impersonate-Extra-Other", "test").Nobody(t, 403, podsA)
	ivan.As("Impersonate-User", "system:serviceaccount:team-b:robot").May(t, podsB)
	ivan.As("Impersonate-User", "system:node:node-2").MayNot(t, "GET /api/v1/nodes/node-2")
	ivan.Found(t, "impersonation-masters").As("Impersonate-User", "dave", "Impersonate-Group", "system:masters").May(t,
		"GET /api/v1/secrets")
	ivan.Found(t, "impersonated-sa-unknown").As("Impersonate-User", "system:serviceaccount:team-b:absent").MayNot(t, podsB)
	ivan.As("Impersonate-Group", "team:a").Nobody(t, 400, podsA)
	carol := r.Actor(t, "carol", "x509", r.User(t, "carol"))
	for _, who := range []string{"dave", "ivan", "system:admin"} {
		carol.As("Impersonate-User", who).Nobody(t, 403, podsA)
	}
	anybody := r.Actor(t, "anonymous", "anonymous", r.Anonymous())
	anybody.Found(t, "impersonation-by-anonymous").As("Impersonate-User", "carol").May(t, podsA)
	anybody.As("Impersonate-User", "dave").Nobody(t, 403, podsA)
	r.Admin.As("Impersonate-User", "alice", "Impersonate-Group", "team:a").May(t, podsA)
}

// hidden are requests that are authorized and then checked once more.
func (r *identities) hidden(t *testing.T) {
	r.Scenario("hidden checks")
	alice := r.Actor(t, "alice", "token-file", r.Bearer("t-alice-81c2"))
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key",
		"dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol", "v5.channel.k8s.io"}
	alice.As(upgrade...).Refused(t, "GET /api/v1/namespaces/team-a/pods/p0/exec?command=sh&stdout=true") // may get it, may not create it
	const rbac = "POST /apis/rbac.authorization.k8s.io/v1/namespaces/team-a/"
	const role = `roles {"metadata":{"name":%q},"rules":[{"apiGroups":[""],"resources":[%q],"verbs":[%q]}]}`
	const binding = `rolebindings {"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",` +
		`"name":%q},"subjects":[{"kind":"User","name":"eve"}]}`
	alice.May(t, rbac+fmt.Sprintf(role, "held", "pods", "get"), rbac+fmt.Sprintf(role, "held-too", "configmaps", "create"),
		rbac+fmt.Sprintf(binding, "held", "reader"))
	alice.Refused(t, rbac+fmt.Sprintf(role, "not-held", "secrets", "get"), rbac+fmt.Sprintf(role, "not-held", "pods", "*"),
		rbac+fmt.Sprintf(binding, "not-held", "cluster-admin"))
	alice.May(t, rbac+fmt.Sprintf(binding, "nothing", "absent"))
	const apply = `PATCH /api/v1/namespaces/team-a/configmaps/applied?fieldManager=t&force=true application/apply-patch+yaml ` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}`
	alice.May(t, apply)
	petra := r.Actor(t, "petra", "x509", r.User(t, "petra"))
	for _, signer := range []string{"kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving", "example.org/other"} {
		name := "req-" + strings.NewReplacer("/", "-", ".", "-").Replace(signer)
		r.request(t, name, signer)
		body := fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":%q},"spec":{},`+
			`"status":{"conditions":[{"type":"Approved","status":"True","reason":"x","message":"y"}]}}`, name)
		line := "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/" + name + "/approval " + body
		if signer == "kubernetes.io/kube-apiserver-client" {
			petra.Do(t, line, &recorder.Scenario{Expect: "allow", Codes: []int{http.StatusOK, http.StatusUnprocessableEntity}})
		} else {
			petra.Refused(t, line)
		}
	}
}

// request makes a certificate signing request that nobody has approved.
func (r *identities) request(t *testing.T, name, signer string) {
	t.Helper()
	key, err := keyutil.ParsePrivateKeyPEM(r.User(t, name).KeyData)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject, DNSNames: []string{name}},
		key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	if signer == certificatesv1.KubeletServingSignerName {
		usages[1] = certificatesv1.UsageServerAuth
	}
	if _, err := r.Client.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST",
				Bytes: der}), SignerName: signer, Usages: usages}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
