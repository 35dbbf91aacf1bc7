package admission

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// cluster has one namespace that is there, and what it says of accounts.
type cluster struct {
	known   map[string]state.Known
	changed bool // in a window
}

func (cluster) Namespace(string, time.Time, time.Time) state.NamespaceAnswer {
	return state.NamespaceActive
}

func (c cluster) ServiceAccountIn(_, name string, from, to time.Time) (state.Known, bool) {
	if c.changed && to.After(from) {
		return state.Present, true
	}
	return c.known[name], false
}

// window is an hour.
type window struct{}

func (window) Window() (from, to time.Time) { return time.Time{}, time.Time{}.Add(time.Hour) }

// tried is a request, and what is to be said of one plugin.
type tried struct {
	name          string
	verb, uri     string // resource and subresource
	body, written string
	code          int32
	message       string
	want          string // outcome, code, reason
}

// try judges requests and compares what is said of a plugin.
func try(t *testing.T, plugin, group string, in cluster, of *Plugins, cases []tried) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			resource, sub, _ := strings.Cut(tc.uri, "/")
			a := verdict.Attributes{Verb: tc.verb, ResourceRequest: true, APIGroup: group, Resource: resource, Subresource: sub}
			if resource == "pods" {
				a.Namespace = "d"
			}
			q := &Request{Attributes: &a, Body: []byte(tc.body), Written: []byte(tc.written), Decision: verdict.DecisionAllow,
				Code: tc.code, Message: tc.message, State: in, Window: window{}}
			var adm verdict.Admission
			of.Judge(q, &adm)
			got := ""
			if x := adm.Of(plugin); x != nil {
				got = strings.TrimSpace(fmt.Sprint(x.Outcome, " ", x.Code, " ", x.Reason))
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestServiceAccount(t *testing.T) {
	const (
		lost    = `error looking up service account d/ghost: serviceaccount "ghost" not found`
		lostMsg = `pods "x" is forbidden: ` + lost
		held    = `volume with secret.secretName="s" is not allowed because service account web does not reference that secret`
	)
	pod := func(spec string) string { return `{"metadata":{"name":"x"},"spec":{` + spec + `}}` }
	mirror := func(spec string) string {
		return `{"metadata":{"name":"x","annotations":{"kubernetes.io/config.mirror":"1"}},"spec":{` + spec + `}}`
	}
	in := cluster{known: map[string]state.Known{"web": state.Present, "default": state.Present, "ghost": state.Absent}}
	try(t, "ServiceAccount", "", in, Assume(0), []tried{
		{"there", "create", "pods", pod(`"serviceAccountName":"web"`), "", 201, "", "pass 0"},
		{"by the old field", "create", "pods", pod(`"serviceAccount":"ghost"`), "", 403, lostMsg, "match 403 " + lost},
		{"the default one", "create", "pods", pod(``), "", 201, "", "pass 0"},
		{"missing", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 403, lostMsg, "match 403 " + lost},
		{"missing and admitted", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 201, "", "drift 0 " + lost},
		{"missing and invalid", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 422, `Pod "x" is invalid: spec`,
			"drift 0 " + lost},
		{"missing, refused before", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 403,
			`pods "x" is forbidden: maximum cpu usage per Pod is 1, but limit is 2`, ""},
		{"missing, refused behind", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 403,
			`pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`, "drift 0 " + lost},
		{"there and said to be missing", "create", "pods", pod(`"serviceAccountName":"web"`), "", 403,
			strings.ReplaceAll(lostMsg, "ghost", "web"), "drift 403 " + strings.ReplaceAll(lost, "ghost", "web")},
		{"another, by a webhook", "create", "pods", pod(`"serviceAccountName":"web"`), "", 403, lostMsg, "indeterminate 403 " + lost},
		{"not looked up", "create", "pods", pod(`"serviceAccountName":"web"`), "", 403,
			`pods "x" is forbidden: error looking up service account d/web: timeout`, "indeterminate 403 error looking up service " +
				"account d/web: timeout"},
		{"not known", "create", "pods", pod(`"serviceAccountName":"new"`), "", 201, "",
			"indeterminate 0 service account d/new is not known"},
		{"not decoded by the apiserver", "create", "pods", pod(`"serviceAccountName":"web","nodeName":5`), "", 400,
			`Pod in version "v1" cannot be handled as a Pod`, "indeterminate 0 " + missingBody},
		{"no body", "create", "pods", "", "", 201, "", "indeterminate 0 " + missingBody},
		{"secrets", "create", "pods", pod(`"serviceAccountName":"web","volumes":[{"name":"v","secret":{"secretName":"s"}}]`), "", 403,
			`pods "x" is forbidden: ` + held, "indeterminate 403 " + held},
		{"secrets of the environment", "create", "pods",
			pod(`"serviceAccountName":"web","initContainers":[{"env":[{"name":"e","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]`),
			"", 201, "",
			"indeterminate 0 whether service account d/web is held to the secrets it lists"},
		{"mirror", "create", "pods", mirror(`"nodeName":"n"`), "", 201, "", "pass 0"},
		{"mirror with an account", "create", "pods", mirror(`"serviceAccountName":"web"`), "", 403,
			`pods "x" is forbidden: a mirror pod may not reference service accounts`,
			"match 403 a mirror pod may not reference service accounts"},
		{"mirror with secrets", "create", "pods", mirror(`"imagePullSecrets":[{"name":"s"}]`), "", 201, "",
			"drift 0 a mirror pod may not reference secrets"},
		{"mirror with a token", "create", "pods",
			mirror(`"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]`), "", 201, "",
			"drift 0 a mirror pod may not use ServiceAccountToken volume projections"},
		{"applied", "patch", "pods", pod(`"serviceAccountName":"ghost"`), "", 403, lostMsg, "match 403 " + lost},
		{"applied and made", "patch", "pods", pod(`"serviceAccountName":"ghost"`), "", 201, "", "drift 0 " + lost},
		{"changed", "patch", "pods", pod(`"serviceAccountName":"ghost"`), "", 200, "", ""},
		{"binding", "create", "pods/binding", "{}", "", 201, "", ""},
		{"debugged", "patch", "pods/ephemeralcontainers", "{}", "", 200, "",
			"indeterminate 0 the account of the pod, and whether it lists the secrets of its pods"},
		{"read", "get", "pods", "", "", 200, "", ""},
	})
	in.changed = true
	try(t, "ServiceAccount", "", in, Assume(0), []tried{
		{"changing, certain by the record", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 403, lostMsg, "match 403 " + lost},
		{"changing", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 201, "",
			"ambiguous 0 service account d/ghost changed meanwhile"},
	})
	disabled := &config.APIServer{Minor: 36, Admission: config.Admission{Disabled: []string{"ServiceAccount"}}}
	try(t, "ServiceAccount", "", in, New(disabled), []tried{
		{"switched off", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 201, "", ""},
		{"switched off and refusing", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 403, lostMsg, "drift 403 " + lost},
	})
	in.changed = false
	nobodyKnows := plugins(&config.APIServer{Admission: config.Admission{Exact: true}}, assumedOff)
	try(t, "ServiceAccount", "", in, nobodyKnows, []tried{
		{"perhaps off", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 201, "", ""},
		{"perhaps off, and refusing", "create", "pods", pod(`"serviceAccountName":"ghost"`), "", 403, lostMsg, "match 403 " + lost},
		{"perhaps off, and refusing another", "create", "pods", pod(`"serviceAccountName":"web"`), "", 403,
			strings.ReplaceAll(lostMsg, "ghost", "web"), "drift 403 " + strings.ReplaceAll(lost, "ghost", "web")},
	})
}

// signingRequest returns the body of a CertificateSigningRequest.
func signingRequest(t *testing.T, signer string, groups ...string) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x",
		Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return requestOf(t, signer, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func requestOf(t *testing.T, signer string, text []byte) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"signerName": signer, "request": text}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestCertificateSubjectRestriction(t *testing.T) {
	const (
		client = "kubernetes.io/kube-apiserver-client"
		msg    = `certificatesigningrequests.certificates.k8s.io "x" is forbidden: ` + mastersNotSigned
		broken = notParsed + "PEM block type must be CERTIFICATE REQUEST"
	)
	masters, users := signingRequest(t, client, "a", "system:masters"), signingRequest(t, client, "users")
	other := signingRequest(t, "example.com/s", "system:masters")
	try(t, "CertificateSubjectRestriction", "certificates.k8s.io", cluster{}, Assume(0), []tried{
		{"users", "create", "certificatesigningrequests", users, users, 201, "", "pass 0"},
		{"another signer", "create", "certificatesigningrequests", other, other, 201, "", "pass 0"},
		{"masters", "create", "certificatesigningrequests", masters, "", 403, msg, "match 403 " + mastersNotSigned},
		{"masters admitted", "create", "certificatesigningrequests", masters, masters, 201, "", "drift 0 " + mastersNotSigned},
		{"masters admitted, by a webhook for another signer", "create", "certificatesigningrequests", masters, other, 201, "", "pass 0"},
		{"masters admitted, the object not recorded", "create", "certificatesigningrequests", masters, "", 201, "",
			"indeterminate 0 " + missingFinal},
		{"masters, which another plugin refused", "create", "certificatesigningrequests", masters, "", 403,
			`certificatesigningrequests.certificates.k8s.io "x" is forbidden: exceeded quota: q, requested: x`, ""},
		{"masters, already there", "create", "certificatesigningrequests", masters, "", 409, "", "indeterminate 0 " + missingFinal},
		{"masters by a webhook", "create", "certificatesigningrequests", users, "", 403, msg, "indeterminate 403 " + mastersNotSigned},
		{"not a request", "create", "certificatesigningrequests", requestOf(t, client, []byte("x")), "", 403,
			`certificatesigningrequests.certificates.k8s.io "x" is forbidden: ` + broken, "match 403 " + broken},
		{"invalid", "create", "certificatesigningrequests", masters, "", 422, "", ""},
		{"no body", "create", "certificatesigningrequests", "", "", 201, "", "indeterminate 0 " + missingBody},
		{"approved", "update", "certificatesigningrequests/approval", masters, masters, 200, "", ""},
		{"changed", "update", "certificatesigningrequests", masters, masters, 200, "", ""},
	})
}
