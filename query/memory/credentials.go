package memory

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// useOf returns where a credential was used from by a request, and by what.
func useOf(e *event.Event) queries.CredentialUse {
	one := func(key string) string {
		if values := e.User.Extra.Get(key); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	return queries.CredentialUse{User: e.User.Username, UserAgent: e.UserAgent, Source: sourceOf(e), Pod: one(queries.ExtraPod),
		Node: one(queries.ExtraNode)}
}

// sourceOf returns the nearest address of a request, the one that the apiserver saw itself.
func sourceOf(e *event.Event) string {
	if n := len(e.SourceIPs); n > 0 {
		return e.SourceIPs[n-1]
	}
	return ""
}

// CredentialUses returns the uses of credentials, the earliest first, so many of each at most.
func (s *Store) CredentialUses(ctx context.Context, _ string, of []string, from, to time.Time,
	limit int) (queries.CredentialUses, error) {
	uses := map[string]map[queries.CredentialUse]*queries.CredentialUse{} // by credential, and by all that is not a sum
	for _, credential := range of {
		uses[credential] = map[queries.CredentialUse]*queries.CredentialUse{}
	}
	err := s.judged(ctx, from, to, func(row *verdict.Row) error {
		of := uses[row.Verdict.Credential]
		if of == nil {
			return nil
		}
		at, place := micro(row.Event.RequestReceivedTimestamp), useOf(row.Event)
		pod, node := place.Pod, place.Node
		place.Pod, place.Node = "", ""
		u := of[place]
		if u == nil {
			u = new(place)
			u.First, u.Last, u.Pod, u.Node = at, at, pod, node
			of[place] = u
		}
		if at.Before(u.First) {
			u.Pod, u.Node = pod, node
		}
		count(row, at, &u.Requests, &u.Forbidden, &u.First, &u.Last)
		return nil
	})
	out := queries.CredentialUses{}
	for credential, places := range uses {
		out[credential] = ordered(places, func(a, b queries.CredentialUse) int {
			return cmp.Or(a.First.Compare(b.First), strings.Compare(a.User, b.User), strings.Compare(a.UserAgent, b.UserAgent),
				strings.Compare(a.Source, b.Source))
		}, limit)
	}
	return out, err
}

// count adds a request to sums.
func count(row *verdict.Row, at time.Time, requests, forbidden *int64, first, last *time.Time) {
	*requests++
	if row.Verdict.Recorded == verdict.DecisionForbid {
		*forbidden++
	}
	widen(first, last, at)
}

// Credentials returns what a user authenticated with, the earliest first.
func (s *Store) Credentials(ctx context.Context, _, user string, from, to time.Time, limit int) ([]queries.SubjectCredential, error) {
	found := map[string]*queries.SubjectCredential{}
	err := s.judged(ctx, from, to, func(row *verdict.Row) error {
		e, v := row.Event, row.Verdict
		if e.User.Username != user {
			return nil
		}
		at, c := micro(e.RequestReceivedTimestamp), found[v.Credential]
		if c == nil {
			c = &queries.SubjectCredential{Credential: v.Credential, Explained: v.Explained, First: at, Last: at}
			found[v.Credential] = c
		}
		if at.Before(c.First) {
			c.Explained = v.Explained
		}
		count(row, at, &c.Requests, &c.Forbidden, &c.First, &c.Last)
		return nil
	})
	return ordered(found, func(a, b queries.SubjectCredential) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Credential, b.Credential))
	}, limit), err
}
