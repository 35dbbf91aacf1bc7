package replay

import (
	"strings"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// pluginWebhook and pluginNamespaceLifecycle are the two plugin names the package itself
// compares with; the others only ever appear in pluginRules.
const (
	pluginNamespaceLifecycle = "NamespaceLifecycle"
	pluginWebhook            = "AdmissionWebhook"
)

// pluginRule attributes one kind of refusal to its admission plugin. A plugin's name is
// nowhere in an event; the message, the code and the reason tell.
type pluginRule struct {
	plugin string
	code   int32  // 0 = any
	reason string // "" = any
	// whole matches the message from its beginning, inner what follows
	// `<resource> "<name>" is forbidden: ` (behind an opening "[" of a list, too).
	whole, inner string
	contains     string // additionally required anywhere, "" = nothing
}

// pluginRules is ordered: the first rule that fits attributes the refusal.
func pluginRules() []pluginRule {
	return []pluginRule{
		// Own wording, no "is forbidden" in front.
		{plugin: pluginWebhook, whole: `admission webhook "`, contains: `" denied the request`},
		{plugin: pluginWebhook, code: 400, whole: `admission webhook "`, contains: `" does not support dry run`},
		{plugin: pluginWebhook, code: 500, whole: `Internal error occurred: failed calling webhook "`},
		{plugin: "MutatingAdmissionPolicy", whole: "policy '", contains: " denied request: "},
		{plugin: "MutatingAdmissionPolicy", whole: `policy "`, contains: " denied request: failed to configure policy: "},
		{plugin: "MutatingAdmissionPolicy", code: 503, whole: "Resource kind ", contains: "There can be a delay"},
		{plugin: "ValidatingAdmissionPolicy", whole: "ValidatingAdmissionPolicy '", contains: " denied request: "},
		{plugin: "PodSecurity", code: 422, whole: `Namespace "`, contains: "metadata.labels[pod-security.kubernetes.io/"},
		{plugin: "PodTolerationRestriction", code: 500, whole: "pod tolerations (possibly merged with namespace default tolerations) conflict with its "},
		{plugin: "EventRateLimit", code: 429, whole: "Too many requests: limit reached on type "},
		{plugin: "ResourceQuota", code: 500, whole: "insufficient quota to match these scopes: "},
		{plugin: "ResourceQuota", code: 500, whole: "resource quota evaluation timed out"},

		// Forbidden, with the plugin's text behind the resource.
		{plugin: "ValidatingAdmissionPolicy", inner: "ValidatingAdmissionPolicy '", contains: " denied request: "},
		{plugin: "MutatingAdmissionPolicy", inner: "policy '", contains: " denied request: "},
		{plugin: pluginNamespaceLifecycle, code: 403, inner: "this namespace may not be deleted"},
		{plugin: pluginNamespaceLifecycle, code: 403, inner: "unable to create new content in namespace "},
		{plugin: "LimitPodHardAntiAffinityTopology", code: 403, inner: "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey "},
		{plugin: "LimitRanger", code: 403, inner: "minimum ", contains: " usage per "},
		{plugin: "LimitRanger", code: 403, inner: "maximum ", contains: " usage per "},
		{plugin: "LimitRanger", code: 403, contains: " max limit to request ratio per "},
		{plugin: "ServiceAccount", code: 403, inner: "error looking up service account "},
		{plugin: "ServiceAccount", code: 403, inner: "no service account specified for pod"},
		{plugin: "ServiceAccount", code: 403, inner: "a mirror pod may not "},
		{plugin: "ServiceAccount", contains: " is not allowed because service account "},
		{plugin: "AlwaysPullImages", code: 500, contains: "imagePullPolicy: Unsupported value: "},
		{plugin: "ImagePolicyWebhook", inner: "image policy webhook backend denied one or more images"},
		{plugin: "ImagePolicyWebhook", inner: "one or more images rejected by webhook backend"},
		{plugin: "PodSecurity", code: 403, inner: `violates PodSecurity "`},
		{plugin: "PodSecurityPolicy", code: 403, inner: "PodSecurityPolicy: unable to "},
		{plugin: "PodSecurityPolicy", code: 403, inner: "unable to validate against any pod security policy"},
		{plugin: "DenyEscalatingExec", code: 403, inner: "cannot exec into or attach to a "},
		{plugin: "SecurityContextDeny", code: 403, inner: "pod.Spec.SecurityContext."},
		{plugin: "SecurityContextDeny", code: 403, inner: "SecurityContext."},
		{plugin: "PodNodeSelector", code: 403, inner: "pod node label selector conflicts with its namespace node label selector"},
		{plugin: "PodNodeSelector", code: 403, inner: "pod node label selector labels conflict with its namespace whitelist"},
		{plugin: "Priority", code: 403, inner: "no PriorityClass with name "},
		{plugin: "Priority", code: 403, inner: "the integer value of priority ("},
		{plugin: "Priority", code: 403, inner: "the string value of PreemptionPolicy ("},
		{plugin: "Priority", code: 403, inner: "PriorityClass ", contains: " is already marked as default"},
		{plugin: "PodTolerationRestriction", inner: "pod tolerations (possibly merged with namespace default tolerations) conflict with its "},
		{plugin: "OwnerReferencesPermissionEnforcement", code: 403, inner: "cannot set an ownerRef on a resource you can't delete"},
		{plugin: "OwnerReferencesPermissionEnforcement", code: 403, inner: "cannot set blockOwnerDeletion "},
		{plugin: "PersistentVolumeClaimResize", code: 403, inner: "Only bound persistent volume claims can be expanded"},
		{plugin: "PersistentVolumeClaimResize", code: 403, inner: "only dynamically provisioned pvc can be resized"},
		{plugin: "RuntimeClass", code: 403, inner: `pod rejected: RuntimeClass "`},
		{plugin: "RuntimeClass", code: 403, inner: "pod rejected: Pod's Overhead doesn't match "},
		{plugin: "RuntimeClass", code: 403, inner: "pod rejected: Pod Overhead set without "},
		{plugin: "RuntimeClass", code: 403, inner: "conflict: runtimeClass.scheduling.nodeSelector["},
		{plugin: "CertificateApproval", code: 403, inner: "user not permitted to approve requests with signerName "},
		{plugin: "CertificateSigning", code: 403, inner: "user not permitted to sign requests with signerName "},
		{plugin: "ClusterTrustBundleAttest", code: 403, inner: "user not permitted to attest for signerName "},
		{plugin: "CertificateSubjectRestriction", code: 403, inner: "use of kubernetes.io/kube-apiserver-client signer with "},
		{plugin: "CertificateSubjectRestriction", code: 403, inner: "failed to parse CSR: "},
		{plugin: "DenyServiceExternalIPs", code: 403, inner: "Use of external IPs is denied by admission control"},
		{plugin: "PodGroupWorkloadExists", code: 403, inner: "PodGroup rejected: Workload "},
		{plugin: "NodeDeclaredFeatureValidator", code: 403, inner: "pod update requires features "},
		{plugin: "JobValidation", code: 403, inner: "cannot change parallelism for a Job referencing gang-scheduled PodGroup"},
		{plugin: "PodResizeValidator", code: 403, inner: "pod resize is only supported on linux nodes"},
		{plugin: "PodResizeValidator", code: 403, inner: "node didn't have enough allocatable resources: "},
		{plugin: "ResourceQuota", code: 403, inner: "exceeded quota: "},
		{plugin: "ResourceQuota", code: 403, inner: "failed quota: "},
		{plugin: "ResourceQuota", code: 403, inner: "status unknown for quota: "},
		{plugin: "ResourceQuota", code: 403, inner: "insufficient quota to consume: "},
		{plugin: "ResourceQuota", code: 403, inner: "quota usage is negative for resource(s): "},
		{plugin: pluginWebhook, code: 403, inner: "expression '", contains: "resulted in error: "}, // match conditions
		{plugin: pluginWebhook, code: 403, whole: "expression '", contains: "resulted in error: "},
		{plugin: "AlwaysDeny", code: 403, inner: "admission control is denying all modifications"},
		{plugin: "informers", code: 403, inner: "not yet ready to handle request"},
	}
}

// nodeRestrictionTexts are the refusals of NodeRestriction, which only nodes meet.
func nodeRestrictionTexts() []string {
	return []string{
		`node "`, "can only access node lease with ", "can only access CSINode with ", "is not allowed to modify labels: ",
		"node requested token ", "can only create a node CSR with CN=", "unexpected pod subresource ", "pod does not have ",
		"can only create pods with spec.nodeName set to itself", "can only create ", "cannot set or change ", "unexpected operation ", "unsupported ",
	}
}

// admissionTable is pluginRules, indexed once per engine.
type admissionTable struct {
	rules []pluginRule
	nodes []string
}

func newAdmissionTable() *admissionTable {
	return &admissionTable{rules: pluginRules(), nodes: nodeRestrictionTexts()}
}

// plugin attributes a refusal to an admission plugin, "" when no plugin words it like that:
// API validation, conflicts, secondary authorization checks and handlers refuse too.
func (t *admissionTable) plugin(code int32, reason, message string, node bool, a *verdict.Attributes) string {
	if code < 400 || message == "" {
		return ""
	}
	if code == 404 && a.Namespace != "" && a.Verb != request.VerbDelete && isNamespaceNotFound(message, a.Namespace) && a.Resource != "namespaces" {
		return pluginNamespaceLifecycle
	}
	_, inner, forbidden := strings.Cut(message, " is forbidden: ")
	inner = strings.TrimPrefix(inner, "[")
	if forbidden && strings.HasPrefix(inner, `User "`) {
		return "" // an authorization text: a secondary check
	}
	for i := range t.rules {
		r := &t.rules[i]
		switch {
		case r.code != 0 && r.code != code, r.reason != "" && r.reason != reason:
		case r.whole != "" && !strings.HasPrefix(message, r.whole):
		case r.inner != "" && !(forbidden && strings.HasPrefix(inner, r.inner)):
		case r.contains != "" && !strings.Contains(message, r.contains):
		default:
			return r.plugin
		}
	}
	if node && forbidden {
		for _, text := range t.nodes {
			if strings.HasPrefix(inner, text) {
				return "NodeRestriction"
			}
		}
	}
	return ""
}

// isNamespaceNotFound recognises the whole message `namespaces "ns" not found`.
func isNamespaceNotFound(message, namespace string) bool {
	const head, tail = `namespaces "`, `" not found`
	return len(message) == len(head)+len(namespace)+len(tail) && strings.HasPrefix(message, head) &&
		strings.HasSuffix(message, tail) && message[len(head):len(head)+len(namespace)] == namespace
}

// admissionOp is the operation plugins see; the zero value is "not admitted".
type admissionOp uint8

const (
	opNone admissionOp = iota
	opCreate
	opUpdate
	opDelete
	opConnect
)

// operationOf says which admission operation a request is. Reads are not admitted, and
// connections are whatever the verb.
func operationOf(a *verdict.Attributes) admissionOp {
	if !a.ResourceRequest {
		return opNone
	}
	if a.APIGroup == "" {
		switch a.Subresource {
		case "exec", "attach", "portforward":
			if a.Resource == "pods" {
				return opConnect
			}
		case "proxy":
			switch a.Resource {
			case "pods", "services", "nodes":
				return opConnect
			}
		}
	}
	switch a.Verb {
	case request.VerbCreate:
		return opCreate
	case request.VerbUpdate, request.VerbPatch:
		return opUpdate
	case request.VerbDelete, request.VerbDeleteCollection:
		return opDelete
	}
	return opNone
}

// recordedAdmission says what admission did as far as the event tells: "" when it does not.
func recordedAdmission(op admissionOp, rec record, code int32, plugin string) string {
	switch {
	case rec.decision == verdict.DecisionForbid, op == opNone && rec.decision == verdict.DecisionAllow:
		return verdict.AdmissionNotRun
	case rec.decision != verdict.DecisionAllow:
		return ""
	case plugin != "":
		return verdict.AdmissionRejected
	case code >= 200 && code < 300, code == 101:
		return verdict.AdmissionAdmitted
	}
	return ""
}
