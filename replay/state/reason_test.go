package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// TestReasons says for each way of not knowing what the answer, the view and the reason are,
// whatever order the observations come in.
func TestReasons(t *testing.T) {
	minute := func(m int) time.Time { return time.Date(2026, 1, 2, 10, m, 0, 0, time.UTC) }
	const uid1, uid2 = "u1", "u2"
	role := func(uid, rv string, m int, verb string) observe.Observation {
		return observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: "r", UID: uid, ResourceVersion: rv,
			NotBefore: minute(m), NotAfter: minute(m).Add(time.Second),
			Object: fmt.Appendf(nil, `{"metadata":{"name":"r","uid":%q,"resourceVersion":%q},"rules":[{"verbs":[%q],"apiGroups":[""],`+
				`"resources":["pods"]}]}`, uid, rv, verb)}
	}
	created := func(o observe.Observation, m int) observe.Observation {
		o.Object = fmt.Appendf(nil, `{"metadata":{"name":"r","creationTimestamp":%q},"rules":[]}`, minute(m).Format(time.RFC3339))
		return o
	}
	gone := func(uid string, m int) observe.Observation {
		return observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: "r", UID: uid, Deleted: true,
			NotBefore: minute(m), NotAfter: minute(m).Add(time.Second)}
	}
	blind := func(m int) observe.Observation {
		return observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: "r", Unknown: true,
			NotBefore: minute(m), NotAfter: minute(m).Add(time.Second)}
	}
	all := func(o observe.Observation, m int) observe.Observation {
		o.Source, o.Resource, o.AllOf, o.NotBefore, o.NotAfter = observe.SourceAudit, kept.ClusterRoles, true, minute(m), minute(m).Add(
			time.Second)
		return o
	}
	listed := all(observe.Observation{Complete: true}, 0)
	listed.Source, listed.NotAfter = observe.SourceSnapshot, minute(0)
	relisted := listed
	relisted.NotBefore, relisted.NotAfter = minute(50), minute(50)
	unread := role(uid1, "9", 10, "get")
	unread.Object, unread.Unknown = nil, true
	overlapping := blind(10)
	overlapping.Unknown, overlapping.Object = false, []byte(`{"metadata":{"name":"r"},"rules":[]}`)
	overlapping.NotAfter = minute(20)
	key := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "r"}
	for _, c := range []struct {
		name   string
		obs    []observe.Observation
		at     int // minute
		known  state.Known
		reason string
	}{
		{"nothing was ever said", nil, 5, state.Unknown, "no complete listing of ClusterRoles was ever taken"},
		{"before the first listing", []observe.Observation{listed}, -5, state.Unknown,
			"nothing tells what ClusterRoles there were before the first complete listing, by 2026-01-02T10:00:00Z"},
		{"listed and not there", []observe.Observation{listed}, 5, state.Absent, ""},
		{"written", []observe.Observation{listed, role(uid1, "9", 10, "get")}, 11, state.Present, ""},
		{"before it was written", []observe.Observation{listed, role(uid1, "9", 10, "get")}, 9, state.Absent, ""},
		{"an older version comes late", []observe.Observation{listed, role(uid1, "9", 10, "get"), role(uid1, "8", 5, "list")}, 7,
			state.Present, ""},
		{"content not recorded", []observe.Observation{listed, unread}, 11, state.Unknown,
			"it was written at resourceVersion 9 by 2026-01-02T10:10:01Z, and what was written was not recorded"},
		{"nothing but the name recorded", []observe.Observation{listed, blind(10)}, 11, state.Unknown,
			"it was written by 2026-01-02T10:10:01Z, and what was written was not recorded"},
		{"before it was patched, content not recorded", []observe.Observation{listed, unread}, 9, state.Unknown,
			"it was there before the first write of it that was recorded, and what it held was not"},
		{"seen again", []observe.Observation{listed, unread, role(uid1, "12", 20, "get")}, 21, state.Present, ""},
		{"created before it was first seen", []observe.Observation{listed, created(role(uid1, "9", 10, "get"), 5)}, 7, state.Unknown,
			"it was there since 2026-01-02T10:05:01Z, but what it held before it was first seen was not recorded"},
		{"deleted", []observe.Observation{listed, role(uid1, "9", 10, "get"), gone(uid1, 20)}, 21, state.Absent, ""},
		{"only its end was seen", []observe.Observation{listed, gone(uid1, 20)}, 10, state.Unknown,
			"only its deletion was seen: what it held before was not recorded"},
		{"made anew", []observe.Observation{listed, role(uid1, "9", 10, "get"), gone(uid1, 20), role(uid2, "15", 30, "list")}, 31,
			state.Present, ""},
		{"between two lives", []observe.Observation{listed, role(uid1, "9", 10, "get"), gone(uid1, 20), role(uid2, "15", 30, "list")}, 25,
			state.Absent, ""},
		{"the old one's deletion comes late", []observe.Observation{listed, role(uid1, "9", 10, "get"), role(uid2, "15", 30, "list"),
			gone(uid1, 20)}, 31, state.Present, ""},
		{"overlapping writes", []observe.Observation{listed, overlapping, role(uid1, "9", 11, "get")}, 20, state.Unknown,
			"several writes overlapped by 2026-01-02T10:20:00Z: which came last cannot be told"},
		{"a collection deleted without a list", []observe.Observation{listed, role(uid1, "9", 10, "get"),
			all(observe.Observation{Deleted: true}, 15)}, 16, state.Unknown,
			"it may have been deleted by 2026-01-02T10:15:01Z, with others whose names were not recorded"},
		{"not followed", []observe.Observation{listed, all(observe.Observation{Unknown: true}, 15)}, 20, state.Unknown,
			"changes of ClusterRoles were not followed from 2026-01-02T10:15:00Z on"},
		{"not followed for a while", []observe.Observation{listed, all(observe.Observation{Unknown: true}, 15), relisted}, 20,
			state.Unknown,
			"changes of ClusterRoles were not followed from 2026-01-02T10:15:00Z until the listing by 2026-01-02T10:50:00Z"},
		{"listed again", []observe.Observation{listed, all(observe.Observation{Unknown: true}, 15), relisted}, 51, state.Absent, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for turn := range max(1, len(c.obs)) {
				for _, back := range []bool{false, true} {
					obs := slices.Concat(c.obs[turn:], c.obs[:turn])
					if back {
						slices.Reverse(obs)
					}
					s := state.New("c")
					for _, o := range obs {
						s.Apply(o)
					}
					at := minute(c.at)
					if _, known := s.Version(kept.ClusterRoles, "", "r", at); known != c.known {
						t.Errorf("turn %d: %s, want %s", turn, known, c.known)
					}
					if got := s.Reason(key, at); got != c.reason {
						t.Errorf("turn %d: reason %q\nwant %q", turn, got, c.reason)
					}
					view := s.RBAC(at)
					if _, there := view.RBAC.Get(key); view.IsUnknown(key) != (c.known == state.Unknown) ||
						there != (c.known == state.Present) {
						t.Errorf("turn %d: the view says unknown %t, there %t; want %s", turn, view.IsUnknown(key), there, c.known)
					}
				}
			}
		})
	}
}
