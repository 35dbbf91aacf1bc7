package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// lastRequest finds the newest request that somebody may wonder about.
type lastRequest struct {
	wanted, system bool
	subject        string
}

func (l *lastRequest) bind(c *cobra.Command) {
	c.Flags().BoolVar(&l.wanted, "last", false, "the newest request that was refused, or does not match its replay")
	c.Flags().BoolVar(&l.system, "include-system", false, "with --last: also requests of Kubernetes itself")
	c.Flags().StringVar(&l.subject, "subject", "", "with --last: of this subject, sa/NAMESPACE:NAME or a user name")
}

// lookedThrough is how many requests of each sort are looked through for one that is not Kubernetes' own.
const lookedThrough = 500

// find returns the request's audit ID, and its cluster.
func (l *lastRequest) find(ctx context.Context, from *asker, named string) (id, cluster string, err error) {
	subject, err := cli.User("--subject", l.subject)
	if err != nil {
		return "", "", err
	}
	client, done, err := from.openFor(ctx, named)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, done()) }()
	if cluster, err = client.OneCluster(ctx, named); err != nil {
		return "", "", err
	}
	var found []query.Event
	for _, of := range []query.Filters{{Decision: "forbid"}, {Outcome: "drift"}} {
		of.Cluster, of.Subject = cluster, subject
		answer, err := apiclient.Ask(ctx, client, query.EventsRequest{Filters: of, Limit: lookedThrough})
		if err != nil {
			return "", "", err
		}
		found = append(found, answer.Events...)
	}
	slices.SortStableFunc(found, func(a, b query.Event) int { return b.Time.Compare(a.Time) })
	if len(found) == 0 {
		whose := ""
		if subject != "" {
			whose = " of " + phrase.Shorten(subject)
			if seen, err := apiclient.Ask(ctx, client, query.FindingsRequest{Cluster: cluster, Subject: subject, Limit: 1}); err != nil {
				return "", "", err
			} else if seen.Stranger {
				return "", "", unseen(subject, seen.Near)
			}
		}
		return "", "", cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("no request%s was refused in cluster %s, and none drifts", whose, cluster))
	}
	i := slices.IndexFunc(found, func(e query.Event) bool { return l.system || subject != "" || !query.System(e.Subject) })
	x := &found[max(i, 0)]
	fmt.Fprintf(from.Err, "hint: audit ID %s, received %s\n", cli.SafeLines(x.AuditID), x.Time.UTC().Format(time.RFC3339))
	return x.AuditID, cluster, nil
}
