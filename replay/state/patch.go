package state

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
)

// patch is what the body of a patch makes of the list by which an object of the RBAC kinds grants:
// the rules of a role, the subjects of a binding. Every kind of patch that is an object replaces the
// list whole, and none changes the role of a binding.
type patch struct {
	keeps   bool     // nothing is taken away
	none    bool     // or everything is: what an applied configuration does not name
	sets    bool     // the list is that of content, else its members are added
	content *content // with the list; nil without one
	any     bool     // the list may become anything
	other   bool     // what else is kept of the object may change
	blind   bool     // the body was not recorded, or could not be read
	ops     []byte   // of a JSON patch, those that work on the list
	// made is what an applied configuration makes where there was no object, nil for nothing.
	made *content
}

// maxOperations bounds the operations of a JSON patch that are carried out.
const maxOperations = 1000

// patch reads the body of a patch; a body that was not recorded, or cannot be read, may do anything.
func (in *interner) patch(res resource, key objectKey, body []byte) *content {
	p := &patch{any: true, blind: true}
	switch body = bytes.TrimLeft(body, " \t\r\n"); {
	case len(body) == 0:
	case body[0] == '{':
		p = in.merge(res, key, body)
	case body[0] == '[':
		p = in.operations(res, key, body)
	}
	return &content{object: p, created: noTime, deletion: noTime, digest: xxhash.Sum64(body), size: int32(len(body))}
}

// listOf is the member that lists what an object grants.
func (r resource) listOf() string {
	if r == resRole || r == resClusterRole {
		return "rules"
	}
	return "subjects"
}

// merge reads a merge patch, a strategic merge patch or an applied configuration.
func (in *interner) merge(res resource, key objectKey, body []byte) *patch {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members["cut"] != nil && members["forgotten"] == nil {
		return &patch{any: true, blind: true}
	}
	applied := members["apiVersion"] != nil && members["kind"] != nil // perhaps
	if members["forgotten"] != nil && members["cut"] != nil {
		p := &patch{any: true, other: true}
		if applied {
			p.made, _ = in.parse(res, key, body)
			p.blind = p.made == nil
		}
		return p
	}
	p := &patch{keeps: true, other: members["aggregationRule"] != nil}
	list, named := members[res.listOf()]
	for name := range members {
		switch {
		case name == "$patch":
			p.none, p.other = true, true
		case strings.HasPrefix(name, "$") && strings.HasSuffix(name, res.listOf()):
			return &patch{any: true}
		}
	}
	if applied {
		p.none, p.other = p.none || !named, true
		if made, err := in.parse(res, key, body); err == nil {
			p.made = made
		}
	}
	if !named {
		return p
	}
	var elements []map[string]json.RawMessage
	if json.Unmarshal(list, &elements) != nil {
		return &patch{any: true, made: p.made}
	}
	for _, e := range elements {
		for name := range e {
			if strings.HasPrefix(name, "$") {
				return &patch{any: true, made: p.made}
			}
		}
	}
	p.sets, p.keeps = true, false
	if p.content = in.listed(res, key, list); p.content == nil {
		return &patch{any: true, made: p.made}
	}
	return p
}

// operations reads a JSON patch. Operations on the list and its elements are told apart; others that
// reach into it may do anything.
func (in *interner) operations(res resource, key objectKey, body []byte) *patch {
	ops, ok := patchops.Read(body)
	if !ok {
		return &patch{any: true}
	}
	p := &patch{keeps: true}
	at := "/" + res.listOf()
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

// isElement tells whether a JSON pointer points to an element of a list.
func isElement(path, list string) bool {
	rest, ok := strings.CutPrefix(path, list+"/")
	if _, err := strconv.Atoi(rest); !ok || err != nil && rest != "-" {
		return false
	}
	return true
}

// listed returns the content of an object that has a list and nothing else, nil where it cannot be read.
func (in *interner) listed(res resource, key objectKey, list []byte) *content {
	raw := append(append(append([]byte(`{"`), res.listOf()...), `":`...), list...)
	c, err := in.parse(res, key, append(raw, '}'))
	if err != nil {
		return nil
	}
	return c
}

// patch returns the patch that a content stands for, nil for another.
func (c *content) patch() *patch {
	if c == nil {
		return nil
	}
	p, _ := c.object.(*patch)
	return p
}

// bounds returns what an object that is between two contents may be after the patch; is is that, where
// it is one content.
func (p *patch) bounds(b bounds) (after bounds, is *content) {
	certain := b.least != nil && b.least == b.most && !p.other
	if certain && p.ops != nil {
		if c := p.carryOut(b.least); c != nil {
			return between(c, c), c
		}
	}
	after = b
	switch {
	case p.any:
		after.most = b.most.each((*content).everything)
	case p.sets:
		after.most = b.most.each(func(c *content) *content { return withList(c, p.content) })
	case p.content != nil:
		after.most = either(b.most, b.most.each(func(c *content) *content { return withList(c, p.content) }))
	}
	switch {
	case b.there == nil:
	case p.sets && !p.any && !p.none:
		after.there = withList(b.there, p.content)
	case !p.keeps || p.any || p.none:
		after.there = withList(b.there, nil)
	}
	if b.least != nil {
		after.least = after.there
	}
	switch {
	case !certain || p.any || p.none:
	case p.sets:
		return between(after.most, after.most), after.most
	case p.keeps && p.content == nil:
		return b, b.most
	}
	return after, nil
}

// everything returns the content that grants whatever a binding's role, or a role's bindings, can.
func (c *content) everything() *content {
	d := *c
	d.cut, d.object = true, granting(c.object, anything, anybody)
	if r, ok := d.object.(*rbacv1.ClusterRole); ok {
		r.AggregationRule = nil
	}
	return &d
}

// isEverything tells whether a content is one that everything returned.
func (c *content) isEverything() bool {
	subjects, _, _ := c.binding()
	rules := rulesOf(c)
	return len(rules) > 0 && &rules[0] == &anything[0] || len(subjects) > 0 && &subjects[0] == &anybody[0]
}

// withList returns a content with the list of another, with none where that is nil.
func withList(c, list *content) *content {
	d := *c
	rules, subjects := []rbacv1.PolicyRule{}, []rbacv1.Subject{}
	if list != nil {
		d.digest ^= list.digest
		rules = rulesOf(list)
		subjects, _, _ = list.binding()
	} else {
		d.digest++
	}
	d.object = granting(c.object, rules, subjects)
	return &d
}

func rulesOf(c *content) []rbacv1.PolicyRule {
	if c == nil {
		return nil
	}
	switch o := c.object.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	}
	return nil
}

// carryOut applies a JSON patch to a content, nil where it does not apply or is too large.
func (p *patch) carryOut(c *content) *content {
	var list any
	var name string
	size := 0
	if subjects, _, ok := c.binding(); ok {
		list, name, size = subjects, resClusterRoleBinding.listOf(), len(subjects)
	} else {
		rules := rulesOf(c)
		list, name, size = rules, resClusterRole.listOf(), len(rules)
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
	d.digest ^= xxhash.Sum64(raw)
	d.object = granting(c.object, became.Rules, became.Subjects)
	return &d
}
