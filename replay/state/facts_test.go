package state_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// told is a State that audit events are told to.
type told struct {
	*state.State
	t *testing.T
}

func tell(t *testing.T, born bool) *told {
	s := &told{state.New("c"), t}
	if born {
		s.event("11:00:00", "create", "/api/v1/namespaces", 201, "",
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ks","resourceVersion":"1"}}`)
	}
	return s
}

// event tells a write that took half a second, with what was recorded of its bodies.
func (s *told) event(at, verb, uri string, code int32, request, response string, annotations ...event.Pair) []state.Effect {
	s.t.Helper()
	e := &event.Event{
		Level: event.LevelMetadata, Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, AuditID: "audit-" + at,
		User: event.User{Username: "jane"}, SourceIPs: []string{"192.0.2.1", "10.0.0.7"}, ResponseStatus: &event.Status{Code: code,
			Raw: []byte(`{"metadata":{},"code":200}`)},
		RequestReceivedTimestamp: clock(s.t, at), StageTimestamp: clock(s.t, at).Add(500 * time.Millisecond), Annotations: annotations,
	}
	if strings.HasPrefix(response, `{"kind":"Status"`) {
		e.ResponseStatus.Raw = []byte(response)
	}
	if request != "" {
		e.RequestObject = []byte(request)
	}
	if response != "" {
		e.ResponseObject, e.Level = []byte(response), event.LevelRequestResponse
	}
	name := uri[strings.LastIndexByte(uri, '/')+1:]
	if verb == "create" {
		name = "made"
	}
	e.ObjectRef = &event.ObjectRef{Name: name}
	obs, err := observe.FromEvent(e)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.Apply(obs...)
}

const podsURI = "/api/v1/namespaces/a/pods"

func podJSON(name, uid, meta, spec string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":"10",`+
		`"creationTimestamp":"2026-01-02T12:00:00Z"%s},"spec":{"serviceAccountName":"sa","terminationGracePeriodSeconds":30,`+
		`"volumes":[{"name":"v","secret":{"secretName":"s"}}]%s},"status":{"phase":"Running"}}`, name, uid, meta, spec)
}

// podAt renders a pod at a moment: "present u1 sa n1 deletion=12:00:00".
func (s *told) podAt(name, at string) string {
	p, known := s.Pod("a", name, clock(s.t, at))
	out := []string{known.String()}
	for _, f := range []string{p.UID, p.ServiceAccount, p.Node} {
		if f == "" {
			f = "-"
		}
		out = append(out, f)
	}
	if !p.DeletionAt.IsZero() {
		out = append(out, "deletion="+p.DeletionAt.Format(time.TimeOnly))
	}
	return strings.Join(out, " ")
}

func (s *told) expectPod(name string, want ...string) {
	s.t.Helper()
	for i := 0; i < len(want); i += 2 {
		if got := s.podAt(name, want[i]); got != want[i+1] {
			s.t.Errorf("pod %s at %s: %s, want %s", name, want[i], got, want[i+1])
		}
	}
}

// A pod from its making to its end, and the next of its name:
//
//	made     |-|                                               |-| u2
//	bound         |-| n1
//	deleted               |-| grace 30        |-| grace 0
//	p        present, on no node, on n1, deletion=1:30, absent, present u2
//	         0    2       1:00                1:10             2:00
func TestPodLife(t *testing.T) {
	s := tell(t, true)
	s.event("12:00:00.2", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
	s.event("12:00:02", "create", podsURI+"/p/binding", 201,
		`{"kind":"Binding","metadata":{"uid":"u1"},"target":{"kind":"Node","name":"n1"}}`, "")
	s.event("12:01:00", "delete", podsURI+"/p", 200, "", podJSON("p", "u1",
		`,"deletionTimestamp":"2026-01-02T12:01:30Z","deletionGracePeriodSeconds":30`, `,"nodeName":"n1"`))
	s.event("12:01:10", "delete", podsURI+"/p", 200, "", podJSON("p", "u1",
		`,"deletionTimestamp":"2026-01-02T12:01:00Z","deletionGracePeriodSeconds":0`, `,"nodeName":"n1"`))
	s.event("12:02:00", "create", podsURI, 201, "", strings.Replace(podJSON("p", "u2", "", ""), "12:00:00Z", "12:02:00Z", 1))
	s.expectPod("p",
		"12:00:00", "absent - - -",
		"12:00:01", "present u1 sa -",
		"12:00:03", "present u1 sa n1",
		"12:01:05", "present u1 sa n1 deletion=12:01:30",
		"12:01:11", "absent - - -",
		"12:02:05", "present u2 sa -")
	p, known := s.PodByUID("u1")
	if known != state.Present || p.Name != "p" || p.Node != "n1" || !p.Bound.Equal(clock(t, "12:00:02.5")) ||
		!p.Gone.Equal(clock(t, "12:01:10.5")) || !p.DeletionAt.Equal(clock(t, "12:01:30")) {
		t.Errorf("%s %+v", known, p)
	}
	if _, known := s.PodByUID("u9"); known != state.Absent {
		t.Errorf("a pod that never was is %s", known)
	}
	for at, want := range map[string]state.Known{"12:00:01": state.Absent, "12:00:03": state.Present, "12:01:05": state.Present,
		"12:01:11": state.Absent} {
		if got := s.Related(clock(t, at), "n1", "", "secrets", "a", "s"); got != want {
			t.Errorf("at %s the secret is %s for the node, want %s", at, got, want)
		}
	}
}

// What was not recorded is not known, and nothing more than that.
func TestPodUnknowns(t *testing.T) {
	const bind = podsURI + "/p/binding"
	for name, c := range map[string]struct {
		born bool
		tell func(s *told)
		want []string
	}{
		"nothing is known": {false, func(*told) {}, []string{"12:00:00", "unknown - - -"}},
		"bound, to which node was not recorded": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "create", bind, 201, "", "")
		}, []string{"12:00:03", "present u1 sa -"}},
		"bound without a uid": {true, func(s *told) {
			s.event("12:00:02", "create", bind, 201, `{"kind":"Binding","target":{"name":"n1"}}`, "")
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
		}, []string{"12:00:01", "present u1 sa -", "12:00:03", "present u1 sa n1"}},
		"another was made, only its name was recorded": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", "")
		}, []string{"12:00:03", "absent - - -"}},
		"deleted, how was not recorded": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "delete", podsURI+"/p", 200, "", "")
		}, []string{"12:00:01", "present u1 sa -", "12:00:03", "unknown u1 sa -"}},
		"deleted, how was not recorded, but seen later": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "delete", podsURI+"/p", 200, "", "")
			s.event("12:00:05", "patch", podsURI+"/p/ephemeralcontainers", 200, "", podJSON("p", "u1", "", `,"nodeName":"n1"`))
		}, []string{"12:00:03", "present u1 sa -", "12:00:06", "present u1 sa n1"}},
		"evicted while it ran": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", `,"nodeName":"n1"`))
			s.event("12:00:02", "create", podsURI+"/p/eviction", 201, `{"kind":"Eviction"}`, `{"kind":"Status","status":"Success"}`)
		}, []string{"12:00:01", "present u1 sa n1", "12:00:03", "unknown u1 sa n1 deletion=12:00:32"}},
		"evicted before it was bound": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "create", podsURI+"/p/eviction", 201, `{"kind":"Eviction"}`, `{"kind":"Status","status":"Success"}`)
		}, []string{"12:00:03", "absent - - -"}}, // nothing runs that would have to come to an end
		"evicted before it was bound, and a finalizer holds it": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", `,"finalizers":["x"]`, ""))
			s.event("12:00:02", "create", podsURI+"/p/eviction", 201, `{"kind":"Eviction"}`, `{"kind":"Status","status":"Success"}`)
		}, []string{"12:00:03", "unknown u1 sa -"}},
		"evicted for show": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "create", podsURI+"/p/eviction", 201, `{"kind":"Eviction","deleteOptions":{"dryRun":["All"]}}`,
				`{"kind":"Status","status":"Success"}`)
		}, []string{"12:00:03", "present u1 sa -"}},
		"all of the namespace deleted, listed as they stood": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", `,"nodeName":"n1"`))
			s.event("12:00:02", "deletecollection", podsURI, 200, `{"kind":"DeleteOptions"}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", `,"nodeName":"n1"`)+`]}`)
			s.event("12:00:20", "delete", podsURI+"/p", 200, `{"gracePeriodSeconds":0}`, podJSON("p", "u1",
				`,"deletionTimestamp":"2026-01-02T12:00:20Z","deletionGracePeriodSeconds":0`, `,"nodeName":"n1"`))
		}, []string{"12:00:03", "present u1 sa n1 deletion=12:00:32", "12:00:21", "absent - - -"}},
		"all of the namespace deleted, and nobody saw its end": {true, func(s *told) { // it may have come to its end since it was listed
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", `,"nodeName":"n1"`))
			s.event("12:00:02", "deletecollection", podsURI, 200, `{"kind":"DeleteOptions"}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", `,"nodeName":"n1"`)+`]}`)
		}, []string{"12:00:01", "present u1 sa n1", "12:00:03", "unknown u1 sa n1 deletion=12:00:32"}},
		"all of the namespace deleted, and bound meanwhile": {true, func(s *told) { // gone with its grace
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.during("12:00:02", "12:00:04", "deletecollection", podsURI, 200, `{"kind":"DeleteOptions"}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", "")+`]}`)
			s.event("12:00:03", "create", podsURI+"/p/binding", 201,
				`{"metadata":{"name":"p","uid":"u1"},"target":{"kind":"Node","name":"n1"}}`, "")
			s.event("12:00:20", "delete", podsURI+"/p", 200, `{"gracePeriodSeconds":0}`, podJSON("p", "u1",
				`,"deletionTimestamp":"2026-01-02T12:00:20Z","deletionGracePeriodSeconds":0`, `,"nodeName":"n1"`))
		}, []string{"12:00:05", "present u1 sa n1", "12:00:21", "absent - - -"}},
		"all of the namespace deleted, bound meanwhile, and nobody saw its end": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.during("12:00:02", "12:00:04", "deletecollection", podsURI, 200, `{"kind":"DeleteOptions"}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", "")+`]}`)
			s.event("12:00:03", "create", podsURI+"/p/binding", 201,
				`{"metadata":{"name":"p","uid":"u1"},"target":{"kind":"Node","name":"n1"}}`, "")
		}, []string{"12:00:05", "unknown u1 sa n1"}},
		"all of the namespace deleted without a grace, and bound meanwhile": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.during("12:00:02", "12:00:04", "deletecollection", podsURI, 200, `{"gracePeriodSeconds":0}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", "")+`]}`)
			s.event("12:00:03", "create", podsURI+"/p/binding", 201,
				`{"metadata":{"name":"p","uid":"u1"},"target":{"kind":"Node","name":"n1"}}`, "")
		}, []string{"12:00:05", "absent - - -"}},
		"all of the namespace deleted before it had a node": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "deletecollection", podsURI, 200, `{"kind":"DeleteOptions"}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", "")+`]}`)
		}, []string{"12:00:03", "absent - - -"}},
		"all of the namespace deleted, at once": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", `,"nodeName":"n1"`))
			s.event("12:00:02", "deletecollection", podsURI, 200, `{"gracePeriodSeconds":0}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", `,"nodeName":"n1"`)+`]}`)
		}, []string{"12:00:03", "absent - - -"}},
		"all of the namespace deleted, which was not recorded": {true, func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:02", "deletecollection", podsURI, 200, "", "")
		}, []string{"12:00:03", "unknown u1 sa -"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, c.born)
			c.tell(s)
			s.expectPod("p", c.want...)
		})
	}
	t.Run("only its name", func(t *testing.T) {
		s := tell(t, true)
		s.event("12:00:00", "create", podsURI, 201, "", "")
		s.expectPod("made", "12:00:01", "present - - -")
		if got := s.Related(clock(t, "12:00:01"), "n1", "", "secrets", "a", "s"); got != state.Unknown {
			t.Errorf("what an unknown pod may refer to is %s", got)
		}
	})
	t.Run("bound to an unknown node", func(t *testing.T) {
		s := tell(t, true)
		s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
		s.event("12:00:02", "create", bind, 201, "", "")
		for at, want := range map[string]state.Known{"12:00:01": state.Absent, "12:00:03": state.Unknown} {
			if got := s.Related(clock(t, at), "n1", "", "secrets", "a", "s"); got != want {
				t.Errorf("at %s %s, want %s", at, got, want)
			}
		}
	})
}

func TestSecrets(t *testing.T) {
	const uri = "/api/v1/namespaces/kube-system/secrets"
	coded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	s := tell(t, true)
	s.event("12:00:00", "create", uri, 201, "", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"bootstrap-token-abcdef",`+
		`"namespace":"kube-system","uid":"u1","resourceVersion":"5"},"type":"bootstrap.kubernetes.io/token","data":{"token-id":"`+
		coded("abcdef")+`","token-secret":"hmac:AAAAAAAAAAAAAAAAAAAAAA","expiration":"`+coded("2026-01-02T13:00:00Z")+
		`","usage-bootstrap-authentication":"`+coded("true")+`","auth-extra-groups":"`+
		coded("system:bootstrappers:b,system:bootstrappers:a")+`"}}`)
	got, known := s.Secret("kube-system", "bootstrap-token-abcdef", clock(t, "12:00:01"))
	b := got.Bootstrap
	if known != state.Present || got.UID != "u1" || b == nil || b.ID != "abcdef" || !b.Authentication ||
		!b.Expires.Equal(clock(t, "13:00:00")) ||
		!slices.Equal(b.Groups, []string{"system:bootstrappers:a", "system:bootstrappers:b"}) {
		t.Errorf("bootstrap token: %s %+v %+v", known, got, b)
	}
	for _, v := range s.History(kept.Secrets, "kube-system", "bootstrap-token-abcdef") {
		if v.UID != "u1" {
			t.Errorf("history %+v", v)
		}
	}
	s.event("12:00:00", "create", uri, 201, "", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"old",`+
		`"namespace":"kube-system","uid":"u2","resourceVersion":"6","annotations":{"kubernetes.io/service-account.name":"robot",`+
		`"kubernetes.io/service-account.uid":"r1"},"labels":{"kubernetes.io/legacy-token-last-used":"2026-01-01"}},`+
		`"type":"kubernetes.io/service-account-token","data":{"token":"hmac:AAAAAAAAAAAAAAAAAAAAAA"}}`)
	got, known = s.Secret("kube-system", "old", clock(t, "12:00:01"))
	if known != state.Present || got.ServiceAccount != "robot" || got.ServiceAccountUID != "r1" || got.LastUsed != "2026-01-01" ||
		got.Type != "kubernetes.io/service-account-token" || got.Incomplete {
		t.Errorf("service account token: %s %+v", known, got)
	}
	s.event("12:01:00", "create", uri, 201, "", "")
	if got, known = s.Secret("kube-system", "made", clock(t, "12:01:01")); known != state.Present || !got.Incomplete {
		t.Errorf("of which the name was recorded: %s %+v", known, got)
	}
	s.event("12:02:00", "delete", uri+"/made", 200, "", `{"kind":"Status","status":"Success","details":{"name":"made","uid":"u3"}}`)
	if got, known = s.Secret("kube-system", "made", clock(t, "12:02:01")); known != state.Absent {
		t.Errorf("deleted: %s %+v", known, got)
	}
	if _, known = s.Secret("kube-system", "none", clock(t, "12:02:01")); known != state.Absent {
		t.Errorf("none: %s", known)
	}
	if _, known = tell(t, false).Secret("kube-system", "none", clock(t, "12:02:01")); known != state.Unknown {
		t.Errorf("none, of a cluster nothing is known of: %s", known)
	}
}

// No byte of a Secret's data gets into an observation, redacted or not.
func TestSecretsHoldNothing(t *testing.T) {
	const hidden = "aHVudGVyMg=="
	object := `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"5",` +
		`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + hidden + `"}},"type":"Opaque","data":{"token-id":"` +
		hidden + `","b":"` + hidden + `"},"stringData":{"c":"` + hidden + `"}}`
	obs, err := observe.FromEvent(&event.Event{Stage: event.StageResponseComplete, Verb: "create",
		RequestURI:     "/api/v1/namespaces/a/secrets",
		ResponseStatus: &event.Status{Code: 201}, RequestObject: []byte(object), ResponseObject: []byte(object)})
	if err != nil || len(obs) != 1 {
		t.Fatal(obs, err)
	}
	snap, _, err := observe.ReadSnapshot(strings.NewReader(object))
	if err != nil || len(snap.Objects) != 1 {
		t.Fatal(snap, err)
	}
	for _, o := range append(obs, snap.Objects...) {
		if text := string(o.Append(nil)); strings.Contains(text, hidden) || strings.Contains(text, "hunter2") {
			t.Errorf("%s", text)
		}
	}
}

func TestCredentials(t *testing.T) {
	const uri = "/api/v1/namespaces/a/serviceaccounts/robot/token"
	issued := event.Pair{Key: "authentication.kubernetes.io/issued-credential-id", Value: "JTI=1"}
	s := tell(t, true)
	if _, known := s.Credential("JTI=1"); known != state.Unknown {
		t.Errorf("before any issue was seen: %s: the log may leave them out", known)
	}
	effects := s.event("12:00:00", "create", uri, 201, `{"kind":"TokenRequest","spec":{"boundObjectRef":{"kind":"Pod","name":"p",`+
		`"uid":"u1"}}}`,
		`{"kind":"TokenRequest","metadata":{"name":"robot","uid":"r1"},"spec":{"boundObjectRef":{"kind":"Pod","name":"p","uid":"u1"}},`+
			`"status":{"token":"x","expirationTimestamp":"2026-01-02T13:00:00Z"}}`, issued)
	// It is the first one: the log tells of them, so that other tokens were not issued.
	if len(effects) != 2 || effects[0].Credential != "JTI=1" || effects[0].Subjects().All ||
		len(effects[0].Subjects().Users)+len(effects[0].Subjects().Groups) != 0 ||
		effects[1].Credential != "" || !effects[1].Subjects().All || !effects[1].Subjects().AllNamespaces {
		t.Errorf("effects %+v", effects)
	}
	c, known := s.Credential("JTI=1")
	want := state.Credential{ID: "JTI=1", Issued: clock(t, "12:00:00"), Expires: clock(t, "13:00:00"), Namespace: "a",
		ServiceAccount: "robot", UID: "r1",
		Pod: "p", PodUID: "u1", By: "jane", ByAddr: "10.0.0.7", AuditID: "audit-12:00:00"}
	if known != state.Present || fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("%s\n%+v\nwant\n%+v", known, c, want)
	}
	if _, known := s.Credential("JTI=2"); known != state.Absent {
		t.Errorf("never issued: %s", known)
	}
	s.event("12:00:10", "create", uri, 201, "", "", event.Pair{Key: issued.Key, Value: "JTI=0"})
	if c, known := s.Credential("JTI=0"); known != state.Present || c.ServiceAccount != "robot" || !c.Expires.IsZero() {
		t.Errorf("at level Metadata: %s %+v", known, c)
	}
	var ids []string
	visit := func(c state.Credential) bool { ids = append(ids, c.ID); return true }
	s.Credentials("a", "robot", visit)
	s.Credentials("a", "other", visit)
	s.Credentials("", "", visit)
	if got := strings.Join(ids, " "); got != "JTI=0 JTI=1 JTI=0 JTI=1" {
		t.Errorf("visited %s", got)
	}
	s.Prune(clock(t, "12:30:00"))
	if _, known := s.Credential("JTI=1"); known != state.Present {
		t.Errorf("not expired: %s", known)
	}
	if _, known := s.Credential("JTI=0"); known != state.Unknown {
		t.Errorf("forgotten: %s", known)
	}
}

// signing returns a certificate signing request whose certificate was issued, and its id.
func signing(t *testing.T) (object, id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:n1",
		Organization: []string{"system:nodes"}},
		NotBefore: clock(t, "11:55:00"), NotAfter: clock(t, "13:00:00")}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return `{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{"name":"csr","uid":"u1",` +
			`"resourceVersion":"7","creationTimestamp":"2026-01-02T12:00:00Z"},"spec":{` +
			`"signerName":"kubernetes.io/kube-apiserver-client-kubelet","username":"system:bootstrap:abcdef"},"status":{"certificate":"` +
			text + `"}}`,
		"X509SHA256=" + hex.EncodeToString(sum[:])
}

func TestCertificates(t *testing.T) {
	object, id := signing(t)
	check := func(s *state.State) {
		t.Helper()
		c, known := s.Credential(id)
		want := state.Credential{ID: id, Issued: clock(t, "11:55:00"), Expires: clock(t, "13:00:00"), CSR: "csr",
			Signer:     "kubernetes.io/kube-apiserver-client-kubelet",
			CommonName: "system:node:n1", Organizations: []string{"system:nodes"}, By: "system:bootstrap:abcdef"}
		if known != state.Present || fmt.Sprint(c) != fmt.Sprint(want) {
			t.Errorf("%s\n%+v\nwant\n%+v", known, c, want)
		}
	}
	s := tell(t, true)
	effects := s.event("12:00:01", "update", "/apis/certificates.k8s.io/v1/certificatesigningrequests/csr/status", 200, "", object)
	check(s.State)
	if !slices.ContainsFunc(effects, func(e state.Effect) bool { return e.Credential == id }) {
		t.Errorf("effects %+v", effects)
	}
	// A state file says the same, and what is stored of it has no certificate any more.
	snap, _, err := observe.ReadSnapshot(strings.NewReader(`{"kind":"List","items":[` + object + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	other := state.New("c")
	for _, o := range snap.Observations() {
		d, err := observe.Decode(o.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		other.Apply(d)
	}
	check(other)
	if _, known := s.Credential("X509SHA256=00"); known != state.Absent {
		t.Errorf("never issued: %s", known)
	}
}

func TestNodes(t *testing.T) {
	s := tell(t, true)
	s.event("12:00:00", "create", "/api/v1/nodes", 201, "", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u1",`+
		`"resourceVersion":"5","creationTimestamp":"2026-01-02T12:00:00Z"},"status":{"images":[{"names":["x"]}]}}`)
	s.event("12:01:00", "delete", "/api/v1/nodes/n1", 200, "", `{"kind":"Status","status":"Success","details":{"name":"n1","uid":"u1"}}`)
	for at, want := range map[string]string{"11:59:00": "absent", "12:00:01": "present u1", "12:01:01": "absent"} {
		uid, known := s.Node("n1", clock(t, at))
		if got := strings.TrimSpace(known.String() + " " + uid); got != want {
			t.Errorf("at %s: %s, want %s", at, got, want)
		}
	}
}

// The chain of a volume: the claim of a pod on the node.
func TestVolumes(t *testing.T) {
	s := tell(t, true)
	s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", `,"nodeName":"n1","containers":[],"dnsPolicy":"x"`))
	s.event("12:00:00", "create", podsURI, 201, "", strings.Replace(podJSON("q", "u2", "", `,"nodeName":"n2"`),
		`"secret":{"secretName":"s"}`, `"persistentVolumeClaim":{"claimName":"c"}`, 1))
	effects := s.event("12:00:01", "update", "/api/v1/persistentvolumes/pv", 200, "",
		`{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"pv","uid":"v1","resourceVersion":"9"},"spec":{"claimRef":{`+
			`"namespace":"a","name":"c"},"csi":{"driver":"d","volumeHandle":"h","nodePublishSecretRef":{"namespace":"b","name":"key"}}}}`)
	at := clock(t, "12:00:02")
	for _, c := range []struct {
		node, resource, namespace, name string
		want                            state.Known
	}{
		{"n2", "persistentvolumes", "", "pv", state.Present}, {"n1", "persistentvolumes", "", "pv", state.Absent},
		{"n2", "secrets", "b", "key", state.Present}, {"n1", "secrets", "b", "key", state.Absent},
		{"n1", "secrets", "a", "s", state.Present}, {"n2", "secrets", "a", "s", state.Absent},
	} {
		if got := s.Related(at, c.node, "", c.resource, c.namespace, c.name); got != c.want {
			t.Errorf("%s %s for %s: %s, want %s", c.resource, c.name, c.node, got, c.want)
		}
	}
	if len(effects) != 1 || effects[0].Subjects().All || !slices.Equal(effects[0].Subjects().Groups, []string{"system:nodes"}) {
		t.Errorf("effects %+v", effects)
	}
	s.event("12:00:01", "create", "/apis/storage.k8s.io/v1/volumeattachments", 201, "",
		`{"kind":"VolumeAttachment","apiVersion":"storage.k8s.io/v1","metadata":{"name":"va","uid":"a1","resourceVersion":"10"},`+
			`"spec":{"nodeName":"n1","attacher":"d","source":{"persistentVolumeName":"pv"}}}`)
	if got := s.Related(at, "n1", "storage.k8s.io", "volumeattachments", "", "va"); got != state.Present {
		t.Errorf("attachment: %s", got)
	}
}

// What is learnt of a pod concerns its node and its service account, nobody else.
func TestPodEffects(t *testing.T) {
	s := tell(t, true)
	for i, effects := range [][]state.Effect{
		s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", "")),
		s.event("12:00:02", "create", podsURI+"/p/binding", 201, `{"kind":"Binding","metadata":{"uid":"u1"},"target":{"name":"n1"}}`, ""),
	} {
		want := []string{"system:node:n1", "system:serviceaccount:a:sa"}[1-i:]
		if len(effects) != 1 || effects[0].Subjects().All || !slices.Equal(effects[0].Subjects().Users, want) ||
			len(effects[0].Subjects().Groups) != 0 {
			t.Errorf("%d: effects %+v, want %v", i, effects, want)
		}
	}
	// A pod whose name was not recorded, and that was made without a node, concerns nobody before
	// something binds it, save that the first of them leaves no uid that certainly never was.
	unnamed := func(at, body string) []state.Effect {
		obs, err := observe.FromEvent(&event.Event{Stage: event.StageResponseComplete, Verb: "create", RequestURI: podsURI,
			ResponseStatus: &event.Status{Code: 201}, RequestObject: []byte(body),
			RequestReceivedTimestamp: clock(t, at), StageTimestamp: clock(t, at)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Apply(obs...)
	}
	const body = `{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"x-"},"spec":{"serviceAccountName":"sa"%s}}`
	if effects := unnamed("12:01:00", fmt.Sprintf(body, "")); len(effects) != 2 || effects[0].Subjects().All ||
		len(effects[0].Subjects().Users)+len(effects[0].Subjects().Groups) != 0 || !effects[1].Subjects().All {
		t.Errorf("effects %+v", effects)
	}
	s.expectPod("other", "12:00:30", "absent - - -", "12:01:01", "unknown - - -")
	if _, known := s.PodByUID("u9"); known != state.Unknown {
		t.Errorf("a uid that may be of a pod whose name was not recorded is %s", known)
	}
	if got := s.Related(clock(t, "12:01:01"), "n1", "", "secrets", "a", "other"); got != state.Absent {
		t.Errorf("what no bound pod refers to is %s", got)
	}
	// One that may have been made with a node may lead to anything.
	unnamed("12:02:00", fmt.Sprintf(body, `,"nodeName":"n1"`))
	if got := s.Related(clock(t, "12:02:01"), "n1", "", "secrets", "a", "other"); got != state.Unknown {
		t.Errorf("what a bound pod of unknown name may refer to is %s", got)
	}
}

// The making of the cluster says that nothing was there before, of any kind.
func TestBorn(t *testing.T) {
	s := tell(t, true)
	at := clock(t, "11:00:01")
	if v := s.RBAC(at); !v.Certain() {
		t.Errorf("unknown: %v %v", v.Unknown, v.UnknownKinds)
	}
	// Roles that are made in the same second, before the namespace, stay.
	s.event("10:59:59", "create", "/apis/rbac.authorization.k8s.io/v1/clusterroles", 201, "",
		`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"r","uid":"u1","resourceVersion":"3"},`+
			`"rules":[]}`)
	if _, known := s.Version(kept.ClusterRoles, "", "r", at); known != state.Present {
		t.Errorf("the role is %s", known)
	}
	// Any other namespace says nothing.
	other := tell(t, false)
	other.event("11:00:00", "create", "/api/v1/namespaces", 201, "",
		`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","uid":"n","resourceVersion":"1"}}`)
	if v := other.RBAC(at); len(v.UnknownKinds) != 4 {
		t.Errorf("unknown kinds: %v", v.UnknownKinds)
	}
}
