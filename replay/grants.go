package replay

import (
	"hash/maphash"
	"slices"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// grantMemory keeps grants worded: a subject's requests are allowed by few combinations of
// grants, and verdicts that rest on the same ones share one slice.
//
// It is a table of fixed size: what falls on one place replaces what was there. Readers and
// writers take no lock.
type grantMemory struct {
	seed  maphash.Seed
	table []atomic.Pointer[wordedGrants]
}

// wordedGrants are the grants of one answer with their wording. Neither is ever changed.
type wordedGrants struct {
	grants []rbacindex.Grant
	worded []verdict.Grant
}

// grantPlaces is how many combinations are remembered. Each keeps alive what is known of one
// subject.
const grantPlaces = 1024

func newGrantMemory() *grantMemory {
	return &grantMemory{seed: maphash.MakeSeed(), table: make([]atomic.Pointer[wordedGrants], grantPlaces)}
}

// Whoever may write bindings may have thousands grant the same. A verdict is decided with all of
// them and lists the first.
const (
	// mostGrants bounds the grants of one list, and eventGrants those of an event: when its lists
	// have as many, those to come have one each.
	mostGrants  = 256
	eventGrants = 4 * mostGrants
	// mostWording bounds the bytes of the reasons of one list.
	mostWording = 64 << 10
)

// worded returns plain copies of the first grants, shared with others who asked for the same. They
// must not be modified. bufs is for wording what is new.
func (m *grantMemory) worded(grants []rbacindex.Grant, bufs *buffers) []verdict.Grant {
	if len(grants) == 0 {
		return nil
	}
	grants = grants[:min(len(grants), mostGrants)]
	var h uint64
	for i := range grants {
		h = h*31 + maphash.String(m.seed, grants[i].Binding()) + uint64(grants[i].Rule())
	}
	place := &m.table[h%grantPlaces]
	if w := place.Load(); w != nil && slices.Equal(w.grants, grants) {
		return w.worded
	}
	w := &wordedGrants{slices.Clone(grants), slices.Clip(bufs.detach(nil, grants))}
	place.Store(w)
	return w.worded
}

// words returns what a verdict lists of grants.
func (t *trial) words(grants []rbacindex.Grant) []verdict.Grant {
	if t.listed >= eventGrants {
		grants = grants[:min(1, len(grants))]
	}
	out := t.eng.grants.worded(grants, &t.bufs)
	t.listed += len(out)
	return out
}

// binds notes which roles the binding that the request writes gives. A binding names its role for
// life, and its patches do not; nor does an event that was recorded without its bodies.
func (t *trial) binds() {
	a := &t.v.Attributes
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: a.Name}
	switch {
	case a.APIGroup != rbacv1.GroupName || a.Subresource != "" || !a.ResourceRequest:
		return
	case a.Resource == "rolebindings":
		key.Kind, key.Namespace = rbacindex.KindRoleBinding, a.Namespace
	case a.Resource != "clusterrolebindings":
		return
	}
	open := false
	switch a.Verb {
	case request.VerbCreate:
		open = len(t.e.RequestObject) == 0
	case request.VerbUpdate, request.VerbPatch:
		if open = t.base.View == nil; open {
			break
		}
		var refs []rbacindex.Key
		refs, open = t.base.View.RolesOf(key)
		for _, ref := range refs {
			t.v.Binds = append(t.v.Binds, ref.String())
		}
	}
	if open {
		t.v.Binds = append(t.v.Binds, verdict.BindsAny)
	}
}
