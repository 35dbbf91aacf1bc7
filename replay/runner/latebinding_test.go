package runner

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

// whoWhere is whom a RoleBinding may concern: a user in a namespace.
type whoWhere struct{ user, namespace string }

// dayOfEvents fills a store with a recording, repeated through a day, and counts the requests
// of each user in each namespace, and of them those that a role would allow, since a time.
func dayOfEvents(b *testing.B, p *pipeline, store Store, rounds int,
	since time.Duration) (total int, day time.Time, all, refused map[whoWhere]int) {
	b.Helper()
	engine := replay.New(replay.Config{})
	s, err := p.State(b.Context(), sample, latest)
	if err != nil {
		b.Fatal(err)
	}
	all, refused = map[whoWhere]int{}, map[whoWhere]int{}
	log := bytes.Split(bytes.TrimSpace(testfile.Read(b, filepath.Join("..", "..", "internal", "sample", "audit.jsonl"))), []byte("\n"))
	for round := range rounds {
		rows := make([]verdict.Row, 0, 20_000)
		flush := func() {
			if len(rows) == 0 {
				return
			}
			for part := range int32(4) {
				of := slices.DeleteFunc(slices.Clone(rows), func(r verdict.Row) bool { return r.Position.Partition != part })
				if err := store.Insert(b.Context(), fmt.Sprintf("bench/%d/%d/%d", round, part, total), of); err != nil {
					b.Fatal(err)
				}
			}
			rows = rows[:0]
		}
		seen := map[event.Hash128]bool{}
		for i, line := range log {
			row, err := storagetest.Row(sample, line, event.Position{Epoch: 1, Partition: int32(i % 4), Offset: int64(round*len(log) + i)},
				time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
			if err != nil {
				b.Fatal(err)
			}
			e := row.Event
			if day.IsZero() {
				day = e.RequestReceivedTimestamp
			}
			shift := time.Duration(round) * 24 * time.Hour / time.Duration(rounds)
			e.RequestReceivedTimestamp, e.StageTimestamp = e.RequestReceivedTimestamp.Add(shift), e.StageTimestamp.Add(shift)
			row.Request = event.RequestKey(sample, e)
			row.EventKey = event.EventKey(row.Request, e)
			if !replay.Judged(e) || seen[row.Request] {
				continue
			}
			seen[row.Request] = true
			row.Verdict = engine.Replay(e, s)
			who := whoWhere{e.EffectiveUser().Username, row.Verdict.Attributes.Namespace}
			if e.RequestReceivedTimestamp.Sub(day) >= since {
				all[who]++
				if row.Verdict.Replayed == verdict.DecisionForbid && row.Verdict.Attributes.ResourceRequest && who.namespace != "" {
					refused[who]++
				}
			}
			if rows = append(rows, row); len(rows) == cap(rows) {
				flush()
			}
			total++
		}
		flush()
	}
	return total, day, all, refused
}

// BenchmarkLateBinding: one RoleBinding becomes known after a day of events it was there for.
// What is visited, and judged again, are the requests of its subject in its namespace.
func BenchmarkLateBinding(b *testing.B) {
	const rounds, since = 8, 6 * time.Hour
	store := storagetest.Open(b)
	p := newPipeline(b, startBroker(b), store)
	defer p.stop()
	dir := filepath.Join("..", "..", "internal", "sample")
	m := materialOf(b, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "state.json"), nil)
	p.send(b, m.snapshot...)
	p.send(b, m.policy...)
	p.drain(b)
	total, day, all, refused := dayOfEvents(b, p, store, rounds, since)
	candidates := make([]whoWhere, 0, len(refused))
	for who := range refused {
		candidates = append(candidates, who)
	}
	slices.SortFunc(candidates, func(x, y whoWhere) int {
		return cmp.Or(cmp.Compare(refused[y], refused[x]), cmp.Compare(x.user, y.user), cmp.Compare(x.namespace, y.namespace))
	})
	if len(candidates) == 0 {
		b.Fatal("nobody was refused")
	}
	var subject, visited, corrected float64
	var used time.Duration
	n := 0
	for b.Loop() {
		if n == len(candidates) {
			b.Fatalf("only %d users can be given a role", n)
		}
		who := candidates[n]
		at := day.Add(since)
		object := fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"late",`+
			`"namespace":%q,"uid":"late-%d","resourceVersion":"%d"},`+
			`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}],`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`, who.namespace, n,
			900_000_000+n, who.user)
		o := observe.Observation{Source: observe.SourceAudit, Resource: kept.RoleBindings, Namespace: who.namespace,
			Name: fmt.Sprintf("late-%d", n), UID: fmt.Sprintf("late-%d", n),
			ResourceVersion: fmt.Sprint(900_000_000 + n), Object: []byte(object), NotBefore: at, NotAfter: at}
		before, began := p.life.sums(b), perevent.CPU()
		p.send(b, stream.PolicyRecord(stream.KindObservation, sample, "import", at, o.Append(nil)))
		p.drain(b)
		used += perevent.CPU() - began
		after := p.life.sums(b)
		v := after["retrial_runner_rejudged_total"] - before["retrial_runner_rejudged_total"]
		c := after["retrial_runner_corrections_total"] - before["retrial_runner_corrections_total"]
		if c == 0 || c > v || v > float64(all[who]) {
			b.Errorf("%s in %s: %v rows visited and %v corrected, of %d that are its subject's", who.user, who.namespace, v, c, all[who])
		}
		subject, visited, corrected = subject+float64(all[who]), visited+v, corrected+c
		n++
	}
	b.ReportMetric(float64(total), "stored")
	b.ReportMetric(subject/float64(n), "of-subject/op")
	b.ReportMetric(visited/float64(n), "visited/op")
	b.ReportMetric(corrected/float64(n), "rewritten/op")
	b.ReportMetric(float64(used.Milliseconds())/float64(n), "cpu-ms/op")
}
