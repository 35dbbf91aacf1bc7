package authn

import (
	"slices"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
)

func TestIdentityContradictions(t *testing.T) {
	extra := func(kv ...string) (x event.Extra) {
		for i := 0; i < len(kv); i += 2 {
			x = append(x, event.ExtraEntry{Key: kv[i], Values: []string{kv[i+1]}})
		}
		return x
	}
	const jti = "JTI=837044ff-be3c-44f3-a302-a28a6bf4377a"
	cert := "X509SHA256=" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	sa := []string{GroupServiceAccounts, GroupServiceAccounts + ":shop", GroupAuthenticated}
	cases := []struct {
		name  string
		user  event.User
		ips   []string
		notes event.Pairs
		minor int
		want  []string
	}{
		{name: "certificate user", user: event.User{Username: "alice", Groups: []string{"devs", GroupAuthenticated},
			Extra: extra(event.ExtraCredentialID, cert)}},
		{name: "nobody", user: event.User{}},
		{name: "nobody with groups", user: event.User{Groups: []string{"devs"}}, want: []string{ContradictionEmptyUser}},
		{name: "bound service account token", user: event.User{Username: "system:serviceaccount:shop:api", UID: "u", Groups: sa,
			Extra: extra(event.ExtraCredentialID, jti, event.ExtraNodeName, "n", event.ExtraPodName, "p", event.ExtraPodUID, "q")}},
		{name: "service account from a token file", user: event.User{Username: "system:serviceaccount:shop:api",
			Groups: []string{GroupAuthenticated}},
			want: []string{ContradictionSAGroups, ContradictionSANoCredential}},
		{name: "service account of another namespace's group", user: event.User{Username: "system:serviceaccount:shop:api",
			Groups: []string{GroupServiceAccounts, GroupServiceAccounts + ":other", GroupAuthenticated},
			Extra:  extra(event.ExtraCredentialID, jti)}, want: []string{ContradictionSAGroups}},
		{name: "service account before credential ids", user: event.User{Username: "system:serviceaccount:shop:api",
			Groups: sa}, minor: 31},
		{name: "legacy token", user: event.User{Username: "system:serviceaccount:shop:api", Groups: sa},
			notes: event.Pairs{{Key: AnnotationLegacyToken, Value: "x"}}, want: []string{ContradictionSALegacyToken}},
		{name: "stale token", user: event.User{Username: "system:serviceaccount:shop:api", Groups: sa,
			Extra: extra(event.ExtraCredentialID, jti)},
			notes: event.Pairs{{Key: AnnotationStaleToken, Value: "x"}}, want: []string{ContradictionStaleToken}},
		{name: "half a pod", user: event.User{Username: "system:serviceaccount:shop:api", Groups: sa, Extra: extra(event.ExtraCredentialID,
			jti, event.ExtraPodName, "p")},
			want: []string{ContradictionSAPodPartial}},
		{name: "malformed service account", user: event.User{Username: "system:serviceaccount:shop", Groups: sa},
			want: []string{ContradictionSAMalformed}},
		{name: "service account with a colon too many", user: event.User{Username: "system:serviceaccount:shop:a:b", Groups: sa},
			want: []string{ContradictionSAMalformed}},
		{name: "node", user: event.User{Username: "system:node:n1", Groups: []string{GroupNodes, GroupAuthenticated},
			Extra: extra(event.ExtraCredentialID, cert)}},
		{name: "node without its group", user: event.User{Username: "system:node:n1", Groups: []string{GroupAuthenticated}},
			want: []string{ContradictionNodeMalformed}},
		{name: "nobody's node", user: event.User{Username: "system:node:", Groups: []string{GroupNodes, GroupAuthenticated}},
			want: []string{ContradictionNodeMalformed}},
		{name: "node group on a user", user: event.User{Username: "bob", Groups: []string{GroupNodes, GroupAuthenticated}},
			want: []string{ContradictionNodeMalformed}},
		{name: "anonymous", user: event.User{Username: UserAnonymous, Groups: []string{GroupUnauthenticated}}},
		{name: "anonymous with more", user: event.User{Username: UserAnonymous, Groups: []string{GroupUnauthenticated, "devs"}},
			want: []string{ContradictionAnonymous}},
		{name: "loopback", user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupAuthenticated, GroupMasters}},
			ips: []string{"::1"}},
		{name: "loopback of 1.28", minor: 28, user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupMasters}},
			ips: []string{"::1"}},
		{name: "loopback of 1.28 as later ones have it", minor: 28, user: event.User{Username: UserLoopback, UID: "u",
			Groups: []string{GroupAuthenticated, GroupMasters}},
			ips: []string{"::1"}, want: []string{ContradictionLoopback}},
		{name: "loopback of an early 1.31", minor: 31, user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupMasters}},
			ips: []string{"::1"}},
		{name: "loopback of a late 1.31", minor: 31, user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupAuthenticated,
			GroupMasters}}, ips: []string{"::1"}},
		{name: "loopback of 1.32 as earlier ones have it", minor: 32, user: event.User{Username: UserLoopback, UID: "u",
			Groups: []string{GroupMasters}},
			ips: []string{"::1"}, want: []string{ContradictionLoopback}},
		{name: "loopback of no known release", user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupMasters}},
			ips: []string{"::1"}},
		{name: "loopback with more", minor: 28, user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupMasters, "devs"}},
			ips: []string{"::1"}, want: []string{ContradictionLoopback}},
		{name: "loopback behind a claimed address", user: event.User{Username: UserLoopback, UID: "u",
			Groups: []string{GroupAuthenticated, GroupMasters}},
			ips: []string{"127.0.0.1", "192.0.2.7"}, want: []string{ContradictionLoopback}},
		{name: "loopback in the wrong order", user: event.User{Username: UserLoopback, UID: "u", Groups: []string{GroupMasters,
			GroupAuthenticated}},
			ips: []string{"127.0.0.1"}, want: []string{ContradictionLoopback}},
		{name: "masters by certificate", user: event.User{Username: "root", Groups: []string{GroupMasters, GroupAuthenticated},
			Extra: extra(event.ExtraCredentialID, cert)},
			want: []string{ContradictionMastersExternal}},
		{name: "bootstrap token", user: event.User{Username: "system:bootstrap:abcdef", Groups: []string{GroupBootstrappers,
			GroupBootstrappers + ":kubeadm:default-node-token", GroupAuthenticated}}},
		{name: "bootstrap token with a foreign group", user: event.User{Username: "system:bootstrap:abcdef",
			Groups: []string{GroupBootstrappers, "devs", GroupAuthenticated}},
			want: []string{ContradictionBootstrapGroups}},
		{name: "unknown system name", user: event.User{Username: "system:root", Groups: []string{GroupAuthenticated}},
			want: []string{ContradictionReservedName}},
		{name: "scheduler", user: event.User{Username: "system:kube-scheduler", Groups: []string{GroupAuthenticated}}},
		{name: "no special group", user: event.User{Username: "bob", Groups: []string{"devs"}}, want: []string{ContradictionGroupMissing}},
		{name: "both special groups", user: event.User{Username: "bob", Groups: []string{GroupAuthenticated, GroupUnauthenticated}},
			want: []string{ContradictionGroupBoth}},
		{name: "special group twice", user: event.User{Username: "bob", Groups: []string{GroupAuthenticated, GroupAuthenticated}},
			want: []string{ContradictionGroupDuplicate}},
		{name: "short fingerprint", user: event.User{Username: "bob", Groups: []string{GroupAuthenticated},
			Extra: extra(event.ExtraCredentialID, "X509SHA256=abc")},
			want: []string{ContradictionCredentialFormat}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := New(Config{Minor: tc.minor}).Evaluate(&event.Event{User: tc.user, SourceIPs: tc.ips, Annotations: tc.notes}, nil, nil)
			var got []string
			for _, f := range r.Contradictions {
				if f.Evidence == "" {
					t.Errorf("%s without evidence", f.Name)
				}
				got = append(got, f.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
		})
	}
}
