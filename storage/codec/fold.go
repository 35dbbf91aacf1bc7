package codec

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/verdict"
)

// Other is verdict.Other.
const Other = verdict.Other

// Keys of sets of groups that are not told apart. Whoever may impersonate makes up subjects and
// their groups: docs/adr/0076. The views of the rollups know both.
const (
	OtherGroups  uint64 = math.MaxUint64     // beyond those of a subject's day
	OtherSubject uint64 = math.MaxUint64 - 1 // the subject is not told apart either, and is called Other
)

// GroupsTold reports whether the key of a set of groups says which groups they are.
func GroupsTold(key uint64) bool { return key < OtherSubject }

// FoldLimits says how many distinct accesses of a day are counted individually. Whoever sends
// requests chooses their names and paths: docs/adr/0076.
type FoldLimits struct {
	Accesses int // of a subject
	Kinds    int // of a subject, of those beyond: resource and namespace without the name
	Cluster  int // accesses of all subjects; kinds have a quarter more
	Held     int // remembered of all clusters and days except the current day
	Agents   int // user agents of a subject
	Clients  int // user agents of all subjects, one that several have counted for each
	Subjects int // whom others acted as; with those who came themselves twice as many, as of the next two
	Groups   int // sets of groups of a subject
	Sets     int // sets of groups of all subjects, one that several have counted for each
	First    int // keys of first-seen rules of a user, as it authenticated
	Firsts   int // of all users
}

//nolint:gochecknoglobals // constant
var usualFolds = FoldLimits{Accesses: 4096, Kinds: 512, Cluster: 1 << 20, Held: 1 << 21, Agents: 64, Clients: 1 << 17, Subjects: 1 << 16,
	Groups: 64, Sets: 1 << 17,
	First: 4096, Firsts: 1 << 20}

// accessDay is a day of requests of a cluster.
type accessDay struct {
	cluster string
	day     uint16
}

// Folds decides what is counted individually: the first accesses of a subject's day. A day begins with what the store has, so that neither
// a restart nor a correction resets it.
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
	sets     map[uint64]struct{}  // sets of groups with their subjects
	subjects map[uint64]countedOf // by hash of the name
	firsts   map[uint64]struct{}  // keys of first-seen rules
	asking   map[uint64]int       // how many of those each user was the first to have, since the day was read
	used     uint64
}

type countedOf struct{ accesses, kinds, agents, sets int }

func newCountedDay(used uint64) *countedDay {
	return &countedDay{keys: map[uint64]struct{}{}, agents: map[uint64]struct{}{}, sets: map[uint64]struct{}{},
		subjects: map[uint64]countedOf{}, firsts: map[uint64]struct{}{}, asking: map[uint64]int{}, used: used}
}

// held is how much is remembered of the day.
func (d *countedDay) held() int {
	return len(d.keys) + len(d.agents) + len(d.sets) + len(d.subjects) + len(d.firsts)
}

// NewFolds returns Folds that remember nothing.
func NewFolds() *Folds { return &Folds{limits: usualFolds, days: map[accessDay]*countedDay{}} }

// Counted is what the store counts individually of a day of a cluster.
type Counted struct {
	Accesses []CountedAccess
	Agents   []CountedAgent
	Sets     []CountedSet
	Firsts   []CountedFirst
}

// CountedAccess is an access that the store counts individually, CountedAgent a user agent,
// CountedSet a subject with a set of groups and CountedFirst a key of a first-seen rule.
type (
	CountedAccess struct {
		Access  uint64
		Subject string
		Kind    bool // resource and namespace, without the name
	}
	CountedAgent struct{ Subject, Agent string }
	CountedSet   struct {
		Subject string
		Groups  uint64
	}
	CountedFirst struct {
		Rule string
		Key  uint64
	}
)

// Most returns how much of each is counted individually of a day of a cluster.
func (l *FoldLimits) Most() (accesses, agents, sets, firsts int) {
	return l.Cluster + l.Cluster/4, l.Clients, 2*l.Sets + 2*l.Subjects, l.Firsts
}

// Begin remembers the days of rows, and reads what the store counts of those not remembered yet.
func (f *Folds) Begin(rows []verdict.Row, read func(cluster string, day uint16, limits FoldLimits) (Counted, error)) error {
	f.mu.Lock()
	f.tick++
	f.mu.Unlock()
	for i := range rows {
		if rows[i].Verdict == nil {
			continue
		}
		at := accessDay{rows[i].Cluster, Day(rows[i].Event.RequestReceivedTimestamp)}
		if f.begun(at) {
			continue
		}
		counted, err := read(at.cluster, at.day, f.limits) // nobody waits meanwhile who has begun the day
		if err != nil {
			return err
		}
		f.begin(at, counted)
	}
	return nil
}

// begun reports whether a day is remembered.
func (f *Folds) begun(at accessDay) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.days[at]
	if d != nil {
		d.used = f.tick
	}
	return d != nil
}

// begin remembers what is counted on a day, unless somebody else has begun it: rows may have been added since.
func (f *Folds) begin(at accessDay, counted Counted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.days[at] != nil {
		return
	}
	d := newCountedDay(f.tick)
	for _, k := range counted.Accesses {
		d.add(xxhash.Sum64String(k.Subject), k.Access, k.Kind)
	}
	for _, c := range counted.Sets {
		d.addSet(xxhash.Sum64String(c.Subject), c.Groups)
	}
	for _, c := range counted.Firsts {
		d.firsts[firstKey(c.Rule, c.Key)] = struct{}{}
	}
	for _, c := range counted.Agents {
		d.addAgent(xxhash.Sum64String(c.Subject), agentKey(c.Subject, c.Agent))
	}
	f.days[at] = d
	f.held += d.held()
	f.forget()
}

// Limit changes how much is counted individually.
func (f *Folds) Limit(change func(*FoldLimits)) { change(&f.limits) }

// Remembered returns how many accesses and user agents are remembered, and of how many days.
func (f *Folds) Remembered() (keys, days int) { return f.held, len(f.days) }

// forget drops the least recently used days while too much is held; the days of the current rows stay.
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

// dayOf returns a day, a new one if it was forgotten meanwhile, as in a block of more days than are held.
func (f *Folds) dayOf(at accessDay) *countedDay {
	d := f.days[at]
	if d == nil {
		d = newCountedDay(f.tick)
		f.days[at] = d
	}
	return d
}

// admit reports whether an access, or a kind, is counted under its own key.
func (f *Folds) admit(at accessDay, subject, key uint64, kind bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.dayOf(at)
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

// admitAgent reports whether a subject's user agent is counted individually.
func (f *Folds) admitAgent(at accessDay, subject, agent string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.dayOf(at)
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

// setKey is a set of groups and whose it is.
func setKey(subject, groups uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], subject)
	binary.LittleEndian.PutUint64(b[8:], groups)
	return xxhash.Sum64(b[:])
}

// admitSet reports whether a subject, and its set of groups, are counted individually. Subjects made up by impersonation leave room for
// those who authenticate.
func (f *Folds) admitSet(at accessDay, name string, groups uint64, acting bool) (subject, set bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, whose, room := f.dayOf(at), xxhash.Sum64String(name), 2
	key := setKey(whose, groups)
	if _, ok := d.sets[key]; ok {
		return true, true
	}
	if acting {
		room = 1
	}
	of, known := d.subjects[whose]
	if !known {
		if len(d.subjects) >= room*f.limits.Subjects {
			return false, false
		}
		d.subjects[whose] = of
		f.held++
	}
	if !GroupsTold(groups) || of.sets >= room*f.limits.Groups || len(d.sets) >= room*f.limits.Sets {
		return true, false
	}
	d.addSet(whose, groups)
	f.held++
	return true, true
}

// addSet remembers a subject and, if it is told, its set of groups.
func (d *countedDay) addSet(subject, groups uint64) {
	of := d.subjects[subject]
	if GroupsTold(groups) {
		of.sets++
		d.sets[setKey(subject, groups)] = struct{}{}
	}
	d.subjects[subject] = of
}

// firstKey is a key of a first-seen rule and which rule's it is.
func firstKey(rule string, key uint64) uint64 { return setKey(xxhash.Sum64String(rule), key) }

// admitFirst reports whether a key of a first-seen rule is kept individually. Of a user's keys those count that it was the first to have on
// the day, since the day was read.
func (f *Folds) admitFirst(at accessDay, user, rule string, key uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, whose := f.dayOf(at), xxhash.Sum64String(user)
	key = firstKey(rule, key)
	if _, ok := d.firsts[key]; ok {
		return true
	}
	if d.asking[whose] >= f.limits.First || len(d.firsts) >= f.limits.Firsts {
		return false
	}
	d.asking[whose]++
	d.firsts[key] = struct{}{}
	f.held++
	return true
}
