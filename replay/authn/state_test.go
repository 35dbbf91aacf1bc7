package authn

import (
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// TestState compares identities with the objects behind them. Every case but those that say so
// must find nothing when the state is blind.
func TestState(t *testing.T) {
	second := time.Second
	node := event.User{Username: "system:node:n1", Groups: []string{GroupNodes, GroupAuthenticated},
		Extra: extra(event.ExtraCredentialID, certID)}
	ghost := event.User{Username: "system:node:ghost", Groups: []string{GroupNodes, GroupAuthenticated},
		Extra: extra(event.ExtraCredentialID, certID)}
	bootstrapUser := event.User{Username: "system:bootstrap:abcdef", Groups: []string{GroupBootstrappers, GroupBootstrappers + ":lab",
		GroupAuthenticated}}
	legacy := func(e *event.Event) {
		e.User.Extra = nil
		e.Annotations = event.Pairs{{Key: AnnotationLegacyToken, Value: e.User.Username}, {Key: AnnotationLegacyManual, Value: "old"}}
	}
	bootstrapSecretOf := func(b kept.BootstrapToken) func(*fakeState) {
		return func(s *fakeState) {
			s.secrets["kube-system/bootstrap-token-abcdef"] = []secretSpan{{kept.Secret{Type: bootstrapType, Bootstrap: &b},
				noon.Add(-time.Hour), time.Time{}}}
		}
	}
	cases := []struct {
		name  string
		user  event.User
		state func(*fakeState)
		event func(*event.Event)
		want  []string
	}{
		{name: "pod token", user: account(podToken())},
		{name: "node", user: node},
		{name: "case 29: a token joins its issue", user: account(extra(event.ExtraCredentialID, tokenID))},

		{name: "case 27: five seconds after the account was made anew", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { recreated(s, noon.Add(-5*second)) }},
		{name: "case 27: two minutes after", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { recreated(s, noon.Add(-120*second)) }, want: []string{ContradictionSAUID}},
		{name: "account deleted nine seconds ago", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { deleted(s, noon.Add(-9*second)) }},
		{name: "account deleted eleven seconds ago", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { deleted(s, noon.Add(-11*second)) }, want: []string{ContradictionSAAfterDeletion}},
		{name: "account that never was", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { s.accounts = nil }, want: []string{ContradictionSAUnknown}},
		{name: "account with another uid", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { s.accounts["shop/api"][0].UID = "other" }, want: []string{ContradictionSAUID}},

		{name: "case 28: thirty seconds past the pod's end", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.DeletionAt = noon.Add(-30 * second) }) }},
		{name: "case 28: two minutes past it", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.DeletionAt = noon.Add(-120 * second) }) },
			want:  []string{ContradictionSAPodDeleted}},
		{name: "case 28: gone for five seconds", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.Gone = noon.Add(-5 * second) }) }},
		{name: "case 28: gone for eleven seconds", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.Gone = noon.Add(-11 * second) }) },
			want:  []string{ContradictionSAPodDeleted}},
		{name: "pod that never was", user: account(podToken()), state: func(s *fakeState) { s.pods = nil },
			want: []string{ContradictionSAPodUnknown}},
		{name: "pod made later", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.Created = noon.Add(second) }) },
			want:  []string{ContradictionSAPodUnknown}},
		{name: "pod of another name", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.Name = "web-0" }) }, want: []string{ContradictionSAPodUnknown}},
		{name: "pod of another account", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.ServiceAccount = "web" }) }, want: []string{ContradictionSAPodWrong}},
		{name: "pod on another node", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.Node = "n2" }) }, want: []string{ContradictionSANode}},
		{name: "pod whose node is not recorded", user: account(podToken()),
			state: func(s *fakeState) { pod(s, func(p *state.Pod) { p.Node = "" }) }},
		{name: "node of another uid", user: account(podToken()),
			state: func(s *fakeState) { s.nodes["n1"][0].uid = "other" }, want: []string{ContradictionSANode}},
		{name: "node made anew while the pod ran", user: account(podToken()),
			state: func(s *fakeState) {
				s.nodes["n1"] = []span{{nodeUID, noon.Add(-time.Hour), noon.Add(-time.Minute)},
					{"new", noon.Add(-time.Minute), time.Time{}}}
			}},
		{name: "node token", user: account(extra(event.ExtraCredentialID, tokenID, event.ExtraNodeName, "n1",
			event.ExtraNodeUID, nodeUID))},
		{name: "node token of a node gone a minute ago", user: account(extra(event.ExtraCredentialID, tokenID, event.ExtraNodeName, "n1",
			event.ExtraNodeUID, nodeUID)),
			state: func(s *fakeState) { s.nodes["n1"][0].to = noon.Add(-time.Minute) }, want: []string{ContradictionSANode}},
		{name: "node token of a node gone a second ago", user: account(extra(event.ExtraCredentialID, tokenID, event.ExtraNodeName, "n1",
			event.ExtraNodeUID, nodeUID)),
			state: func(s *fakeState) { s.nodes["n1"][0].to = noon.Add(-second) }},

		{name: "token nobody issued", user: account(extra(event.ExtraCredentialID, "JTI=other")), want: []string{ContradictionJTIUnissued}},
		{name: "token issued later", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { issue(s, func(c *state.Credential) { c.Issued = noon.Add(second) }) },
			want:  []string{ContradictionJTIUnissued}},
		{name: "token issued to another account", user: account(extra(event.ExtraCredentialID, tokenID)),
			state: func(s *fakeState) { issue(s, func(c *state.Credential) { c.ServiceAccount = "web" }) },
			want:  []string{ContradictionJTIDrift}},
		{name: "token issued for another pod", user: account(podToken()),
			state: func(s *fakeState) { issue(s, func(c *state.Credential) { c.PodUID = "other" }) },
			want:  []string{ContradictionJTIDrift}},

		{name: "case 30: legacy token", user: account(nil), event: legacy,
			state: func(s *fakeState) {
				s.secrets["shop/old"] = []secretSpan{{kept.Secret{ServiceAccount: "api", ServiceAccountUID: apiUID},
					noon.Add(-time.Hour), time.Time{}}}
			}, want: []string{ContradictionSALegacyToken}},
		{name: "legacy token without its Secret", user: account(nil), event: legacy, want: []string{ContradictionSALegacyToken,
			ContradictionSASecretMissing}},
		{name: "legacy token of another account's Secret", user: account(nil), event: legacy,
			state: func(s *fakeState) {
				s.secrets["shop/old"] = []secretSpan{{kept.Secret{ServiceAccount: "web"}, noon.Add(-time.Hour), time.Time{}}}
			}, want: []string{ContradictionSALegacyToken, ContradictionSASecretMissing}},
		{name: "legacy token, Secret gone three seconds ago", user: account(nil), event: legacy,
			state: func(s *fakeState) {
				s.secrets["shop/old"] = []secretSpan{{kept.Secret{ServiceAccount: "api"}, noon.Add(-time.Hour), noon.Add(-3 * second)}}
			}, want: []string{ContradictionSALegacyToken}},

		{name: "certificate of another identity", user: node,
			state: func(s *fakeState) {
				s.credentials[certID] = state.Credential{CommonName: "system:node:n2", Organizations: []string{GroupNodes}, CSR: "csr-1"}
			}, want: []string{ContradictionCertDrift}},
		{name: "certificate of this identity", user: node,
			state: func(s *fakeState) {
				s.credentials[certID] = state.Credential{CommonName: "system:node:n1", Organizations: []string{GroupNodes}, CSR: "csr-1",
					Expires: noon.Add(time.Hour)}
			}},
		{name: "expired certificate", user: node,
			state: func(s *fakeState) {
				s.credentials[certID] = state.Credential{CommonName: "system:node:n1", Organizations: []string{GroupNodes}, CSR: "csr-1",
					Expires: noon.Add(-time.Hour)}
			}, want: []string{ContradictionCertExpired}},

		{name: "unknown node", user: ghost, want: []string{ContradictionNodeUnknown}},
		{name: "unknown node that registers", user: ghost, event: func(e *event.Event) {
			e.Verb, e.RequestURI = "create", "/api/v1/nodes"
		}},
		{name: "node that was there a minute ago", user: ghost,
			state: func(s *fakeState) { s.nodes["ghost"] = []span{{"g", noon.Add(-time.Hour), noon.Add(-time.Minute)}} }},

		{name: "bootstrap token", user: bootstrapUser, state: bootstrapSecretOf(kept.BootstrapToken{Authentication: true,
			Groups: []string{GroupBootstrappers + ":lab"}})},
		{name: "bootstrap token without its Secret", user: bootstrapUser, want: []string{ContradictionBootstrapMissing}},
		{name: "bootstrap token whose Secret went five seconds ago", user: bootstrapUser,
			state: func(s *fakeState) {
				s.secrets["kube-system/bootstrap-token-abcdef"] = []secretSpan{{kept.Secret{Type: bootstrapType}, noon.Add(-time.Hour),
					noon.Add(-5 * second)}}
			}},
		{name: "bootstrap token whose Secret came and went within the cache", user: bootstrapUser,
			state: func(s *fakeState) {
				s.secrets["kube-system/bootstrap-token-abcdef"] = []secretSpan{{kept.Secret{Type: bootstrapType}, noon.Add(-2 * second),
					noon.Add(-second)}}
			}},
		{name: "bootstrap token not for authentication", user: bootstrapUser,
			state: bootstrapSecretOf(kept.BootstrapToken{Groups: []string{GroupBootstrappers + ":lab"}}),
			want:  []string{ContradictionBootstrapMissing}},
		{name: "expired bootstrap token", user: bootstrapUser,
			state: bootstrapSecretOf(kept.BootstrapToken{Authentication: true, Expires: noon.Add(-time.Minute),
				Groups: []string{GroupBootstrappers + ":lab"}}), want: []string{ContradictionBootstrapExpired}},
		{name: "bootstrap token with other groups", user: bootstrapUser,
			state: bootstrapSecretOf(kept.BootstrapToken{Authentication: true}), want: []string{ContradictionBootstrapGroups}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s, e := shop(), by(tc.user)
			if tc.state != nil {
				tc.state(s)
			}
			if tc.event != nil {
				tc.event(e)
			}
			r := New(Config{}).Evaluate(e, nil, s)
			if got := contradictionNames(r); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", r.Contradictions, tc.want)
			}
			// A state that knows nothing proves nothing.
			want := slices.DeleteFunc(slices.Clone(tc.want), func(f string) bool { return f != ContradictionSALegacyToken })
			if r := New(Config{}).Evaluate(e, nil, &fakeState{blind: true}); !slices.Equal(contradictionNames(r), want) {
				t.Errorf("with a state that knows nothing: %v", r.Contradictions)
			}
		})
	}
}

func recreated(s *fakeState, at time.Time) {
	deleted(s, at.Add(-time.Second))
	s.accounts["shop/api"] = append(s.accounts["shop/api"], state.Version{UID: "new", NotBefore: at, NotAfter: at})
	s.accounts["shop/api"][1].NotBefore, s.accounts["shop/api"][1].NotAfter = at, at
}

func deleted(s *fakeState, at time.Time) {
	s.accounts["shop/api"] = append(s.accounts["shop/api"], state.Version{Deleted: true, NotBefore: at, NotAfter: at})
}

func pod(s *fakeState, change func(*state.Pod)) {
	p := s.pods[podUID]
	change(&p)
	s.pods[podUID] = p
}

func issue(s *fakeState, change func(*state.Credential)) {
	c := s.credentials[tokenID]
	change(&c)
	s.credentials[tokenID] = c
}

// TestLookupSwitchedOff: without --service-account-lookup a legacy token outlives its account
// and its Secret; a bound one never does.
func TestLookupSwitchedOff(t *testing.T) {
	off := with(func(c *config.APIServer) { c.Authentication.ServiceAccount.Lookup = false })
	s := shop()
	deleted(s, noon.Add(-time.Minute))
	e := by(account(nil))
	e.Annotations = event.Pairs{{Key: AnnotationLegacyToken, Value: e.User.Username}, {Key: AnnotationLegacyManual, Value: "old"}}
	if got := contradictionNames(New(Config{}).Evaluate(e, off, s)); !slices.Equal(got, []string{ContradictionSALegacyToken}) {
		t.Errorf("legacy token: %v", got)
	}
	got := contradictionNames(New(Config{}).Evaluate(by(account(extra(event.ExtraCredentialID, tokenID))), off, s))
	if !slices.Equal(got, []string{ContradictionSAAfterDeletion, ContradictionUnattributed}) {
		t.Errorf("bound token: %v", got)
	}
}
