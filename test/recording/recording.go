// Package recording judges recordings of real apiservers the way `retrial evaluate` does, and
// holds every verdict against what is known of its request. It is a test kit: of the
// recordings that are kept in replay/testdata/recordings, and of those that test/apiserver has
// just made.
//
//	DIR/audit.jsonl, state.json, config/ ─▶ replay/evaluate ─┐
//	DIR/scenarios.jsonl (what was meant) ────────────────────┴─▶ Result.Problems
//
// Where nobody meant anything, as in those of replay/testdata/lives, Verdicts is what there is
// to say. A recording without a state begins with its cluster's first start.
package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/inflate"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/verdict"
)

// Meant is a line of scenarios.jsonl: one request, what it was made to show and what was
// answered. Empty members say that nothing is known.
type Meant struct {
	AuditID  string
	Scenario string // what it is about
	ID       string // whose credential
	Server   string // who was asked past the kube-apiserver
	Code     int
	// Expect is the decision: allow, forbid or none; Authorizer who reached it.
	Expect, Authorizer string
	Authenticator      string // one of the authn.By constants
	// Contradictions that the identity causes, if not with each request, then with one of them.
	Contradictions []string `json:"findings"`
}

// Result is what became of a recording.
type Result struct {
	Requests int
	// Outcomes counts verdicts, by outcome and, behind a slash, class; those of an aggregated
	// server have its name and a colon in front.
	Outcomes map[string]int
	// Problems are verdicts that contradict what is known, each with its request.
	Problems []string
}

// Read returns a file of a recording, which may have been compressed and renamed to .zst.
func Read(dir, name string) ([]byte, error) {
	r, err := inflate.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		r, err = inflate.Open(filepath.Join(dir, name+".zst"))
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", name, dir, err)
	}
	return text, nil
}

// Scenarios reads what was meant, by audit ID.
func Scenarios(dir string) (map[string]Meant, error) {
	text, err := Read(dir, "scenarios.jsonl")
	if err != nil {
		return nil, err
	}
	all := map[string]Meant{}
	for line := range bytes.Lines(text) {
		var m Meant
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("scenarios of %s: %w", dir, err)
		}
		all[m.AuditID] = m
	}
	return all, nil
}

// Judge judges all logs of a recording with its state and its configuration.
func Judge(ctx context.Context, dir string) (*Result, error) {
	meant, err := Scenarios(dir)
	if err != nil {
		return nil, err
	}
	c := &court{meant: meant, Result: Result{Outcomes: map[string]int{}}, expected: map[string]bool{}, found: map[string]bool{}}
	sum, err := run(ctx, dir, func(line []byte) []byte { return line }, c.judge)
	if err != nil {
		return nil, err
	}
	if sum.Malformed > 0 {
		c.Problems = append(c.Problems, fmt.Sprintf("%d lines are not events", sum.Malformed))
	}
	for _, what := range slices.Sorted(maps.Keys(c.expected)) {
		if !c.found[what] {
			c.Problems = append(c.Problems, "not found: "+what)
		}
	}
	return &c.Result, nil
}

// Verdicts passes each request of a recording with its verdict to a sink, in the order of the
// logs. A line that is not an event is an error.
func Verdicts(ctx context.Context, dir string, sink func(*event.Event, *verdict.Verdict) error) error {
	sum, err := run(ctx, dir, func(line []byte) []byte { return line }, sink)
	if err == nil && sum.Malformed > 0 {
		err = fmt.Errorf("%d lines of %s are not events", sum.Malformed, dir)
	}
	return err
}

// Decisions returns what the replica decides of each request of a recording, in the order of
// the logs, with the record at hand or, blind, with the record of every decision taken out,
// and every answer's status but those of writes that the state follows.
func Decisions(ctx context.Context, dir string, blind bool) ([]string, error) {
	edit := func(line []byte) []byte { return line }
	if blind {
		edit = unrecorded
	}
	var all []string
	_, err := run(ctx, dir, edit, func(e *event.Event, v *verdict.Verdict) error {
		all = append(all, fmt.Sprintf("%s %s %s: %s by %q %v %v", e.AuditID, e.Verb, e.RequestURI, v.Replayed, v.Authorizer, v.Grants,
			v.Errors))
		return nil
	})
	return all, err
}

// unrecorded takes out of an event what was decided and answered. Whether a write was done is
// state, and stays.
func unrecorded(line []byte) []byte {
	var e map[string]json.RawMessage
	if err := json.Unmarshal(line, &e); err != nil {
		return line
	}
	if whole, err := event.Decode(line); err != nil || !event.KeepsPolicy(whole) {
		delete(e, "responseStatus")
	}
	var annotations map[string]string
	if err := json.Unmarshal(e["annotations"], &annotations); err == nil {
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "authorization.k8s.io/") })
		if text, err := json.Marshal(annotations); err == nil {
			e["annotations"] = text
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return line
	}
	return append(text, '\n')
}

// run evaluates a recording. edit is given every line of its logs.
func run(ctx context.Context, dir string, edit func([]byte) []byte,
	sink func(*event.Event, *verdict.Verdict) error) (*evaluate.Summary, error) {
	history, _, err := config.ReadHistory(os.DirFS(filepath.Join(dir, "config")))
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", dir, err)
	}
	input := func(name, server string) evaluate.Input {
		return evaluate.Input{Name: name, Server: server, Open: func() (io.ReadCloser, error) {
			text, err := Read(dir, name)
			if server != "" || name == kubeAPIServer {
				var edited []byte
				for line := range bytes.Lines(text) {
					edited = append(edited, edit(line)...)
				}
				text = edited
			}
			return io.NopCloser(bytes.NewReader(text)), err
		}}
	}
	o := evaluate.Options{
		States: []evaluate.Input{input("state.json", "")},
		Events: []evaluate.Input{input(kubeAPIServer, "")},
		Engine: replay.New(replay.Config{Version: "test", Apiserver: func(_, server string) *config.History {
			return history.Server(server)
		}}),
		Sink: sink,
	}
	if _, err := Read(dir, "state.json"); errors.Is(err, fs.ErrNotExist) {
		o.States, o.FromEmpty = nil, true
	}
	for _, server := range history.Servers() {
		o.Events = append(o.Events, input("audit-"+server+".jsonl", server))
	}
	return evaluate.Run(ctx, o)
}

// kubeAPIServer is the log of the kube-apiserver.
const kubeAPIServer = "audit.jsonl"

// court holds verdicts against what was meant.
type court struct {
	Result
	meant           map[string]Meant
	expected, found map[string]bool // who and which contradiction
}

// administrator is who makes the objects of a recording, with a certificate of system:masters;
// its requests before there was a scenario are none.
const administrator = "kubernetes-super-admin"

func (c *court) judge(e *event.Event, v *verdict.Verdict) error {
	m := c.meant[e.AuditID]
	c.Requests++
	key := v.Outcome.String()
	if e.Server != "" {
		key = e.Server + ":" + key
	}
	if v.Class != "" {
		key += "/" + v.Class
	}
	c.Outcomes[key]++
	say := func(format string, args ...any) {
		c.Problems = append(c.Problems, fmt.Sprintf("%s: %s %s %q %s %s: %s", m.Scenario, e.AuditID, m.ID, e.EffectiveUser().Username,
			e.Verb, e.RequestURI, fmt.Sprintf(format, args...)))
	}
	switch {
	case v.Outcome == verdict.OutcomeMatch || v.Outcome == verdict.OutcomeNotJudged:
	case v.Outcome == verdict.OutcomeIndeterminate && v.Class == verdict.ClassWebhook && !strings.HasPrefix(v.RecordedReason, "RBAC: "):
		// A webhook's answer is nobody's to repeat.
	default:
		say("%s %s: recorded %s %q, replayed %s by %q: %s", v.Outcome, v.Class, v.Recorded, v.RecordedReason, v.Replayed, v.Authorizer,
			v.Cause)
	}
	proxied := e.Server != "" && m.Server == "" // the same request, as the server behind saw it
	if proxied {
		m.Expect, m.Authorizer, m.Authenticator = "", "", authn.ByRequestHeader
	}
	recorded := v.Recorded
	if recorded == verdict.DecisionError {
		recorded = verdict.DecisionNone
	}
	if m.Expect != "" && recorded.String() != m.Expect {
		say("recorded %s, meant to be %s", recorded, m.Expect)
	}
	if m.Authorizer != "" && v.Outcome == verdict.OutcomeMatch && v.Authorizer != m.Authorizer {
		say("decided by %q, meant to be %q", v.Authorizer, m.Authorizer)
	}
	if m.Authenticator != "" && e.User.Username != "" && m.ID != "" && !slices.Contains(v.Explained, m.Authenticator) {
		say("came by %s, explained by %v", m.Authenticator, v.Explained)
	}
	c.identity(e, v, m, say)
	implied(e, v, say)
	return nil
}

// implied holds the checks behind the authorization filter against the answer: a request that
// went through has passed them all, and one that was refused after it had been authorized was
// refused by one of them, or by an admission plugin.
func implied(e *event.Event, v *verdict.Verdict, say func(string, ...any)) {
	refused := ""
	for i := range v.Implied {
		if c := &v.Implied[i]; c.Replayed == verdict.DecisionForbid && !c.Covered {
			refused = c.Check
		}
	}
	switch code := e.Code(); {
	case v.Recorded != verdict.DecisionAllow:
	case code/100 == 2 && refused != "":
		say("answered %d, and %s would have refused it", code, refused)
	case code == http.StatusForbidden && refused == "" && v.Admission.Plugin() == "":
		say("refused after it was authorized, and nothing says why: %q %+v", e.ResponseStatus.Message, v.Implied)
	}
}

func (c *court) identity(e *event.Event, v *verdict.Verdict, m Meant, say func(string, ...any)) {
	if m.ID == "" && e.User.Username == administrator {
		m.ID, m.Contradictions = administrator, []string{authn.ContradictionMastersExternal}
		if e.Server != "" {
			m.Contradictions = append(m.Contradictions, authn.ContradictionBypass) // waiting for it to be ready
		}
	}
	if e.Server == "" || m.Server != "" {
		for _, f := range m.Contradictions {
			c.expected[m.ID+": "+f] = true
		}
	}
	for i, f := range v.Identity {
		if !slices.Contains(m.Contradictions, f) {
			evidence := ""
			if i < len(v.Evidence) {
				evidence = v.Evidence[i]
			}
			say("found %s (%s), meant %v", f, evidence, m.Contradictions)
		}
		c.found[m.ID+": "+f] = true
	}
}
