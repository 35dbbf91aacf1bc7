package union

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	kube "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/auth/authorizer/abac"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/rbacindex/oracle/compare"
	"github.com/retrial-io/retrial/verdict"
)

// hook is the other side of a webhook authorizer, reached without a network.
type hook struct {
	name   string
	calls  *[]string
	silent *bool // it has no opinion and says nothing
}

// RoundTrip answers a review: silently, or as a hash of it says.
func (h *hook) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	*h.calls = append(*h.calls, h.name)
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	if !*h.silent {
		sum := fnv.New32a()
		_, _ = sum.Write(body)
		switch sum.Sum32() % 6 {
		case 0:
			review.Status.Allowed = true
		case 1:
			review.Status.Allowed, review.Status.Reason = true, "so says "+h.name
		case 2:
			review.Status.Denied, review.Status.Reason = true, "no, says "+h.name
		case 3:
			review.Status.Reason = h.name + " does not know"
		case 4:
			review.Status.Allowed, review.Status.Denied = true, true
		case 5:
			return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)),
				Request: req}, nil
		}
	}
	out, err := json.Marshal(&review)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(out)), Request: req}, nil
}

// theirs is Kubernetes' own chain.
type theirs struct {
	kube.Authorizer
	calls  []string // webhooks asked
	silent bool
}

// build makes Kubernetes' authorizers for a chain, as its own resolver of configurations does.
func build(t *testing.T, chain []authorizer, lines string, policy []rbacindex.Change, compiler authorizationcel.Compiler) *theirs {
	t.Helper()
	r := &theirs{}
	p := compare.NewPolicy(policy...)
	list := []kube.Authorizer{authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)}
	for _, z := range chain {
		switch z.kind {
		case "AlwaysAllow":
			list = append(list, authorizerfactory.NewAlwaysAllowAuthorizer())
		case "AlwaysDeny":
			list = append(list, authorizerfactory.NewAlwaysDenyAuthorizer())
		case "RBAC":
			list = append(list, rbac.New(p, p, p, p))
		case "Node":
			list = append(list, node.NewAuthorizer(node.NewGraph(), nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules()))
		case "ABAC":
			path := filepath.Join(t.TempDir(), "policy.jsonl")
			if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := abac.NewFromFile(path)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, a)
		case "Webhook":
			onError := kube.DecisionNoOpinion
			if z.failurePolicy == "Deny" {
				onError = kube.DecisionDeny
			}
			var match []apiserver.WebhookMatchCondition
			for _, c := range z.conditions {
				match = append(match, apiserver.WebhookMatchCondition{Expression: c})
			}
			w, err := webhook.New(&rest.Config{Host: "https://" + z.name, QPS: -1, Transport: &hook{z.name, &r.calls, &r.silent}},
				"v1", 0, 0,
				wait.Backoff{Steps: 1}, onError, match, z.name, metrics.NoopAuthorizerMetrics{}, compiler)
			if err != nil {
				t.Fatalf("%+v: %v", z, err)
			}
			list = append(list, w)
		default:
			panic(fmt.Sprintf("no authorizer %q", z.kind))
		}
	}
	r.Authorizer = union.New(list...)
	return r
}

// record returns a request as the authorization filter hands it to the authorizers.
func record(u *event.User, a *verdict.Attributes) *kube.AttributesRecord {
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups}
	for _, e := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string][]string{}
		}
		info.Extra[e.Key] = e.Values
	}
	r := &kube.AttributesRecord{User: info, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, APIVersion: a.APIVersion,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path}
	if a.FieldSelector != "" {
		if sel, err := fields.ParseSelector(a.FieldSelector); err != nil {
			r.FieldSelectorParsingErr = err
		} else if reqs := sel.Requirements(); len(reqs) > 0 {
			r.FieldSelectorRequirements = reqs
		}
	}
	if a.LabelSelector != "" {
		if sel, err := labels.Parse(a.LabelSelector); err != nil {
			r.LabelSelectorParsingErr = err
		} else if reqs, _ := sel.Requirements(); len(reqs) > 0 {
			r.LabelSelectorRequirements = reqs
		}
	}
	return r
}
