package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

type driftKey struct {
	server, class, cause, missing, reason, config string
	outcome                                       verdict.Outcome
	recorded, replayed                            verdict.Decision
	code                                          int32
}

type driftGroup struct {
	queries.Drift
	users map[string]*earliest
}

// earliest is the first request of a user in a group.
type earliest struct {
	queries.DriftExample
	request string
}

// DriftGroups returns what is drift, ambiguous or indeterminate, grouped by all that the verdicts say, most requests of an outcome first.
func (s *Store) DriftGroups(ctx context.Context, _ string, from, to time.Time, examples, limit int) ([]queries.Drift, error) {
	groups := map[driftKey]*driftGroup{}
	err := s.judged(ctx, from, to, func(row *verdict.Row) error {
		switch row.Verdict.Outcome {
		case verdict.OutcomeMatch, verdict.OutcomeNotJudged:
		default:
			add(groups, row)
		}
		return nil
	})
	out := make([]queries.Drift, 0, len(groups))
	for _, g := range groups {
		out = append(out, g.done(examples))
	}
	slices.SortFunc(out, func(a, b queries.Drift) int {
		return cmp.Or(strings.Compare(a.Outcome.String(), b.Outcome.String()), cmp.Compare(b.Requests, a.Requests),
			strings.Compare(a.Class, b.Class), strings.Compare(a.Cause, b.Cause), slices.Compare(a.Missing, b.Missing),
			strings.Compare(a.RecordedReason, b.RecordedReason), strings.Compare(a.APIServer, b.APIServer),
			cmp.Compare(a.Code, b.Code), strings.Compare(a.Config, b.Config))
	})
	return out[:min(limit, len(out))], err
}

func add(groups map[driftKey]*driftGroup, row *verdict.Row) {
	e, v := row.Event, row.Verdict
	cause, missing := v.Cause, codec.FoldMissing(v.Missing)
	if v.Outcome == verdict.OutcomeIndeterminate {
		cause = "" // it is that of each example
	}
	k := driftKey{
		row.APIServer, v.Class, cause, strings.Join(missing, "\x00"), v.RecordedReason, v.Config,
		v.Outcome, v.Recorded, v.Replayed, e.Code(),
	}
	at, user := micro(e.RequestReceivedTimestamp), e.EffectiveUser().Username
	g := groups[k]
	if g == nil {
		g = &driftGroup{users: map[string]*earliest{}, Drift: queries.Drift{
			APIServer: row.APIServer, Outcome: v.Outcome, Class: v.Class, Cause: cause, Missing: missing,
			Recorded: v.Recorded, Replayed: v.Replayed, RecordedReason: v.RecordedReason,
			Code: e.Code(), Config: v.Config, First: at, Last: at,
		}}
		groups[k] = g
	}
	g.Requests++
	widen(&g.First, &g.Last, at)
	x, request := g.users[user], row.Request.String()
	if x == nil {
		x = &earliest{}
		g.users[user] = x
	} else if c := at.Compare(x.At); c > 0 || c == 0 && request >= x.request {
		return
	}
	*x = earliest{queries.DriftExample{AuditID: e.AuditID, User: user, Verb: e.Verb, URI: e.RequestURI, Cause: v.Cause, At: at}, request}
}

// done returns the group with its earliest examples.
func (g *driftGroup) done(examples int) queries.Drift {
	g.Users = uint64(len(g.users))
	for _, x := range g.users {
		g.Examples = append(g.Examples, x.DriftExample)
	}
	slices.SortFunc(g.Examples, func(a, b queries.DriftExample) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.User, b.User), strings.Compare(a.AuditID, b.AuditID))
	})
	g.Examples = g.Examples[:min(examples, len(g.Examples))]
	return g.Drift
}
