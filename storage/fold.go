package storage

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/verdict"
)

// Other stands for what is not counted by itself: as the name of an access, for any object of
// its kind and namespace; as verb and path, for anything. No method and no path is written so.
const Other = "(other)"

// foldLimits say how many distinct accesses of a day are counted by themselves. Whoever sends
// requests chooses their names and paths: docs/adr/0076.
type foldLimits struct {
	accesses int // of a subject
	kinds    int // of a subject, of those beyond: resource and namespace without the name
	cluster  int // accesses of all subjects; kinds have a quarter more
	held     int // remembered of all clusters and days, the day at hand aside
	agents   int // user agents of a subject
	clients  int // user agents of all subjects, one that several have counted for each
}

var usualFolds = foldLimits{accesses: 4096, kinds: 512, cluster: 1 << 20, held: 1 << 21, agents: 64, clients: 1 << 17} //nolint:gochecknoglobals // constant

// accessDay is a day of requests of a cluster.
type accessDay struct {
	cluster string
	day     uint16
}

// folds decides what is counted by itself: the first accesses of a subject's day. A day is
// begun with what the store has, so that neither a restart nor a correction begins it anew.
type folds struct {
	limits foldLimits

	mu   sync.Mutex
	days map[accessDay]*countedDay
	held int    // keys of all days
	tick uint64 // of the last use of any day
}

// countedDay are the accesses and kinds of a day that are counted.
type countedDay struct {
	keys     map[uint64]struct{}
	agents   map[uint64]struct{}  // user agents with their subjects
	subjects map[uint64]countedOf // by hash of the name; of keys and agents only
	used     uint64
}

type countedOf struct{ accesses, kinds, agents int }

func newCountedDay(used uint64) *countedDay {
	return &countedDay{keys: map[uint64]struct{}{}, agents: map[uint64]struct{}{}, subjects: map[uint64]countedOf{}, used: used}
}

// held is how much is remembered of the day.
func (d *countedDay) held() int { return len(d.keys) + len(d.agents) }

func newFolds() *folds { return &folds{limits: usualFolds, days: map[accessDay]*countedDay{}} }

// countedQuery has what is counted of a day: whose, what, and whether it is a kind.
const countedQuery = `SELECT access, any(subject) AS subject, toUInt8(any(name) = '` + Other + `') AS kind
FROM %[1]s.accesses
WHERE access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND path != '` + Other + `'
GROUP BY access LIMIT {limit:UInt32}`

// agentsQuery has the user agents of a day that are counted by themselves, and whose they are.
const agentsQuery = `SELECT subject, user_agent
FROM %[1]s.activity
WHERE cluster = {cluster:String} AND toUInt16(toDate(slot)) = {day:UInt16} AND user_agent != '` + Other + `'
GROUP BY subject, user_agent LIMIT {limit:UInt32}`

// begin reads what the store has of the days of rows that are not remembered.
func (s *Store) begin(ctx context.Context, rows []verdict.Row) error {
	f := s.folds
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tick++
	for i := range rows {
		if rows[i].Verdict == nil {
			continue
		}
		at := accessDay{rows[i].Cluster, day(rows[i].Event.RequestReceivedTimestamp)}
		if d := f.days[at]; d != nil {
			d.used = f.tick
			continue
		}
		type known struct {
			access  uint64
			subject string
			kind    uint8
		}
		p := clickhouse.Parameters{"cluster": text(at.cluster), "day": fmt.Sprint(at.day), "limit": fmt.Sprint(f.limits.cluster + f.limits.cluster/4)}
		list, err := collect(ctx, s, countedQuery, p, func(k *known) ([]any, func()) { return []any{&k.access, &k.subject, &k.kind}, nil })
		if err != nil {
			return fmt.Errorf("read the accesses of a day: %w", err)
		}
		d := newCountedDay(f.tick)
		for _, k := range list {
			d.add(xxhash.Sum64String(k.subject), k.access, k.kind != 0)
		}
		type client struct{ subject, agent string }
		p["limit"] = fmt.Sprint(f.limits.clients)
		clients, err := collect(ctx, s, agentsQuery, p, func(c *client) ([]any, func()) { return []any{&c.subject, &c.agent}, nil })
		if err != nil {
			return fmt.Errorf("read the user agents of a day: %w", err)
		}
		for _, c := range clients {
			d.addAgent(xxhash.Sum64String(c.subject), agentKey(c.subject, c.agent))
		}
		f.days[at] = d
		f.held += d.held()
		f.forget()
	}
	return nil
}

// forget drops the days that were not used for longest while too much is held; what the rows
// at hand are of stays.
func (f *folds) forget() {
	for f.held > f.limits.held {
		var oldest accessDay
		used := f.tick
		for at, d := range f.days {
			if d.used < used {
				oldest, used = at, d.used
			}
		}
		if used == f.tick {
			return
		}
		f.held -= f.days[oldest].held()
		delete(f.days, oldest)
	}
}

func (d *countedDay) add(subject, key uint64, kind bool) {
	of := d.subjects[subject]
	if kind {
		of.kinds++
	} else {
		of.accesses++
	}
	d.subjects[subject], d.keys[key] = of, struct{}{}
}

// admit tells whether an access, or a kind, is counted under its own key.
func (f *folds) admit(at accessDay, subject, key uint64, kind bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.days[at]
	if d == nil { // forgotten meanwhile: a block of more days than are held
		d = newCountedDay(f.tick)
		f.days[at] = d
	}
	if _, ok := d.keys[key]; ok {
		return true
	}
	of := d.subjects[subject]
	if kind && (of.kinds >= f.limits.kinds || len(d.keys) >= f.limits.cluster+f.limits.cluster/4) ||
		!kind && (of.accesses >= f.limits.accesses || len(d.keys) >= f.limits.cluster) {
		return false
	}
	d.add(subject, key, kind)
	f.held++
	return true
}

func (d *countedDay) addAgent(subject, key uint64) {
	of := d.subjects[subject]
	of.agents++
	d.subjects[subject], d.agents[key] = of, struct{}{}
}

// agentKey is a user agent and whose it is.
func agentKey(subject, agent string) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(subject)
	_, _ = d.WriteString("\x00")
	_, _ = d.WriteString(agent)
	return d.Sum64()
}

// admitAgent tells whether a subject's user agent is counted by itself.
func (f *folds) admitAgent(at accessDay, subject, agent string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.days[at]
	if d == nil {
		d = newCountedDay(f.tick)
		f.days[at] = d
	}
	key, whose := agentKey(subject, agent), xxhash.Sum64String(subject)
	if _, ok := d.agents[key]; ok {
		return true
	}
	if d.subjects[whose].agents >= f.limits.agents || len(d.agents) >= f.limits.clients {
		return false
	}
	d.addAgent(whose, key)
	f.held++
	return true
}

// countAgent returns the bit of a row whose user agent is counted with others. A row that is stored,
// or the one it replaces, is counted as it was.
func (b *block) countAgent(r *verdict.Row, subject string) uint8 {
	switch {
	case r.AgentOther:
		return shapeAgentOther
	case len(r.Counted) > 0 || refusedNobody(subject, r.Verdict): // the view knows nobody
		return 0
	case b.folds.admitAgent(accessDay{r.Cluster, day(r.Event.RequestReceivedTimestamp)}, subject, r.Event.UserAgent):
		return 0
	}
	b.foldedAs["agent"]++
	return shapeAgentOther
}

// counted is what a request or a check is counted under.
type counted struct {
	key        uint64
	name, path string
}

// count returns what an access is counted under. was are the keys the row, or the one it
// replaces, has in the store: what it was counted under it is counted under.
func (b *block) count(r *verdict.Row, subject string, groups uint64, a *verdict.Attributes, was []uint64) counted {
	own := counted{name: foldName(a.Name), path: foldPath(a.Path)}
	own.key = accessKey(&b.hash, subject, groups, a, own.name, own.path)
	kind := func() counted {
		return counted{accessKey(&b.hash, subject, groups, a, Other, own.path), Other, own.path}
	}
	other := func() counted {
		return counted{accessKey(&b.hash, subject, groups, &verdict.Attributes{Verb: Other}, "", Other), "", Other}
	}
	if len(was) > 0 {
		for _, c := range [...]counted{own, kind(), other()} {
			if slices.Contains(was, c.key) {
				return c
			}
		}
	}
	if refusedNobody(subject, r.Verdict) {
		b.foldedAs["nobody"]++
		return other()
	}
	at, whose := accessDay{r.Cluster, day(r.Event.RequestReceivedTimestamp)}, xxhash.Sum64String(subject)
	if b.folds.admit(at, whose, own.key, false) {
		return own
	}
	if a.ResourceRequest {
		if c := kind(); b.folds.admit(at, whose, c.key, true) {
			b.foldedAs["kind"]++
			return c
		}
	}
	b.foldedAs["other"]++
	return other()
}

// refusedNobody tells whether a request of nobody in particular was refused, or failed to say
// whose it is. Anybody who reaches the apiserver sends as many of them as he likes.
func refusedNobody(subject string, v *verdict.Verdict) bool {
	return (subject == "" || subject == "system:anonymous") && v.Recorded != verdict.DecisionAllow
}
