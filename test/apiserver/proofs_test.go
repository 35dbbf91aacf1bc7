package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// proof is what `retrial suggest` claims of one subject.
type proof struct {
	Holds                                                             bool
	Requests, Refused, Refusals, NewlyAllowed, AllowedBefore, LeftOut int
	AllowedByKept, AllowedToday, Implied, TakenAway                   int
}

// TestProofs: the RBAC authorizer of Kubernetes itself, on nothing but the objects that
// `retrial suggest --all --final` prints, answers the whole recording again. Nothing of the
// product has a part in it: events are decoded into the apiserver's own types, and what they
// asked is what its own request handler makes of them. What RBAC allowed is allowed; what was
// refused is refused, save what each proof names.
func TestProofs(t *testing.T) {
	in := product.New(t)
	files := recording(t, in)
	record := recorded(t)
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			proved(t, record, f.exact, func(more ...string) []byte {
				return []byte(in.Offline(t, slices.Concat([]string{"suggest", "--all", "--include-system", "-o", "json"}, f.flags, more,
					files)...).Out)
			})
		})
	}
}

// proved holds what a form of suggestions claims to the record.
func proved(t *testing.T, record map[string]map[string]*question, exact bool, run func(more ...string) []byte) {
	claims := product.Items[struct {
		Subject string
		Proof   proof
		Apply   []json.RawMessage
	}](t, string(run()))
	objects := decode(t, run("--final"))
	final := authorizerOf(t, objects)
	// The same without what is suggested: what the subjects' groups keep is not all they need.
	without := authorizerOf(t, slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetLabels()["app.kubernetes.io/managed-by"] == "retrial"
	}))

	var total, left, refused, excepted int
	for _, c := range claims {
		if !c.Proof.Holds {
			t.Errorf("%s: the proof does not hold: %+v", c.Subject, c.Proof)
		}
		requests, lost, back, needed := 0, 0, sets.New[string](), 0
		for _, q := range record[c.Subject] {
			allowed := final.allows(t, q.attributes)
			switch {
			case q.allowed > 0:
				requests += q.allowed
				if !without.allows(t, q.attributes) {
					needed++
				}
				if !allowed {
					lost += q.allowed
					if c.Proof.LeftOut+c.Proof.TakenAway == 0 {
						t.Errorf("%s: allowed by RBAC in the record, refused by the real authorizer: %s", c.Subject, q.line)
					}
				}
			case allowed:
				back.Insert(q.line)
			default:
				refused++
			}
		}
		// Requests that no exact rule allows, or that today's policy no longer does, are named by the proof, as are refusals that are
		// allowed all the same.
		if named := c.Proof.LeftOut + c.Proof.TakenAway; lost > named {
			t.Errorf("%s: %d recorded requests are refused, the proof leaves out %d", c.Subject, lost, named)
		}
		if named := c.Proof.AllowedBefore + c.Proof.AllowedByKept + c.Proof.AllowedToday + c.Proof.Implied; back.Len() > named {
			t.Errorf("%s: %d recorded refusals are allowed, the proof names %d: %v", c.Subject, back.Len(), named, sets.List(back))
		}
		// The proof counts hidden checks as well, which leave no event of their own.
		if requests-lost > c.Proof.Requests {
			t.Errorf("%s: RBAC allowed %d recorded requests, the proof asked %d", c.Subject, requests-lost, c.Proof.Requests)
		}
		if exact && len(c.Apply) > 0 && needed == 0 { // a role that is edited in place is not told from those that stay
			t.Errorf("%s: nothing on record needs the %d objects that are suggested", c.Subject, len(c.Apply))
		}
		total, left, excepted = total+requests, left+lost, excepted+back.Len()
	}
	t.Logf("%d subjects: %d requests that RBAC allowed, %d of them refused by the final state; %d distinct refusals stay, %d are "+
		"allowed, as the proofs say",
		len(claims), total, left, refused, excepted)
	if len(claims) < 20 || total < 5000 || refused < 100 {
		t.Error("too little to say anything")
	}
}

// question is a distinct request of a subject, with how the record says it was answered.
type question struct {
	attributes authorizer.Attributes
	line       string
	allowed    int // requests that RBAC allowed
}

// recorded returns the distinct RBAC-decided requests of the bundled recording, by subject.
func recorded(t *testing.T) map[string]map[string]*question {
	t.Helper()
	log, err := sample.OpenAuditLog()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	out, seen := map[string]map[string]*question{}, map[string]bool{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		decision, reason := e.Annotations["authorization.k8s.io/decision"], e.Annotations["authorization.k8s.io/reason"]
		rbacAllowed := decision == "allow" && strings.HasPrefix(reason, "RBAC: allowed by ")
		if !rbacAllowed && decision != "forbid" {
			continue
		}
		// The stages of one request are one request.
		id := fmt.Sprint(e.AuditID, e.RequestURI, e.Verb, e.User.Username, e.RequestReceivedTimestamp)
		if seen[id] {
			continue
		}
		seen[id] = true
		who := e.User
		if e.ImpersonatedUser != nil {
			who = *e.ImpersonatedUser
		}
		a := attributes(t, resolver, &e, &user.DefaultInfo{Name: who.Username, Groups: who.Groups, UID: who.UID})
		line := fmt.Sprintf("%s %s %s/%s/%s %s/%s %s", a.GetVerb(), a.GetPath(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(),
			a.GetNamespace(), a.GetName(), a.GetAPIVersion())
		if a.IsResourceRequest() { // RBAC looks at neither path nor version
			line = fmt.Sprintf("%s %s.%s/%s %s/%s", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), a.GetSubresource(), a.GetNamespace(),
				a.GetName())
		}
		if out[who.Username] == nil {
			out[who.Username] = map[string]*question{}
		}
		key := line + "|" + strings.Join(slices.Sorted(slices.Values(who.Groups)), ",")
		q, ok := out[who.Username][key]
		if !ok {
			q = &question{attributes: a, line: line}
			out[who.Username][key] = q
		}
		if rbacAllowed {
			q.allowed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// attributes returns what the apiserver's handlers make of the request that an event records.
func attributes(t *testing.T, resolver request.RequestInfoResolver, e *auditv1.Event, who user.Info) authorizer.Attributes {
	t.Helper()
	method, ok := map[string]string{"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
		"delete": "DELETE", "deletecollection": "DELETE", "proxy": "GET", "": "CONNECT"}[e.Verb]
	if !ok {
		method = strings.ToUpper(e.Verb) // of what is not a resource
	}
	u, err := url.ParseRequestURI(e.RequestURI)
	if err != nil {
		t.Fatal(err)
	}
	req := &http.Request{Method: method, URL: u}
	info, err := resolver.NewRequestInfo(req)
	if err != nil {
		t.Fatalf("%s: %v", e.RequestURI, err)
	}
	if info.Verb != e.Verb && (info.IsResourceRequest || strings.ToUpper(info.Verb) != method) {
		t.Fatalf("%s %s: resolved as %q", e.Verb, e.RequestURI, info.Verb)
	}
	a, err := filters.GetAuthorizerAttributes(request.WithUser(request.WithRequestInfo(t.Context(), info), who))
	if err != nil {
		t.Fatalf("%s: %v", e.RequestURI, err)
	}
	return a
}

// realRBAC is the authorizer of Kubernetes on a fixed policy.
type realRBAC struct{ *rbac.RBACAuthorizer }

func (r realRBAC) allows(t *testing.T, a authorizer.Attributes) bool {
	t.Helper()
	decision, _, _ := r.Authorize(context.Background(), a) // an error beside a decision names roles that do not exist
	return decision == authorizer.DecisionAllow
}

func authorizerOf(t *testing.T, objects []*unstructured.Unstructured) realRBAC {
	t.Helper()
	var roles []*rbacv1.Role
	var bindings []*rbacv1.RoleBinding
	var clusterRoles []*rbacv1.ClusterRole
	var clusterBindings []*rbacv1.ClusterRoleBinding
	for _, o := range objects {
		switch o.GetKind() {
		case "Role":
			roles = append(roles, typed[rbacv1.Role](t, o))
		case "RoleBinding":
			bindings = append(bindings, typed[rbacv1.RoleBinding](t, o))
		case "ClusterRole":
			clusterRoles = append(clusterRoles, typed[rbacv1.ClusterRole](t, o))
		case "ClusterRoleBinding":
			clusterBindings = append(clusterBindings, typed[rbacv1.ClusterRoleBinding](t, o))
		default:
			t.Errorf("%s in the final state", key(o))
		}
	}
	_, static := validation.NewTestRuleResolver(roles, bindings, clusterRoles, clusterBindings)
	return realRBAC{rbac.New(static, static, static, static)}
}

// typed converts an object, strictly.
func typed[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true); err != nil {
		t.Fatalf("%s: %v", key(o), err)
	}
	return out
}
