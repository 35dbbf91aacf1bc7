package implied

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// onlyCollected is why an update of a role or binding may have gone unchecked.
const onlyCollected = "a change of owner references, finalizers or managed fields alone is not checked"

// policy derives escalate and bind.
func (d *derivation) policy() {
	kind := map[string]string{"roles": "Role", "clusterroles": "ClusterRole", "rolebindings": "RoleBinding",
		"clusterrolebindings": "ClusterRoleBinding"}[d.a.Resource]
	if kind == "" || d.superuser() {
		return
	}
	if d.a.Verb == request.VerbPatch {
		if p, ok := d.patched(); ok && p.collected() {
			return
		}
	}
	if strings.HasSuffix(kind, "Role") {
		d.role(kind)
	} else {
		d.binding(kind)
	}
}

// role derives the check on a role's write: escalate on the name in the URL, or holding the
// rules; to have or have had an aggregationRule takes full authority.
func (d *derivation) role(kind string) {
	c := Check{Name: verdict.CheckRoleEscalate, Cover: true, Attributes: verdict.Attributes{
		Verb: "escalate", ResourceRequest: true, APIGroup: rbacv1.GroupName, APIVersion: "*",
		Resource: d.a.Resource, Namespace: d.a.Namespace, Name: d.a.Name,
	}}
	var old Role
	known := Unknown
	if d.s != nil && d.a.Name != "" {
		old, known = d.s.Role(d.a.Namespace, d.a.Name)
	}
	var o roleParts
	switch {
	case d.written(kind, member{"rules", &o.Rules}, member{"aggregationRule", &o.AggregationRule}):
		c.Rules, c.Full = o.Rules, aggregates(o.AggregationRule)
	case d.a.Verb == request.VerbPatch:
		d.patchedRole(&c, &old, known)
	default:
		c.Open = []string{d.lacksBody()}
	}
	if d.a.Verb != request.VerbCreate && known != Absent &&
		(known == Unknown || sameRules(old.Rules, c.Rules) && old.Aggregates == c.Full) {
		c.Perhaps = onlyCollected
	}
	if known != Unknown {
		c.Full = c.Full || old.Aggregates
	} else if d.a.Verb != request.VerbCreate {
		c.PerhapsFull = d.s == nil || d.a.Name == "" || old.Aggregates
	}
	d.add(c)
}

// patchedRole reads the rules of a role whose patch was refused, or answered without the object.
// The list of rules is replaced whole by every kind of patch that is an object.
func (d *derivation) patchedRole(c *Check, old *Role, known Known) {
	p, ok := d.patched()
	if !ok {
		c.Open = []string{d.lacksBody()}
		return
	}
	c.Full = known == Present && old.Aggregates
	if raw, ok := p.members["aggregationRule"]; ok {
		var rule *rbacv1.AggregationRule
		c.Full = json.Unmarshal(raw, &rule) == nil && aggregates(rule)
	}
	raw, replaced := p.members["rules"]
	switch {
	case replaced && json.Unmarshal(raw, &c.Rules) == nil:
	case !replaced && !p.touches("rules") && (len(p.ops) == 0 || !p.touches("aggregationRule")) && known == Present:
		c.Rules = old.Rules
	case known == Unknown:
		c.Open = []string{"the role before the patch"}
	case !p.apply(c, old):
		c.Open = []string{"what the patch makes of the role"}
	}
}

// roleParts is what of a role decides.
type roleParts struct {
	Rules           []rbacv1.PolicyRule     `json:"rules"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule,omitempty"`
}

// apply applies what a JSON patch says of rules and aggregation to a role.
func (p *patchDocument) apply(c *Check, old *Role) bool {
	o := roleParts{Rules: old.Rules}
	if old.Aggregates { // with which selectors is not kept; that there are some is
		o.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: make([]metav1.LabelSelector, 1)}
	}
	role, err := json.Marshal(&o)
	if err != nil {
		return false
	}
	patch, err := jsonpatch.DecodePatch(p.about("rules", "aggregationRule"))
	if err != nil {
		return false
	}
	if role, err = patch.Apply(role); err != nil {
		return false
	}
	o = roleParts{}
	if json.Unmarshal(role, &o) != nil {
		return false
	}
	c.Rules, c.Full = o.Rules, aggregates(o.AggregationRule)
	return true
}

func aggregates(r *rbacv1.AggregationRule) bool { return r != nil && len(r.ClusterRoleSelectors) > 0 }

// binding derives the check on a binding's write: bind on the role in the binding's namespace,
// or holding the role's rules there.
func (d *derivation) binding(kind string) {
	var o struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}
	c := Check{Name: verdict.CheckRoleBind, Cover: true}
	var old rbacv1.RoleRef
	var subjects []rbacv1.Subject
	known := Unknown
	if d.s != nil && d.a.Name != "" {
		old, subjects, known = d.s.Binding(d.a.Namespace, d.a.Name)
	}
	shown := d.written(kind, member{"roleRef", &o.RoleRef}, member{"subjects", &o.Subjects})
	switch {
	case shown:
	case d.a.Verb == request.VerbPatch:
		if p, ok := d.patched(); ok {
			if raw, ok := p.members["roleRef"]; ok && json.Unmarshal(raw, &o.RoleRef) != nil {
				o.RoleRef = rbacv1.RoleRef{}
			}
		}
		switch {
		case o.RoleRef.Name != "":
		case known == Present:
			o.RoleRef = old // a binding's role cannot be changed
		case known == Absent && len(d.e.RequestObject) > 0:
			return // a patch that names no role makes no binding
		}
	}
	if o.RoleRef.Name == "" {
		c.Open = []string{"the role of the binding"}
		if len(d.e.RequestObject) == 0 {
			c.Open = []string{d.lacksBody()}
		}
		d.add(c)
		return
	}
	o.RoleRef.APIGroup = cmp.Or(o.RoleRef.APIGroup, rbacv1.GroupName)
	c.Attributes = verdict.Attributes{Verb: "bind", ResourceRequest: true, APIGroup: o.RoleRef.APIGroup, APIVersion: "*",
		Namespace: d.a.Namespace, Name: o.RoleRef.Name}
	switch o.RoleRef.Kind {
	case "ClusterRole":
		c.Attributes.Resource = "clusterroles"
	case "Role":
		c.Attributes.Resource = "roles"
	default:
		return // refused for its form
	}
	c.Ref = &o.RoleRef
	if d.a.Verb != request.VerbCreate && known != Absent && (known == Unknown || !shown || slices.Equal(subjects, o.Subjects)) {
		c.Perhaps = onlyCollected
	}
	d.add(c)
}
