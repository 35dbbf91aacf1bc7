package content

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	rbacv1 "k8s.io/api/rbac/v1"
	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/patchops"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// patch is what a patch does to the list by which an RBAC object grants: the rules of a role, the subjects of a binding. Every kind of
// patch that is a JSON object replaces the whole list, and none changes the role of a binding.
type patch struct {
	keeps   bool     // nothing is taken away
	none    bool     // or everything is: what an applied configuration does not name
	sets    bool     // the list is that of content, else its members are added
	content *Content // with the list; nil without one
	any     bool     // the list may become anything
	other   bool     // what else is kept of the object may change
	Blind   bool     // the body was not recorded, or could not be read
	ops     []byte   // of a JSON patch, those that work on the list
	// made is what an applied configuration makes where there was no object, nil for nothing.
	Made *Content
}

// maxOperations bounds the operations of a JSON patch that are applied.
const maxOperations = 1000

// Patch reads the body of a patch; a body that was not recorded, or cannot be read, may do anything.
func (in *Interner) Patch(res kept.Resource, key kept.Key, body []byte) *Content {
	p := &patch{any: true, Blind: true}
	switch body = bytes.TrimLeft(body, " \t\r\n"); {
	case len(body) == 0:
	case body[0] == '{':
		p = in.merge(res, key, body)
	case body[0] == '[':
		p = in.operations(res, key, body)
	}
	return &Content{Object: p, Created: instant.None, Deletion: instant.None, Digest: xxhash.Sum64(body), size: int32(len(body))}
}

// listOf returns the member that lists what an object grants.
func listOf(res kept.Resource) string {
	if res == kept.ResRole || res == kept.ResClusterRole {
		return "rules"
	}
	return "subjects"
}

// merge reads a merge patch, a strategic merge patch or an applied configuration.
func (in *Interner) merge(res kept.Resource, key kept.Key, body []byte) *patch {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members["cut"] != nil && members["forgotten"] == nil {
		return &patch{any: true, Blind: true}
	}
	applied := members["apiVersion"] != nil && members["kind"] != nil // perhaps
	if members["forgotten"] != nil && members["cut"] != nil {
		p := &patch{any: true, other: true}
		if applied {
			p.Made, _ = in.Parse(res, key, body)
			p.Blind = p.Made == nil
		}
		return p
	}
	p := &patch{keeps: true, other: members["aggregationRule"] != nil}
	list, named := members[listOf(res)]
	for name := range members {
		switch {
		case name == "$patch":
			p.none, p.other = true, true
		case strings.HasPrefix(name, "$") && strings.HasSuffix(name, listOf(res)):
			return &patch{any: true}
		}
	}
	if applied {
		p.none, p.other = p.none || !named, true
		if made, err := in.Parse(res, key, body); err == nil {
			p.Made = made
		}
	}
	if !named {
		return p
	}
	var elements []map[string]json.RawMessage
	if json.Unmarshal(list, &elements) != nil {
		return &patch{any: true, Made: p.Made}
	}
	for _, e := range elements {
		for name := range e {
			if strings.HasPrefix(name, "$") {
				return &patch{any: true, Made: p.Made}
			}
		}
	}
	p.sets, p.keeps = true, false
	if p.content = in.listed(res, key, list); p.content == nil {
		return &patch{any: true, Made: p.Made}
	}
	return p
}

// operations reads a JSON patch. Operations on the list and its elements are told apart; others that reach into it may do anything.
func (in *Interner) operations(res kept.Resource, key kept.Key, body []byte) *patch {
	ops, ok := patchops.Read(body)
	if !ok {
		return &patch{any: true}
	}
	p := &patch{keeps: true}
	at := "/" + listOf(res)
	var of, added []json.RawMessage
	exact := len(ops) <= maxOperations
	for _, op := range ops {
		moves := op.Moves()
		into, from := patchops.Reaches(op.Path, at), moves && patchops.Reaches(op.From, at)
		switch {
		case op.Op == "test":
			continue
		case op.Path == "" || moves && op.From == "":
			return &patch{any: true}
		case !into && !from:
			p.other = p.other || patchops.Reaches(op.Path, "/aggregationRule") || moves && patchops.Reaches(op.From, "/aggregationRule")
			continue
		case op.Op == "add" && isElement(op.Path, at):
			added = append(added, op.Value)
		case op.Op == "replace" && isElement(op.Path, at):
			p.keeps, added = false, append(added, op.Value)
		case (op.Op == "add" || op.Op == "replace") && op.Path == at:
			var list []json.RawMessage
			if json.Unmarshal(op.Value, &list) != nil {
				return &patch{any: true}
			}
			p.keeps, added = false, append(added, list...)
		case op.Op == "remove" && (op.Path == at || isElement(op.Path, at)):
			p.keeps = false
		default: // inside an element, or to and from elsewhere
			p.any, p.keeps = true, false
			exact = exact && !moves
		}
		of = append(of, op.Raw)
	}
	if len(added) > 0 {
		list, err := json.Marshal(added)
		if err == nil {
			p.content = in.listed(res, key, list)
		}
		p.any = p.any || p.content == nil
	}
	if exact && len(of) > 0 {
		p.ops, _ = json.Marshal(of)
	}
	return p
}

// isElement reports whether a JSON pointer points to an element of a list.
func isElement(path, list string) bool {
	rest, ok := strings.CutPrefix(path, list+"/")
	if _, err := strconv.Atoi(rest); !ok || err != nil && rest != "-" {
		return false
	}
	return true
}

// listed returns the content of an object with a list and nothing else, nil if the list cannot be read.
func (in *Interner) listed(res kept.Resource, key kept.Key, list []byte) *Content {
	raw := append(append(append([]byte(`{"`), listOf(res)...), `":`...), list...)
	c, err := in.Parse(res, key, append(raw, '}'))
	if err != nil {
		return nil
	}
	return c
}

// Patch returns the patch that a content stands for, nil if it is not one.
func (c *Content) Patch() *patch {
	if c == nil {
		return nil
	}
	p, _ := c.Object.(*patch)
	return p
}

// Bounds returns what an object between two contents may be after the patch; is is that if it is a single content.
func (p *patch) Bounds(b Bounds) (after Bounds, is *Content) {
	certain := b.Least != nil && b.Least == b.Most && !p.other
	if certain && p.ops != nil {
		if c := p.carryOut(b.Least); c != nil {
			return between(c, c), c
		}
	}
	after = b
	switch {
	case p.any:
		after.Most = b.Most.Each((*Content).Everything)
	case p.sets:
		after.Most = b.Most.Each(func(c *Content) *Content { return WithList(c, p.content) })
	case p.content != nil:
		after.Most = Either(b.Most, b.Most.Each(func(c *Content) *Content { return WithList(c, p.content) }))
	}
	switch {
	case b.There == nil:
	case p.sets && !p.any && !p.none:
		after.There = WithList(b.There, p.content)
	case !p.keeps || p.any || p.none:
		after.There = WithList(b.There, nil)
	}
	if b.Least != nil {
		after.Least = after.There
	}
	switch {
	case !certain || p.any || p.none:
	case p.sets:
		return between(after.Most, after.Most), after.Most
	case p.keeps && p.content == nil:
		return b, b.Most
	}
	return after, nil
}

// Everything returns the content that grants whatever a binding's role, or a role's bindings, can.
func (c *Content) Everything() *Content {
	d := *c
	d.Cut, d.Object = true, granting(c.Object, anything, anybody)
	if r, ok := d.Object.(*rbacv1.ClusterRole); ok {
		r.AggregationRule = nil
	}
	return &d
}

// isEverything reports whether Everything returned a content.
func (c *Content) isEverything() bool {
	subjects, _, _ := c.Binding()
	rules := rulesOf(c)
	return len(rules) > 0 && &rules[0] == &anything[0] || len(subjects) > 0 && &subjects[0] == &anybody[0]
}

// WithList returns a content with the list of another, without one if that is nil.
func WithList(c, list *Content) *Content {
	d := *c
	rules, subjects := []rbacv1.PolicyRule{}, []rbacv1.Subject{}
	if list != nil {
		d.Digest ^= list.Digest
		rules = rulesOf(list)
		subjects, _, _ = list.Binding()
	} else {
		d.Digest++
	}
	d.Object = granting(c.Object, rules, subjects)
	return &d
}

func rulesOf(c *Content) []rbacv1.PolicyRule {
	if c == nil {
		return nil
	}
	switch o := c.Object.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	}
	return nil
}

// carryOut applies a JSON patch to a content; it returns nil if the patch does not apply or is too large.
func (p *patch) carryOut(c *Content) *Content {
	var list any
	var name string
	size := 0
	if subjects, _, ok := c.Binding(); ok {
		list, name, size = subjects, listOf(kept.ResClusterRoleBinding), len(subjects)
	} else {
		rules := rulesOf(c)
		list, name, size = rules, listOf(kept.ResClusterRole), len(rules)
	}
	if size > maxOperations {
		return nil
	}
	raw, err := json.Marshal(map[string]any{name: list})
	if err != nil {
		return nil
	}
	ops, err := jsonpatch.DecodePatch(p.ops)
	if err != nil {
		return nil
	}
	if raw, err = ops.Apply(raw); err != nil {
		return nil
	}
	var became struct {
		Rules    []rbacv1.PolicyRule `json:"rules"`
		Subjects []rbacv1.Subject    `json:"subjects"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, &became) != nil {
		return nil
	}
	d := *c
	d.Digest ^= xxhash.Sum64(raw)
	d.Object = granting(c.Object, became.Rules, became.Subjects)
	return &d
}
