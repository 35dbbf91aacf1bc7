package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/golden"
	"github.com/retrial-io/retrial/verdict"
)

const (
	oldUID   = "6f1d0a52-0000-4000-8000-00000000000a"
	newUID   = "6f1d0a52-0000-4000-8000-00000000000b"
	podUID   = "6f1d0a52-0000-4000-8000-00000000000c"
	nodeUID  = "6f1d0a52-0000-4000-8000-00000000000d"
	issuedID = "JTI=837044ff-be3c-44f3-a302-a28a6bf4377a"
	certID   = "X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is a state made of audit events, complete since the cluster was made an hour before
// noon.
type cluster struct {
	t  *testing.T
	s  *state.State
	rv int
}

func born(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, s: state.New("test"), rv: 100}
	c.write(-time.Hour, "create", "/api/v1/namespaces", 201, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system",`+
		`"uid":"ks",RV}}`, "")
	return c
}

// write applies one answered write, so long after noon.
func (c *cluster) write(after time.Duration, verb, uri string, code int, object, annotations string) {
	c.t.Helper()
	c.rv++
	if object != "" {
		object = `,"responseObject":` + strings.ReplaceAll(object, "RV", fmt.Sprintf(`"resourceVersion":"%d"`, c.rv))
	}
	when := func(d time.Duration) string { return noon.Add(d).Format("2006-01-02T15:04:05.000000Z") }
	line := fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"w%d",`+
		`"stage":"ResponseComplete","requestURI":%q,"verb":%q,"user":{"username":"admin","groups":["system:authenticated"]},`+
		`"sourceIPs":["192.0.2.1"],"responseStatus":{"metadata":{},"code":%d}%s,"requestReceivedTimestamp":%q,"stageTimestamp":%q,`+
		`"annotations":{%s}}`,
		c.rv, uri, verb, code, object, when(after), when(after+time.Millisecond), annotations)
	e, err := event.Decode([]byte(line))
	if err != nil {
		c.t.Fatal(err)
	}
	obs, err := observe.FromEvent(e)
	if err != nil || len(obs) == 0 {
		c.t.Fatalf("%s %s: %d observations, %v", verb, uri, len(obs), err)
	}
	c.s.Apply(obs...)
}

func (c *cluster) account(after time.Duration, uid string) {
	c.write(after, "create", "/api/v1/namespaces/shop/serviceaccounts", 201,
		`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"api","namespace":"shop","uid":"`+uid+`",RV}}`, "")
}

func (c *cluster) accountGone(after time.Duration, uid string) {
	c.write(after, "delete", "/api/v1/namespaces/shop/serviceaccounts/api", 200,
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"api","kind":"serviceaccounts","uid":"`+uid+
			`"}}`, "")
}

func (c *cluster) token(after time.Duration) {
	c.write(after, "create", "/api/v1/namespaces/shop/serviceaccounts/api/token", 201, "",
		`"authentication.kubernetes.io/issued-credential-id":"`+issuedID+`"`)
}

func podObject(more string) string {
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"api-0","namespace":"shop","uid":"` + podUID + `",RV` + more +
		`},"spec":{"serviceAccountName":"api","nodeName":"n1"},"status":{}}`
}

// pod makes node, account, token and a running pod.
func (c *cluster) pod() {
	c.write(-50*time.Minute, "create", "/api/v1/nodes", 201, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"`+
		nodeUID+`",RV}}`, "")
	c.account(-49*time.Minute, oldUID)
	c.write(-48*time.Minute, "create", "/api/v1/namespaces/shop/pods", 201, podObject(""), "")
	c.token(-47 * time.Minute)
}

// request returns an event received at noon.
func request(u event.User) *event.Event {
	return &event.Event{
		Level: event.LevelMetadata, AuditID: "id", Verb: "get", RequestURI: "/api/v1/namespaces/shop/configmaps/c",
		Stage: event.StageResponseComplete, User: u,
		SourceIPs: []string{"192.0.2.7"}, RequestReceivedTimestamp: noon, StageTimestamp: noon.Add(time.Millisecond),
		ResponseStatus: &event.Status{Code: 200}, Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: "allow"},
			{Key: event.AnnotationReason}},
	}
}

func extraOf(kv ...string) (x event.Extra) {
	for i := 0; i < len(kv); i += 2 {
		x = append(x, event.ExtraEntry{Key: kv[i], Values: []string{kv[i+1]}})
	}
	return x
}

func accountUser(uid string, kv ...string) event.User {
	return event.User{Username: "system:serviceaccount:shop:api", UID: uid, Groups: []string{"system:serviceaccounts",
		"system:serviceaccounts:shop", "system:authenticated"}, Extra: extraOf(kv...)}
}

func podUser() event.User {
	return accountUser(oldUID, event.ExtraCredentialID, issuedID, event.ExtraNodeName, "n1", event.ExtraNodeUID, nodeUID,
		event.ExtraPodName, "api-0", event.ExtraPodUID, podUID)
}

// apiserver returns the configuration of a current server; change may be nil.
func apiserver(change func(*config.Authentication)) *config.APIServer {
	cfg := &config.APIServer{Digest: "test", Minor: 36, Authentication: config.Authentication{
		Anonymous: config.Anonymous{Enabled: true}, ClientCA: true, Bootstrap: true,
		ServiceAccount: config.ServiceAccount{Enabled: true, Lookup: true},
	}, Authorization: config.Authorization{Authorizers: []config.Authorizer{{Type: config.Node, Name: "node"},
		{Type: config.RBAC, Name: "rbac"}}}}
	if change != nil {
		change(&cfg.Authentication)
	}
	return cfg
}

func engine(h *config.History) *replay.Engine {
	if h == nil {
		return replay.New(replay.Config{})
	}
	return replay.New(replay.Config{Apiserver: func(string, string) *config.History { return h }})
}

func always(cfg *config.APIServer) *config.History {
	h := &config.History{}
	h.Add(time.Time{}, cfg)
	return h
}

// TestIdentityConformance: the conformance cases of authentication, each through the engine.
func TestIdentityConformance(t *testing.T) {
	anonymous := event.User{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	refused := func(message string) *event.Event {
		e := request(event.User{})
		e.Stage, e.Annotations = event.StageResponseStarted, nil
		e.ResponseStatus = &event.Status{Code: 401, Message: message, Reason: "Unauthorized"}
		return e
	}
	path := func(e *event.Event, uri string) *event.Event { e.RequestURI = uri; return e }
	tokenFile := func(rows ...config.StaticUser) func(*config.Authentication) {
		return func(a *config.Authentication) { a.TokenFile = &config.StaticUsers{File: "tokens.csv", Users: rows} }
	}
	limited := apiserver(func(a *config.Authentication) { a.Anonymous.Paths = []string{"/livez"} })
	twice := event.User{Username: "root", Groups: []string{"system:authenticated", "wheel", "system:authenticated"}}
	once := event.User{Username: "root", Groups: []string{"system:authenticated", "wheel"}}
	fromFile := event.User{Username: "system:serviceaccount:shop:api", UID: "u5", Groups: []string{"system:authenticated"}}
	legacy := request(accountUser(oldUID))
	legacy.Annotations = event.Pairs{{Key: authn.AnnotationLegacyToken, Value: "system:serviceaccount:shop:api"},
		{Key: authn.AnnotationLegacyManual, Value: "old"}}
	impersonating := func(u event.User) *event.Event {
		e := request(event.User{Username: "carol", Groups: []string{"ops", "system:authenticated"},
			Extra: extraOf(event.ExtraCredentialID, certID)})
		e.ImpersonatedUser = &u
		return e
	}
	review := request(event.User{Username: "alice", Groups: []string{"system:authenticated"},
		Extra: extraOf(event.ExtraCredentialID, certID)})
	review.Verb, review.RequestURI = "create", "/apis/authentication.k8s.io/v1/tokenreviews"
	review.ResponseObject = []byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"user":{},` +
		`"error":"invalid bearer token"}}`)
	agent := request(podUser())
	agent.UserAgent = strings.Repeat("a", 1024) + "...TRUNCATED"

	cases := []struct {
		name       string
		cfg        *config.APIServer
		state      func(*cluster)
		event      *event.Event
		explained  []string
		credential string
		identity   []string
		class      string
	}{
		{name: "case 18: bad bearer", cfg: apiserver(nil), event: refused("Unauthorized"), class: verdict.ClassUnauthenticated},
		{name: "case 19: bad bearer, answered in text", cfg: apiserver(nil), event: refused("Authentication failed, attempted: bearer"),
			class: verdict.ClassUnauthenticated},
		{name: "case 20: no credential", cfg: apiserver(nil), event: request(anonymous), explained: []string{authn.ByAnonymous}},
		{name: "case 21: a Basic header nobody looks at", cfg: apiserver(nil), event: request(anonymous),
			explained: []string{authn.ByAnonymous}},
		{name: "case 22: certificate of an unknown CA", cfg: apiserver(nil), event: refused("Unauthorized"),
			class: verdict.ClassUnauthenticated},
		{name: "case 23: certificate, beside a bad bearer", cfg: apiserver(nil),
			event: request(event.User{Username: "alice", Groups: []string{"devs", "system:authenticated"},
				Extra: extraOf(event.ExtraCredentialID, certID)}),
			explained: []string{authn.ByX509}, credential: certID},
		{name: "case 24: anonymous where it is let in", cfg: limited, event: path(request(anonymous), "/livez"),
			explained: []string{authn.ByAnonymous}},
		{name: "case 24: anonymous one slash further", cfg: limited, event: path(request(anonymous), "/livez/"),
			identity: []string{authn.ContradictionAnonymousPath}},
		{name: "case 24: refused one slash further", cfg: limited, event: path(refused("Authentication failed, no credentials provided"),
			"/livez/"), class: verdict.ClassUnauthenticated},
		{name: "case 25: system:authenticated is not added twice",
			cfg:   apiserver(tokenFile(config.StaticUser{Name: "root", Groups: []string{"system:authenticated", "wheel"}})),
			event: request(once), explained: []string{authn.ByTokenFile}},
		{name: "case 25: twice on a current server",
			cfg:      apiserver(tokenFile(config.StaticUser{Name: "root", Groups: []string{"system:authenticated", "wheel"}})),
			event:    request(twice),
			identity: []string{authn.ContradictionGroupDuplicate, authn.ContradictionStaticGroups, authn.ContradictionUnattributed}},
		{name: "case 25: twice on 1.5", cfg: &config.APIServer{Digest: "15", Minor: 5,
			Authentication: config.Authentication{TokenFile: &config.StaticUsers{Users: []config.StaticUser{{Name: "root",
				Groups: []string{"system:authenticated", "wheel"}}}}}},
			event: request(twice), explained: []string{authn.ByTokenFile}},
		{name: "case 26: a service account's name by the token file",
			cfg:   apiserver(tokenFile(config.StaticUser{Name: "system:serviceaccount:shop:api", UID: "u5"})),
			state: func(c *cluster) { c.account(-time.Minute*30, oldUID) }, event: request(fromFile),
			explained: []string{authn.ByTokenFile}, identity: []string{authn.ContradictionSAGroups, authn.ContradictionSANoCredential,
				authn.ContradictionSAUID}},
		{name: "case 27: the old uid five seconds after", cfg: apiserver(nil), state: func(c *cluster) {
			c.account(-30*time.Minute, oldUID)
			c.token(-29 * time.Minute)
			c.accountGone(-6*time.Second, oldUID)
			c.account(-5*time.Second, newUID)
		}, event: request(accountUser(oldUID, event.ExtraCredentialID, issuedID)), explained: []string{authn.ByBoundToken},
			credential: issuedID},
		{name: "case 27: the old uid two minutes after", cfg: apiserver(nil), state: func(c *cluster) {
			c.account(-30*time.Minute, oldUID)
			c.token(-29 * time.Minute)
			c.accountGone(-121*time.Second, oldUID)
			c.account(-120*time.Second, newUID)
		}, event: request(accountUser(oldUID, event.ExtraCredentialID, issuedID)), credential: issuedID,
			identity: []string{authn.ContradictionSAUID, authn.ContradictionUnattributed}},
		{name: "case 28: the pod is there", cfg: apiserver(nil), state: (*cluster).pod, event: request(podUser()),
			explained: []string{authn.ByBoundToken}, credential: issuedID},
		{name: "case 28: thirty seconds past its end", cfg: apiserver(nil), state: func(c *cluster) {
			c.pod()
			c.write(-time.Minute, "delete", "/api/v1/namespaces/shop/pods/api-0", 200,
				podObject(`,"deletionTimestamp":"2026-03-01T11:59:30Z","deletionGracePeriodSeconds":30`), "")
		}, event: request(podUser()), explained: []string{authn.ByBoundToken}, credential: issuedID},
		{name: "case 28: two minutes past its end", cfg: apiserver(nil), state: func(c *cluster) {
			c.pod()
			c.write(-150*time.Second, "delete", "/api/v1/namespaces/shop/pods/api-0", 200,
				podObject(`,"deletionTimestamp":"2026-03-01T11:58:00Z","deletionGracePeriodSeconds":30`), "")
		}, event: request(podUser()), credential: issuedID, identity: []string{authn.ContradictionSAPodDeleted,
			authn.ContradictionUnattributed}},
		{name: "case 28: gone for fifteen seconds", cfg: apiserver(nil), state: func(c *cluster) {
			c.pod()
			c.write(-15*time.Second, "delete", "/api/v1/namespaces/shop/pods/api-0", 200,
				podObject(`,"deletionTimestamp":"2026-03-01T11:59:45Z","deletionGracePeriodSeconds":0`), "")
		}, event: request(podUser()), credential: issuedID, identity: []string{authn.ContradictionSAPodDeleted,
			authn.ContradictionUnattributed}},
		{name: "case 28: gone for five seconds", cfg: apiserver(nil), state: func(c *cluster) {
			c.pod()
			c.write(-5*time.Second, "delete", "/api/v1/namespaces/shop/pods/api-0", 200,
				podObject(`,"deletionTimestamp":"2026-03-01T11:59:55Z","deletionGracePeriodSeconds":0`), "")
		}, event: request(podUser()), explained: []string{authn.ByBoundToken}, credential: issuedID},
		{name: "case 29: a token that was never issued", cfg: apiserver(nil), state: (*cluster).pod,
			event:      request(accountUser(oldUID, event.ExtraCredentialID, "JTI=3a4df")),
			credential: "JTI=3a4df", identity: []string{authn.ContradictionJTIUnissued, authn.ContradictionUnattributed}},
		{name: "case 29: in a log that shows no issue of tokens", cfg: apiserver(nil), state: func(c *cluster) {
			c.account(-30*time.Minute, oldUID)
		},
			event: request(accountUser(oldUID, event.ExtraCredentialID, "JTI=3a4df")), credential: "JTI=3a4df",
			explained: []string{authn.ByBoundToken}},
		{name: "case 30: legacy token", cfg: apiserver(nil), state: func(c *cluster) {
			c.account(-30*time.Minute, oldUID)
			c.write(-29*time.Minute, "create", "/api/v1/namespaces/shop/secrets", 201,
				`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"old","namespace":"shop","uid":"s",RV,`+
					`"annotations":{"kubernetes.io/service-account.name":"api","kubernetes.io/service-account.uid":"`+oldUID+
					`"}},"type":"kubernetes.io/service-account-token"}`, "")
		}, event: legacy, explained: []string{authn.ByLegacyToken}, credential: "Secret=shop/old",
			identity: []string{authn.ContradictionSALegacyToken}},
		{name: "case 31: system:masters by a certificate", cfg: apiserver(nil),
			event: request(event.User{Username: "root", Groups: []string{"system:masters", "system:authenticated"},
				Extra: extraOf(event.ExtraCredentialID, certID)}),
			explained: []string{authn.ByX509}, credential: certID, identity: []string{authn.ContradictionMastersExternal}},
		{name: "case 46: the identity is the requestor's, not whom it impersonates", cfg: apiserver(nil),
			event:     impersonating(event.User{Username: "alice", Groups: []string{"devs", "system:authenticated"}}),
			explained: []string{authn.ByX509}, credential: certID},
		{name: "case 47: an impersonated service account has no token and needs none", cfg: apiserver(nil), state: func(c *cluster) {
			c.account(-30*time.Minute, oldUID)
		},
			event: impersonating(event.User{Username: "system:serviceaccount:shop:api", Groups: []string{"system:serviceaccounts",
				"system:serviceaccounts:shop", "system:authenticated"}}),
			explained: []string{authn.ByX509}, credential: certID},
		{name: "case 52: an impersonated node lacks its group", cfg: apiserver(nil),
			event:     impersonating(event.User{Username: "system:node:n1", Groups: []string{"system:authenticated"}}),
			explained: []string{authn.ByX509}, credential: certID},
		{name: "case 64: the user of a review is its sender, not whom it finds", cfg: apiserver(nil), event: review,
			explained: []string{authn.ByX509}, credential: certID},
		{name: "case 68: a shortened user agent", cfg: apiserver(nil), state: (*cluster).pod, event: agent,
			explained: []string{authn.ByBoundToken}, credential: issuedID},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := born(t)
			if tc.state != nil {
				tc.state(c)
			}
			v := engine(always(tc.cfg)).Replay(tc.event, c.s)
			known := golden.Constants(t, "replay/authn/contradictions.go", "Contradiction")
			var identity []string
			for _, f := range v.Identity {
				if slices.Contains(known, f) {
					identity = append(identity, f)
				}
			}
			if !slices.Equal(identity, tc.identity) {
				t.Errorf("found %v %q, want %v", identity, v.Evidence, tc.identity)
			}
			if len(v.Evidence) != len(v.Identity) || slices.Contains(v.Evidence, "") {
				t.Errorf("%v with evidence %q", v.Identity, v.Evidence)
			}
			if !slices.Equal(v.Explained, tc.explained) || v.Credential != tc.credential {
				t.Errorf("explained by %v with %q, want %v with %q", v.Explained, v.Credential, tc.explained, tc.credential)
			}
			if tc.class != "" && v.Class != tc.class {
				t.Errorf("class %q, want %q", v.Class, tc.class)
			}
		})
	}
}

// TestIdentityWhileReloading: in the minute in which a running server may not have read its
// configuration again, only what contradicts both is found.
func TestIdentityWhileReloading(t *testing.T) {
	anonymous := request(event.User{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}})
	off := apiserver(func(a *config.Authentication) { a.Anonymous.Enabled = false })
	off.Digest = "off"
	cases := []struct {
		name  string
		ago   time.Duration
		first *config.APIServer
		want  []string
	}{
		{"half a minute after they were switched off", 30 * time.Second, apiserver(nil), nil},
		{"two minutes after", 2 * time.Minute, apiserver(nil), []string{authn.ContradictionAnonymousDisabled}},
		{"switched off before and after", 30 * time.Second, off, []string{authn.ContradictionAnonymousDisabled}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := always(tc.first)
			h.AddReload(noon.Add(-tc.ago), off)
			if v := engine(h).Replay(anonymous, born(t).s); !slices.Equal(v.Identity, tc.want) {
				t.Errorf("found %v, want %v", v.Identity, tc.want)
			}
		})
	}
}
