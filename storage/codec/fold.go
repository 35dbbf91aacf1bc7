package codec

import (
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/verdict"
)

// Other stands for what is not counted by itself: as the name of an access, for any object of
// its kind and namespace; as verb and path, for anything. No method and no path is written so.
const Other = "(other)"

// FoldLimits say how many distinct accesses of a day are counted by themselves. Whoever sends
// requests chooses their names and paths: docs/adr/0076.
type FoldLimits struct {
	Accesses int // of a subject
	Kinds    int // of a subject, of those beyond: resource and namespace without the name
	Cluster  int // accesses of all subjects; kinds have a quarter more
	Held     int // remembered of all clusters and days, the day at hand aside
	Agents   int // user agents of a subject
	Clients  int // user agents of all subjects, one that several have counted for each
}

var usualFolds = FoldLimits{Accesses: 4096, Kinds: 512, Cluster: 1 << 20, Held: 1 << 21, Agents: 64, Clients: 1 << 17} //nolint:gochecknoglobals // constant

// accessDay is a day of requests of a cluster.
type accessDay struct {
	cluster string
	day     uint16
}

// Folds decides what is counted by itself: the first accesses of a subject's day. A day is
// begun with what the store has, so that neither a restart nor a correction begins it anew.
type Folds struct {
	limits FoldLimits

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

// NewFolds returns Folds that remember nothing.
func NewFolds() *Folds { return &Folds{limits: usualFolds, days: map[accessDay]*countedDay{}} }

// CountedAccess is an access that the store counts by itself, and countedAgent a user agent.
type (
	CountedAccess struct {
		Access  uint64
		Subject string
		Kind    bool // resource and namespace, without the name
	}
	CountedAgent struct{ Subject, Agent string }
)

// Begin remembers the days of rows, and has the store say what it counts of those that are not remembered: at most so many accesses
// and user agents.
func (f *Folds) Begin(rows []verdict.Row, read func(cluster string, day uint16, accesses, agents int) ([]CountedAccess, []CountedAgent, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tick++
	for i := range rows {
		if rows[i].Verdict == nil {
			continue
		}
		at := accessDay{rows[i].Cluster, Day(rows[i].Event.RequestReceivedTimestamp)}
		if d := f.days[at]; d != nil {
			d.used = f.tick
			continue
		}
		accesses, agents, err := read(at.cluster, at.day, f.limits.Cluster+f.limits.Cluster/4, f.limits.Clients)
		if err != nil {
			return err
		}
		d := newCountedDay(f.tick)
		for _, k := range accesses {
			d.add(xxhash.Sum64String(k.Subject), k.Access, k.Kind)
		}
		for _, c := range agents {
			d.addAgent(xxhash.Sum64String(c.Subject), agentKey(c.Subject, c.Agent))
		}
		f.days[at] = d
		f.held += d.held()
		f.forget()
	}
	return nil
}

// Limit sets how much is counted by itself.
func (f *Folds) Limit(change func(*FoldLimits)) { change(&f.limits) }

// Remembered is how many accesses and user agents are remembered, and of how many days.
func (f *Folds) Remembered() (keys, days int) { return f.held, len(f.days) }

// forget drops the days that were not used for longest while too much is held; what the rows
// at hand are of stays.
func (f *Folds) forget() {
	for f.held > f.limits.Held {
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
func (f *Folds) admit(at accessDay, subject, key uint64, kind bool) bool {
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
	if kind && (of.kinds >= f.limits.Kinds || len(d.keys) >= f.limits.Cluster+f.limits.Cluster/4) ||
		!kind && (of.accesses >= f.limits.Accesses || len(d.keys) >= f.limits.Cluster) {
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
func (f *Folds) admitAgent(at accessDay, subject, agent string) bool {
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
	if d.subjects[whose].agents >= f.limits.Agents || len(d.agents) >= f.limits.Clients {
		return false
	}
	d.addAgent(whose, key)
	f.held++
	return true
}

// countAgent returns the bit of a row whose user agent is counted with others. A row that is stored,
// or the one it replaces, is counted as it was.
func (b *Block) countAgent(r *verdict.Row, subject string) uint8 {
	switch {
	case r.AgentOther:
		return shapeAgentOther
	case len(r.Counted) > 0 || refusedNobody(subject, r.Verdict): // the view knows nobody
		return 0
	case b.folds.admitAgent(accessDay{r.Cluster, Day(r.Event.RequestReceivedTimestamp)}, subject, r.Event.UserAgent):
		return 0
	}
	b.FoldedAs["agent"]++
	return shapeAgentOther
}

// counted is what a request or a check is counted under.
type counted struct {
	key        uint64
	name, path string
}

// count returns what an access is counted under. was are the keys the row, or the one it
// replaces, has in the store: what it was counted under it is counted under.
func (b *Block) count(r *verdict.Row, subject string, groups uint64, a *verdict.Attributes, was []uint64) counted {
	own := counted{name: FoldName(a.Name), path: FoldPath(a.Path)}
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
		b.FoldedAs["nobody"]++
		return other()
	}
	at, whose := accessDay{r.Cluster, Day(r.Event.RequestReceivedTimestamp)}, xxhash.Sum64String(subject)
	if b.folds.admit(at, whose, own.key, false) {
		return own
	}
	if a.ResourceRequest {
		if c := kind(); b.folds.admit(at, whose, c.key, true) {
			b.FoldedAs["kind"]++
			return c
		}
	}
	b.FoldedAs["other"]++
	return other()
}

// refusedNobody tells whether a request of nobody in particular was refused, or failed to say
// whose it is. Anybody who reaches the apiserver sends as many of them as he likes.
func refusedNobody(subject string, v *verdict.Verdict) bool {
	return (subject == "" || subject == kubenames.Anonymous) && v.Recorded != verdict.DecisionAllow
}
