package admission

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
		name, message string
		code          int32
		node          bool
		want          string
	}{
		{"missing namespace", `namespaces "d" not found`, 404, false, "NamespaceLifecycle"},
		{"missing other namespace", `namespaces "e" not found`, 404, false, ""},
		{"missing pod", `pods "x" not found`, 404, false, ""},
		{"immortal namespace", `namespaces "default" is forbidden: this namespace may not be deleted`, 403, false, "NamespaceLifecycle"},
		{"terminating namespace", in("unable to create new content in namespace d because it is being terminated"), 403, false, "NamespaceLifecycle"},
		{"anti-affinity", in("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed"), 403, false, "LimitPodHardAntiAffinityTopology"},
		{"limit", in("maximum cpu usage per Container is 500m, but limit is 2"), 403, false, "LimitRanger"},
		{"several limits", in("[maximum cpu usage per Pod is 800m, but limit is 2, minimum memory usage per Pod is 1Gi.  No request is specified]"), 403, false, "LimitRanger"},
		{"limit ratio", in("cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"), 403, false, "LimitRanger"},
		{"missing account", in(`error looking up service account d/ghost: serviceaccount "ghost" not found`), 403, false, "ServiceAccount"},
		{"mirror pod", in("a mirror pod may not reference service accounts"), 403, true, "ServiceAccount"},
		{"unlisted secret", in(`container c with envVar E referencing secret.secretName="s" is not allowed because service account strict does not reference that secret`), 403, false, "ServiceAccount"},
		{"another node", `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`, 403, true, "NodeRestriction"},
		{"node label", `nodes "a" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/x`, 403, true, "NodeRestriction"},
		{"node words from a user", `nodes "b" is forbidden: node "a" is not allowed to modify node "b"`, 403, false, ""},
		{"node token", `serviceaccounts "s" is forbidden: node requested token not bound to a pod`, 403, true, "NodeRestriction"},
		{"pull policy", `pods "x" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never"`, 500, false, "AlwaysPullImages"},
		{"image policy", in("image policy webhook backend denied one or more images: no"), 403, false, "ImagePolicyWebhook"},
		{"pod security", in(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`), 403, false, "PodSecurity"},
		{"pod security label", `Namespace "d" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x"`, 422, false, "PodSecurity"},
		{"invalid namespace", `Namespace "d" is invalid: metadata.name: Invalid value: "x"`, 422, false, ""},
		{"pod security policy", in("PodSecurityPolicy: unable to admit pod: []"), 403, false, "PodSecurityPolicy"},
		{"node selector", in("pod node label selector conflicts with its namespace node label selector"), 403, false, "PodNodeSelector"},
		{"priority class", in("no PriorityClass with name ghost was found"), 403, false, "Priority"},
		{"second default class", `priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one default can exist`, 403, false, "Priority"},
		{"tolerations", "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist", 500, false, "PodTolerationRestriction"},
		{"event rate", "Too many requests: limit reached on type Namespace for key d", 429, false, "EventRateLimit"},
		{"flow control", "Too many requests, please try again later.", 429, false, ""},
		{"eviction budget", "Cannot evict pod as it would violate the pod's disruption budget.", 429, false, ""},
		{"owner reference", in("cannot set an ownerRef on a resource you can't delete: , <nil>"), 403, false, "OwnerReferencesPermissionEnforcement"},
		{"block owner deletion", in("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), 403, false, "OwnerReferencesPermissionEnforcement"},
		{"claim resize", in("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"), 403, false, "PersistentVolumeClaimResize"},
		{"runtime class", in(`pod rejected: RuntimeClass "ghost" not found`), 403, false, "RuntimeClass"},
		{"signer approval", in(`user not permitted to approve requests with signerName "s"`), 403, false, "CertificateApproval"},
		{"signer", in(`user not permitted to sign requests with signerName "s"`), 403, false, "CertificateSigning"},
		{"attest", in(`user not permitted to attest for signerName "s"`), 403, false, "ClusterTrustBundleAttest"},
		{"masters request", in("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"), 403, false, "CertificateSubjectRestriction"},
		{"external address", in("Use of external IPs is denied by admission control"), 403, false, "DenyServiceExternalIPs"},
		{"pod resize", in("node didn't have enough allocatable resources: cpu, requested: 4, allocatable: 2"), 403, true, "PodResizeValidator"},
		{"mutating policy", "policy 'p' with binding 'b' denied request: expression x", 403, false, "MutatingAdmissionPolicy"},
		{"validating policy, resource first", `deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, 422, false, "ValidatingAdmissionPolicy"},
		{"validating policy, whole", `ValidatingAdmissionPolicy 'p' denied request: no`, 403, false, "ValidatingAdmissionPolicy"},
		{"webhook", `admission webhook "w" denied the request: no`, 418, false, "AdmissionWebhook"},
		{"webhook says nothing", `admission webhook "w" denied the request without explanation`, 400, false, "AdmissionWebhook"},
		{"webhook dry run", `admission webhook "w" does not support dry run`, 400, false, "AdmissionWebhook"},
		{"webhook down", `Internal error occurred: failed calling webhook "w": timeout`, 500, false, "AdmissionWebhook"},
		{"match condition", `pods "x" is forbidden: expression 'a' resulted in error: no such key`, 403, false, "AdmissionWebhook"},
		{"quota", in("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), 403, false, "ResourceQuota"},
		{"quota without request", in("failed quota: q: must specify requests.cpu for: c"), 403, false, "ResourceQuota"},
		{"quota scopes", "insufficient quota to match these scopes: [BestEffort]", 500, false, "ResourceQuota"},
		{"denying all", in("admission control is denying all modifications"), 403, false, "AlwaysDeny"},
		{"secondary authorization", in(`User "u" cannot create resource "pods" in API group "" in the namespace "d"`), 403, false, ""},
		{"escalation", `roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["x"]) is attempting to grant RBAC permissions not currently held:`, 403, false, ""},
		{"websocket exec", in(""), 403, false, ""},
		{"invalid pod", `Pod "x" is invalid: spec.containers: Required value`, 422, false, ""},
		{"conflict", `pods "x" already exists`, 409, false, ""},
		{"success", "", 201, false, ""},
	}
	table := New()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := table.refusing(tc.code, tc.message, tc.node, &pod); got != tc.want {
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

func TestJudgeLifecycle(t *testing.T) {
	rejected := verdict.Admission{Recorded: verdict.AdmissionRejected, Plugin: "NamespaceLifecycle"}
	quota := verdict.Admission{Recorded: verdict.AdmissionRejected, Plugin: "ResourceQuota"}
	admitted := verdict.Admission{Recorded: verdict.AdmissionAdmitted}
	const ends = `pods "x" is forbidden: unable to create new content in namespace d because it is being terminated`
	cases := []struct {
		name    string
		ns      state.NamespaceAnswer
		op      Operation
		adm     verdict.Admission
		code    int32
		message string
		want    string
	}{
		{"active and admitted", state.NamespaceActive, Create, admitted, 201, "", verdict.LifecyclePass},
		{"active and refused", state.NamespaceActive, Create, rejected, 404, `namespaces "d" not found`, verdict.LifecycleDrift},
		{"missing and refused", state.NamespaceAbsent, Create, rejected, 404, `namespaces "d" not found`, verdict.LifecycleMatch},
		{"missing and refused as terminating", state.NamespaceAbsent, Create, rejected, 403, ends, verdict.LifecycleDrift},
		{"missing and admitted", state.NamespaceAbsent, Create, admitted, 201, "", verdict.LifecycleDrift},
		{"missing and refused by a later plugin", state.NamespaceAbsent, Create, quota, 403, "", verdict.LifecycleDrift},
		{"missing and not decoded", state.NamespaceAbsent, Create, verdict.Admission{}, 400, "", ""},
		{"terminating and refused", state.NamespaceTerminating, Create, rejected, 403, ends, verdict.LifecycleMatch},
		{"terminating and created", state.NamespaceTerminating, Create, admitted, 201, "", verdict.LifecycleDrift},
		{"terminating and conflicting", state.NamespaceTerminating, Create, verdict.Admission{}, 409, "", verdict.LifecycleDrift},
		{"terminating and updated", state.NamespaceTerminating, Update, admitted, 200, "", verdict.LifecyclePass},
		{"changing", state.NamespaceChanging, Create, rejected, 403, ends, verdict.LifecycleAmbiguous},
		{"unknown", state.NamespaceUnknown, Create, admitted, 201, "", verdict.LifecycleIndeterminate},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := judgeLifecycle(lifecycleOf(tc.ns, tc.op), &tc.adm, tc.code, tc.message); got != tc.want {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
		})
	}
}
