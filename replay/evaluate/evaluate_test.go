package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// auditLine returns one event of a masters user: judged without any state.
func auditLine(id, stage, at string) string {
	decision := `,"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""},"responseStatus":{"code":200}`
	if stage == "RequestReceived" {
		decision = ""
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":%q,`+
		`"requestURI":"/api/v1/pods?watch=1","verb":"watch",`+
		`"user":{"username":"root","groups":["system:masters","system:authenticated"]},`+
		`"requestReceivedTimestamp":"2026-05-04T11:00:00.000000Z","stageTimestamp":"2026-05-04T11:00:0%s.000000Z"%s}`,
		id, stage, at, decision)
}

func text(lines ...string) Input {
	return memoryInput("log", []byte(strings.Join(lines, "\n")))
}

func TestOneVerdictPerRequest(t *testing.T) {
	received, started, complete := auditLine("a", "RequestReceived", "0"), auditLine("a", "ResponseStarted", "1"),
		auditLine("a", "ResponseComplete", "9")
	list := func(lines ...string) string {
		return `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[` + strings.Join(lines, ",") + `]}`
	}
	cases := []struct {
		name       string
		inputs     []Input
		want       []string // auditID and stage judged, in order
		events     int64
		duplicates int64
		malformed  int64
	}{
		{"stages fold to the first judged", []Input{text(received, started, complete)}, []string{"a ResponseStarted"}, 3, 0, 0},
		{"order does not matter", []Input{text(complete, received, started)}, []string{"a ResponseComplete"}, 3, 0, 0},
		{"arrival alone is judged at the end", []Input{text(received, auditLine("b", "ResponseComplete", "1"))},
			[]string{"b ResponseComplete", "a RequestReceived"}, 2, 0, 0},
		{"duplicates drop", []Input{text(started, started, complete), text(complete, started)}, []string{"a ResponseStarted"}, 2, 3, 0},
		{"stages over two files", []Input{text(received), text(complete)}, []string{"a ResponseComplete"}, 2, 0, 0},
		{"lists", []Input{text(list(started, auditLine("b", "ResponseComplete", "2")), complete)}, []string{"a ResponseStarted",
			"b ResponseComplete"}, 3, 0, 0},
		{"broken lines are counted", []Input{text("{", started, "[]", list(`{"auditID":5}`, complete), "", "null")},
			[]string{"a ResponseStarted"}, 2, 0, 4},
		{"nothing", []Input{text("")}, nil, 0, 0, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			sum, all := run(t, Options{Events: tc.inputs})
			var got []string
			for _, j := range all {
				got = append(got, j.event.AuditID+" "+string(j.event.Stage))
				want := verdict.OutcomeMatch
				if j.event.Stage == event.StageRequestReceived {
					want = verdict.OutcomeNotJudged
				}
				if j.verdict.Outcome != want {
					t.Errorf("%s is %s", j.event.AuditID, j.verdict.Outcome)
				}
			}
			if strings.Join(got, ", ") != strings.Join(tc.want, ", ") {
				t.Errorf("judged %v, want %v", got, tc.want)
			}
			if sum.Events != tc.events || sum.Duplicates != tc.duplicates || sum.Malformed != tc.malformed ||
				int(sum.Requests) != len(tc.want) {
				t.Errorf("summary %+v", sum)
			}
			if int64(len(sum.MalformedLines)) != tc.malformed {
				t.Errorf("malformed lines %+v", sum.MalformedLines)
			}
		})
	}
}

// An event without a time says nothing of when the log began: what is known from its
// beginning on stays known, wherever such an event stands.
func TestEventWithoutATime(t *testing.T) {
	const refused = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete",` +
		`"requestURI":"/healthz","verb":"get",` +
		`"user":{"username":"nobody","groups":["system:authenticated"]},"requestReceivedTimestamp":"2026-05-04T11:00:00.000000Z",` +
		`"stageTimestamp":"2026-05-04T11:00:00.001000Z",` +
		`"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":""},"responseStatus":{"code":403}}`
	timeless := strings.NewReplacer(`"2026-05-04T11:00:00.000000Z"`, "null", `"2026-05-04T11:00:00.001000Z"`, "null", `"auditID":"a"`,
		`"auditID":"b"`).Replace(refused)
	for name, lines := range map[string][]string{"first": {timeless, refused}, "last": {refused, timeless}} {
		t.Run(name, func(t *testing.T) {
			sum, _ := run(t, Options{FromEmpty: true, Events: []Input{text(lines...)}})
			if sum.Verdicts.Match != 1 || sum.Verdicts.Indeterminate != 1 {
				t.Errorf("verdicts %+v, want one match and one indeterminate", sum.Verdicts)
			}
		})
	}
}

func TestMalformedLinesAreNamed(t *testing.T) {
	long := `{"auditID":"` + strings.Repeat("x", 2000) + `"}`
	sum, _ := run(t, Options{Events: []Input{text(auditLine("a", "ResponseComplete", "1"), "not json", long)}, MaxLine: 1000})
	if len(sum.MalformedLines) != 2 {
		t.Fatalf("got %+v", sum.MalformedLines)
	}
	lines := map[int]string{}
	for _, m := range sum.MalformedLines {
		if m.Input != "log" || m.Error == "" {
			t.Errorf("got %+v", m)
		}
		lines[m.Line] = m.Error
	}
	if lines[2] == "" || !strings.Contains(lines[3], "the limit is 1000") {
		t.Errorf("got %v", lines)
	}
}

func TestForgettingIsBounded(t *testing.T) {
	r := newRecent(4)
	for i := uint64(0); i < 100; i++ {
		if !r.add(event.Hash128{Lo: i}) || r.add(event.Hash128{Lo: i}) {
			t.Fatalf("%d: not new, or not remembered", i)
		}
		if len(r.young)+len(r.old) > 4 {
			t.Fatalf("%d remembered, limit 4", len(r.young)+len(r.old))
		}
	}
	if !r.has(event.Hash128{Lo: 98}) || r.has(event.Hash128{Lo: 1}) {
		t.Error("the newest are remembered, the oldest forgotten")
	}

	f := newFolder(1<<20, false)
	for i := range maxWaiting + 10 {
		b := &batch{items: []item{{event: &event.Event{Stage: event.StageRequestReceived}, request: event.Hash128{Hi: 1, Lo: uint64(i)},
			key: event.Hash128{Hi: 2, Lo: uint64(i)}}}}
		f.fold(b)
		if want := i >= maxWaiting; (len(b.items) == 1) != want {
			t.Fatalf("arrival %d: %d items", i, len(b.items))
		}
	}
	if rest := f.rest(); len(rest.items) != maxWaiting {
		t.Errorf("%d requests left waiting, want %d", len(rest.items), maxWaiting)
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	eng := replay.New(replay.Config{})
	fails := Input{Name: "bad", Open: func() (io.ReadCloser, error) { return nil, broken }}
	halfway := Input{Name: "half", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(auditLine("a", "ResponseComplete", "1")+"\n"), failing{broken})), nil
	}}
	good := text(auditLine("a", "ResponseComplete", "1"))
	cases := []struct {
		name string
		o    Options
		want string
	}{
		{"no engine", Options{}, "no engine"},
		{"events cannot be opened", Options{Engine: eng, Events: []Input{fails}}, "open events bad: disk on fire"},
		{"events cannot be read", Options{Engine: eng, Events: []Input{halfway}}, "read events half: line 2: disk on fire"},
		{"state cannot be opened", Options{Engine: eng, Events: []Input{good}, States: []Input{fails}}, "open state bad: disk on fire"},
		{"state is not a state", Options{Engine: eng, Events: []Input{good},
			States: []Input{memoryInput("s", []byte(`{"kind":"List","apiVersion":"v1","items":[]}`))}}, "no object of a kind"},
		{"state is not JSON", Options{Engine: eng, Events: []Input{good}, States: []Input{memoryInput("s", []byte(`kind: List`))}},
			"read state s"},
		{"sink fails", Options{Engine: eng, Events: []Input{good}, Sink: func(*event.Event, *verdict.Verdict) error { return broken }},
			"write verdict: disk on fire"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Run(context.Background(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Options{Engine: eng, Events: []Input{good}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestSecondsAndProgress(t *testing.T) {
	o := slice(t)
	now := time.Unix(0, 0)
	o.Now = func() time.Time { now = now.Add(time.Second); return now }
	bytes := 0
	o.Progress = func(n int) { bytes += n }
	sum, _ := run(t, o)
	if sum.Seconds != 1 {
		t.Errorf("%v seconds by a clock that was read twice", sum.Seconds)
	}
	if size := len(testfile.Read(t, "testdata/audit.jsonl.zst")); bytes < 2*size-2*int(sum.Events)-2 || bytes > 2*size {
		t.Errorf("progress over %d bytes, two passes over %d", bytes, size)
	}
}

// TestFullRecording needs no state file: the recording begins with an empty cluster.
func TestFullRecording(t *testing.T) {
	sum, all := run(t, Options{FromEmpty: true, Events: []Input{fileInput(filepath.Join(corpus(t), "full-requestresponse.jsonl"))}})
	for _, j := range all {
		if v := j.verdict; v.Outcome == verdict.OutcomeDrift || (v.Outcome == verdict.OutcomeIndeterminate &&
			v.Class != verdict.ClassNodeGraph) {
			t.Errorf("%s %s %s: %s", v.Outcome, v.Class, j.event.RequestURI, v.Cause)
		}
	}
	if sum.Verdicts.Match < 6000 {
		t.Errorf("verdicts %+v", sum.Verdicts)
	}
	// The log shows the making of the cluster: nobody has to say that there was nothing before.
	told := sum.Verdicts
	sum, _ = run(t, Options{Events: []Input{fileInput(filepath.Join(corpus(t), "full-requestresponse.jsonl"))}})
	if sum.Verdicts != told {
		t.Errorf("without being told: %+v, told: %+v", sum.Verdicts, told)
	}
}

// TestStateOfTheCaller: a caller gets the state the requests were judged by, and is told
// everything that went into it, writes first.
func TestStateOfTheCaller(t *testing.T) {
	o := slice(t)
	o.State = state.New("evaluate")
	var writes, listed int
	o.Policy = func(obs []observe.Observation, list bool) {
		if list {
			listed += len(obs)
			return
		}
		if listed > 0 && len(obs) > 0 {
			t.Error("a write after the listing")
		}
		writes += len(obs)
	}
	sum, _ := run(t, o)
	if int64(listed) != sum.StateObjects || int64(writes) < sum.PolicyWrites || writes == 0 {
		t.Errorf("told of %d writes and %d listed objects, read %d and %d", writes, listed, sum.PolicyWrites, sum.StateObjects)
	}
	if o.State.Stats().Objects == 0 {
		t.Error("the caller's state is empty")
	}
}
