package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/storage/queries"
)

// fakeClient is a client of the API over a fake store.
func fakeClient(f *fakeStore) *apiclient.Client {
	handler := apiHandler(f, f.replay(), nil, zap.NewNop(), time.Minute)
	return apiclient.InProcess(handler)
}

func TestOneCluster(t *testing.T) {
	events := func(names ...string) (out []queries.Cluster) {
		for _, n := range names {
			out = append(out, queries.Cluster{Name: n, Events: 1})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		events []queries.Cluster
		quiet  []string
		named  string
		want   string
		code   int
		says   string
	}{
		{name: "the only one", events: events("prod"), want: "prod"},
		{name: "the only one, with its objects known", events: events("prod"), quiet: []string{"prod"}, want: "prod"},
		{name: "the only one has no events", quiet: []string{"prod"}, want: "prod"},
		{name: "one of several, named", events: events("a", "b"), named: "b", want: "b"},
		{name: "several", events: events("b", "c"), quiet: []string{"a"}, code: cli.ExitUsage, says: "--cluster: a, b, c"},
		{name: "none", code: cli.ExitNoMatch, says: "retrial import"},
		{name: "another one", events: events("a", "b"), named: "x", code: cli.ExitNoMatch, says: "no cluster x; known: a, b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := fakeClient(&fakeStore{stored: c.events, quiet: c.quiet}).OneCluster(t.Context(), c.named)
			var coded cli.Exit
			if got != c.want || errors.As(err, &coded) != (c.code != 0) || coded.Code != c.code ||
				c.code != 0 && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestClientErrors: who is told that the question was wrong must not blame the store.
func TestClientErrors(t *testing.T) {
	client := fakeClient(&fakeStore{})
	_, wrong := apiclient.Ask(t.Context(), client, query.OverviewRequest{})
	_, absent := apiclient.Ask(t.Context(), client, unknownRequest{})
	for _, c := range []struct {
		err  error
		says string
		code int
	}{
		{wrong, "cluster is missing", cli.ExitUsage},
		{absent, "there is no", cli.ExitNoMatch},
	} {
		err := c.err
		var coded cli.Exit
		if !errors.As(err, &coded) || coded.Code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// unknownRequest asks what the server does not know.
type unknownRequest struct {
	query.Asks[struct{}] `question:"no-such-question"`
}
