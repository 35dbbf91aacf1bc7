package recorder

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// Actor is somebody who makes requests with one credential.
type Actor struct {
	r             *Recorder
	name          string
	authenticator string
	findings      []string
	authorizer    string
	server        string
	host          string
	client        *http.Client
	header        http.Header
	cfg           *rest.Config
}

// Actor makes one. authenticator says what will let it in.
func (r *Recorder) Actor(t testing.TB, name, authenticator string, cfg *rest.Config) *Actor {
	t.Helper()
	a := &Actor{r: r, name: name, authenticator: authenticator, host: cfg.Host, header: http.Header{}, cfg: cfg}
	if cfg.BearerToken != "" {
		r.Secret(cfg.BearerToken)
	}
	a.connect(t)
	return a
}

func (a *Actor) connect(t testing.TB) {
	t.Helper()
	client, err := rest.HTTPClientFor(a.r.watch(a, a.cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	a.client = client
}

// Found says what an actor's identity is meant to be found to contradict.
func (a *Actor) Found(t testing.TB, findings ...string) *Actor {
	b := *a
	b.findings = append(slices.Clone(a.findings), findings...)
	b.connect(t)
	return &b
}

// As returns the same actor with further headers: name, value, name, value …
func (a *Actor) As(header ...string) *Actor {
	b := *a
	b.header = a.header.Clone()
	for i := 0; i < len(header); i += 2 {
		b.header.Add(header[i], header[i+1])
	}
	return &b
}

// Past says that the actor asks another server than the kube-apiserver, which is found.
func (a *Actor) Past(t testing.TB, server string) *Actor {
	b := *a
	b.server = server
	return b.Found(t, "aggregation-bypass")
}

// By returns the same actor, with the authorizer named that is meant to decide.
func (a *Actor) By(authorizer string) *Actor {
	b := *a
	b.authorizer = authorizer
	return &b
}

// May are requests that are meant to be authorized, whatever becomes of them then: "GET /path"
// or "POST /path BODY". A body that begins with { is JSON, others have their content type in
// front.
func (a *Actor) May(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		a.Do(t, l, &Scenario{Expect: "allow", Authorizer: a.authorizer})
	}
}

// MayNot are requests that the authorizer is meant to refuse.
func (a *Actor) MayNot(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		a.Do(t, l, &Scenario{Expect: "forbid", Codes: []int{403}, Authorizer: a.authorizer})
	}
}

// Refused are requests that are authorized and answered 403 by a later check.
func (a *Actor) Refused(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		a.Do(t, l, &Scenario{Expect: "allow", Codes: []int{403}, Authorizer: a.authorizer})
	}
}

// Nobody are requests that are answered with a code before anybody is asked.
func (a *Actor) Nobody(t testing.TB, code int, lines ...string) {
	t.Helper()
	for _, l := range lines {
		a.Do(t, l, &Scenario{Expect: "none", Codes: []int{code}})
	}
}

// Try are requests of which nothing is expected.
func (a *Actor) Try(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		a.Do(t, l, &Scenario{})
	}
}

// Do makes one request and returns the answer.
func (a *Actor) Do(t testing.TB, l string, m *Scenario) (int, string) {
	t.Helper()
	method, rest, _ := strings.Cut(l, " ")
	uri, text, _ := strings.Cut(rest, " ")
	var body io.Reader
	kind := "application/json"
	if text != "" {
		if text[0] != '{' && text[0] != '[' {
			kind, text, _ = strings.Cut(text, " ")
		}
		body = bytes.NewReader([]byte(text))
	}
	req, err := http.NewRequestWithContext(context.WithValue(t.Context(), meaning{}, m), method, a.host, body)
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(uri, "?")
	req.URL.Path, req.URL.RawQuery = path, query
	if strings.Contains(path, "%") || strings.HasPrefix(path, "//") {
		req.URL.Opaque, req.URL.Path = "//"+req.URL.Host+path, ""
	}
	req.Header = a.header.Clone()
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "kubectl/v1.36.3 (linux/amd64)")
	}
	res, err := a.client.Do(req)
	if err != nil {
		t.Fatalf("%s: %s: %v", a.name, l, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %s: %v", a.name, l, err)
	}
	switch code := res.StatusCode; {
	case m.Expect == "":
	case len(m.Codes) > 0 && !slices.Contains(m.Codes, code), len(m.Codes) == 0 && (code == http.StatusUnauthorized ||
		code == http.StatusForbidden):
		t.Errorf("%s: %s: meant to be %s %v, was %d\n%.600s", a.name, l, m.Expect, m.Codes, code, answer)
	}
	return res.StatusCode, string(answer)
}

// Sweep asks for a bit of everything and expects nothing: what is allowed is up to the
// configuration.
func (a *Actor) Sweep(t testing.TB, namespaces ...string) {
	t.Helper()
	a.Try(t, "GET /version", "GET /api", "GET /apis", "GET /healthz", "GET /metrics", "GET /nowhere", "HEAD /version", "GET /logs/",
		"GET /api/v1/nodes", "GET /api/v1/namespaces", "GET /api/v1/pods?limit=1",
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1",
		`POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {"spec":{"resourceAttributes":{"verb":"list","resource":"secrets",`+
			`"namespace":"team-a"}}}`,
		`POST /apis/authentication.k8s.io/v1/selfsubjectreviews {}`)
	for _, ns := range namespaces {
		core, apps := "/api/v1/namespaces/"+ns, "/apis/apps/v1/namespaces/"+ns
		a.Try(t, "GET "+core, "GET "+core+"/pods", "GET "+core+"/pods/p0", "GET "+core+"/pods?watch=1&timeoutSeconds=1",
			"GET "+core+"/pods/p0/log",
			"GET "+core+"/configmaps", "GET "+core+"/configmaps/c0", "GET "+core+"/secrets", "GET "+core+"/secrets/s0",
			"DELETE "+core+"/configmaps/absent",
			"PUT "+core+"/configmaps/absent {}", "POST "+core+"/configmaps {}", "GET "+apps+"/deployments", "POST "+apps+"/deployments {}",
			"PATCH "+apps+"/deployments/absent/scale application/merge-patch+json {}", "DELETE "+core+"/pods?labelSelector=none%3Dof-them",
			"POST "+core+"/serviceaccounts/default/token {}", "POST "+core+"/pods/p0/eviction {}")
	}
}

// Outsider returns a client with a certificate that another authority made.
func Outsider(t testing.TB, r *Recorder, name string, groups ...string) *rest.Config {
	t.Helper()
	cfg := r.Anonymous()
	cfg.CertData, cfg.KeyData = controlplane.NewAuthority(t).Issue(t, pkix.Name{CommonName: name, Organization: groups},
		x509.ExtKeyUsageClientAuth)
	return cfg
}
