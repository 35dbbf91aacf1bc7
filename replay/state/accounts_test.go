package state_test

import (
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

func TestServiceAccounts(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 11, minute, 0, 0, time.UTC) }
	account := func(namespace, name, uid string) observe.Observation {
		return observe.Observation{Source: observe.SourceSnapshot, Resource: kept.ServiceAccounts, Namespace: namespace, Name: name,
			UID: uid, ResourceVersion: "5", NotBefore: at(0), NotAfter: at(0),
			Object: []byte(`{"metadata":{"creationTimestamp":"2026-11-20T10:00:00Z"}}`)}
	}
	st := state.New("c")
	st.Apply(account("shop", "b", "u2"), account("shop", "a", "u1"), account("kube-system", "z", "u3"),
		observe.Observation{Source: observe.SourceSnapshot, Resource: kept.ServiceAccounts, AllOf: true, Complete: true, NotBefore: at(0),
			NotAfter: at(0), Since: at(-30)},
		observe.Observation{Source: observe.SourceWatch, Resource: kept.ServiceAccounts, Namespace: "shop", Name: "a", UID: "u1",
			ResourceVersion: "9", Deleted: true, NotBefore: at(10), NotAfter: at(10)},
		observe.Observation{Source: observe.SourceAudit, Resource: kept.ServiceAccounts, Namespace: "shop", Name: "b", Unknown: true,
			NotBefore: at(20), NotAfter: at(20)})
	z, a, b := state.Account{Namespace: "kube-system", Name: "z"}, state.Account{Namespace: "shop",
		Name: "a"}, state.Account{Namespace: "shop", Name: "b"}
	for _, c := range []struct {
		name     string
		at       time.Time
		want     []state.Account
		complete bool
	}{
		{"listed", at(5), []state.Account{z, a, b}, true},
		{"one is deleted", at(15), []state.Account{z, b}, true},
		{"what became of one is not known", at(25), []state.Account{z}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, complete := st.ServiceAccounts(c.at); !slices.Equal(got, c.want) || complete != c.complete {
				t.Errorf("got %v, complete %t", got, complete)
			}
		})
	}
	if got, complete := state.New("d").ServiceAccounts(at(5)); len(got) != 0 || complete {
		t.Errorf("of a cluster nobody told of: %v, complete %t", got, complete)
	}
}
