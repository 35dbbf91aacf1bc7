package server

import (
	"context"
	"fmt"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
)

// Lineage follows the credentials of the log.
func (l Log) Lineage(ctx context.Context, q query.LineageRequest) (answer query.LineageAnswer, err error) {
	answer.Cluster = l.name()
	trail, st := lineage.NewTrail(lineage.TrailConfig{}), state.New(l.name())
	if _, err = l.Replay(ctx, replay.DefaultLag, evaluate.Options{Trail: trail, State: st}); err != nil {
		return answer, err
	}
	var found []lineage.Lineage
	if q.Credential == "" {
		answer.Subject = q.Subject
		found = trail.Lineages(q.Subject)
	} else if one, ok := trail.Lineage(q.Credential); ok {
		found = []lineage.Lineage{one}
	}
	if len(found) == 0 {
		if q.Credential != "" {
			return answer, cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("no event shows the credential %s", phrase.Shorten(q.Credential)))
		}
		return answer, cli.ExitWith(cli.ExitNoMatch,
			fmt.Errorf("no event tells a credential of %s: static tokens, front proxies and webhooks leave none", phrase.Shorten(q.Subject)))
	}
	if len(found) > q.Limit {
		found, answer.Truncated = found[:q.Limit], true
	}
	for i := range found {
		answer.Credentials = append(answer.Credentials, seen(&found[i], st))
	}
	return answer, nil
}

// seen is a lineage of a log as the store tells one.
func seen(x *lineage.Lineage, st *state.State) query.Credential {
	c := query.Credential{
		Credential: x.Credential, Issue: query.IssueOf(st, x.Credential), Users: x.Users, Requests: x.Count, First: &x.First, Last: &x.Last,
		Uses: []query.CredentialUse{}, More: x.More,
	}
	for _, f := range x.Contradictions {
		c.Contradictions = append(c.Contradictions, query.CredentialContradiction{Name: f.Name, Evidence: f.Evidence})
	}
	c.Findings = c.Contradictions
	if c.Issue == nil && x.Issue != nil {
		c.Issue = &query.Issue{At: x.Issue.At, By: x.Issue.By, From: x.Issue.SourceIP, AuditID: x.Issue.AuditID, ServiceAccount: x.Issue.Namespace + "/" + x.Issue.ServiceAccount}
	}
	for _, u := range x.Uses {
		c.Uses = append(c.Uses, query.CredentialUse{UserAgent: u.UserAgent, From: u.SourceIP, Pod: u.Pod, Node: u.Node, Requests: u.Count, First: u.First, Last: u.Last})
	}
	return c
}
