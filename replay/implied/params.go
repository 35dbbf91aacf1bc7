package implied

import (
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// policySpec is what is read of an admission policy, and of its binding.
type policySpec struct {
	ParamKind  *admissionv1.ParamKind `json:"paramKind"`
	ParamRef   *struct{ Name, Namespace string }
	PolicyName string `json:"policyName"`
}

// params derives the reading of parameters from an admission policy, or from its binding.
func (d *derivation) params() {
	kind := map[string]string{
		"validatingadmissionpolicies": "ValidatingAdmissionPolicy", "mutatingadmissionpolicies": "MutatingAdmissionPolicy",
		"validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
		"mutatingadmissionpolicybindings":   "MutatingAdmissionPolicyBinding",
	}[d.a.Resource]
	if kind == "" || d.superuser() {
		return
	}
	var o struct{ Spec policySpec }
	if !d.written(kind, member{"spec", &o.Spec}) {
		p, ok := patchDocument{}, false
		if d.a.Verb == request.VerbPatch {
			p, ok = d.patched()
		}
		switch {
		case !ok:
			d.add(Check{Name: verdict.CheckPolicyParam, Perhaps: onlyChanged, Open: []string{d.lacksBody()}})
			return
		case p.touches("spec") && json.Unmarshal(p.members["spec"], &o.Spec) != nil:
			d.add(Check{Name: verdict.CheckPolicyParam, Perhaps: onlyChanged, Open: []string{"what the patch makes of the policy"}})
			return
		}
	}
	c := Check{Name: verdict.CheckPolicyParam, Attributes: verdict.Attributes{ResourceRequest: true, APIVersion: "*"}}
	if d.a.Verb != request.VerbCreate {
		c.Perhaps = onlyChanged
	}
	switch {
	case strings.HasSuffix(kind, "Policy") && o.Spec.ParamKind != nil:
		c.Attributes.Verb, c.Attributes.Namespace, c.Attributes.Name = request.VerbGet, "*", "*"
		d.paramResource(&c, o.Spec.ParamKind)
	case strings.HasSuffix(kind, "Binding") && o.Spec.ParamRef != nil:
		// The policy says what kind the parameters are. Who may read everything may read them.
		c.Attributes.Verb = request.VerbGet
		if o.Spec.ParamRef.Name == "" {
			c.Attributes.Verb = request.VerbList
		}
		c.Attributes.Namespace, c.Attributes.Name = o.Spec.ParamRef.Namespace, o.Spec.ParamRef.Name
		c.Attributes.APIGroup, c.Attributes.Resource = "*", "*"
		c.Open = []string{"the kind of the parameters of policy " + o.Spec.PolicyName}
	default:
		return
	}
	d.add(c)
}

// paramResource fills in the resource of a kind of parameters. Of kinds that Kubernetes does not
// bring along the resource is not known; then who may read everything of the group may read it.
func (d *derivation) paramResource(c *Check, k *admissionv1.ParamKind) {
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		c.Attributes.APIGroup, c.Attributes.Resource = "*", "*" // what the apiserver asks for then
		return
	}
	c.Attributes.APIGroup, c.Attributes.APIVersion, c.Attributes.Resource = gv.Group, gv.Version, "*"
	if resource, _, ok := builtIn(gv, k.Kind); ok {
		c.Attributes.Resource = resource
		return
	}
	c.Open = []string{"the resource of kind " + k.Kind + " in " + k.APIVersion}
}

// builtIn returns the resource of a kind that Kubernetes itself serves, and whether its objects
// are in namespaces.
func builtIn(gv schema.GroupVersion, kind string) (resource string, namespaced, ok bool) {
	scope, ok := builtInKinds[gv.Group]
	if !ok {
		return "", false, false
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
	in := func(list string) bool { return strings.Contains(list, " "+kind+" ") }
	switch {
	case in(scope.cluster):
		return plural.Resource, false, true
	case in(scope.namespaced):
		return plural.Resource, true, true
	}
	return "", false, false
}

// builtInKinds are the kinds that can own or parametrise others, of the API groups of Kubernetes,
// a blank before and after each.
var builtInKinds = map[string]struct{ namespaced, cluster string }{
	"": {" ConfigMap Secret Pod Service ServiceAccount PersistentVolumeClaim ReplicationController ResourceQuota LimitRange " +
		"PodTemplate Event ",
		" Node Namespace PersistentVolume "},
	"apps":                      {" Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision ", ""},
	"batch":                     {" Job CronJob ", ""},
	"autoscaling":               {" HorizontalPodAutoscaler ", ""},
	"policy":                    {" PodDisruptionBudget ", ""},
	"networking.k8s.io":         {" Ingress NetworkPolicy ", " IngressClass IPAddress ServiceCIDR "},
	"coordination.k8s.io":       {" Lease ", ""},
	"discovery.k8s.io":          {" EndpointSlice ", ""},
	"rbac.authorization.k8s.io": {" Role RoleBinding ", " ClusterRole ClusterRoleBinding "},
	"storage.k8s.io":            {" CSIStorageCapacity ", " StorageClass VolumeAttachment CSIDriver CSINode "},
	"scheduling.k8s.io":         {"", " PriorityClass "},
	"node.k8s.io":               {"", " RuntimeClass "},
	"resource.k8s.io":           {" ResourceClaim ResourceClaimTemplate ", " DeviceClass ResourceSlice "},
	"apiextensions.k8s.io":      {"", " CustomResourceDefinition "},
	"apiregistration.k8s.io":    {"", " APIService "},
	"admissionregistration.k8s.io": {"", " ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy " +
		"MutatingAdmissionPolicyBinding ValidatingWebhookConfiguration MutatingWebhookConfiguration "},
	"certificates.k8s.io":          {" PodCertificateRequest ", " CertificateSigningRequest ClusterTrustBundle "},
	"flowcontrol.apiserver.k8s.io": {"", " FlowSchema PriorityLevelConfiguration "},
}
