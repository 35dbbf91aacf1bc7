package escalation

import (
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
)

// doubts makes of a policy what was known of it before some writes, and those writes, whose answers
// were lost: some were done, others were not.
func (g generator) doubts(objects []any) (before []any, lost []*event.Event) {
	at := received.Add(-time.Minute)
	send := func(verb string, k rbacindex.Key, body any) {
		e := &event.Event{Level: event.LevelRequest, AuditID: fmt.Sprint("l", len(lost)), Stage: event.StageResponseComplete, Verb: verb,
			RequestURI: uriOf(k),
			ObjectRef:  &event.ObjectRef{Name: k.Name}, RequestReceivedTimestamp: at, StageTimestamp: at.Add(time.Millisecond),
			ResponseStatus: &event.Status{Code: 504}}
		if verb != "create" {
			e.RequestURI += "/" + k.Name
		}
		switch {
		case verb == "delete":
			e.RequestObject = []byte(`{"kind":"DeleteOptions"}`)
		default:
			e.RequestObject = typed(body, k.Kind)
		}
		lost, at = append(lost, e), at.Add(10*time.Millisecond)
	}
	for _, o := range objects {
		k := put(o).Key
		if k.Name == "writer" || k.Name == "writers" || g.IntN(3) > 0 {
			before = append(before, o)
			continue
		}
		switch g.IntN(5) {
		case 0: // it was changed to what it is
			before = append(before, g.instead(o, true))
			send("update", k, o)
		case 1: // it was not changed
			before = append(before, o)
			send("update", k, g.instead(o, true))
		case 2: // it was made, perhaps behind another that was not
			if g.one(2) {
				send("create", k, g.instead(o, false))
			}
			send("create", k, o)
		case 3: // it was not deleted
			before = append(before, o)
			send("delete", k, nil)
		default: // it was deleted, and made anew
			before = append(before, g.instead(o, false))
			send("delete", k, nil)
			send("create", k, o)
		}
	}
	for _, name := range roleNames { // what was not made
		k := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name}
		if here(objects, k) == nil && g.one(2) {
			send("create", k, g.role("", name))
		}
	}
	for i := range 2 {
		b := g.binding(g.pick("", "d", "e"), fmt.Sprint("unmade", i))
		send("create", put(b).Key, b)
	}
	return before, lost
}

// instead makes another object of the same name, a binding to the same role where an update leads to it.
func (g generator) instead(o any, update bool) any {
	m := metaOf(o)
	if isRole(o) {
		return g.role(m.Namespace, m.Name)
	}
	b := g.binding(m.Namespace, m.Name)
	if !update {
		return b
	}
	switch b := b.(type) {
	case *rbacv1.RoleBinding:
		b.RoleRef = o.(*rbacv1.RoleBinding).RoleRef
	case *rbacv1.ClusterRoleBinding:
		b.RoleRef = o.(*rbacv1.ClusterRoleBinding).RoleRef
	}
	return b
}

// here returns the object of a key, nil without one.
func here(objects []any, k rbacindex.Key) any {
	for _, o := range objects {
		if put(o).Key == k {
			return o
		}
	}
	return nil
}

// typed encodes an object with its kind, as clients send it.
func typed(o any, kind rbacindex.Kind) []byte {
	raw := encode(o)
	return append([]byte(fmt.Sprintf(`{"kind":%q,"apiVersion":"rbac.authorization.k8s.io/v1",`, kind)), raw[1:]...)
}
