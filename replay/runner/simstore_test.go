package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

var (
	errCrashed = errors.New("process crashed")
	errFault   = errors.New("injected fault")
)

// simRows is the store of the simulation: an events table whose rows only pile up, a rollup
// that is fed by the same blocks but in a step of its own, tokens that make each of the two
// steps happen once per day of a block, insertions that land after their caller was told
// that they failed, and a policy table.
type simRows struct {
	mutant string

	mu       sync.Mutex
	rows     []verdict.Row
	rollup   map[rollupKey]int
	tokens   map[string]bool
	inflight map[int32]int // insertions that may still land, by partition
	landed   chan struct{} // closed and replaced when one of them has
	policy   map[policyKey]verdict.PolicyVersion
	letters  map[event.Position]verdict.StoredDeadLetter
	jobs     []verdict.RejudgeJob
}

type rollupKey struct {
	partition     int32
	day           string
	cluster, user string
	outcome       string // "" counts the rows of later stages
	grants        string
}

type policyKey struct {
	at    event.Position
	index int32
}

func newSimRows(mutant string) *simRows {
	return &simRows{
		mutant: mutant, rollup: map[rollupKey]int{}, tokens: map[string]bool{}, inflight: map[int32]int{},
		landed: make(chan struct{}), policy: map[policyKey]verdict.PolicyVersion{}, letters: map[event.Position]verdict.StoredDeadLetter{},
	}
}

// keyOf returns where a row counts in the rollup.
func keyOf(r *verdict.Row) rollupKey {
	k := rollupKey{partition: r.Position.Partition, day: r.Event.RequestReceivedTimestamp.UTC().Format(time.DateOnly),
		cluster: r.Cluster, user: r.Event.EffectiveUser().Username}
	if r.Verdict != nil {
		k.outcome = r.Verdict.Outcome.String()
		for _, g := range r.Verdict.Grants {
			k.grants += g.Binding + " "
		}
	}
	return k
}

// rollupOf counts rows from scratch.
func rollupOf(rows []verdict.Row) map[rollupKey]int {
	m := map[rollupKey]int{}
	for i := range rows {
		m[keyOf(&rows[i])] += int(rows[i].Sign)
	}
	maps.DeleteFunc(m, func(_ rollupKey, n int) bool { return n == 0 })
	return m
}

// version tells the versions of a row apart.
type rowVersion struct {
	key      event.Hash128
	at       event.Position
	revision uint64
	content  event.Hash128
}

// standing returns the rows whose signs do not cancel, each as often as it stands.
func (s *simRows) standing() []verdict.Row {
	sum := map[rowVersion]int{}
	for i := range s.rows {
		r := &s.rows[i]
		sum[rowVersion{r.EventKey, r.Position, r.Revision, r.Content}] += int(r.Sign)
	}
	var out []verdict.Row
	for i := range s.rows {
		r := s.rows[i]
		v := rowVersion{r.EventKey, r.Position, r.Revision, r.Content}
		if r.Sign > 0 && sum[v] > 0 {
			sum[v]--
			out = append(out, r)
		}
	}
	return out
}

// visible is standing for those who do not hold the lock.
func (s *simRows) visible() []verdict.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing()
}

// landEvents and landRollup write the part of a block that belongs to one
// day, in the two steps a store has. The step in between is where a crash leaves rows without their rollup.
func (s *simRows) landEvents(token, day string, rows []verdict.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.once("events/" + token + "/" + day) {
		s.rows = append(s.rows, rows...)
	}
}

func (s *simRows) landRollup(token, day string, rows []verdict.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.once("rollup/" + token + "/" + day) {
		for i := range rows {
			s.rollup[keyOf(&rows[i])] += int(rows[i].Sign)
		}
	}
}

func (s *simRows) once(token string) bool {
	if s.mutant == mutantNoToken {
		return true
	}
	first := !s.tokens[token]
	s.tokens[token] = true
	return first
}

// days splits a block by the day of its requests, in order.
func splitDays(rows []verdict.Row) (days []string, parts map[string][]verdict.Row) {
	parts = map[string][]verdict.Row{}
	for i := range rows {
		d := rows[i].Event.RequestReceivedTimestamp.UTC().Format(time.DateOnly)
		parts[d] = append(parts[d], rows[i])
	}
	return slices.Sorted(maps.Keys(parts)), parts
}

// simStore is one process's connection to the rows.
type simStore struct {
	*simRows
	life *life
}

// actorOf names the owner of a partition: it does one thing at a time.
func actorOf(topic string, partition int32) string { return fmt.Sprint(topic, "/", partition) }

func (s *simStore) Insert(ctx context.Context, token string, rows []verdict.Row) error {
	partition := rows[0].Position.Partition
	actor := actorOf(stream.TopicEvents, partition)
	if err := s.life.step(ctx, actor, "insert"); err != nil {
		return err
	}
	rows = slices.Clone(rows)
	for i := range rows { // an event's memory is the next block's
		e, err := event.Decode(event.AppendJSON(nil, rows[i].Event))
		if err != nil {
			return err
		}
		e.Server = rows[i].Event.Server
		rows[i].Event = e
	}
	days, parts := splitDays(rows)
	fault := s.life.fault(actor, 15)
	late := fault && s.life.intn(actor, 10) < 3
	if late {
		// The client gives up, the server does not.
		s.mu.Lock()
		s.inflight[partition]++
		s.mu.Unlock()
		delay := time.Duration(s.life.intn(actor, 8000)) * time.Millisecond
		s.life.world.background.Go(func() {
			time.Sleep(delay)
			for _, d := range days {
				s.landEvents(token, d, parts[d])
				s.landRollup(token, d, parts[d])
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.inflight[partition]--
			close(s.landed)
			s.landed = make(chan struct{})
		})
		return fmt.Errorf("insert %s: %w, lands in %s", token, errFault, delay)
	}
	stop := -1 // steps done before the failure
	if fault {
		stop = s.life.intn(actor, 2*len(days)+1)
	}
	for i, d := range days {
		if stop == 2*i {
			return fmt.Errorf("insert %s: %w before day %d", token, errFault, i)
		}
		s.landEvents(token, d, parts[d])
		if err := s.life.step(ctx, actor, "insert: between table and rollup"); err != nil {
			return err
		}
		if stop == 2*i+1 {
			return fmt.Errorf("insert %s: %w before the rollup of day %d", token, errFault, i)
		}
		s.landRollup(token, d, parts[d])
		if err := s.life.step(ctx, actor, "insert: after rollup"); err != nil {
			return err
		}
	}
	if fault {
		return fmt.Errorf("insert %s: %w after all of it", token, errFault)
	}
	return nil
}

func (s *simStore) Known(ctx context.Context, rows []verdict.Row) ([]verdict.KnownRow, error) {
	if err := s.life.flaky(ctx, actorOf(stream.TopicEvents, rows[0].Position.Partition), "known"); err != nil {
		return nil, err
	}
	if s.mutant == mutantNoKnown {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	want := map[event.Hash128]bool{}
	for i := range rows {
		want[rows[i].Request] = true
	}
	var out []verdict.KnownRow
	for _, r := range s.standing() {
		if want[r.Request] {
			out = append(out, verdict.KnownRow{Cluster: r.Cluster, EventKey: r.EventKey, Request: r.Request,
				Received: r.Event.RequestReceivedTimestamp, Position: r.Position,
				Content: r.Content, Size: r.Size, HasVerdict: r.Verdict != nil, Revision: r.Revision})
		}
	}
	return out, nil
}

func (s *simStore) Standing(ctx context.Context, known []verdict.KnownRow, visit func(verdict.Row) error) error {
	if err := s.life.flaky(ctx, actorOf(stream.TopicEvents, known[0].Position.Partition), "standing"); err != nil {
		return err
	}
	want := map[event.Hash128]bool{}
	for _, k := range known {
		want[k.EventKey] = true
	}
	s.mu.Lock()
	rows := s.standing()
	s.mu.Unlock()
	for _, r := range rows {
		if want[r.EventKey] {
			if err := visit(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *simStore) Recover(ctx context.Context, partition int32, _ uint32, days []time.Time) error {
	if err := s.life.flaky(ctx, actorOf(stream.TopicEvents, partition), "recover"); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		landed, waiting := s.landed, s.inflight[partition] > 0
		s.mu.Unlock()
		if !waiting {
			break
		}
		select {
		case <-landed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.mutant == mutantNoRecover {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	want := map[string]bool{}
	for _, d := range days {
		want[d.Format(time.DateOnly)] = true
	}
	touched := func(k rollupKey, _ int) bool { return k.partition == partition && want[k.day] }
	maps.DeleteFunc(s.rollup, touched)
	for k, n := range rollupOf(s.rows) {
		if touched(k, n) {
			s.rollup[k] = n
		}
	}
	return nil
}

func (s *simStore) Spans(ctx context.Context, partition int32) ([]verdict.Span, error) {
	if err := s.life.flaky(ctx, actorOf(stream.TopicEvents, partition), "spans"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	byCluster := map[string]span{}
	for _, r := range s.standing() {
		if r.Position.Partition != partition {
			continue
		}
		one := spansOf([]verdict.Row{r})[r.Cluster]
		if known, ok := byCluster[r.Cluster]; ok {
			one = known.with(one)
		}
		byCluster[r.Cluster] = one
	}
	var out []verdict.Span
	for cluster, sp := range byCluster {
		out = append(out, verdict.Span{Cluster: cluster, From: sp.from, To: sp.to})
	}
	return out, nil
}

func (s *simStore) Affected(ctx context.Context, f verdict.AffectedFilter, visit func(verdict.Row) error) error {
	actor := actorOf(stream.TopicEvents, f.Partitions[0])
	if err := s.life.flaky(ctx, actor, "affected"); err != nil {
		return err
	}
	if s.mutant == mutantNoCorrection {
		return nil
	}
	s.mu.Lock()
	rows := s.standing()
	s.mu.Unlock()
	for _, r := range rows {
		if r.Verdict == nil || !selects(f, &r) {
			continue
		}
		if s.life.fault(actor, 1) {
			return fmt.Errorf("affected: %w in the middle", errFault)
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// selects returns the filter as verdict.AffectedFilter words it.
func selects(f verdict.AffectedFilter, r *verdict.Row) bool {
	at := r.Event.RequestReceivedTimestamp
	if f.Cluster != r.Cluster || !slices.Contains(f.Partitions, r.Position.Partition) ||
		at.Before(f.From) || !f.To.IsZero() && at.After(f.To) ||
		at.Before(f.Ended) && r.Event.StageTimestamp.Before(f.Ended) {
		return false
	}
	if len(f.Namespaces) > 0 && r.Event.ImpersonatedUser == nil && !slices.Contains(f.Namespaces, r.Verdict.Attributes.Namespace) {
		return false
	}
	only := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	if v := r.Verdict; !only(f.Credentials, v.Credential) || !only(f.Only.Outcomes, v.Outcome.String()) || !only(f.Only.Classes, v.Class) ||
		!only(f.Only.Verbs, v.Attributes.Verb) || !only(f.Only.Resources, v.Attributes.Resource) || !only(f.Only.Namespaces,
		v.Attributes.Namespace) {
		return false
	}
	if len(f.Users)+len(f.Groups) == 0 {
		return true
	}
	named := func(u *event.User) bool {
		return slices.Contains(f.Users, u.Username) || slices.ContainsFunc(u.Groups, func(g string) bool {
			return slices.Contains(f.Groups, g)
		})
	}
	return named(&r.Event.User) || r.Event.ImpersonatedUser != nil && named(r.Event.ImpersonatedUser)
}

func (s *simStore) SavePolicy(ctx context.Context, versions []verdict.PolicyVersion) error {
	if err := s.life.flaky(ctx, stream.TopicPolicy, "save policy"); err != nil {
		return err
	}
	s.mu.Lock()
	for _, v := range versions {
		s.policy[policyKey{v.Position, v.Index}] = v
	}
	s.mu.Unlock()
	return s.life.step(ctx, stream.TopicPolicy, "policy saved")
}

func (s *simStore) LoadPolicy(ctx context.Context, clusters []string, visit func(verdict.PolicyVersion) error) error {
	actor := "load " + strings.Join(clusters, " ")
	if err := s.life.flaky(ctx, actor, "load policy"); err != nil {
		return err
	}
	list := s.sortedPolicy()
	if s.mutant == mutantStaleTable {
		list = list[:len(list)/2]
	}
	for _, v := range list {
		if !slices.Contains(clusters, v.Cluster) {
			continue
		}
		if err := visit(v); err != nil {
			return err
		}
	}
	return s.life.flaky(ctx, actor, "policy loaded")
}

func (s *simStore) PolicyEnds(ctx context.Context) (map[int32]event.Position, error) {
	if err := s.life.flaky(ctx, stream.TopicPolicy, "policy ends"); err != nil {
		return nil, err
	}
	ends := map[int32]event.Position{}
	for _, v := range s.sortedPolicy() {
		v.Position.Offset++
		ends[v.Position.Partition] = v.Position
	}
	return ends, nil
}

func (s *simStore) PolicyClusters(context.Context) (clusters []string, err error) {
	for _, v := range s.sortedPolicy() {
		clusters = append(clusters, v.Cluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters), nil
}

// sortedPolicy returns what is stored as of now, in order.
func (s *simStore) sortedPolicy() (list []verdict.PolicyVersion) {
	s.mu.Lock()
	policy := maps.Clone(s.policy) // another process may be saving
	s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(policy), func(a, b policyKey) int {
		switch {
		case a.at.Epoch != b.at.Epoch:
			return int(a.at.Epoch) - int(b.at.Epoch)
		case a.at.Partition != b.at.Partition:
			return int(a.at.Partition - b.at.Partition)
		case a.at.Offset != b.at.Offset:
			return int(a.at.Offset - b.at.Offset)
		}
		return int(a.index - b.index)
	})
	for _, k := range keys {
		list = append(list, policy[k])
	}
	return list
}

func (s *simStore) SaveDeadLetters(ctx context.Context, _ string, letters []verdict.StoredDeadLetter) error {
	actor := actorOf("letters", letters[0].Position.Partition)
	if err := s.life.flaky(ctx, actor, "save dead letters"); err != nil {
		return err
	}
	s.mu.Lock()
	for _, l := range letters {
		s.letters[l.Position] = l
	}
	s.mu.Unlock()
	return s.life.step(ctx, actor, "dead letters saved")
}

func (s *simStore) SaveRejudge(ctx context.Context, r verdict.Rejudge) error {
	if err := s.life.flaky(ctx, "jobs", "save job"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, verdict.RejudgeJob{Rejudge: r})
	return nil
}

func (s *simStore) SaveRejudgeProgress(ctx context.Context, _, id string, p verdict.RejudgeProgress) error {
	actor := fmt.Sprint("partition ", p.Partition)
	if err := s.life.flaky(ctx, actor, "save progress"); err != nil {
		return err
	}
	s.mu.Lock()
	for i := range s.jobs {
		if s.jobs[i].ID != id {
			continue
		}
		list := slices.DeleteFunc(slices.Clone(s.jobs[i].Progress), func(o verdict.RejudgeProgress) bool {
			return o.Partition == p.Partition && o.Version <= p.Version
		})
		if !slices.ContainsFunc(list, func(o verdict.RejudgeProgress) bool { return o.Partition == p.Partition }) {
			list = append(list, p)
		}
		s.jobs[i].Progress = list
	}
	s.mu.Unlock()
	return s.life.step(ctx, actor, "progress saved")
}

func (s *simStore) Rejudges(context.Context) ([]verdict.RejudgeJob, error) {
	if s.life.dead() {
		return nil, errCrashed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.jobs), nil
}

func (s *simStore) SameVerdict(a, b *verdict.Verdict) bool { return codec.SameVerdict(a, b) }
