package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/golden"
	"github.com/retrial-io/retrial/verdict"
)

// step is one event of a scenario, in the few words that matter.
type step struct {
	At       string              // time of day the request arrived
	Took     string              // until the stage, default 5ms
	Stage    string              // default ResponseComplete
	User     string              // name
	UID      string              //
	Groups   []string            // default system:authenticated
	Extra    map[string][]string //
	As       *step               // impersonated user: User, UID, Groups, Extra
	Mode     string              // recorded impersonation constraint
	Verb     string
	URI      string
	Decision string // recorded; empty = none
	Reason   string
	Code     int32
	Message  string
	Answer   json.RawMessage // response object
}

// TestScenarios judges the events of every testdata/*.txtar against its state:
//
//	state.yaml   objects listed at 10:00:00, complete (pods and the like only when one is
//	             among them); without the file nothing is known
//	config/…     the apiserver's configuration, as --apiserver-config takes it
//	events.yaml  events in order; successful policy writes change the state
//	verdicts     what is expected, a paragraph for each event
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]*txtar.File{}
			for i := range ar.Files {
				parts[ar.Files[i].Name] = &ar.Files[i]
			}
			got := play(t, parts)
			want := parts["verdicts"]
			if golden.Updating() {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want.Data) {
				t.Errorf("got\n%s\nwant\n%s", got, want.Data)
			}
		})
	}
}

func play(t *testing.T, parts map[string]*txtar.File) string {
	t.Helper()
	s := state.New("scenario")
	if f := parts["state.yaml"]; f != nil {
		snap, _, err := observe.ReadSnapshot(strings.NewReader(jsonList(t, f.Data)))
		if err != nil {
			t.Fatal(err)
		}
		snap.Kinds = listedKinds(snap.Objects)
		snap.Began, snap.Ended = clock(t, "10:00:00"), clock(t, "10:00:00")
		if _, err := s.LoadSnapshot(snap); err != nil {
			t.Fatal(err)
		}
	}
	var steps []step
	for _, doc := range documents(parts["events.yaml"].Data) {
		var st step
		if err := yaml.UnmarshalStrict([]byte(doc), &st); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		steps = append(steps, st)
	}
	events := make([]*event.Event, len(steps))
	for i := range steps {
		events[i] = steps[i].event(t)
		if event.KeepsPolicy(events[i]) {
			obs, err := observe.FromEvent(events[i])
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(obs...)
		}
	}
	eng := New(Config{Version: "test", Apiserver: apiserver(t, parts)})
	known := s
	if parts["state.yaml"] == nil && len(steps) > 0 && s.Revision() == 0 {
		known = nil
	}
	var out strings.Builder
	for i, e := range events {
		if i > 0 {
			out.WriteByte('\n')
		}
		v := eng.Replay(e, known)
		describeVerdict(&out, e, v)
		if eng.cfg.Apiserver != nil {
			describeChain(&out, v)
		}
	}
	return out.String()
}

// listedKinds returns the kinds a scenario's listing is complete for: those of the policy, and all
// that are kept when it shows a pod or another of what belongs to nodes.
func listedKinds(objects []observe.Observation) []string {
	policy := []string{kept.Roles, kept.ClusterRoles, kept.RoleBindings, kept.ClusterRoleBindings, kept.Namespaces, kept.ServiceAccounts}
	for i := range objects {
		if !slices.Contains(policy, objects[i].Resource) {
			return kept.Resources()
		}
	}
	return policy
}

// apiserver reads the configuration of a scenario, nil if it has none.
func apiserver(t *testing.T, parts map[string]*txtar.File) func(string, string) *config.History {
	t.Helper()
	folder := fstest.MapFS{}
	for name, f := range parts {
		if inside, ok := strings.CutPrefix(name, "config/"); ok {
			folder[inside] = &fstest.MapFile{Data: f.Data}
		}
	}
	if len(folder) == 0 {
		return nil
	}
	history, _, err := config.ReadHistory(folder)
	if err != nil {
		t.Fatal(err)
	}
	return func(_, server string) *config.History { return history.Server(server) }
}

// describeChain writes what each authorizer of a configured chain answered.
func describeChain(out *strings.Builder, v *verdict.Verdict) {
	for _, s := range v.Chain {
		fmt.Fprintf(out, "  chain: %s: %s\n", s.Authorizer, strings.TrimSuffix(s.Answer+", "+s.Reason, ", "))
	}
}

// describeVerdict writes a verdict as a paragraph: outcome and class, what was asked, the
// decision, and whatever else it has.
func describeVerdict(out *strings.Builder, e *event.Event, v *verdict.Verdict) {
	fmt.Fprintf(out, "%s %s %s\n", e.RequestReceivedTimestamp.Format("15:04:05.000"), v.Outcome, v.Class)
	fmt.Fprintf(out, "  recorded %s, replayed %s %s\n", v.Recorded, v.Replayed, v.Authorizer)
	line := func(name string, items ...string) {
		for _, it := range items {
			if it != "" {
				fmt.Fprintf(out, "  %s: %s\n", name, it)
			}
		}
	}
	for _, g := range v.Line(&event.Event{}).Grants {
		line("grant", g.Binding+" "+g.Role+" "+g.Subject)
	}
	line("error", v.Errors...)
	line("missing", v.Missing...)
	if c := v.Impersonation; c != nil {
		line("impersonation", c.Mode+" "+c.Replayed.String())
		line("not granted", c.Missing...)
	}
	line("identity", v.Identity...)
	if a := v.Admission; a.Recorded != verdict.AdmissionNotRun {
		line("admission", a.Recorded)
		for _, x := range a.Answers {
			code := ""
			if x.Code != 0 {
				code = strconv.Itoa(int(x.Code))
			}
			line("plugin", strings.Join(strings.Fields(x.Plugin+" "+x.Name+" "+x.Outcome+" "+code+" "+x.Reason), " "))
		}
	}
	line("cause", v.Cause)
}

func (st *step) event(t *testing.T) *event.Event {
	t.Helper()
	took := 5 * time.Millisecond
	if st.Took != "" {
		d, err := time.ParseDuration(st.Took)
		if err != nil {
			t.Fatal(err)
		}
		took = d
	}
	e := &event.Event{
		Level: event.LevelRequestResponse, AuditID: "id", Stage: event.StageResponseComplete, RequestURI: st.URI, Verb: st.Verb,
		User: st.user(), RequestReceivedTimestamp: clock(t, st.At), ResponseObject: st.Answer,
	}
	e.StageTimestamp = e.RequestReceivedTimestamp.Add(took)
	if st.Stage != "" {
		e.Stage = event.Stage(st.Stage)
	}
	if st.As != nil {
		u := st.As.user()
		e.ImpersonatedUser = &u
	}
	if st.Mode != "" {
		e.AuthenticationMetadata = &event.AuthenticationMetadata{ImpersonationConstraint: st.Mode}
	}
	if st.Code == 0 && st.Decision == "allow" {
		st.Code = 200
	}
	if st.Code == 0 && st.Decision == "forbid" {
		st.Code = 403
	}
	if st.Code != 0 {
		e.ResponseStatus = &event.Status{Code: st.Code, Message: st.Message}
	}
	if st.Decision != "" {
		e.Annotations = e.Annotations.Set(event.AnnotationDecision, st.Decision).Set(event.AnnotationReason, st.Reason)
	}
	return e
}

func (st *step) user() event.User {
	u := event.User{Username: st.User, UID: st.UID, Groups: st.Groups}
	if u.Groups == nil && u.Username != "" {
		u.Groups = []string{authn.GroupAuthenticated}
	}
	for _, key := range []string{event.ExtraCredentialID, event.ExtraNodeName, "scopes"} {
		if values, ok := st.Extra[key]; ok {
			u.Extra = append(u.Extra, event.ExtraEntry{Key: key, Values: values})
		}
	}
	return u
}

func clock(t *testing.T, at string) time.Time {
	t.Helper()
	when, err := time.Parse("2006-01-02 15:04:05.999999", "2026-05-04 "+at)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func documents(raw []byte) (docs []string) {
	for _, doc := range strings.Split("\n"+string(raw), "\n---\n") {
		if strings.TrimSpace(doc) != "" {
			docs = append(docs, doc)
		}
	}
	return docs
}

// jsonList turns YAML documents into a List as kubectl prints it. uid and resourceVersion
// are filled in: a listing always has them.
func jsonList(t *testing.T, raw []byte) string {
	t.Helper()
	var items []any
	for i, doc := range documents(raw) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		meta := o["metadata"].(map[string]any)
		for key, value := range map[string]string{
			"uid": fmt.Sprintf("uid-%d", i), "resourceVersion": fmt.Sprint(100 + i), "creationTimestamp": "2026-05-01T00:00:00Z",
		} {
			if _, ok := meta[key]; !ok {
				meta[key] = value
			}
		}
		items = append(items, o)
	}
	out, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
