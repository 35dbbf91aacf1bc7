package authorizertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"
	internal "k8s.io/kubernetes/pkg/apis/authorization"
	convert "k8s.io/kubernetes/pkg/apis/authorization/v1"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview"
)

// rbac is what takes the place under test.
type rbac interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// apiserver is a generic apiserver with every filter a kube-apiserver has, in which a request
// that gets through is answered "through"; self subject reviews are answered by the storage of
// kube-apiserver.
type apiserver struct {
	http    *httptest.Server
	decided *decisions
	audit   *trail
}

const (
	rulesReview  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	accessReview = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

func newAPIServer(t testing.TB, under rbac) *apiserver {
	t.Helper()
	s := &apiserver{decided: &decisions{rbac: under}, audit: &trail{events: make(chan map[string]string, 16)}}
	authn, err := headerrequest.New([]string{"X-Remote-User"}, nil, []string{"X-Remote-Group"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// What every apiserver has before RBAC.
	chain := union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), s.decided)

	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the Status of a refusal
	cfg := genericapiserver.NewConfig(serializer.NewCodecFactory(scheme))
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.ExternalAddress = "127.0.0.1:443"
	cfg.LoopbackClientConfig = &restclient.Config{}
	cfg.Authentication.Authenticator = authn
	cfg.Authorization.Authorizer = chain
	cfg.RuleResolver = under
	cfg.AuditBackend = s.audit
	cfg.AuditPolicyRuleEvaluator = policy.NewFakePolicyRuleEvaluator(auditinternal.LevelMetadata, nil)
	cfg.EnableIndex, cfg.EnableDiscovery, cfg.EnableMetrics, cfg.EnableProfiling = false, false, false, false
	server, err := cfg.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Destroy)
	mux := server.Handler.NonGoRestfulMux
	mux.HandlePrefix("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "through") }))
	mux.Handle(rulesReview, reviewRules(selfsubjectrulesreview.NewREST(cfg.RuleResolver)))
	mux.Handle(accessReview, reviewAccess(selfsubjectaccessreview.NewREST(chain)))
	s.http = httptest.NewServer(server.Handler)
	t.Cleanup(s.http.Close)
	return s
}

// reviewRules answers as the resource's endpoint does, whose storage this is.
func reviewRules(storage rest.Creater) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review(w, r, func(ctx context.Context, body []byte) (any, error) {
			var in authorizationv1.SelfSubjectRulesReview
			if err := json.Unmarshal(body, &in); err != nil {
				return nil, err
			}
			made, err := storage.Create(ctx, &internal.SelfSubjectRulesReview{Spec: internal.SelfSubjectRulesReviewSpec{
				Namespace: in.Spec.Namespace}}, nil, &metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			var out authorizationv1.SelfSubjectRulesReview
			return &out, convert.Convert_authorization_SelfSubjectRulesReview_To_v1_SelfSubjectRulesReview(
				made.(*internal.SelfSubjectRulesReview), &out, nil)
		})
	}
}

func reviewAccess(storage rest.Creater) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review(w, r, func(ctx context.Context, body []byte) (any, error) {
			var in authorizationv1.SelfSubjectAccessReview
			if err := json.Unmarshal(body, &in); err != nil {
				return nil, err
			}
			var asked internal.SelfSubjectAccessReview
			if err := convert.Convert_v1_SelfSubjectAccessReview_To_authorization_SelfSubjectAccessReview(&in, &asked, nil); err != nil {
				return nil, err
			}
			made, err := storage.Create(ctx, &asked, func(context.Context, runtime.Object) error { return nil }, &metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			var out authorizationv1.SelfSubjectAccessReview
			return &out, convert.Convert_authorization_SelfSubjectAccessReview_To_v1_SelfSubjectAccessReview(
				made.(*internal.SelfSubjectAccessReview), &out, nil)
		})
	}
}

func review(w http.ResponseWriter, r *http.Request, answer func(context.Context, []byte) (any, error)) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		var out any
		if out, err = answer(r.Context(), body); err == nil {
			err = json.NewEncoder(w).Encode(out)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// decision is one answer of the authorizer under test.
type decision struct {
	attributes authorizer.Attributes
	decision   authorizer.Decision
	reason     string
	err        error
}

// decisions notes the answers of an authorizer.
type decisions struct {
	rbac
	mu   sync.Mutex
	made []decision
}

func (d *decisions) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	got, reason, err := d.rbac.Authorize(ctx, a)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, decision{a, got, reason, err})
	return got, reason, err
}

// take returns the answers since the last call.
func (d *decisions) take() []decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	made := d.made
	d.made = nil
	return made
}

// trail is an audit backend that hands over the annotations of each finished request.
type trail struct{ events chan map[string]string }

func (t *trail) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		if e.Stage != auditinternal.StageResponseComplete {
			continue
		}
		a := maps.Clone(e.Annotations)
		if a == nil {
			a = map[string]string{}
		}
		a["audit-id"] = string(e.AuditID)
		t.events <- a
	}
	return true
}

func (t *trail) Run(<-chan struct{}) error { return nil }
func (t *trail) Shutdown()                 {}
func (t *trail) String() string            { return "trail" }

// call is a request as a client sends it.
type call struct {
	method, uri, body string
	user              string // empty: no credentials
	groups            []string
	asUser            string // to impersonate
	asGroups          []string
}

// answer is everything a request left.
type answer struct {
	code        int
	body        string
	annotations map[string]string
	made        []decision
}

// send sends a call and waits until it was audited.
func (s *apiserver) send(t testing.TB, c *call, auditID string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.http.URL+c.uri, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Audit-ID", auditID)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	if c.user != "" {
		r.Header.Set("X-Remote-User", c.user)
	}
	r.Header["X-Remote-Group"] = c.groups
	if c.asUser != "" {
		r.Header.Set("Impersonate-User", c.asUser)
		r.Header["Impersonate-Group"] = c.asGroups
	}
	response, err := s.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := answer{code: response.StatusCode, body: string(body)}
	for {
		select {
		case out.annotations = <-s.audit.events:
		case <-t.Context().Done():
			t.Fatal("the request was not audited")
		}
		if out.annotations["audit-id"] == auditID {
			break
		}
	}
	out.made = s.decided.take()
	return out
}
