package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/completeness"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
)

const (
	// clockRange is how much of the newest events clocks are compared by, traitsRange how much the audit policy is: role writes are rare.
	clockRange  = time.Hour
	traitsRange = 24 * time.Hour
	// skewAhead is how far a sender's clock may be ahead, and slowest how late the quickest
	// event may be: batches wait 30 s by default.
	skewAhead = time.Second
	slowest   = time.Minute
	// manyEvents are enough to conclude from what is not among them.
	manyEvents = 1000
)

// clusterChecks returns the steps of its connection, and what its events tell.
func (a *Service) clusterChecks(ctx context.Context, cluster string, stored []queries.Cluster) (Checks, error) {
	f, err := a.connectionFacts(ctx, cluster, stored)
	if err != nil {
		return nil, err
	}
	var c Checks
	imported := errors.Is(f.Registered, identity.ErrUnknown) && f.Stored.Events > 0
	for _, s := range f.Steps() {
		if imported && s.ID != StepFirstEvent && s.ID != StepState && s.ID != StepCoverage {
			continue // a log imported by hand connects nothing
		}
		if s.ID == StepCounted {
			continue // completeness reports it, and more
		}
		state := map[string]string{StateDone: CheckOK, StateWaiting: CheckWarn, StateFailed: CheckFail}[s.State]
		if state == CheckOK && s.Todo != "" {
			state = CheckWarn
		}
		c.Add(s.ID, state, s.Todo, "%s", s.Text)
	}
	if !imported {
		f.certificateCheck(&c)
	}
	a.Site.watchCheck(&c, &f)
	a.Site.apiserverCheck(&c, cluster)
	st, err := a.Replay.State(ctx, cluster, query.Latest)
	if err != nil {
		return nil, err
	}
	if st != nil {
		unknownCheck(&c, cluster, st)
		a.versionCheck(&c, cluster, st)
	}
	a.cacheLagCheck(&c, cluster)
	if err := a.Site.OtherwiseCheck(ctx, &c, cluster); err != nil {
		return nil, err
	}
	if err := a.completenessCheck(ctx, &c, &f, imported); err != nil {
		return nil, err
	}
	if f.Stored.Events > 0 {
		last := f.Stored.Last.Add(time.Minute)
		recent, err := a.Store.LogTraits(ctx, cluster, last.Add(-clockRange), last)
		if err != nil {
			return nil, err
		}
		clockCheck(&c, recent)
		day, err := a.Store.LogTraits(ctx, cluster, last.Add(-traitsRange), last)
		if err != nil {
			return nil, err
		}
		policyChecks(&c, day, f.Watched)
		if err := a.aggregatedCheck(ctx, &c, cluster, last); err != nil {
			return nil, err
		}
	}
	for i := range c {
		c[i].Cluster = cluster
	}
	return c, nil
}

func (f *connectionFacts) certificateCheck(c *Checks) {
	last := f.validUntil()
	if last.IsZero() || f.Entry.Revoked != nil {
		return
	}
	if state, todo := expiry(f.Now, last, warnLeaf); todo {
		c.Add("certificate", state, f.rotateCommand(), "Its certificate is valid until %s.", last.Format(time.DateOnly))
	}
}

// clockCheck compares the sender's clock with this machine's, by how long the quickest event
// took to arrive.
func clockCheck(c *Checks, t queries.LogTraits) {
	const id = "clock"
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
	switch {
	case t.Live == 0:
	case t.MinDelay < -skewAhead:
		c.Add(id, CheckWarn, "Synchronise the clocks: requests are judged by the policy at their own time, by the apiserver's clock.",
			"Events come from the future: the apiserver's clock is at least %s ahead of this machine's.", round(-t.MinDelay))
	case t.MinDelay > slowest:
		c.Add(id, CheckWarn, "Synchronise the clocks; if they agree, the apiserver's log shows why it cannot post sooner.",
			"No event took less than %s to arrive: the apiserver's clock is behind, or it posts late.", round(t.MinDelay))
	default:
		c.Add(id, CheckOK, "", "The median event arrives within %s.", round(max(0, t.MedianDelay)))
	}
}

// policyChecks reports what the audit policy leaves out or should. A watch learns the content of roles and bindings written without a body.
func policyChecks(c *Checks, t queries.LogTraits, watched bool) {
	const id = "audit-policy"
	const shipped = "The policy that retrial connect writes (deploy/audit-policy.yaml) does it."
	before := len(*c)
	warn := func(todo, format string, args ...any) { c.Add(id, CheckWarn, todo, format, args...) }
	if t.PolicyBlind > 0 && !watched {
		warn("Log writes to rbac.authorization.k8s.io at level RequestResponse, then import a fresh state. "+shipped,
			"%s of %s to roles and bindings were recorded without what they wrote.", phrase.Thousands(t.PolicyBlind),
			phrase.Count(t.PolicyWrites, "write"))
	}
	if t.Received > 0 {
		warn("Omit the stage RequestReceived. "+shipped, "%s of the stage RequestReceived hold nothing that is judged.",
			phrase.Count(t.Received, "event"))
	}
	if t.SecretBodies > 0 {
		warn("Log Secrets, tokens and token reviews at level Metadata. "+shipped,
			"%s about Secrets or tokens arrived with bodies. They are redacted here, but not where else the log is sent.",
			phrase.Count(t.SecretBodies, "request"))
	}
	if t.Truncated > 0 {
		warn("Remove --audit-webhook-truncate-enabled, or raise --audit-webhook-truncate-max-event-size.",
			"The apiserver cut the bodies off %s.", phrase.Count(t.Truncated, "event"))
	}
	if t.Events >= manyEvents && t.Complete == 0 {
		c.Add(id, CheckFail, "Omit no stage except RequestReceived.", "None of %s is of the stage ResponseComplete.", phrase.Count(t.Events,
			"event"))
	}
	if t.Events >= manyEvents && t.Reads == 0 {
		warn("Log reads at level Metadata, or suggestions remove rights that are only used to read. "+shipped, "None of %s is a read.",
			phrase.Count(t.Events, "event"))
	}
	if len(*c) == before {
		c.Add(id, CheckOK, "", "Nothing is missing in the events of the newest day.")
	}
}

func (s Site) watchCheck(c *Checks, f *connectionFacts) {
	if !f.Watched || s.Metrics == nil {
		return
	}
	var behind []string
	for resource, synced := range s.watched("retrial_watch_synced", f.Cluster, "resource") {
		if synced == 0 {
			behind = append(behind, resource)
		}
	}
	slices.Sort(behind)
	if len(behind) == 0 {
		c.Add("watch", CheckOK, "", "All kinds are listed and watched.")
		return
	}
	reasons := s.watched("retrial_watch_errors_total", f.Cluster, "reason")
	maps.DeleteFunc(reasons, func(_ string, n float64) bool { return n == 0 })
	text, state, todo := "Not watched at this moment: "+strings.Join(behind, ", ")+".", CheckWarn,
		"The server's log shows what the watch waits for."
	if len(reasons) > 0 {
		state = CheckFail
		names := slices.Sorted(maps.Keys(reasons))
		text += " Failures so far: " + strings.Join(names, ", ") + "."
		for _, w := range []struct{ reason, todo string }{
			{"unavailable", "The cluster of the kubeconfig cannot be reached, or refuses: see the server's log."},
			{"unauthorized", "The kubeconfig's token is wrong or expired: create another, see docs/connect.md."},
			{"forbidden", "kubectl apply -f deploy/watch-rbac.yaml"},
			{"other-cluster", "The kubeconfig leads to another cluster than the one whose state is known under this name."},
		} {
			if _, ok := reasons[w.reason]; ok {
				todo = w.todo
			}
		}
	}
	c.Add("watch", state, todo, "%s", text)
}

// completenessCheck reports what is missing of the last hour, for clusters that post. It warns as
// long as that is not known.
func (a *Service) completenessCheck(ctx context.Context, c *Checks, f *connectionFacts, imported bool) error {
	const id = "completeness"
	r, err := LastHour(ctx, a.Store, a.Site, f.Cluster, a.Site.time())
	if err != nil {
		return err
	}
	posts := slices.ContainsFunc(r.Servers, func(s completeness.Server) bool { return !s.LastPost.IsZero() || s.Measured != nil })
	asked := len(a.Site.Scraped(f.Cluster)) > 0
	if !posts && !asked && imported {
		return nil
	}
	step := f.countedStep()
	told := 0
	for _, p := range r.Problems {
		switch {
		case p.Severity == completeness.Note:
		case p.Kind == completeness.KindUnread && step.State == StateDone: // it was read since that hour
		case p.Severity == completeness.Fail && p.Kind != completeness.KindSilent:
			c.Add(id, CheckFail, p.Todo, "%s", p.Text)
			told++
		default:
			c.Add(id, CheckWarn, p.Todo, "%s", p.Text)
			told++
		}
	}
	var sent int64
	measured := 0
	for _, s := range r.Servers {
		if s.Measured != nil {
			measured++
			sent += s.Measured.Sent
		}
	}
	switch {
	case told > 0 && (measured > 0 || asked):
	case measured == 0 && asked && step.State == StateDone:
		c.Add(id, CheckWarn, "Wait: two readings are compared, once the events between them cannot be under way any more.",
			"What its apiservers sent is being read, and not known yet.")
	case measured == 0:
		c.Add(id, CheckWarn, step.Todo, "%s", step.Text)
	default:
		text := fmt.Sprintf("Of %s of the last hour none is known to be missing, by the metrics of %s.", phrase.Count(sent, "event"),
			phrase.Count(int64(measured), "apiserver"))
		for _, p := range r.Problems {
			if p.Kind == completeness.KindMissing { // dropped, but stored
				text += " " + p.Text
			}
		}
		c.Add(id, CheckOK, "", "%s", text)
	}
	return nil
}

// OtherwiseCheck reports such requests of a cluster.
func (s Site) OtherwiseCheck(ctx context.Context, c *Checks, cluster string) error {
	if s.Otherwise == nil {
		return nil
	}
	found, err := s.Otherwise(ctx, cluster)
	if err != nil {
		return err
	}
	for _, j := range found {
		c.Add("judged-otherwise", CheckWarn, j.Command,
			"%s since %s were judged by another configuration of the apiserver than is known now.", phrase.Count(j.Requests, "request"),
			j.Since.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkRange is the part of the stream that is compared with what was sent.
const checkRange = time.Hour

// LastHour returns the report of the last hour, as metrics and doctor tell it.
func LastHour(ctx context.Context, store completeness.Store, s Site, cluster string, now time.Time) (completeness.Report, error) {
	q := completeness.Question{Cluster: cluster, Now: now, Scraped: s.Scraped(cluster)}
	settled := now.Add(-completeness.Settle)
	q.From, q.To = settled.Add(-checkRange), settled
	return completeness.Check(ctx, store, completeness.Config{}, q)
}

// mostObjects is how many objects a check names.
const mostObjects = 3

func stateImport(cluster string) string {
	return query.StateListing + " && " + query.StateImport(cluster)
}

// unknownCheck names the roles and bindings whose content is not known: drift of the subjects they could concern is not detected.
func unknownCheck(c *Checks, cluster string, s *state.State) {
	const id = "policy-known"
	view := s.RBAC(query.Latest)
	anybody, role := view.Blind()
	named := func(keys []rbacindex.Key) string {
		var texts []string
		for _, k := range keys[:min(len(keys), mostObjects)] {
			text := authz.UnknownName(k)
			if why := s.Reason(k, query.Latest); why != "" {
				text += " (" + why + ")"
			}
			texts = append(texts, safe.Text(text))
		}
		if more := len(keys) - mostObjects; more > 0 {
			texts = append(texts, "and "+phrase.Count(int64(more), "other"))
		}
		return strings.Join(texts, "; ")
	}
	if len(anybody) > 0 {
		c.Add(id, CheckFail, stateImport(cluster), "Drift is not detected: no refusal is certain, because it is not known what these "+
			"bindings give to whom: %s.", named(anybody))
	}
	if len(role) > 0 {
		c.Add(id, CheckWarn, stateImport(cluster), "It is not known what these roles give to whom: %s.", named(role))
	}
	if len(anybody)+len(role) == 0 && len(view.UnknownKinds) == 0 {
		c.Add(id, CheckOK, "", "Every role and binding is known.")
	}
}
