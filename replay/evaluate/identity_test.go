package evaluate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/test/golden"
	"github.com/retrial-io/retrial/test/testfile"
)

// step is what the driver of a recording meant by one request.
type step struct {
	AuditID, Scenario, ID string
	Code                  int
}

// meant returns the identity contradictions a step was made to cause. Everything else the driver
// did, however odd, was done with credentials that were good for it at that moment.
func (s *step) meant() (out []string) {
	if s.Code == 401 {
		return nil // nobody was authenticated
	}
	if s.ID == "kubernetes-super-admin" {
		out = append(out, authn.ContradictionMastersExternal) // a certificate with the group system:masters
	}
	switch {
	case s.Scenario == "authn/stale-token":
		out = append(out, authn.ContradictionJTIUnissued) // signed with the key, not issued by the apiserver
	case s.Scenario == "authn/legacy" && strings.HasPrefix(s.ID, authn.PrefixServiceAccount):
		out = append(out, authn.ContradictionSALegacyToken)
	case s.Scenario == "impersonation/masters":
		out = append(out, authn.ContradictionImpersonatedRoot)
	}
	return out
}

func steps(t *testing.T, raw []byte) map[string]*step {
	t.Helper()
	out := map[string]*step{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s := &step{}
		if err := json.Unmarshal(lines.Bytes(), s); err != nil {
			t.Fatal(err)
		}
		if s.AuditID != "" {
			out[s.AuditID] = s
		}
	}
	return out
}

// configured returns an engine that knows the recording's apiserver configuration.
func configured(t testing.TB) *replay.Engine {
	t.Helper()
	h, _, err := config.ReadHistory(os.DirFS("testdata/apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg := h.At(time.Time{}); len(cfg.Unknown) > 0 {
		t.Fatalf("not known: %v", cfg.Unknown)
	}
	return replay.New(replay.Config{Version: "test", Apiserver: func(string, string) *config.History { return h }})
}

// score counts what was found against what was meant.
type score struct{ meant, found, both int }

func (s *score) precision() float64 {
	if s.found == 0 {
		return 1
	}
	return float64(s.both) / float64(s.found)
}

func (s *score) recall() float64 {
	if s.meant == 0 {
		return 1
	}
	return float64(s.both) / float64(s.meant)
}

// checkScenarios judges a recording and compares the identity contradictions of every step with what
// it was meant to cause.
func checkScenarios(t *testing.T, o Options, scenarios map[string]*step, least int) {
	t.Helper()
	_, all := run(t, o)
	ours := map[string]bool{}
	for _, name := range golden.Constants(t, "replay/authn/contradictions.go", "Contradiction") {
		ours[name] = true
	}
	scores, total, joined := map[string]*score{}, score{}, 0
	of := func(name string) *score {
		if scores[name] == nil {
			scores[name] = &score{}
		}
		return scores[name]
	}
	for _, j := range all {
		s := scenarios[j.event.AuditID]
		var meant []string
		if s != nil {
			joined++
			meant = s.meant()
		}
		var found []string
		for _, f := range j.verdict.Identity {
			if ours[f] && !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
		if s == nil {
			// Components, and tools that choose their own audit IDs: nothing but who used the
			// certificate of system:masters.
			if j.event.User.Username == "kubernetes-super-admin" {
				found = slices.DeleteFunc(found, func(f string) bool { return f == authn.ContradictionMastersExternal })
			}
			if len(found) > 0 {
				t.Errorf("%s %s: %v %q", j.event.User.Username, j.event.RequestURI, found, j.verdict.Evidence)
			}
			continue
		}
		for _, f := range meant {
			of(f).meant++
			total.meant++
			if slices.Contains(found, f) {
				of(f).both++
				total.both++
			} else {
				t.Logf("not found: %s %s %s", s.Scenario, s.AuditID, f)
			}
		}
		for _, f := range found {
			of(f).found++
			total.found++
			if !slices.Contains(meant, f) {
				t.Logf("not meant: %s %s %s %q", s.Scenario, s.AuditID, f, j.verdict.Evidence)
			}
		}
	}
	if joined < least {
		t.Errorf("%d requests of scenarios, want at least %d", joined, least)
	}
	if total.meant < 10 || total.precision() < 0.99 || total.recall() < 0.99 {
		t.Errorf("%d steps: meant %d, found %d, both %d", joined, total.meant, total.found, total.both)
	}
	for name, s := range scores {
		t.Logf("| `%s` | %d | %d | %.3f | %.3f |", name, s.meant, s.found, s.precision(), s.recall())
	}
	t.Logf("| all of %d steps | %d | %d | %.3f | %.3f |", joined, total.meant, total.found, total.precision(), total.recall())
}

// TestIdentityScenarios: a slice of a recording, with what every request in it was meant to do.
func TestIdentityScenarios(t *testing.T) {
	scenarios := steps(t, testfile.Read(t, "testdata/identity-scenarios.jsonl.zst"))
	for name, engine := range map[string]*replay.Engine{"with the configuration": configured(t),
		"without": replay.New(replay.Config{Version: "test"})} {
		t.Run(name, func(t *testing.T) {
			o := Options{FromEmpty: true, Engine: engine, Events: []Input{memoryInput("identity.jsonl",
				testfile.Read(t, "testdata/identity.jsonl.zst"))}}
			checkScenarios(t, o, scenarios, 1500)
		})
	}
}

// TestIdentityCorpus: the whole recording.
func TestIdentityCorpus(t *testing.T) {
	dir := corpus(t)
	raw, err := os.ReadFile(filepath.Join(dir, "scenarios.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Engine: configured(t),
		States: []Input{fileInput(filepath.Join(dir, "state-start.json"))},
		Events: []Input{fileInput(filepath.Join(dir, "audit.jsonl"))},
	}
	checkScenarios(t, o, steps(t, raw), 26_000)
}

// TestTrailContradictions: what several events show stands in the summary and on the verdicts it
// concerns. Case 67.
func TestTrailContradictions(t *testing.T) {
	line := func(user, uri string) string {
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"chosen",`+
			`"stage":"ResponseComplete","requestURI":%q,"verb":"get","user":{"username":%q,"groups":["system:authenticated"]},`+
			`"sourceIPs":["192.0.2.1"],"responseStatus":{"metadata":{},"code":200},`+
			`"requestReceivedTimestamp":"2026-03-01T12:00:00.000000Z","stageTimestamp":"2026-03-01T12:00:00.100000Z"}`, uri, user)
	}
	trail := lineage.NewTrail(lineage.TrailConfig{})
	sum, all := run(t, Options{Events: []Input{text(line("alice", "/version"), line("bob", "/version"))}, Trail: trail})
	if len(all) != 2 || sum.Identity[authn.ContradictionAuditID] != 2 || len(sum.Trail) != 1 ||
		sum.Trail[0].Name != authn.ContradictionAuditID {
		t.Fatalf("%d verdicts, %v, %+v", len(all), sum.Identity, sum.Trail)
	}
	for _, j := range all {
		if len(j.verdict.Identity) != len(j.verdict.Evidence) {
			t.Errorf("%v with evidence %q", j.verdict.Identity, j.verdict.Evidence)
		}
	}
	if len(trail.Found()) != 1 {
		t.Errorf("the caller's trail: %v", trail.Found())
	}
}

// tampering changes one thing in an event that its identity then contradicts.
type tampering struct {
	name  string
	fits  func(e *event.Event) bool
	alter func(e *event.Event)
	want  []string // any of them
}

func tamperings() []tampering {
	bound := func(e *event.Event) bool { return len(e.User.Extra.Get(event.ExtraPodUID)) > 0 }
	account := func(e *event.Event) bool {
		return strings.HasPrefix(e.User.Username, authn.PrefixServiceAccount) && len(e.User.Extra.Get(event.ExtraCredentialID)) > 0
	}
	static := func(e *event.Event) bool { return len(e.User.Extra) == 0 && strings.HasPrefix(e.User.UID, "uid-a-") }
	loop := func(e *event.Event) bool { return e.User.Username == authn.UserLoopback }
	cert := func(e *event.Event) bool { return e.User.Username == "kubernetes-admin" }
	anonymous := func(e *event.Event) bool { return e.User.Username == authn.UserAnonymous }
	group := func(g string) func(*event.Event) {
		return func(e *event.Event) { e.User.Groups = append([]string{g}, e.User.Groups...) }
	}
	set := func(key, value string) func(*event.Event) {
		return func(e *event.Event) {
			e.User.Extra = slices.Clone(e.User.Extra)
			for i := range e.User.Extra {
				if e.User.Extra[i].Key == key {
					e.User.Extra[i].Values = []string{value}
				}
			}
		}
	}
	drop := func(key string) func(*event.Event) {
		return func(e *event.Event) {
			e.User.Extra = slices.DeleteFunc(slices.Clone(e.User.Extra), func(x event.ExtraEntry) bool { return x.Key == key })
		}
	}
	return []tampering{
		{"service account with another uid", account, func(e *event.Event) { e.User.UID = "00000000-0000-4000-8000-000000000000" },
			[]string{authn.ContradictionSAUID, authn.ContradictionSAUnknown}},
		{"service account with a group more", account, group("system:masters"), []string{authn.ContradictionSAGroups}},
		{"service account of another name", account, func(e *event.Event) { e.User.Username += "-x" },
			[]string{authn.ContradictionSAUnknown, authn.ContradictionSAUID}},
		{"service account with an unissued token", account, set(event.ExtraCredentialID, "JTI=00000000-0000-4000-8000-000000000000"),
			[]string{authn.ContradictionJTIUnissued}},
		{"service account without a token", account, drop(event.ExtraCredentialID), []string{authn.ContradictionSANoCredential}},
		{"pod's token of another pod", bound, set(event.ExtraPodUID, "00000000-0000-4000-8000-000000000000"),
			[]string{authn.ContradictionSAPodUnknown}},
		{"pod's token of another node", bound, set(event.ExtraNodeName, "node-9"), []string{authn.ContradictionSANode}},
		{"pod's token with half a pod", bound, drop(event.ExtraPodName), []string{authn.ContradictionSAPodPartial}},
		{"static user with another uid", static, func(e *event.Event) { e.User.UID = "uid-x" }, []string{authn.ContradictionStaticUID}},
		{"static user with a group more", static, group("team:root"), []string{authn.ContradictionStaticGroups}},
		{"apiserver's own token from elsewhere", loop, func(e *event.Event) { e.SourceIPs = []string{"192.0.2.66"} },
			[]string{authn.ContradictionLoopback}},
		{"certificate with a group more", cert, group("system:nodes"), []string{authn.ContradictionNodeMalformed}},
		{"certificate of another user", cert, func(e *event.Event) { e.User.Username = "mallory" }, []string{authn.ContradictionCertDrift}},
		{"anonymous with a group more", anonymous, group("devs"), []string{authn.ContradictionAnonymous}},
	}
}

// TestIdentityTampered alters one identity of a recording at a time: every alteration must be
// found on the altered request, and nothing new on the others but what it makes them
// contradict.
func TestIdentityTampered(t *testing.T) {
	raw := testfile.Read(t, "testdata/identity.jsonl.zst")
	for _, tc := range tamperings() {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			altered := map[string]bool{}
			lines := bufio.NewScanner(bytes.NewReader(raw))
			lines.Buffer(nil, 4<<20)
			for n := 0; lines.Scan(); n++ {
				e, err := event.Decode(slices.Clone(lines.Bytes()))
				if err != nil {
					t.Fatal(err)
				}
				if len(altered) < 5 && n%3 == 0 && e.Verb != "create" && tc.fits(e) && e.ImpersonatedUser == nil ||
					len(altered) == 0 && tc.fits(e) && e.Verb != "create" && n > 1000 {
					tc.alter(e)
					altered[e.AuditID] = true
					out.Write(event.AppendJSON(nil, e))
					out.WriteByte('\n')
					continue
				}
				out.Write(lines.Bytes())
				out.WriteByte('\n')
			}
			if len(altered) == 0 {
				t.Fatal("no request of the recording can be altered so")
			}
			_, all := run(t, Options{FromEmpty: true, Engine: configured(t), Events: []Input{memoryInput("altered", out.Bytes())}})
			for _, j := range all {
				if !altered[j.event.AuditID] {
					continue
				}
				if !slices.ContainsFunc(tc.want, func(f string) bool { return slices.Contains(j.verdict.Identity, f) }) {
					t.Errorf("%s: found %v, want one of %v", j.event.User.Username, j.verdict.Identity, tc.want)
				}
			}
		})
	}
}
