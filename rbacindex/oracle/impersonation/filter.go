// Package impersonation puts generated requests through Kubernetes' own impersonation filters,
// legacy and constrained, with its RBAC authorizer on generated policies, records them with its
// own audit filter, and holds what package replay says of the recorded events against it.
package impersonation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/rbacindex/oracle/compare"
)

// server is a handler chain of the real filters with a recorder behind them.
type server struct {
	handler http.Handler
	last    *auditinternal.Event // the last that was complete
}

type requestorKey struct{}

// authorizers returns what a kube-apiserver with RBAC alone asks.
func authorizers(p *compare.Policy) authorizer.Authorizer {
	return union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), rbac.New(p, p, p, p))
}

// newServer puts the chain together: who asks comes with the context, as an authenticator
// would leave it. constrained chooses the filter.
func newServer(chain, impersonates authorizer.Authorizer, constrained bool) *server {
	s := &server{}
	codecs := scheme.Codecs
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	h = filters.WithAuthorization(h, chain, codecs)
	if constrained {
		h = impersonation.WithConstrainedImpersonation(h, impersonates, codecs)
	} else {
		h = impersonation.WithImpersonation(h, impersonates, codecs)
	}
	everything := policy.NewFakePolicyRuleEvaluator(auditinternal.LevelRequestResponse, nil)
	h = filters.WithAudit(h, s, everything, func(*http.Request, *request.RequestInfo) bool { return false })
	authenticated := h
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Context().Value(requestorKey{}).(*user.DefaultInfo)
		authenticated.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), who)))
	})
	h = filters.WithAuditInit(h)
	h = filters.WithRequestInfo(h, &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")})
	s.handler = filters.WithRequestReceivedTimestamp(h)
	return s
}

// ProcessEvents keeps the last event.
func (s *server) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		if e.Stage == auditinternal.StageResponseComplete {
			s.last = e.DeepCopy()
		}
	}
	return true
}

// serve makes a request and returns the event recorded of it, as a log holds it.
func (s *server) serve(a *ask) (*event.Event, error) {
	r := httptest.NewRequest(a.method, (&url.URL{Path: a.path}).RequestURI(), nil)
	h := http.Header{}
	if a.as.name != "" {
		h["Impersonate-User"] = []string{a.as.name}
	}
	if a.as.uid != "" {
		h["Impersonate-Uid"] = []string{a.as.uid}
	}
	if len(a.as.groups) > 0 {
		h["Impersonate-Group"] = a.as.groups
	}
	for key, values := range a.as.extra {
		h["Impersonate-Extra-"+url.PathEscape(key)] = values
	}
	r.Header = h
	who := &user.DefaultInfo{Name: a.by.name, UID: a.by.uid, Groups: a.by.groups, Extra: a.by.extra}
	s.last = nil
	s.handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), requestorKey{}, who)))
	if s.last == nil {
		return nil, errors.New("nothing was recorded")
	}
	var v1 auditv1.Event
	if err := auditv1.Convert_audit_Event_To_v1_Event(s.last, &v1, nil); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	raw, err := json.Marshal(&v1)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	e, err := event.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", raw, err)
	}
	return e, nil
}

// only lets an authorizer allow the verbs of one mode, "" for legacy.
func only(a authorizer.Authorizer, mode string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
		verb := at.GetVerb()
		switch {
		case mode == "" && verb == "impersonate", mode != "" && verb == "impersonate:"+mode,
			mode != "" && strings.HasPrefix(verb, "impersonate-on:"+mode+":"):
			return a.Authorize(ctx, at)
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func keyKind(o any) (string, error) {
	k, err := rbacindex.KeyOf(o)
	if err != nil {
		return "", err
	}
	return k.Kind.String(), nil
}
