package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// TestTamperedSlice and TestTamperedCorpus falsify a recording and expect exactly the
// affected requests to drift: no more, no less.
func TestTamperedSlice(t *testing.T)  { tamper(t, slice(t), 50, 1) }
func TestTamperedCorpus(t *testing.T) { tamper(t, full(t), 1000, 1) }

func tamper(t *testing.T, o Options, n int, seed uint64) {
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	o.Engine = replay.New(replay.Config{})
	_, before := run(t, o)

	removed := tamperBindings(t, o, before, n/20, rng)
	tamperRecords(t, o, before, n-removed, rng)
}

// tamperRecords flips decisions and forges reasons.
func tamperRecords(t *testing.T, o Options, before []judgement, n int, rng *rand.Rand) {
	var matched []int
	var reasons []string
	for i, j := range before {
		if j.verdict.Outcome != verdict.OutcomeMatch {
			continue
		}
		matched = append(matched, i)
		if j.verdict.RecordedReason != "" {
			reasons = append(reasons, j.verdict.RecordedReason)
		}
	}
	rng.Shuffle(len(matched), func(i, k int) { matched[i], matched[k] = matched[k], matched[i] })
	if n > len(matched) {
		t.Fatalf("%d matches, %d tamperings wanted", len(matched), n)
	}

	type forgery struct{ decision, reason, class string }
	forged := map[event.Hash128]forgery{}
	for _, i := range matched[:n] {
		v := before[i].verdict
		f := forgery{decision: v.Recorded.String(), reason: v.RecordedReason, class: verdict.ClassReason}
		switch rng.IntN(3) {
		case 0: // flipped
			f.decision, f.reason, f.class = "allow", reasons[rng.IntN(len(reasons))], verdict.ClassForbidAllow
			if v.Recorded == verdict.DecisionAllow {
				f.decision, f.reason = "forbid", ""
			} else {
				f.class = verdict.ClassAllowForbid
			}
		case 1: // a reason some other request had
			for f.reason = reasons[rng.IntN(len(reasons))]; explained(v, f.reason); {
				f.reason = reasons[rng.IntN(len(reasons))]
			}
		case 2: // a reason nobody had
			f.reason = fmt.Sprintf(`RBAC: allowed by ClusterRoleBinding "forged-%d" of ClusterRole "cluster-admin" to User "mallory"`, i)
		}
		forged[event.RequestKey("", before[i].event)] = f
	}

	o.Events = []Input{memoryInput("tampered", rewritten(t, o.Events[0], func(e *event.Event) {
		if f, ok := forged[event.RequestKey("", e)]; ok {
			e.Annotations = e.Annotations.Set(event.AnnotationDecision, f.decision).Set(event.AnnotationReason, f.reason)
		}
	}))}
	_, after := run(t, o)
	drifted, raced := 0, 0
	for i := range after {
		was, is := before[i].verdict, after[i].verdict
		f, ok := forged[event.RequestKey("", after[i].event)]
		switch {
		case !ok && (was.Outcome != is.Outcome || was.Class != is.Class):
			t.Errorf("untouched %s %s: was %s, is %s: %s", after[i].event.Verb, after[i].event.RequestURI, was.Outcome, is.Outcome,
				is.Cause)
		case !ok:
		case is.Outcome == verdict.OutcomeDrift && is.Class == f.class:
			drifted++
		case is.Outcome == verdict.OutcomeAmbiguous:
			raced++ // the policy did change around it, and the forgery fits one side
		default:
			t.Errorf("forged %s %s to %s %q: %s %s, want drift %s", after[i].event.Verb, after[i].event.RequestURI, f.decision, f.reason,
				is.Outcome, is.Class, f.class)
		}
		if was.Replayed != is.Replayed {
			t.Errorf("%s: the record changed the replica's decision", after[i].event.RequestURI)
		}
	}
	t.Logf("%d records forged: %d drift, %d ambiguous", n, drifted, raced)
	if drifted+raced != n || raced > n/50 {
		t.Errorf("%d forged, %d drift, %d ambiguous", n, drifted, raced)
	}
}

// explained reports whether one of a verdict's grants has that reason.
func explained(v *verdict.Verdict, reason string) bool {
	for i := range v.Grants {
		if v.Grants[i].Reason == reason {
			return true
		}
	}
	return false
}

// binding is a RoleBinding or ClusterRoleBinding as recorded reasons name it.
type binding struct{ kind, namespace, name string }

// prefix returns how every reason that names the binding begins.
func (b binding) prefix() string {
	name := b.name
	if b.kind == "RoleBinding" {
		name += "/" + b.namespace
	}
	return "RBAC: allowed by " + b.kind + " " + strconv.Quote(name) + " of "
}

// tamperBindings lets bindings never have existed, one at a time, and returns how many: the
// binding is taken out of the state file, and its writes out of what the state is built
// from.
func tamperBindings(t *testing.T, o Options, before []judgement, n int, rng *rand.Rand) int {
	seen := map[binding]bool{}
	var used []binding
	for _, j := range before {
		for _, g := range j.verdict.Grants {
			b := binding{g.BindingKind, g.BindingNamespace, g.Binding}
			if g.Reason == j.verdict.RecordedReason && !seen[b] {
				seen[b] = true
				used = append(used, b)
			}
		}
	}
	rng.Shuffle(len(used), func(i, k int) { used[i], used[k] = used[k], used[i] })
	if n > len(used) {
		n = len(used)
	}
	total := 0
	for _, gone := range used[:n] {
		after := judged(t, o, stateWithout(t, o, gone))
		affected := 0
		for i := range after {
			was, is := before[i].verdict, after[i].verdict
			changed := was.Outcome != is.Outcome || was.Class != is.Class
			switch {
			case was.Outcome == verdict.OutcomeMatch && strings.HasPrefix(was.RecordedReason, gone.prefix()):
				affected++
				if is.Outcome != verdict.OutcomeDrift || (is.Class != verdict.ClassAllowForbid && is.Class != verdict.ClassReason) {
					t.Errorf("without %v: %s %s is %s %s, want drift", gone, after[i].event.Verb, after[i].event.RequestURI, is.Outcome,
						is.Class)
				}
			case !changed:
			case is.Class == verdict.ClassImpersonation && was.Impersonation != nil && granted(was.Impersonation.Grants, gone):
			case is.Class == verdict.ClassReason && strings.Contains(was.RecordedReason, " not found"):
				// the binding's role had gone, and the refusal said so
			case was.Outcome == verdict.OutcomeAmbiguous:
			default:
				t.Errorf("without %v: untouched %s %s was %s, is %s: %s", gone, after[i].event.Verb, after[i].event.RequestURI, was.Outcome,
					is.Outcome, is.Cause)
			}
		}
		if affected == 0 {
			t.Errorf("without %v: nothing was affected", gone)
		}
		total += affected
	}
	t.Logf("%d bindings removed one at a time, %d requests affected", n, total)
	return n
}

// judged runs the second pass alone, against a given state.
func judged(t *testing.T, o Options, st *state.State) []judgement {
	t.Helper()
	o.Cluster, o.Workers, o.Remember, o.Progress = "test", 2, 1<<20, func(int) {}
	var out []judgement
	o.Sink = func(e *event.Event, v *verdict.Verdict) error {
		out = append(out, judgement{e, v})
		return nil
	}
	if err := o.judge(context.Background(), st, newSummary(o.Engine)); err != nil {
		t.Fatal(err)
	}
	return out
}

// stateWithout returns the state of the inputs if the binding had never existed: it is taken out
// of the state file and out of what the log's writes say.
func stateWithout(t *testing.T, o Options, gone binding) *state.State {
	t.Helper()
	resource := strings.ToLower(gone.kind) + "s.rbac.authorization.k8s.io"
	st := state.New("test")
	var since time.Time
	rewritten(t, o.Events[0], func(e *event.Event) {
		if since.IsZero() || e.RequestReceivedTimestamp.Before(since) {
			since = e.RequestReceivedTimestamp
		}
		if !event.KeepsPolicy(e) {
			return
		}
		obs, err := observe.FromEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		st.Apply(slices.DeleteFunc(obs, func(o observe.Observation) bool {
			return o.Resource == resource && o.Namespace == gone.namespace && o.Name == gone.name
		})...)
	})
	snap, err := readSnapshot(memoryInput("state", without(stateItems(t, o.States[0]), gone)))
	if err != nil {
		t.Fatal(err)
	}
	snap.Since = since
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	return st
}

// stateItems returns the objects of a state file.
func stateItems(t *testing.T, in Input) []json.RawMessage {
	t.Helper()
	r, err := in.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list struct{ Items []json.RawMessage }
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// without returns a state file of all items but one binding.
func without(items []json.RawMessage, gone binding) []byte {
	kept := make([]json.RawMessage, 0, len(items))
	for _, raw := range items {
		var o struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(raw, &o); err == nil && (binding{o.Kind, o.Metadata.Namespace, o.Metadata.Name}) == gone {
			continue
		}
		kept = append(kept, raw)
	}
	out, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": kept})
	return out
}

func granted(grants []verdict.Grant, b binding) bool {
	for i := range grants {
		if (binding{grants[i].BindingKind, grants[i].BindingNamespace, grants[i].Binding}) == b {
			return true
		}
	}
	return false
}

// rewritten returns the log with every event changed by edit.
func rewritten(t testing.TB, in Input, edit func(*event.Event)) []byte {
	t.Helper()
	r, err := in.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []byte
	lines := event.NewLines(r, 0)
	for {
		raw, _, err := lines.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		edit(e)
		out = append(event.AppendJSON(out, e), '\n')
	}
}
