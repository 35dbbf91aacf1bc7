package authn

import (
	"slices"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
)

// everything configured as a current cluster has it, with a token file.
func current() *config.APIServer {
	return &config.APIServer{Minor: 36, Authentication: config.Authentication{
		Anonymous: config.Anonymous{Enabled: true}, ClientCA: true, Bootstrap: true,
		ServiceAccount: config.ServiceAccount{Enabled: true, Lookup: true},
		TokenFile: &config.StaticUsers{File: "tokens.csv", Users: []config.StaticUser{
			{Name: "alice", UID: "u1", Groups: []string{"devs", "ops"}}, {Name: "alice", UID: "u2"}, {Name: "bot", UID: "u3"},
			{Name: "root", UID: "u4", Groups: []string{GroupAuthenticated, "wheel"}},
			{Name: "system:serviceaccount:shop:api", UID: "u5"},
		}},
	}}
}

func with(change func(*config.APIServer)) *config.APIServer {
	cfg := current()
	change(cfg)
	return cfg
}

func frontProxy(h config.RequestHeader) func(*config.APIServer) {
	return func(c *config.APIServer) { c.Authentication.RequestHeader = &h }
}

// aggregated makes it the configuration of an aggregated API server.
func aggregated(c *config.APIServer) {
	c.Source, c.Authentication = "wardle", config.Authentication{
		ClientCA: true, RequestHeader: &config.RequestHeader{UIDHeaders: []string{"u"}, GroupHeaders: []string{"g"},
			ExtraPrefixes: []string{"x"}},
	}
}

func issuers(j ...config.JWT) func(*config.APIServer) {
	return func(c *config.APIServer) { c.Authentication.JWT = j }
}

// of15 returns a server of version 1.5 with nothing but what change gives it.
func of15(change func(*config.Authentication)) *config.APIServer {
	c := &config.APIServer{Minor: 5}
	change(&c.Authentication)
	return c
}

func user(name, uid string, groups ...string) event.User {
	return event.User{Username: name, UID: uid, Groups: groups}
}

func withExtra(u event.User, kv ...string) event.User {
	u.Extra = extra(kv...)
	return u
}

// TestUnion asks configured authenticators whom an identity can come from, and for what the
// configuration contradicts it.
func TestUnion(t *testing.T) {
	corp := config.JWT{Issuer: "https://corp", Username: config.Claim{Claim: "sub", Prefix: "corp:"}, Groups: config.Claim{Claim: "groups",
		Prefix: "corp:"},
		UserRules: []config.Rule{{Expression: "!user.groups.exists(g, g.startsWith('system:'))"},
			{Expression: "user.username != 'corp:root'"}}}
	legacy := event.Pairs{{Key: AnnotationLegacyToken, Value: "x"}, {Key: AnnotationLegacyAuto, Value: "api-token-x"}}
	loop := user(UserLoopback, "u", GroupAuthenticated, GroupMasters)
	cases := []struct {
		name           string
		cfg            *config.APIServer
		user           event.User
		uri            string
		ip             string
		notes          event.Pairs
		want           []string // explained by
		contradictions []string
	}{
		{name: "loopback", cfg: current(), user: loop, ip: "127.0.0.1", want: []string{ByLoopback}},
		{name: "loopback from elsewhere", cfg: current(), user: loop, ip: "192.0.2.1", contradictions: []string{ContradictionLoopback,
			ContradictionUnattributed}},

		{name: "loopback of a server that listens on one address", cfg: with(func(c *config.APIServer) {
			c.Authentication.BindAddress = "192.0.2.10"
		}), user: loop, ip: "192.0.2.10", want: []string{ByLoopback}},
		{name: "insecure port", cfg: with(func(c *config.APIServer) { c.Minor, c.Authentication.Insecure = 17, true }),
			user: user(UserUnsecured, "", GroupMasters, GroupAuthenticated), want: []string{ByInsecure}},
		{name: "insecure port, closed", cfg: with(func(c *config.APIServer) { c.Minor = 17 }), user: user(UserUnsecured, "", GroupMasters,
			GroupAuthenticated), want: []string{ByX509}},
		{name: "insecure port, since it is gone", cfg: current(), user: user(UserUnsecured, "", GroupMasters, GroupAuthenticated),
			contradictions: []string{ContradictionUnattributed}},

		{name: "token file", cfg: current(), user: user("alice", "u1", "devs", "ops", GroupAuthenticated), want: []string{ByTokenFile}},
		{name: "token file, second row of the name", cfg: current(), user: user("alice", "u2", GroupAuthenticated),
			want: []string{ByTokenFile}},
		{name: "token file, other uid", cfg: current(), user: user("bot", "u9", GroupAuthenticated),
			contradictions: []string{ContradictionStaticUID, ContradictionUnattributed}},
		{name: "token file, other groups", cfg: current(), user: user("bot", "u3", "wheel", GroupAuthenticated),
			contradictions: []string{ContradictionStaticGroups, ContradictionUnattributed}},
		{name: "token file, groups in another order", cfg: current(), user: user("alice", "u1", "ops", "devs", GroupAuthenticated),
			contradictions: []string{ContradictionStaticGroups, ContradictionUnattributed}},
		{name: "token file, no row", cfg: current(), user: user("mallory", "", GroupAuthenticated),
			contradictions: []string{ContradictionStaticRow, ContradictionUnattributed}},
		{name: "token file not given", cfg: with(func(c *config.APIServer) {
			c.Authentication.TokenFile = &config.StaticUsers{Unknown: "token file"}
		}),
			user: user("mallory", "", GroupAuthenticated), want: []string{ByTokenFile}},
		{name: "authentication not known", cfg: config.Unknown("nothing given"), user: user("mallory", "", GroupAuthenticated),
			want: []string{ByRequestHeader, ByBasicAuth, ByKeystone, ByTokenFile, ByJWT, ByWebhook, ByAnyToken}},
		{name: "case 25: system:authenticated given is not added again", cfg: current(), user: user("root", "u4", GroupAuthenticated,
			"wheel"), want: []string{ByTokenFile}},
		{name: "case 25: added again", cfg: current(), user: user("root", "u4", GroupAuthenticated, "wheel", GroupAuthenticated),
			contradictions: []string{ContradictionGroupDuplicate, ContradictionStaticGroups, ContradictionUnattributed}},
		{name: "case 25: 1.5 adds it again", cfg: of15(func(a *config.Authentication) {
			a.TokenFile = &config.StaticUsers{Users: []config.StaticUser{{Name: "root", UID: "u4",
				Groups: []string{GroupAuthenticated, "wheel"}}}}
		}), user: user("root", "u4", GroupAuthenticated, "wheel", GroupAuthenticated), want: []string{ByTokenFile}},
		{name: "case 26: service account by the token file", cfg: current(), user: user("system:serviceaccount:shop:api", "u5",
			GroupAuthenticated),
			want: []string{ByTokenFile}, contradictions: []string{ContradictionSAGroups, ContradictionSANoCredential}},

		{name: "certificate", cfg: current(), user: withExtra(user("alice", "", "devs", GroupAuthenticated), event.ExtraCredentialID,
			certID), want: []string{ByX509}},
		{name: "certificate with a uid", cfg: current(), user: withExtra(user("alice", "u", "devs", GroupAuthenticated),
			event.ExtraCredentialID, certID), want: []string{ByX509}},
		{name: "certificate with a uid, switched off", cfg: with(func(c *config.APIServer) {
			c.Gates = map[string]bool{"AllowParsingUserUIDFromCertAuth": false}
		}),
			user:           withExtra(user("alice", "u", "devs", GroupAuthenticated), event.ExtraCredentialID, certID),
			contradictions: []string{ContradictionUnattributed}},
		{name: "certificate without a client CA", cfg: with(func(c *config.APIServer) { c.Authentication.ClientCA = false }),
			user:           withExtra(user("alice", "", GroupAuthenticated), event.ExtraCredentialID, certID),
			contradictions: []string{ContradictionUnattributed}},
		{name: "certificate before 1.32", cfg: with(func(c *config.APIServer) { c.Minor = 31 }), user: user("carol", "", "devs",
			GroupAuthenticated), want: []string{ByX509}},

		{name: "bound token", cfg: current(), user: account(podToken()), want: []string{ByBoundToken}},
		{name: "bound or legacy token before 1.32", cfg: with(func(c *config.APIServer) { c.Minor = 24 }), user: account(nil),
			want: []string{ByLegacyToken, ByBoundToken}},
		{name: "case 30: legacy token", cfg: current(), user: account(nil), notes: legacy, want: []string{ByLegacyToken},
			contradictions: []string{ContradictionSALegacyToken}},
		{name: "service account tokens off", cfg: with(func(c *config.APIServer) { c.Authentication.ServiceAccount.Enabled = false }),
			user: account(podToken()), contradictions: []string{ContradictionUnattributed}},
		{name: "half a pod", cfg: current(), user: account(extra(event.ExtraCredentialID, tokenID, event.ExtraPodName, "p")),
			contradictions: []string{ContradictionSAPodPartial, ContradictionUnattributed}},

		{name: "bootstrap token", cfg: current(), user: user("system:bootstrap:abcdef", "", GroupBootstrappers, GroupAuthenticated),
			want: []string{ByBootstrap}},
		{name: "bootstrap tokens off", cfg: with(func(c *config.APIServer) { c.Authentication.Bootstrap = false }),
			user:           user("system:bootstrap:abcdef", "", GroupBootstrappers, GroupAuthenticated),
			contradictions: []string{ContradictionUnattributed}},

		{name: "front proxy", cfg: with(frontProxy(config.RequestHeader{GroupHeaders: []string{"g"}, ExtraPrefixes: []string{"x"}})),
			user: withExtra(user("sso-alice", "", "sso", GroupAuthenticated), "scopes", "read"), want: []string{ByRequestHeader}},
		{name: "front proxy without a header for uids", cfg: with(frontProxy(config.RequestHeader{GroupHeaders: []string{"g"}})),
			user: user("sso-alice", "u", "sso", GroupAuthenticated), contradictions: []string{ContradictionStaticRow,
				ContradictionUnattributed}},
		{name: "front proxy without extra", cfg: with(frontProxy(config.RequestHeader{})),
			user:           withExtra(user("sso-alice", "", GroupAuthenticated), "scopes", "read"),
			contradictions: []string{ContradictionUnattributed}},
		{name: "front proxy is not an excuse for a known user", cfg: with(frontProxy(config.RequestHeader{GroupHeaders: []string{"g"}})),
			user: user("bot", "u3", "wheel", GroupAuthenticated), want: nil, contradictions: []string{ContradictionStaticGroups,
				ContradictionUnattributed}},
		{name: "a certain explanation hides the front proxy", cfg: with(frontProxy(config.RequestHeader{GroupHeaders: []string{"g"},
			UIDHeaders: []string{"u"}})),
			user: user("bot", "u3", GroupAuthenticated), want: []string{ByTokenFile}},

		{name: "aggregated server: a certificate's user comes through the front proxy", cfg: with(aggregated),
			user: withExtra(user("alice", "", "devs", GroupAuthenticated), event.ExtraCredentialID, certID),
			want: []string{ByRequestHeader, ByX509}},
		{name: "aggregated server: so does the apiserver itself", cfg: with(aggregated), user: loop, want: []string{ByRequestHeader}},
		{name: "aggregated server: and who is anonymous there", cfg: with(aggregated), user: user(UserAnonymous, "", GroupUnauthenticated),
			want: []string{ByRequestHeader}},
		{name: "aggregated server: the aggregator's own requests", cfg: with(aggregated), user: user("system:kube-aggregator", "",
			GroupMasters, GroupAuthenticated), want: []string{ByRequestHeader}},

		{name: "issuer", cfg: with(issuers(corp)), user: withExtra(user("corp:alice", "", "corp:devs", GroupAuthenticated),
			event.ExtraCredentialID, "JTI=1"), want: []string{ByJWT}},
		{name: "issuer, user without its prefix", cfg: with(issuers(corp)), user: withExtra(user("carol", "", GroupAuthenticated),
			event.ExtraCredentialID, "JTI=1"),
			contradictions: []string{ContradictionOIDCPrefix, ContradictionUnattributed}},
		{name: "issuer, group without its prefix", cfg: with(issuers(corp)), user: withExtra(user("corp:alice", "", "devs",
			GroupAuthenticated), event.ExtraCredentialID, "JTI=1"),
			contradictions: []string{ContradictionOIDCPrefix, ContradictionUnattributed}},
		{name: "issuer, user refused by a rule", cfg: with(issuers(corp)), user: withExtra(user("corp:root", "", GroupAuthenticated),
			event.ExtraCredentialID, "JTI=1"),
			contradictions: []string{ContradictionOIDCRule, ContradictionUnattributed}},
		{name: "issuer, extra that no mapping gives", cfg: with(issuers(corp)), user: withExtra(user("corp:alice", "", GroupAuthenticated),
			event.ExtraCredentialID, "JTI=1", "tier", "gold"),
			contradictions: []string{ContradictionOIDCPrefix, ContradictionUnattributed}},
		{name: "issuer with an expression for names",
			cfg:  with(issuers(config.JWT{Issuer: "i", Username: config.Claim{Expression: "claims.sub"}})),
			user: user("whoever", "", GroupAuthenticated), want: []string{ByJWT}},
		{name: "issuer with a uid and extra", cfg: with(issuers(config.JWT{Issuer: "i", Username: config.Claim{Claim: "sub"},
			UID: config.Claim{Claim: "oid"}, Extra: []config.Extra{{Key: "example.org/tier"}}})),
			user: withExtra(user("whoever", "7", GroupAuthenticated), "example.org/tier", "gold"), want: []string{ByJWT}},
		{name: "rules over groups see them without the apiserver's own",
			cfg: with(issuers(config.JWT{Issuer: "i", Username: config.Claim{Claim: "sub", Prefix: "i:"},
				Groups:    config.Claim{Claim: "g", Prefix: "i:"},
				UserRules: []config.Rule{{Expression: "user.groups.size() == 1"}}})), user: user("i:x", "", "i:one", GroupAuthenticated),
			want: []string{ByJWT}},

		{name: "webhook", cfg: with(func(c *config.APIServer) { c.Authentication.Webhook = &config.TokenWebhook{} }),
			user: withExtra(user("hooked", "7", "a", GroupAuthenticated), "k", "v"), want: []string{ByWebhook}},

		{name: "1.5: basic auth, last row", cfg: of15(func(a *config.Authentication) {
			a.BasicAuth = &config.StaticUsers{Users: []config.StaticUser{{Name: "alice", UID: "1"}, {Name: "alice", UID: "2",
				Groups: []string{"a", " b"}}}}
		}), user: user("alice", "2", "a", " b", GroupAuthenticated), want: []string{ByBasicAuth}},
		{name: "1.5: basic auth, earlier row", cfg: of15(func(a *config.Authentication) {
			a.BasicAuth = &config.StaticUsers{Users: []config.StaticUser{{Name: "alice", UID: "1"}, {Name: "alice", UID: "2"}}}
		}), user: user("alice", "1", GroupAuthenticated), contradictions: []string{ContradictionUnattributed}},
		{name: "1.5: keystone", cfg: of15(func(a *config.Authentication) { a.Keystone = "https://keystone" }), user: user("dave", "",
			GroupAuthenticated), want: []string{ByKeystone}},
		{name: "1.5: keystone gives no groups", cfg: of15(func(a *config.Authentication) { a.Keystone = "https://keystone" }),
			user:           user("dave", "", "g", GroupAuthenticated),
			contradictions: []string{ContradictionUnattributed}},
		{name: "1.5: keystone gives no uid", cfg: of15(func(a *config.Authentication) { a.Keystone = "https://keystone" }),
			user:           user("dave", "7", GroupAuthenticated),
			contradictions: []string{ContradictionUnattributed}},
		{name: "1.5: any token", cfg: of15(func(a *config.Authentication) { a.AnyToken = true }), user: user("eve", "", "g1", "g2",
			GroupAuthenticated),
			want: []string{ByAnyToken}, contradictions: []string{ContradictionAnyToken}},
		{name: "1.5: any token with a uid", cfg: of15(func(a *config.Authentication) { a.AnyToken = true }), user: user("eve", "7",
			GroupAuthenticated), contradictions: []string{ContradictionUnattributed}},
		{name: "1.5: basic auth before the token file", cfg: of15(func(a *config.Authentication) {
			a.BasicAuth = &config.StaticUsers{Users: []config.StaticUser{{Name: "alice", UID: "1"}}}
			a.TokenFile = &config.StaticUsers{Users: []config.StaticUser{{Name: "alice", UID: "1"}}}
		}), user: user("alice", "1", GroupAuthenticated), want: []string{ByBasicAuth, ByTokenFile}},

		{name: "case 20: anonymous", cfg: current(), user: user(UserAnonymous, "", GroupUnauthenticated), want: []string{ByAnonymous}},
		{name: "anonymous switched off", cfg: with(func(c *config.APIServer) { c.Authentication.Anonymous.Enabled = false }),
			user:           user(UserAnonymous, "", GroupUnauthenticated),
			contradictions: []string{ContradictionAnonymousDisabled}},
		{name: "anonymous not known", cfg: with(func(c *config.APIServer) {
			c.Authentication.Anonymous = config.Anonymous{Unknown: "file"}
		}), user: user(UserAnonymous, "", GroupUnauthenticated),
			want: []string{ByAnonymous}},
		{name: "case 24: anonymous for its path", cfg: with(func(c *config.APIServer) {
			c.Authentication.Anonymous.Paths = []string{"/livez"}
		}),
			user: user(UserAnonymous, "", GroupUnauthenticated), uri: "/livez?verbose", want: []string{ByAnonymous}},
		{name: "case 24: anonymous for a decoded path", cfg: with(func(c *config.APIServer) {
			c.Authentication.Anonymous.Paths = []string{"/livez"}
		}),
			user: user(UserAnonymous, "", GroupUnauthenticated), uri: "/live%7A", want: []string{ByAnonymous}},
		{name: "case 24: anonymous for a path beyond", cfg: with(func(c *config.APIServer) {
			c.Authentication.Anonymous.Paths = []string{"/livez"}
		}),
			user: user(UserAnonymous, "", GroupUnauthenticated), uri: "/livez/", contradictions: []string{ContradictionAnonymousPath}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := by(tc.user)
			e.Annotations = tc.notes
			if tc.uri != "" {
				e.RequestURI = tc.uri
			}
			if tc.ip != "" {
				e.SourceIPs = []string{tc.ip}
			}
			ev := New(Config{})
			r := ev.Evaluate(e, tc.cfg, nil)
			if !slices.Equal(r.Explained, tc.want) {
				t.Errorf("explained by %v, want %v", r.Explained, tc.want)
			}
			if got := contradictionNames(r); !slices.Equal(got, tc.contradictions) {
				t.Errorf("found %v, want %v", r.Contradictions, tc.contradictions)
			}
			for _, a := range ev.Answers(e, tc.cfg, nil) {
				if (a.Why == "") != a.Certain {
					t.Errorf("%s: certain %t, why %q", a.Authenticator, a.Certain, a.Why)
				}
				if slices.Contains(r.Explained, a.Authenticator) && !a.Possible {
					t.Errorf("%s explains and is ruled out: %s", a.Authenticator, a.Why)
				}
			}
		})
	}
}

// TestRefusals: cases 18, 19 and 22 of requests nobody was authenticated for.
func TestRefusals(t *testing.T) {
	cases := []struct {
		name, message  string
		reason         string
		attempted      []string
		contradictions []string
	}{
		{"case 18: the usual answer", "Unauthorized", RefusedUnknown, nil, nil},
		{"case 19: an answer in text", "Authentication failed, attempted: bearer\n", RefusedCredentials, []string{"bearer"}, nil},
		{"several kinds", "Authentication failed, attempted: basic, bearer, access_token, x509", RefusedCredentials,
			[]string{"basic", "bearer", "access_token", "x509"}, nil},
		{"none, though anonymous requests are let in", "Authentication failed, no credentials provided", RefusedNoCredentials, nil,
			[]string{ContradictionAnonymousNotTaken}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := by(event.User{})
			e.Stage, e.ResponseStatus = event.StageResponseStarted, &event.Status{Code: 401, Message: tc.message}
			reason, attempted, ok := Refusal(e)
			if !ok || reason != tc.reason || !slices.Equal(attempted, tc.attempted) {
				t.Errorf("got %s %v %t", reason, attempted, ok)
			}
			r := New(Config{}).Evaluate(e, current(), nil)
			if !slices.Equal(contradictionNames(r), tc.contradictions) || r.Explained != nil {
				t.Errorf("found %v, explained by %v", r.Contradictions, r.Explained)
			}
		})
	}
	if _, _, ok := Refusal(by(account(podToken()))); ok {
		t.Error("an accepted request is not a refusal")
	}
}
