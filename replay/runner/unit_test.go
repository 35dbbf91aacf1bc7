package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  Config
		want string // part of the error; empty: none
	}{
		{"zero value", Config{}, ""},
		{"no hold and no linger", Config{Hold: -1, Linger: -1}, ""},
		{"block larger than the budget", Config{BatchBytes: 1 << 20, InFlightBytes: 1 << 10}, "no block would fit"},
		{"negative batch", Config{BatchRecords: -1}, "batch records is -1"},
		{"two contradictions", Config{Parallel: -1, RetryMin: time.Minute}, "retry minimum 1m0s above maximum 10s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.cfg.withDefaults()
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("error %v, want one with %q", err, tc.want)
			case tc.cfg.Hold < 0 && got.Hold != 0:
				t.Fatalf("hold %s, want none", got.Hold)
			}
		})
	}
}

// Merged lookups select whatever the single ones select.
func TestMergedFiltersCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	names := func(prefix string, n int) (list []string) {
		for range rng.IntN(n) {
			list = union(list, []string{fmt.Sprint(prefix, rng.IntN(6))})
		}
		return list
	}
	at := func() time.Time { return simBase.Add(time.Duration(rng.IntN(600)) * time.Second) }
	for round := range 300 {
		var filters []verdict.AffectedFilter
		for range 1 + rng.IntN(30+round*2) {
			f := verdict.AffectedFilter{Cluster: "c", From: at(), Users: names("u", 3), Groups: names("g", 3), Namespaces: names("n", 3)}
			if rng.IntN(3) == 0 {
				f = verdict.AffectedFilter{Cluster: "c", From: f.From, Credentials: []string{fmt.Sprint("JTI=", rng.IntN(600))}}
			}
			if rng.IntN(3) > 0 {
				f.To = f.From.Add(time.Duration(rng.IntN(100)) * time.Second)
			}
			if rng.IntN(4) > 0 {
				f.Ended = f.From.Add(time.Duration(rng.IntN(100)) * time.Second)
			}
			filters = append(filters, f)
		}
		merged := mergeFilters(filters)
		if len(merged) > 2*maxFilters {
			t.Fatalf("round %d: %d lookups", round, len(merged))
		}
		for range 100 {
			row := verdict.Row{Cluster: "c", Verdict: &verdict.Verdict{Attributes: verdict.Attributes{Namespace: fmt.Sprint("n",
				rng.IntN(6))}, Credential: fmt.Sprint("JTI=", rng.IntN(600))},
				Event: &event.Event{RequestReceivedTimestamp: at(), StageTimestamp: at(),
					User: event.User{Username: fmt.Sprint("u", rng.IntN(6)), Groups: names("g", 4)}}}
			any := func(list []verdict.AffectedFilter) bool {
				for _, f := range list {
					f.Partitions = []int32{0}
					if selects(f, &row) {
						return true
					}
				}
				return false
			}
			if any(filters) && !any(merged) {
				t.Fatalf("round %d: %+v selected by %+v but not by %+v", round, row.Event, filters, merged)
			}
		}
	}
}

// A lookup travels in a URL: subjects without number must not make it one no server takes,
// which would be asked again forever.
func TestLookupsAreBounded(t *testing.T) {
	binding := func(name, role string, users ...string) observe.Observation {
		var subjects []string
		for _, u := range users {
			subjects = append(subjects, fmt.Sprintf(`{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}`, u))
		}
		return observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: name, UID: name,
			ResourceVersion: "1",
			NotBefore:       simBase, NotAfter: simBase.Add(time.Millisecond), Object: []byte(fmt.Sprintf(
				`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q},"subjects":[%s],`+
					`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q}}`,
				name, strings.Join(subjects, ","), role))}
	}
	var many []string
	for i := range maxNames + 1 {
		many = append(many, fmt.Sprint("user-", i))
	}
	for _, tc := range []struct {
		name  string
		users []string
		asks  int // users asked for; 0: everybody
	}{
		{"few", []string{"a", "b"}, 2},
		{"many", many, 0},
		{"long", []string{strings.Repeat("x", maxNameBytes+1)}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := New(Config{}, nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, ok := r.changeOf("c", 0, 0, time.Time{}, state.New("c").Apply(binding("b", "r", tc.users...)))
			if !ok || len(c.filters) != 1 || len(c.filters[0].Users) != tc.asks {
				t.Fatalf("change %+v, want %d users", c, tc.asks)
			}
		})
	}
}

// An operation that fails again and again shows in a metric and in an error for a person,
// until it succeeds.
func TestStuckOperationShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		r, err := New(Config{Log: zap.New(core)}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		stuck := func() float64 {
			var m dto.Metric
			if err := r.metrics.stuck.WithLabelValues(opInsert).Write(&m); err != nil {
				t.Fatal(err)
			}
			return m.GetGauge().GetValue()
		}
		attempts := 0
		failures, err := r.retry(t.Context(), opInsert, func() error {
			attempts++
			if want := attempts > stuckAfter; (stuck() == 1) != want {
				t.Errorf("attempt %d: stuck is %v", attempts, !want)
			}
			if attempts > stuckAfter+2 {
				return nil
			}
			return errors.New("refused")
		})
		if err != nil || failures != stuckAfter+2 || logs.Len() != 1 || stuck() != 0 {
			t.Errorf("%d failures, error %v, %d errors logged, stuck %v afterwards", failures, err, logs.Len(), stuck())
		}
	})
}

// A clock set back while a record is held must not hold it longer: when it is due has a
// monotonic reading, and lies within a hold of the fetch.
func TestDueIgnoresClocksSetBack(t *testing.T) {
	r, err := New(Config{Hold: 2 * time.Second}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{r: r, fetched: time.Now()}
	for _, tc := range []struct {
		name string
		age  time.Duration // when it was fetched
		wait time.Duration
	}{
		{"just appended", 0, 2 * time.Second},
		{"half way", time.Second, time.Second},
		{"old", time.Hour, 0},
		{"from the future", -time.Hour, 2 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			due := l.due(&stream.Record{Appended: l.fetched.Add(-tc.age).Round(0)})
			if got := due.Sub(l.fetched).Round(time.Millisecond); got != tc.wait {
				t.Errorf("due %s after the fetch, want %s", got, tc.wait)
			}
			if due == due.Round(0) {
				t.Error("due is a wall clock's time alone")
			}
		})
	}
}

func TestChangesForgetTheOldest(t *testing.T) {
	l := newChanges(4)
	for offset := range int64(10) {
		l.add(0, offset+1, []change{{partition: 0, offset: offset, cluster: "ab"[offset%2 : offset%2+1]}})
	}
	l.add(1, 5, nil)
	for _, tc := range []struct {
		name      string
		cursor    map[int32]int64
		found     int
		forgotten map[string]offsets
	}{
		{"never corrected", nil, 4, map[string]offsets{"a": {0: 5}, "b": {0: 6}}},
		{"further behind than the log", map[int32]int64{0: 3}, 4, map[string]offsets{"a": {0: 5}, "b": {0: 6}}},
		{"as far behind as the log, of one cluster", map[int32]int64{0: 5}, 4, map[string]offsets{"b": {0: 6}}},
		{"within the log", map[int32]int64{0: 9}, 1, nil},
		{"up to date", map[int32]int64{0: 10, 1: 5}, 0, nil},
		{"ahead of what is loaded", map[int32]int64{0: 12}, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, next, forgotten := l.since(tc.cursor)
			if !maps.EqualFunc(forgotten, tc.forgotten, maps.Equal) || len(found) != tc.found {
				t.Errorf("found %d, forgotten below %v, want %d, %v", len(found), forgotten, tc.found, tc.forgotten)
			}
			if next[0] < 10 || next[0] < tc.cursor[0] || next[1] != 5 {
				t.Errorf("next cursor %v", next)
			}
		})
	}
	if l.size() > 4 {
		t.Errorf("%d changes held, limit 4", l.size())
	}
}

// A panic of the engine costs one event, not the partition, and nothing vanishes.
func TestPanicBecomesDeadLetter(t *testing.T) {
	r, err := New(Config{}, nil, panics{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := simBase
	var records []stream.Record
	for i := range 5 {
		rec := streamtest.EventRecord("c", "webhook", "", at,
			requestEvent(i, i, 0, event.StageResponseComplete, at, time.Millisecond, true))
		rec.Topic, rec.Position = stream.TopicEvents, event.Position{Partition: 2, Offset: int64(10 + 2*i)}
		records = append(records, rec)
	}
	heldState(r.states, "c")
	b := &block{first: 10, last: 18, records: records}
	r.decode(b, 3, new(decoders))
	b.classify(nil)
	r.judge(b, 3)
	if len(b.rows) != 4 || len(b.letters) != 1 {
		t.Fatalf("%d rows and %d dead letters, want 4 and 1", len(b.rows), len(b.letters))
	}
	l := b.letters[0]
	if l.Position != (event.Position{Epoch: 3, Partition: -5, Offset: 16}) || !strings.Contains(l.Detail, "panicked") ||
		l.Reason != reasonPoison {
		t.Errorf("dead letter %+v", l)
	}
}

// A policy write whose body cannot be read happened all the same: its object is unknown from
// then on, not as it was before.
func TestUnreadablePolicyWriteMakesItsObjectUnknown(t *testing.T) {
	store := &policyKept{}
	source := &simSource{newSimLog(simPlan{}, 1, 1), &life{world: &simWorld{}, instant: true}}
	r, err := New(Config{}, source, replay.New(replay.Config{}), store)
	if err != nil {
		t.Fatal(err)
	}
	known := workload.BindRole("b", 1000, 0, 1, simBase, false)
	broken := workload.BindRole("b", 1001, 0, 1, simBase.Add(time.Minute), false)
	broken.Verb, broken.RequestURI = "update", broken.RequestURI+"/b"
	broken.ResponseObject = []byte(`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":["b"]}}`)
	s := heldState(r.states, "c")
	var records []stream.Record
	for i, e := range []*event.Event{known, broken} {
		rec := streamtest.PolicyEventRecord("c", "webhook", "", simBase, e)
		rec.Position.Offset = int64(i)
		records = append(records, rec)
	}
	if err := r.applyPolicy(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if len(store.letters) != 1 || len(store.versions) != 2 {
		t.Errorf("%d dead letters and %d versions, want 1 and 2", len(store.letters), len(store.versions))
	}
	for _, tc := range []struct {
		after time.Duration
		want  state.Known
	}{{30 * time.Second, state.Present}, {2 * time.Minute, state.Unknown}} {
		if _, got := s.Version(kept.RoleBindings, "ns1", "b", simBase.Add(tc.after)); got != tc.want {
			t.Errorf("after %s it is %s, want %s", tc.after, got, tc.want)
		}
	}
}

// policyKept keeps what is saved of policy.
type policyKept struct {
	Store
	versions []verdict.PolicyVersion
	letters  []verdict.StoredDeadLetter
}

func (p *policyKept) SavePolicy(_ context.Context, v []verdict.PolicyVersion) error {
	p.versions = append(p.versions, v...)
	return nil
}

func (p *policyKept) SaveDeadLetters(_ context.Context, _ string, l []verdict.StoredDeadLetter) error {
	p.letters = append(p.letters, l...)
	return nil
}

type panics struct{ Engine }

func (panics) ReplayWithin(_ *replay.Allowance, e *event.Event, _ *state.State) *verdict.Verdict {
	if e.User.Username == "user3" {
		panic("bug")
	}
	return &verdict.Verdict{}
}

// A block holds no more than its bounds say, and one record however large.
func TestCutRespectsBounds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sizes []int
		want  []int
	}{
		{"by records", []int{1, 1, 1, 1, 1}, []int{3, 2}},
		{"by bytes", []int{60, 60, 30}, []int{1, 2}},
		{"one too large", []int{500, 1}, []int{1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := New(Config{BatchRecords: 3, BatchBytes: 100, Hold: -1}, nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := &lane{r: r}
			for i, size := range tc.sizes {
				l.queue = append(l.queue, stream.Record{Value: make([]byte, size), Position: event.Position{Offset: int64(i)}})
			}
			var got []int
			for len(l.queue) > 0 {
				got = append(got, len(l.cut().records))
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("blocks of %v, want %v", got, tc.want)
			}
		})
	}
}

// panickyTagger stands for a rule that meets what nobody thought of.
type panickyTagger struct{}

func (panickyTagger) Tag(string, *event.Event, *verdict.Verdict) []verdict.Mark { panic("a bug") }

// TestTaggerPanics: the verdict stands, without marks, and the bug is counted.
func TestTaggerPanics(t *testing.T) {
	reg := prometheus.NewRegistry()
	r, err := New(Config{Tagger: panickyTagger{}, Registerer: reg}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if marks := r.tag(&verdict.Row{Event: &event.Event{}, Verdict: &verdict.Verdict{}}); marks != nil {
		t.Errorf("marks %v", marks)
	}
	if got := (&life{reg: reg}).sums(t)["retrial_runner_replay_panics_total"]; got != 1 {
		t.Errorf("%v panics counted", got)
	}
}
