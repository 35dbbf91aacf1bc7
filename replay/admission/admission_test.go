package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

func TestAttributeRefusal(t *testing.T) {
	pod := verdict.Attributes{Verb: request.VerbCreate, ResourceRequest: true, Namespace: "d", Resource: "pods"}
	in := func(inner string) string { return `pods "x" is forbidden: ` + inner }
	cases := []struct {
		name, message string
		code          int32
		node          bool
		want          string
	}{
		{"missing namespace", `namespaces "d" not found`, 404, false, "NamespaceLifecycle"},
		{"missing other namespace", `namespaces "e" not found`, 404, false, ""},
		{"missing pod", `pods "x" not found`, 404, false, ""},
		{"immortal namespace", `namespaces "default" is forbidden: this namespace may not be deleted`, 403, false, "NamespaceLifecycle"},
		{"terminating namespace", in("unable to create new content in namespace d because it is being terminated"), 403, false,
			"NamespaceLifecycle"},
		{"anti-affinity", in("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname " +
			"is allowed"), 403, false, "LimitPodHardAntiAffinityTopology"},
		{"limit", in("maximum cpu usage per Container is 500m, but limit is 2"), 403, false, "LimitRanger"},
		{"several limits", in("[maximum cpu usage per Pod is 800m, but limit is 2, minimum memory usage per Pod is 1Gi.  No request is " +
			"specified]"), 403, false, "LimitRanger"},
		{"limit ratio", in("cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"), 403, false, "LimitRanger"},
		{"missing account", in(`error looking up service account d/ghost: serviceaccount "ghost" not found`), 403, false, "ServiceAccount"},
		{"mirror pod", in("a mirror pod may not reference service accounts"), 403, true, "ServiceAccount"},
		{"unlisted secret", in(`container c with envVar E referencing secret.secretName="s" is not allowed because service account ` +
			`strict does not reference that secret`), 403, false, "ServiceAccount"},
		{"another node", `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`, 403, true, "NodeRestriction"},
		{"node label", `nodes "a" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/x`, 403, true, "NodeRestriction"},
		{"node words from a user", `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`, 403, false, ""},
		{"node token", `serviceaccounts "s" is forbidden: node requested token not bound to a pod`, 403, true, "NodeRestriction"},
		{"pull policy", `pods "x" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never"`, 500, false,
			"AlwaysPullImages"},
		{"image policy", in("image policy webhook backend denied one or more images: no"), 403, false, "ImagePolicyWebhook"},
		{"pod security", in(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`), 403, false,
			"PodSecurity restricted:latest"},
		{"pod security label", `Namespace "d" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x"`, 422,
			false, "PodSecurity"},
		{"invalid namespace", `Namespace "d" is invalid: metadata.name: Invalid value: "x"`, 422, false, ""},
		{"pod security policy", in("PodSecurityPolicy: unable to admit pod: []"), 403, false, "PodSecurityPolicy"},
		{"node selector", in("pod node label selector conflicts with its namespace node label selector"), 403, false, "PodNodeSelector"},
		{"priority class", in("no PriorityClass with name ghost was found"), 403, false, "Priority"},
		{"second default class", `priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only ` +
			`one default can exist`, 403, false, "Priority"},
		{"tolerations", "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist", 500,
			false, "PodTolerationRestriction"},
		{"event rate", "Too many requests: limit reached on type Namespace for key d", 429, false, "EventRateLimit"},
		{"flow control", "Too many requests, please try again later.", 429, false, ""},
		{"eviction budget", "Cannot evict pod as it would violate the pod's disruption budget.", 429, false, ""},
		{"owner reference", in("cannot set an ownerRef on a resource you can't delete: , <nil>"), 403, false,
			"OwnerReferencesPermissionEnforcement"},
		{"block owner deletion", in("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers " +
			"on: , <nil>"), 403, false, "OwnerReferencesPermissionEnforcement"},
		{"claim resize", in("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support " +
			"resize"), 403, false, "PersistentVolumeClaimResize"},
		{"runtime class", in(`pod rejected: RuntimeClass "ghost" not found`), 403, false, "RuntimeClass"},
		{"signer approval", in(`user not permitted to approve requests with signerName "s"`), 403, false, "CertificateApproval"},
		{"signer", in(`user not permitted to sign requests with signerName "s"`), 403, false, "CertificateSigning"},
		{"attest", in(`user not permitted to attest for signerName "s"`), 403, false, "ClusterTrustBundleAttest"},
		{"masters request", in("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"), 403, false,
			"CertificateSubjectRestriction"},
		{"external address", in("Use of external IPs is denied by admission control"), 403, false, "DenyServiceExternalIPs"},
		{"pod resize", in("node didn't have enough allocatable resources: cpu, requested: 4, allocatable: 2"), 403, true,
			"PodResizeValidator"},
		{"mutating policy", "policy 'p' with binding 'b' denied request: expression x", 403, false, "MutatingAdmissionPolicy p"},
		{"validating policy, resource first", `deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied ` +
			`request: no`, 422, false, "ValidatingAdmissionPolicy p"},
		{"validating policy, whole", `ValidatingAdmissionPolicy 'p' denied request: no`, 403, false, "ValidatingAdmissionPolicy p"},
		{"webhook", `admission webhook "w" denied the request: no`, 418, false, "AdmissionWebhook w"},
		{"webhook says nothing", `admission webhook "w" denied the request without explanation`, 400, false, "AdmissionWebhook w"},
		{"webhook dry run", `admission webhook "w" does not support dry run`, 400, false, "AdmissionWebhook w"},
		{"webhook down", `Internal error occurred: failed calling webhook "w": timeout`, 500, false, "AdmissionWebhook w"},
		{"match condition", `pods "x" is forbidden: expression 'a' resulted in error: no such key`, 403, false, "AdmissionWebhook"},
		{"quota", in("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), 403, false, "ResourceQuota q"},
		{"quota without request", in("failed quota: q: must specify requests.cpu for: c"), 403, false, "ResourceQuota q"},
		{"quota scopes", "insufficient quota to match these scopes: [BestEffort]", 500, false, "ResourceQuota"},
		{"denying all", in("admission control is denying all modifications"), 403, false, "AlwaysDeny"},
		{"secondary authorization", in(`User "u" cannot create resource "pods" in API group "" in the namespace "d"`), 403, false, ""},
		{"escalation", `roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["x"]) is attempting to grant RBAC ` +
			`permissions not currently held:`, 403, false, ""},
		{"websocket exec", in(""), 403, false, ""},
		{"invalid pod", `Pod "x" is invalid: spec.containers: Required value`, 422, false, ""},
		{"conflict", `pods "x" already exists`, 409, false, ""},
		{"success", "", 201, false, ""},
	}
	table := Assume(0)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var adm verdict.Admission
			table.Judge(&Request{Attributes: &pod, Node: tc.node, Decision: verdict.DecisionAllow, Code: tc.code, Message: tc.message,
				Window: instant{}}, &adm)
			got := ""
			if r := adm.Refusal(); r != nil {
				got = strings.TrimSpace(r.Plugin + " " + r.Name)
				if r.Code != tc.code || r.Reason == "" || !strings.Contains(tc.message, r.Reason) {
					t.Errorf("code %d, reason %q", r.Code, r.Reason)
				}
			}
			if got != tc.want {
				t.Fatalf("attributed to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOperationOf(t *testing.T) {
	cases := []struct {
		verb, uri string
		want      Operation
	}{
		{"get", "/api/v1/namespaces/d/pods/x", None},
		{"watch", "/api/v1/pods?watch=1", None},
		{"create", "/api/v1/namespaces/d/pods", Create},
		{"create", "/api/v1/namespaces/d/pods/x/eviction", Create},
		{"create", "/api/v1/namespaces/d/pods/x/exec?command=ls", Connect},
		{"get", "/api/v1/namespaces/d/pods/x/portforward", Connect},
		{"delete", "/api/v1/nodes/n/proxy/x", Connect},
		{"patch", "/apis/apps/v1/namespaces/d/deployments/x", Update},
		{"deletecollection", "/api/v1/namespaces/d/pods", Delete},
		{"post", "/login", None},
	}
	for _, tc := range cases {
		a, err := request.Of(tc.verb, tc.uri)
		if err != nil {
			t.Fatal(err)
		}
		if got := OperationOf(&a); got != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.verb, tc.uri, got, tc.want)
		}
	}
}

// instant is a window without extent.
type instant struct{}

func (instant) Window() (from, to time.Time) { return time.Time{}, time.Time{} }

// namespaces answers the same of every namespace.
type namespaces state.NamespaceAnswer

func (n namespaces) Namespace(string, time.Time, time.Time) state.NamespaceAnswer {
	return state.NamespaceAnswer(n)
}

func (namespaces) ServiceAccountIn(string, string, time.Time, time.Time) (state.Known, bool) {
	return state.Present, false
}

func TestNamespaceLifecycle(t *testing.T) {
	const (
		ends  = `pods "x" is forbidden: unable to create new content in namespace d because it is being terminated`
		quota = `pods "x" is forbidden: exceeded quota: q, requested: pods=1`
		gone  = `namespaces "d" not found`
	)
	cases := []struct {
		name    string
		ns      state.NamespaceAnswer
		verb    string
		code    int32
		message string
		want    string // outcome, and whether it refused
		reason  string
	}{
		{"active and admitted", state.NamespaceActive, "create", 201, "", "pass 0", ""},
		{"active and refused", state.NamespaceActive, "create", 404, gone, "drift 404", gone},
		{"missing and refused", state.NamespaceAbsent, "create", 404, gone, "match 404", gone},
		{"missing and refused as terminating", state.NamespaceAbsent, "create", 403, ends, "drift 403",
			ends[len(`pods "x" is forbidden: `):]},
		{"missing and admitted", state.NamespaceAbsent, "create", 201, "", "drift 0", gone},
		{"missing and refused by a later plugin", state.NamespaceAbsent, "create", 403, quota, "drift 0", gone},
		{"missing and not decoded", state.NamespaceAbsent, "create", 400, "", "", ""},
		{"terminating and refused", state.NamespaceTerminating, "create", 403, ends, "match 403", ends[len(`pods "x" is forbidden: `):]},
		{"terminating and created", state.NamespaceTerminating, "create", 201, "", "drift 0", ends[len(`pods "x" is forbidden: `):]},
		{"terminating and conflicting", state.NamespaceTerminating, "create", 409, "", "drift 0", ends[len(`pods "x" is forbidden: `):]},
		{"terminating and updated", state.NamespaceTerminating, "update", 200, "", "pass 0", ""},
		{"changing", state.NamespaceChanging, "create", 403, ends, "ambiguous 403", ends[len(`pods "x" is forbidden: `):]},
		{"changing and not decoded", state.NamespaceChanging, "create", 400, "", "", ""},
		{"unknown", state.NamespaceUnknown, "create", 201, "", "indeterminate 0", "namespace d is not known"},
		{"read", state.NamespaceAbsent, "get", 200, "", "", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			pod := verdict.Attributes{Verb: tc.verb, ResourceRequest: true, Namespace: "d", Resource: "pods"}
			var adm verdict.Admission
			Assume(0).Judge(&Request{Attributes: &pod, Decision: verdict.DecisionAllow, Code: tc.code, Message: tc.message,
				State: namespaces(tc.ns), Window: instant{}}, &adm)
			got, reason := "", ""
			if a := adm.Of("NamespaceLifecycle"); a != nil {
				got, reason = fmt.Sprint(a.Outcome, " ", a.Code), a.Reason
			}
			if got != tc.want || reason != tc.reason {
				t.Fatalf("got %q because %q, want %q because %q", got, reason, tc.want, tc.reason)
			}
			if later := adm.Of("ResourceQuota"); (later != nil) != (tc.message == quota) ||
				later != nil && (later.Name != "q" || adm.Refusal() != later) {
				t.Fatalf("the quota: %+v", adm)
			}
		})
	}
}

// TestNoAdmission: where authorization refused, no plugin was asked.
func TestNoAdmission(t *testing.T) {
	pod := verdict.Attributes{Verb: "create", ResourceRequest: true, Namespace: "d", Resource: "pods"}
	for _, d := range []verdict.Decision{verdict.DecisionForbid, verdict.DecisionNone, verdict.DecisionError} {
		var adm verdict.Admission
		Assume(0).Judge(&Request{Attributes: &pod, Decision: d, Code: 404, Message: `namespaces "d" not found`,
			State: namespaces(state.NamespaceAbsent), Window: instant{}}, &adm)
		if adm.Answers != nil {
			t.Errorf("decision %s: %+v", d, adm)
		}
	}
}
