package implied

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/test/golden"
	"github.com/retrial-io/retrial/verdict"
)

// known is a State for tests.
type known struct {
	roles    map[string]Role
	bindings map[string]rbacv1.RoleRef
	subjects map[string][]rbacv1.Subject
	signers  map[string]string
}

func (k *known) Role(namespace, name string) (Role, Known) {
	if r, ok := k.roles[namespace+"/"+name]; ok {
		return r, Present
	}
	return Role{}, Absent
}

func (k *known) Binding(namespace, name string) (rbacv1.RoleRef, []rbacv1.Subject, Known) {
	if r, ok := k.bindings[namespace+"/"+name]; ok {
		return r, k.subjects[namespace+"/"+name], Present
	}
	return rbacv1.RoleRef{}, nil, Absent
}

func (k *known) Signer(name string) (string, Known) {
	if s, ok := k.signers[name]; ok {
		return s, Present
	}
	return "", Unknown
}

// ask is one request of a table.
type ask struct {
	verb, uri    string
	user         string
	groups       []string
	extra        event.Extra
	body, answer string
	annotation   string
	cfg          *config.APIServer
	unknownState bool
	code         int32
	message      string
}

func (q *ask) event() *event.Event {
	e := &event.Event{Verb: q.verb, RequestURI: q.uri, User: event.User{Username: q.user, Groups: q.groups, Extra: q.extra}}
	if q.user == "" {
		e.User.Username = "alice"
	}
	if q.body != "" {
		e.RequestObject = []byte(q.body)
	}
	if q.answer != "" {
		e.ResponseObject = []byte(q.answer)
	}
	if q.annotation != "" {
		e.Annotations = event.Pairs{{Key: q.annotation}}
	}
	if q.code != 0 {
		e.ResponseStatus = &event.Status{Code: q.code, Message: q.message}
	}
	return e
}

func (q *ask) of(t *testing.T) ([]Check, *event.Event, *verdict.Attributes) {
	t.Helper()
	e := q.event()
	a, err := request.Of(e.Verb, e.RequestURI)
	if err != nil {
		t.Fatal(err)
	}
	var s State = &known{
		roles: map[string]Role{
			"d/old": {Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
			"/agg":  {Aggregates: true},
		},
		bindings: map[string]rbacv1.RoleRef{"d/b": {APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}},
		subjects: map[string][]rbacv1.Subject{"d/b": {{Kind: "User", Name: "u"}}},
		signers:  map[string]string{"known-csr": "example.com/kept"},
	}
	if q.unknownState {
		s = nil
	}
	return Of(e, &a, q.cfg, s), e, &a
}

// text writes a check in one line: name, question, alternatives, and what else there is.
func text(c *Check) string {
	one := func(a *verdict.Attributes) string {
		s := a.Verb + " " + a.APIGroup + "/" + a.Resource
		if a.Subresource != "" {
			s += "/" + a.Subresource
		}
		return s + " " + a.Namespace + "/" + a.Name
	}
	s := c.Name + ":"
	if c.Attributes.Verb != "" {
		s += " " + one(&c.Attributes)
	}
	for i := range c.Or {
		s += " or " + one(&c.Or[i])
	}
	if c.Cover {
		s += " or cover"
		if c.Ref != nil {
			s += " " + c.Ref.Kind + " " + c.Ref.Name
		}
		for _, r := range c.Rules {
			s += fmt.Sprintf(" %v%v", r.Verbs, r.Resources)
		}
	}
	if c.Full {
		s += " full"
	}
	if c.Perhaps != "" {
		s += " perhaps"
	}
	if len(c.Open) > 0 {
		s += " open: " + strings.Join(c.Open, ", ")
	}
	return s
}

func TestOf(t *testing.T) {
	current := &config.APIServer{Minor: 36}
	owners := &config.APIServer{Minor: 36, Admission: config.Admission{Enabled: []string{"NodeRestriction", pluginOwners}}}
	unsafe := &config.APIServer{Minor: 36, Gates: map[string]bool{"AllowUnsafeMalformedObjectDeletion": true}}
	masters := []string{"system:masters"}
	nodes := []string{"system:nodes", "system:authenticated"}
	const rules = `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`
	const other = `"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]`
	const ref = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"}`
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	const certs = "/apis/certificates.k8s.io/v1/certificatesigningrequests/c"
	const admission = "/apis/admissionregistration.k8s.io/v1"
	const claim = "/apis/resource.k8s.io/v1/namespaces/d/resourceclaims/c/status"
	node := event.Extra{{Key: "authentication.kubernetes.io/node-name", Values: []string{"n1"}}}
	onNode := `"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In",` +
		`"values":["n1"]}]}]}}`

	for _, tc := range []struct {
		name string
		ask  ask
		want string // lines
	}{
		{"nothing", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p"}, ""},
		{"no resource", ask{verb: "get", uri: "/healthz"}, ""},
		{"list of pods", ask{verb: "list", uri: "/api/v1/pods"}, ""},
		{"create of a pod", ask{verb: "create", uri: "/api/v1/namespaces/d/pods", body: `{}`, cfg: current}, ""},

		{"websocket exec", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/exec", cfg: current},
			"websocket-create: create /pods/exec d/p"},
		{"websocket attach", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/attach", cfg: current},
			"websocket-create: create /pods/attach d/p"},
		{"websocket port-forward", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/portforward", cfg: current},
			"websocket-create: create /pods/portforward d/p"},
		{"exec by POST", ask{verb: "create", uri: "/api/v1/namespaces/d/pods/p/exec", cfg: current}, ""},
		{"websocket before 1.35", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/exec", cfg: &config.APIServer{Minor: 34}}, ""},
		{"websocket with the gate off", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/exec",
			cfg: &config.APIServer{Minor: 35, Gates: map[string]bool{"AuthorizePodWebsocketUpgradeCreatePermission": false}}}, ""},
		{"websocket, version not known", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/exec"},
			"websocket-create: create /pods/exec d/p perhaps"},
		{"log is its own subresource", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/log", cfg: current}, ""},
		{"exec in another group", ask{verb: "get", uri: "/apis/x.io/v1/namespaces/d/pods/p/exec", cfg: current}, ""},

		{"create role", ask{verb: "create", uri: rbac + "/namespaces/d/roles", body: `{` + rules + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/ or cover [get][pods]"},
		{"create role by masters", ask{verb: "create", uri: rbac + "/namespaces/d/roles", body: `{` + rules + `}`, groups: masters}, ""},
		{"create role without body", ask{verb: "create", uri: rbac + "/namespaces/d/roles"},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/ or cover open: " + bodyUnrecorded},
		{"replace role by itself", ask{verb: "update", uri: rbac + "/namespaces/d/roles/old", body: `{` + rules + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [get][pods] perhaps"},
		{"replace role by another", ask{verb: "update", uri: rbac + "/namespaces/d/roles/old", body: `{` + other + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [list][pods]"},
		{"replace absent role", ask{verb: "update", uri: rbac + "/namespaces/d/roles/new", body: `{` + rules + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/new or cover [get][pods]"},
		{"replace role, nothing known", ask{verb: "update", uri: rbac + "/namespaces/d/roles/old", body: `{` + other + `}`,
			unknownState: true},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [list][pods] perhaps"},
		{"patch rules", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old", body: `{` + other + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [list][pods]"},
		{"patch shows its result", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old",
			body: `[{"op":"add","path":"/rules/-","value":{}}]`, answer: `{"kind":"Role",` + other + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [list][pods]"},
		{"a status is not a role", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old", body: `{` + other + `}`,
			answer: `{"kind":"Status","status":"Failure"}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [list][pods]"},
		{"patch labels", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old", body: `{"metadata":{"labels":{"a":"b"}}}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [get][pods] perhaps"},
		{"patch finalizers alone", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old", body: `{"metadata":{"finalizers":null}}`}, ""},
		{"JSON patch of owner references alone", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old",
			body: `[{"op":"remove","path":"/metadata/ownerReferences/0"}]`}, ""},
		{"applied configuration of finalizers", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old",
			body: `{"apiVersion":"x","kind":"Role","metadata":{"finalizers":[]}}`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [get][pods] perhaps"},
		{"JSON patch of rules", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old",
			body: `[{"op":"test","path":"/metadata/name","value":"old"},{"op":"add","path":"/rules/-","value":{"verbs":["list"],` +
				`"resources":["secrets"]}}]`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover [get][pods] [list][secrets]"},
		{"JSON patch that fails", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old", body: `[{"op":"remove","path":"/rules/7"}]`},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover open: what the patch makes of the role"},
		{"JSON patch of a list, not known", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old",
			body: `[{"op":"add","path":"/rules/-","value":{}}]`, unknownState: true},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover perhaps open: the role before the patch"},
		{"JSON patch of the aggregation", ask{verb: "patch", uri: rbac + "/clusterroles/agg",
			body: `[{"op":"remove","path":"/aggregationRule"}]`},
			"role-escalate: escalate rbac.authorization.k8s.io/clusterroles /agg or cover full"},
		{"patch of a role not known", ask{verb: "patch", uri: rbac + "/namespaces/d/roles/old", body: `{"metadata":{"labels":{"a":"b"}}}`,
			unknownState: true},
			"role-escalate: escalate rbac.authorization.k8s.io/roles d/old or cover perhaps open: the role before the patch"},
		{"aggregating role", ask{verb: "create", uri: rbac + "/clusterroles", body: `{"aggregationRule":{"clusterRoleSelectors":[{}]}}`},
			"role-escalate: escalate rbac.authorization.k8s.io/clusterroles / or cover full"},
		{"once aggregating role", ask{verb: "update", uri: rbac + "/clusterroles/agg", body: `{` + rules + `}`},
			"role-escalate: escalate rbac.authorization.k8s.io/clusterroles /agg or cover [get][pods] full"},
		{"empty aggregation", ask{verb: "create", uri: rbac + "/clusterroles", body: `{"aggregationRule":{"clusterRoleSelectors":[]}}`},
			"role-escalate: escalate rbac.authorization.k8s.io/clusterroles / or cover"},

		{"create binding", ask{verb: "create", uri: rbac + "/namespaces/d/rolebindings", body: `{` + ref + `}`},
			"role-bind: bind rbac.authorization.k8s.io/clusterroles d/admin or cover ClusterRole admin"},
		{"create cluster binding", ask{verb: "create", uri: rbac + "/clusterrolebindings", body: `{` + ref + `}`},
			"role-bind: bind rbac.authorization.k8s.io/clusterroles /admin or cover ClusterRole admin"},
		{"role reference without a group", ask{verb: "create", uri: rbac + "/namespaces/d/rolebindings",
			body: `{"roleRef":{"kind":"Role","name":"r"}}`},
			"role-bind: bind rbac.authorization.k8s.io/roles d/r or cover Role r"},
		{"role reference of no kind", ask{verb: "create", uri: rbac + "/namespaces/d/rolebindings",
			body: `{"roleRef":{"kind":"Foo","name":"r"}}`}, ""},
		{"create binding without body", ask{verb: "create", uri: rbac + "/namespaces/d/rolebindings"}, "role-bind: or cover open: " +
			bodyUnrecorded},
		{"patch subjects", ask{verb: "patch", uri: rbac + "/namespaces/d/rolebindings/b", body: `{"subjects":[]}`},
			"role-bind: bind rbac.authorization.k8s.io/clusterroles d/view or cover ClusterRole view perhaps"},
		{"replace subjects", ask{verb: "update", uri: rbac + "/namespaces/d/rolebindings/b",
			body: `{` + ref + `,"subjects":[{"kind":"User","name":"v"}]}`},
			"role-bind: bind rbac.authorization.k8s.io/clusterroles d/admin or cover ClusterRole admin"},
		{"replace with the same subjects", ask{verb: "update", uri: rbac + "/namespaces/d/rolebindings/b",
			body: `{` + ref + `,"subjects":[{"kind":"User","name":"u"}]}`},
			"role-bind: bind rbac.authorization.k8s.io/clusterroles d/admin or cover ClusterRole admin perhaps"},
		{"patch of a binding not known", ask{verb: "patch", uri: rbac + "/namespaces/d/rolebindings/b", body: `{"subjects":[]}`,
			unknownState: true},
			"role-bind: or cover open: the role of the binding"},
		{"patch of a binding that is not there", ask{verb: "patch", uri: rbac + "/namespaces/d/rolebindings/none", body: `{"subjects":[]}`},
			""},
		{"patch finalizers of a binding", ask{verb: "patch", uri: rbac + "/namespaces/d/rolebindings/b",
			body: `{"metadata":{"finalizers":[]}}`}, ""},

		{"approve", ask{verb: "update", uri: certs + "/approval", body: `{"spec":{"signerName":"example.com/s"}}`},
			"signer-approve: approve certificates.k8s.io/signers /example.com/s or approve certificates.k8s.io/signers /example.com/*"},
		{"approve by patch", ask{verb: "patch", uri: certs + "/approval", body: `{"status":{}}`,
			answer: `{"kind":"CertificateSigningRequest","spec":{"signerName":"example.com/s"}}`},
			"signer-approve: approve certificates.k8s.io/signers /example.com/s or approve certificates.k8s.io/signers /example.com/*"},
		{"the signer before the request counts",
			ask{verb: "update", uri: "/apis/certificates.k8s.io/v1/certificatesigningrequests/known-csr/approval",
				body: `{"spec":{"signerName":"example.com/changed"}}`},
			"signer-approve: approve certificates.k8s.io/signers /example.com/kept or approve certificates.k8s.io/signers /example.com/*"},
		{"approve without body", ask{verb: "update", uri: certs + "/approval"}, "signer-approve: open: " + bodyUnrecorded},
		{"approve, refused patch", ask{verb: "patch", uri: certs + "/approval", body: `{"status":{}}`, answer: `{"kind":"Status"}`},
			"signer-approve: open: the object before the patch"},
		{"issue", ask{verb: "update", uri: certs + "/status", body: `{"spec":{"signerName":"example.com/s"},"status":{"certificate":"x"}}`},
			"signer-sign: sign certificates.k8s.io/signers /example.com/s or sign certificates.k8s.io/signers /example.com/* perhaps"},
		{"create of a request", ask{verb: "create", uri: "/apis/certificates.k8s.io/v1/certificatesigningrequests",
			body: `{"spec":{"signerName":"example.com/s"}}`}, ""},
		{"issue to a pod", ask{verb: "update", uri: "/apis/certificates.k8s.io/v1alpha1/namespaces/d/podcertificaterequests/p/status",
			body: `{"spec":{"signerName":"example.com/s"}}`},
			"signer-sign: sign certificates.k8s.io/signers /example.com/s or sign certificates.k8s.io/signers /example.com/* perhaps"},
		{"bundle", ask{verb: "create", uri: "/apis/certificates.k8s.io/v1beta1/clustertrustbundles",
			body: `{"spec":{"signerName":"example.com/s"}}`},
			"signer-attest: attest certificates.k8s.io/signers /example.com/s or attest certificates.k8s.io/signers /example.com/*"},
		{"bundle without a signer", ask{verb: "create", uri: "/apis/certificates.k8s.io/v1beta1/clustertrustbundles", body: `{"spec":{}}`},
			""},
		{"bundle replaced", ask{verb: "update", uri: "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/b",
			body: `{"spec":{"signerName":"example.com/s"}}`},
			"signer-attest: attest certificates.k8s.io/signers /example.com/s or attest certificates.k8s.io/signers " +
				"/example.com/* perhaps"},

		{"owners while the plugin is off", ask{verb: "update", uri: "/api/v1/namespaces/d/configmaps/c", cfg: current,
			body: `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"o","blockOwnerDeletion":true}]}}`},
			""},
		{"owner on create", ask{verb: "create", uri: "/api/v1/namespaces/d/configmaps", cfg: owners,
			body: `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"o","blockOwnerDeletion":true}]}}`},
			"owner-finalizers: update apps/deployments/finalizers d/o or update */*/finalizers /*"},
		{"owner that does not block, on create", ask{verb: "create", uri: "/api/v1/namespaces/d/configmaps", cfg: owners,
			body: `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"o"}]}}`}, ""},
		{"owners on update", ask{verb: "update", uri: "/api/v1/namespaces/d/configmaps/c", cfg: owners,
			body: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","blockOwnerDeletion":true},` +
				`{"apiVersion":"x.io/v1","kind":"Foo","name":"f","blockOwnerDeletion":true}]}}`},
			"owner-delete: delete /configmaps d/c perhaps\n" +
				"owner-finalizers: update /nodes/finalizers /n or update */*/finalizers /* perhaps\n" +
				"owner-finalizers: update */*/finalizers /* perhaps open: the resource of kind Foo in x.io/v1"},
		{"status of a pod is exempt", ask{verb: "update", uri: "/api/v1/namespaces/d/pods/p/status", cfg: owners,
			body: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n"}]}}`}, ""},
		{"plugin named on and off", ask{verb: "update", uri: "/api/v1/namespaces/d/configmaps/c",
			cfg:  &config.APIServer{Admission: config.Admission{Enabled: []string{pluginOwners}, Disabled: []string{pluginOwners}}},
			body: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n"}]}}`}, ""},

		{"policy with parameters", ask{verb: "create", uri: admission + "/validatingadmissionpolicies",
			body: `{"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"}}}`},
			"policy-param: get /configmaps */*"},
		{"policy without parameters", ask{verb: "create", uri: admission + "/validatingadmissionpolicies", body: `{"spec":{}}`}, ""},
		{"policy by masters", ask{verb: "create", uri: admission + "/validatingadmissionpolicies",
			body: `{"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"}}}`, groups: masters}, ""},
		{"policy of a kind that is not known", ask{verb: "create", uri: admission + "/mutatingadmissionpolicies",
			body: `{"spec":{"paramKind":{"apiVersion":"x.io/v1","kind":"Foo"}}}`},
			"policy-param: get x.io/* */* open: the resource of kind Foo in x.io/v1"},
		{"policy of no version", ask{verb: "create", uri: admission + "/validatingadmissionpolicies",
			body: `{"spec":{"paramKind":{"apiVersion":"a/b/c","kind":"Foo"}}}`},
			"policy-param: get */* */*"},
		{"policy replaced", ask{verb: "update", uri: admission + "/validatingadmissionpolicies/p",
			body: `{"spec":{"paramKind":{"apiVersion":"v1","kind":"Secret"}}}`},
			"policy-param: get /secrets */* perhaps"},
		{"policy without body", ask{verb: "create", uri: admission + "/validatingadmissionpolicies"}, "policy-param: perhaps open: " +
			bodyUnrecorded},
		{"binding with a parameter", ask{verb: "create", uri: admission + "/validatingadmissionpolicybindings",
			body: `{"spec":{"policyName":"p","paramRef":{"name":"x","namespace":"n"}}}`},
			"policy-param: get */* n/x open: the kind of the parameters of policy p"},
		{"binding with selected parameters", ask{verb: "create", uri: admission + "/mutatingadmissionpolicybindings",
			body: `{"spec":{"policyName":"p","paramRef":{"selector":{}}}}`},
			"policy-param: list */* / open: the kind of the parameters of policy p"},
		{"binding without parameters", ask{verb: "create", uri: admission + "/validatingadmissionpolicybindings",
			body: `{"spec":{"policyName":"p"}}`}, ""},
		{"status of a policy", ask{verb: "update", uri: admission + "/validatingadmissionpolicies/p/status", body: `{}`}, ""},

		{"claim allocated", ask{verb: "update", uri: claim, cfg: current, body: `{"status":{"allocation":{},"reservedFor":[]}}`},
			"claim-binding: update resource.k8s.io/resourceclaims/binding / perhaps"},
		{"devices of a claim", ask{verb: "patch", uri: claim, cfg: current,
			body: `{"status":{"devices":[{"driver":"a.io"},{"driver":"a.io"},{"driver":"b.io"}]}}`},
			"claim-driver: arbitrary-node:patch resource.k8s.io/resourceclaims/driver d/a.io perhaps\n" +
				"claim-driver: arbitrary-node:patch resource.k8s.io/resourceclaims/driver d/b.io perhaps"},
		{"devices by the driver on the node", ask{verb: "update", uri: claim, cfg: current, user: "system:serviceaccount:d:s", extra: node,
			body: `{"status":{` + onNode + `,"devices":[{"driver":"a.io"}]}}`},
			"claim-binding: update resource.k8s.io/resourceclaims/binding / perhaps\n" +
				"claim-driver: associated-node:update resource.k8s.io/resourceclaims/driver d/a.io or arbitrary-node:update " +
				"resource.k8s.io/resourceclaims/driver d/a.io perhaps"},
		{"devices by a driver elsewhere", ask{verb: "update", uri: claim, cfg: current, user: "system:serviceaccount:d:s", extra: node,
			body: `{"status":{"allocation":{"nodeSelector":{}},"devices":[{"driver":"a.io"}]}}`},
			"claim-binding: update resource.k8s.io/resourceclaims/binding / perhaps\n" +
				"claim-driver: arbitrary-node:update resource.k8s.io/resourceclaims/driver d/a.io perhaps"},
		{"claim before 1.36", ask{verb: "update", uri: claim, cfg: &config.APIServer{Minor: 35}, body: `{"status":{"allocation":{}}}`}, ""},
		{"claim without body", ask{verb: "update", uri: claim, cfg: current}, "claim-binding: perhaps open: " + bodyUnrecorded},
		{"claim by JSON patch", ask{verb: "patch", uri: claim, cfg: current, body: `[{"op":"add","path":"/status/devices/0","value":{}}]`},
			"claim-binding: perhaps open: what the patch makes of the claim's status"},

		{"unsafe delete", ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s", cfg: unsafe,
			body: `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`},
			"unsafe-delete: unsafe-delete-ignore-read-errors /secrets d/s"},
		{"unsafe delete by annotation", ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s", annotation: annotationUnsafe,
			body: `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`},
			"unsafe-delete: unsafe-delete-ignore-read-errors /secrets d/s"},
		{"unsafe delete by parameter",
			ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s?ignoreStoreReadErrorWithClusterBreakingPotential=true", cfg: unsafe},
			"unsafe-delete: unsafe-delete-ignore-read-errors /secrets d/s"},
		{"unsafe delete switched off by parameter",
			ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s?ignoreStoreReadErrorWithClusterBreakingPotential=False",
				cfg: unsafe}, ""},
		{"unsafe delete while the gate is off", ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s", cfg: current,
			body: `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`}, ""},
		{"unsafe delete, gate not known", ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s",
			body: `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`},
			"unsafe-delete: unsafe-delete-ignore-read-errors /secrets d/s perhaps"},
		{"safe delete", ask{verb: "delete", uri: "/api/v1/namespaces/d/secrets/s", cfg: unsafe,
			body: `{"ignoreStoreReadErrorWithClusterBreakingPotential":false}`}, ""},

		{"node's token", ask{verb: "create", uri: "/api/v1/namespaces/d/serviceaccounts/s/token", cfg: current, user: "system:node:n1",
			groups: nodes, body: `{"spec":{"audiences":["vault"]}}`},
			"token-audience: request-serviceaccounts-token-audience /vault d/s perhaps"},
		{"node's token for several audiences", ask{verb: "create", uri: "/api/v1/namespaces/d/serviceaccounts/s/token", cfg: current,
			user: "system:node:n1", groups: nodes, body: `{"spec":{"audiences":["a","b"]}}`}, ""},
		{"another's token", ask{verb: "create", uri: "/api/v1/namespaces/d/serviceaccounts/s/token", cfg: current,
			body: `{"spec":{"audiences":["vault"]}}`}, ""},
		{"node's token before 1.32", ask{verb: "create", uri: "/api/v1/namespaces/d/serviceaccounts/s/token",
			cfg: &config.APIServer{Minor: 31}, user: "system:node:n1", groups: nodes, body: `{"spec":{"audiences":["vault"]}}`}, ""},

		{"self review", ask{verb: "create", uri: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: `{}`, cfg: current}, ""},
		{"eviction", ask{verb: "create", uri: "/api/v1/namespaces/d/pods/p/eviction", body: `{}`, cfg: current}, ""},
		{"scale", ask{verb: "patch", uri: "/apis/apps/v1/namespaces/d/deployments/w/scale", body: `{}`, cfg: current}, ""},
		{"proxy", ask{verb: "get", uri: "/api/v1/namespaces/d/pods/p/proxy/x", cfg: current}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checks, _, _ := tc.ask.of(t)
			var lines []string
			for i := range checks {
				lines = append(lines, text(&checks[i]))
			}
			if got := strings.Join(lines, "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestOfIsBlind changes all that records an answer and looks for a change of the checks.
func TestOfIsBlind(t *testing.T) {
	for _, q := range []ask{
		{verb: "get", uri: "/api/v1/namespaces/d/pods/p/exec"},
		{verb: "create", uri: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			body: `{"roleRef":{"kind":"ClusterRole","name":"x"}}`},
		{verb: "patch", uri: "/api/v1/namespaces/d/configmaps/c", body: `{}`},
	} {
		plain, _, _ := q.of(t)
		q.code, q.message = 403, "forbidden"
		if refused, _, _ := q.of(t); fmt.Sprint(plain) != fmt.Sprint(refused) {
			t.Errorf("%s %s: %v with a refusal, %v without", q.verb, q.uri, refused, plain)
		}
	}
}

func TestRecorded(t *testing.T) {
	cfg := &config.APIServer{Minor: 36}
	binding := ask{verb: "create", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/d/rolebindings",
		body: `{"roleRef":{"kind":"Role","name":"absent"}}`, cfg: cfg}
	role := ask{verb: "create", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/d/roles", body: `{}`, cfg: cfg}
	exec := ask{verb: "get", uri: "/api/v1/namespaces/d/pods/x/exec", cfg: cfg}
	approve := ask{verb: "update", uri: "/apis/certificates.k8s.io/v1/certificatesigningrequests/c/approval",
		body: `{"spec":{"signerName":"a/b"}}`, cfg: cfg}
	apply := ask{verb: "patch", uri: "/api/v1/namespaces/d/configmaps/c?fieldManager=m", body: `{}`, cfg: cfg}
	for _, tc := range []struct {
		name    string
		ask     ask
		code    int32
		message string
		want    Answer
	}{
		{"switching protocols", exec, 101, "", Passed},
		{"no status", exec, 0, "", Silent},
		{"pod not found", exec, 404, `pods "x" not found`, Passed},
		{"exec refused", exec, 403, `pods "x" is forbidden: `, Refused},
		{"exec refused with errors", exec, 403, `pods "x" is forbidden: RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found`,
			Refused},
		{"exec refused by admission", exec, 403, `pods "x" is forbidden: exec is not allowed here`, Silent},
		{"exec of another pod", exec, 403, `pods "y" is forbidden: `, Silent},
		{"role made", role, 201, "", Passed},
		{"role refused", role, 403, "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"a\" (groups=[]) is attempting to grant " +
			"RBAC permissions not currently held:\n{}", Refused},
		{"role aggregates", role, 403, `clusterroles.rbac.authorization.k8s.io "r" is forbidden: must have cluster-admin privileges to ` +
			`use the aggregationRule`, Refused},
		{"role exists", role, 409, `roles.rbac.authorization.k8s.io "r" already exists`, Passed},
		{"role over quota", role, 403, `roles.rbac.authorization.k8s.io "r" is forbidden: exceeded quota`, Silent},
		{"bound", binding, 201, "", Passed},
		{"role absent", binding, 404, `rolebindings.rbac.authorization.k8s.io "absent" not found`, Refused},
		{"role absent, by its own resource", binding, 404, `role.rbac.authorization.k8s.io "absent" not found`, Refused},
		{"namespace absent", binding, 404, `namespaces "absent" not found`, Silent},
		{"approve refused", approve, 403, `certificatesigningrequests.certificates.k8s.io "c" is forbidden: user not permitted to ` +
			`approve requests with signerName "a/b"`, Refused},
		{"created by apply", apply, 201, "", Passed},
		{"changed by apply", apply, 200, "", Silent},
		{"create refused", apply, 403, `configmaps "c" is forbidden: User "alice" cannot create resource "configmaps" in API group "" in ` +
			`the namespace "d"`, Refused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.ask.code, tc.ask.message = tc.code, tc.message
			checks, e, a := tc.ask.of(t)
			e.ObjectRef = &event.ObjectRef{Name: "b"}
			checks = append(checks, Shown(e, a)...)
			if len(checks) == 0 {
				if tc.want != Silent {
					t.Fatal("no check")
				}
				return
			}
			if got := Recorded(&checks[0], e); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestPerhapsPassesNothing: that a request succeeded does not prove a check that may not have
// been made; the words of its refusal do.
func TestPerhapsPassesNothing(t *testing.T) {
	q := ask{verb: "update", uri: "/apis/certificates.k8s.io/v1/certificatesigningrequests/c/status", body: `{"spec":{"signerName":"a/b"}}`,
		code: 200}
	checks, e, _ := q.of(t)
	if got := Recorded(&checks[0], e); got != Silent {
		t.Errorf("of a success: %v", got)
	}
	e.ResponseStatus = &event.Status{Code: 403, Message: `user not permitted to sign requests with signerName "a/b"`}
	if got := Recorded(&checks[0], e); got != Refused {
		t.Errorf("of the refusal: %v", got)
	}
}

// TestDocs keeps docs/implied.md complete.
func TestDocs(t *testing.T) {
	golden.Documented(t, "docs/implied.md", golden.Constants(t, "verdict/check.go", "Check"))
	golden.Documented(t, "docs/implied.md", golden.Constants(t, "replay/implied/implied.go", "Contradiction"))
}

func BenchmarkOf(b *testing.B) {
	for _, q := range []ask{
		{verb: "get", uri: "/api/v1/namespaces/d/pods/p"},
		{verb: "watch", uri: "/api/v1/pods?watch=true"},
		{verb: "update", uri: "/apis/coordination.k8s.io/v1/namespaces/d/leases/l", body: `{}`},
		{verb: "get", uri: "/api/v1/namespaces/d/pods/p/exec"},
		{verb: "create", uri: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			body: `{"roleRef":{"kind":"ClusterRole","name":"x"}}`},
	} {
		e := q.event()
		a, err := request.Of(e.Verb, e.RequestURI)
		if err != nil {
			b.Fatal(err)
		}
		cfg := &config.APIServer{Minor: 36}
		b.Run("verb="+a.Verb+"/resource="+a.Resource+a.Subresource, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Of(e, &a, cfg, nil)
			}
		})
	}
}
