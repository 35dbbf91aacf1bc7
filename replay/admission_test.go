package replay

import (
	"testing"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

func TestAttributeRefusal(t *testing.T) {
	pod := verdict.Attributes{Verb: request.VerbCreate, ResourceRequest: true, Namespace: "d", Resource: "pods"}
	in := func(inner string) string { return `pods "x" is forbidden: ` + inner }
	cases := []struct {
		name, message, reason string
		code                  int32
		node                  bool
		want                  string
	}{
		{"missing namespace", `namespaces "d" not found`, "NotFound", 404, false, "NamespaceLifecycle"},
		{"missing other namespace", `namespaces "e" not found`, "NotFound", 404, false, ""},
		{"missing pod", `pods "x" not found`, "NotFound", 404, false, ""},
		{"immortal namespace", `namespaces "default" is forbidden: this namespace may not be deleted`, "Forbidden", 403, false, "NamespaceLifecycle"},
		{"terminating namespace", in("unable to create new content in namespace d because it is being terminated"), "Forbidden", 403, false, "NamespaceLifecycle"},
		{"anti-affinity", in("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed"), "Forbidden", 403, false, "LimitPodHardAntiAffinityTopology"},
		{"limit", in("maximum cpu usage per Container is 500m, but limit is 2"), "Forbidden", 403, false, "LimitRanger"},
		{"several limits", in("[maximum cpu usage per Pod is 800m, but limit is 2, minimum memory usage per Pod is 1Gi.  No request is specified]"), "Forbidden", 403, false, "LimitRanger"},
		{"limit ratio", in("cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"), "Forbidden", 403, false, "LimitRanger"},
		{"missing account", in(`error looking up service account d/ghost: serviceaccount "ghost" not found`), "Forbidden", 403, false, "ServiceAccount"},
		{"mirror pod", in("a mirror pod may not reference service accounts"), "Forbidden", 403, true, "ServiceAccount"},
		{"unlisted secret", in(`container c with envVar E referencing secret.secretName="s" is not allowed because service account strict does not reference that secret`), "Forbidden", 403, false, "ServiceAccount"},
		{"another node", `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`, "Forbidden", 403, true, "NodeRestriction"},
		{"node label", `nodes "a" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/x`, "Forbidden", 403, true, "NodeRestriction"},
		{"node words from a user", `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`, "Forbidden", 403, false, ""},
		{"node token", `serviceaccounts "s" is forbidden: node requested token not bound to a pod`, "Forbidden", 403, true, "NodeRestriction"},
		{"pull policy", `pods "x" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never"`, "", 500, false, "AlwaysPullImages"},
		{"image policy", in("image policy webhook backend denied one or more images: no"), "Forbidden", 403, false, "ImagePolicyWebhook"},
		{"pod security", in(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`), "Forbidden", 403, false, "PodSecurity"},
		{"pod security label", `Namespace "d" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x"`, "Invalid", 422, false, "PodSecurity"},
		{"invalid namespace", `Namespace "d" is invalid: metadata.name: Invalid value: "x"`, "Invalid", 422, false, ""},
		{"pod security policy", in("PodSecurityPolicy: unable to admit pod: []"), "Forbidden", 403, false, "PodSecurityPolicy"},
		{"node selector", in("pod node label selector conflicts with its namespace node label selector"), "Forbidden", 403, false, "PodNodeSelector"},
		{"priority class", in("no PriorityClass with name ghost was found"), "Forbidden", 403, false, "Priority"},
		{"second default class", `priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one default can exist`, "Forbidden", 403, false, "Priority"},
		{"tolerations", "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist", "", 500, false, "PodTolerationRestriction"},
		{"event rate", "Too many requests: limit reached on type Namespace for key d", "TooManyRequests", 429, false, "EventRateLimit"},
		{"flow control", "Too many requests, please try again later.", "TooManyRequests", 429, false, ""},
		{"eviction budget", "Cannot evict pod as it would violate the pod's disruption budget.", "TooManyRequests", 429, false, ""},
		{"owner reference", in("cannot set an ownerRef on a resource you can't delete: , <nil>"), "Forbidden", 403, false, "OwnerReferencesPermissionEnforcement"},
		{"block owner deletion", in("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), "Forbidden", 403, false, "OwnerReferencesPermissionEnforcement"},
		{"claim resize", in("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"), "Forbidden", 403, false, "PersistentVolumeClaimResize"},
		{"runtime class", in(`pod rejected: RuntimeClass "ghost" not found`), "Forbidden", 403, false, "RuntimeClass"},
		{"signer approval", in(`user not permitted to approve requests with signerName "s"`), "Forbidden", 403, false, "CertificateApproval"},
		{"signer", in(`user not permitted to sign requests with signerName "s"`), "Forbidden", 403, false, "CertificateSigning"},
		{"attest", in(`user not permitted to attest for signerName "s"`), "Forbidden", 403, false, "ClusterTrustBundleAttest"},
		{"masters request", in("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"), "Forbidden", 403, false, "CertificateSubjectRestriction"},
		{"external address", in("Use of external IPs is denied by admission control"), "Forbidden", 403, false, "DenyServiceExternalIPs"},
		{"pod resize", in("node didn't have enough allocatable resources: cpu, requested: 4, allocatable: 2"), "Forbidden", 403, true, "PodResizeValidator"},
		{"mutating policy", "policy 'p' with binding 'b' denied request: expression x", "Invalid", 403, false, "MutatingAdmissionPolicy"},
		{"validating policy, resource first", `deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, "Invalid", 422, false, "ValidatingAdmissionPolicy"},
		{"validating policy, whole", `ValidatingAdmissionPolicy 'p' denied request: no`, "Forbidden", 403, false, "ValidatingAdmissionPolicy"},
		{"webhook", `admission webhook "w" denied the request: no`, "", 418, false, "AdmissionWebhook"},
		{"webhook says nothing", `admission webhook "w" denied the request without explanation`, "", 400, false, "AdmissionWebhook"},
		{"webhook dry run", `admission webhook "w" does not support dry run`, "BadRequest", 400, false, "AdmissionWebhook"},
		{"webhook down", `Internal error occurred: failed calling webhook "w": timeout`, "InternalError", 500, false, "AdmissionWebhook"},
		{"match condition", `pods "x" is forbidden: expression 'a' resulted in error: no such key`, "Forbidden", 403, false, "AdmissionWebhook"},
		{"quota", in("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), "Forbidden", 403, false, "ResourceQuota"},
		{"quota without request", in("failed quota: q: must specify requests.cpu for: c"), "Forbidden", 403, false, "ResourceQuota"},
		{"quota scopes", "insufficient quota to match these scopes: [BestEffort]", "", 500, false, "ResourceQuota"},
		{"denying all", in("admission control is denying all modifications"), "Forbidden", 403, false, "AlwaysDeny"},
		{"secondary authorization", in(`User "u" cannot create resource "pods" in API group "" in the namespace "d"`), "Forbidden", 403, false, ""},
		{"escalation", `roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["x"]) is attempting to grant RBAC permissions not currently held:`, "Forbidden", 403, false, ""},
		{"websocket exec", in(""), "Forbidden", 403, false, ""},
		{"invalid pod", `Pod "x" is invalid: spec.containers: Required value`, "Invalid", 422, false, ""},
		{"conflict", `pods "x" already exists`, "AlreadyExists", 409, false, ""},
		{"success", "", "", 201, false, ""},
	}
	table := newAdmissionTable()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := table.plugin(tc.code, tc.reason, tc.message, tc.node, &pod); got != tc.want {
				t.Fatalf("attributed to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOperationOf(t *testing.T) {
	cases := []struct {
		verb, uri string
		want      admissionOp
	}{
		{"get", "/api/v1/namespaces/d/pods/x", opNone},
		{"watch", "/api/v1/pods?watch=1", opNone},
		{"create", "/api/v1/namespaces/d/pods", opCreate},
		{"create", "/api/v1/namespaces/d/pods/x/eviction", opCreate},
		{"create", "/api/v1/namespaces/d/pods/x/exec?command=ls", opConnect},
		{"get", "/api/v1/namespaces/d/pods/x/portforward", opConnect},
		{"delete", "/api/v1/nodes/n/proxy/x", opConnect},
		{"patch", "/apis/apps/v1/namespaces/d/deployments/x", opUpdate},
		{"deletecollection", "/api/v1/namespaces/d/pods", opDelete},
		{"post", "/login", opNone},
	}
	for _, tc := range cases {
		a, err := request.Of(tc.verb, tc.uri)
		if err != nil {
			t.Fatal(err)
		}
		if got := operationOf(&a); got != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.verb, tc.uri, got, tc.want)
		}
	}
}

func TestJudgeLifecycle(t *testing.T) {
	rejected := verdict.Admission{Recorded: verdict.AdmissionRejected, Plugin: "NamespaceLifecycle"}
	quota := verdict.Admission{Recorded: verdict.AdmissionRejected, Plugin: "ResourceQuota"}
	admitted := verdict.Admission{Recorded: verdict.AdmissionAdmitted}
	const ends = `pods "x" is forbidden: unable to create new content in namespace d because it is being terminated`
	cases := []struct {
		name    string
		ns      state.NamespaceAnswer
		op      admissionOp
		adm     verdict.Admission
		code    int32
		message string
		want    string
	}{
		{"active and admitted", state.NamespaceActive, opCreate, admitted, 201, "", verdict.LifecyclePass},
		{"active and refused", state.NamespaceActive, opCreate, rejected, 404, `namespaces "d" not found`, verdict.LifecycleDrift},
		{"missing and refused", state.NamespaceAbsent, opCreate, rejected, 404, `namespaces "d" not found`, verdict.LifecycleMatch},
		{"missing and refused as terminating", state.NamespaceAbsent, opCreate, rejected, 403, ends, verdict.LifecycleDrift},
		{"missing and admitted", state.NamespaceAbsent, opCreate, admitted, 201, "", verdict.LifecycleDrift},
		{"missing and refused by a later plugin", state.NamespaceAbsent, opCreate, quota, 403, "", verdict.LifecycleDrift},
		{"missing and not decoded", state.NamespaceAbsent, opCreate, verdict.Admission{}, 400, "", ""},
		{"terminating and refused", state.NamespaceTerminating, opCreate, rejected, 403, ends, verdict.LifecycleMatch},
		{"terminating and created", state.NamespaceTerminating, opCreate, admitted, 201, "", verdict.LifecycleDrift},
		{"terminating and conflicting", state.NamespaceTerminating, opCreate, verdict.Admission{}, 409, "", verdict.LifecycleDrift},
		{"terminating and updated", state.NamespaceTerminating, opUpdate, admitted, 200, "", verdict.LifecyclePass},
		{"changing", state.NamespaceChanging, opCreate, rejected, 403, ends, verdict.LifecycleAmbiguous},
		{"unknown", state.NamespaceUnknown, opCreate, admitted, 201, "", verdict.LifecycleIndeterminate},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := judgeLifecycle(lifecycleOf(tc.ns, tc.op), &tc.adm, tc.code, tc.message); got != tc.want {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
		})
	}
}
