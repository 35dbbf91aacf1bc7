package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
)

// newest returns the newest request that filters select.
func (s *running) newest(t *testing.T, filters url.Values) query.Event {
	t.Helper()
	filters.Set("cluster", "sample")
	filters.Set("limit", "1")
	var answer query.EventsAnswer
	s.get(t, "events?"+filters.Encode(), &answer)
	if len(answer.Events) == 0 {
		t.Fatalf("no request of the sample is as %v", filters)
	}
	return answer.Events[0]
}

// event opens a request that was allowed and one that was refused, and compares what is shown with what the API answers.
func (w *web) event(t *testing.T) {
	s, b := w.s, w.b
	address := func(e query.Event) string {
		return s.ui + "#/events/" + url.PathEscape(e.AuditID) + "?cluster=sample&request=" + e.Request
	}
	refused := s.newest(t, url.Values{"decision": {"forbid"}, "where": {`["code=403","authorizer="]`}})
	granted := s.newest(t, url.Values{"decision": {"allow"}, "where": {`["authorizer=rbac","subject^=system:serviceaccount:"]`}})

	t.Run("refused", func(t *testing.T) {
		b.load(t, address(refused))
		b.until(t, "it is explained, without a click", settled+` && `+readsIn("#main", "The narrowest rule that allows it"))
		var answer query.ExplainDenyAnswer
		s.get(t, "explain-deny?cluster=sample&auditID="+url.QueryEscape(refused.AuditID), &answer)
		for _, step := range answer.Requests[0].Chain {
			b.until(t, "it says what "+step.Authorizer+" would have needed", readsIn("#main", step.Text))
		}
		b.looksGood(t, "event-refused", address(refused))
	})
	t.Run("granted", func(t *testing.T) {
		b.load(t, address(granted))
		b.until(t, "it is drawn", settled+` && `+readsIn("#main", "whose"))
		var answer query.WhyAnswer
		s.get(t, "why?cluster=sample&auditID="+url.QueryEscape(granted.AuditID), &answer)
		for _, g := range answer.Requests[0].Verdict.Grants {
			for _, key := range []string{g.Binding, g.Role} {
				_, name, _ := strings.Cut(key, "/")
				b.until(t, "it names "+key, readsIn("#main", name))
			}
		}
		b.looksGood(t, "event-granted", address(granted))
	})
	t.Run("neighbours", func(t *testing.T) {
		b.load(t, address(refused))
		b.until(t, "they are there", `document.querySelectorAll('#main ol li a[href*="/events/"]').length > 2`)
		b.click(t, `#main ol li a[href*="/events/"]`, "")
		b.until(t, "another request is shown", `!location.hash.includes(`+quoteJS(refused.Request)+`) && `+settled)
	})
	t.Run("beside a list", func(t *testing.T) {
		b.looksGood(t, "event-drawer", s.ui+"#/explore?cluster=sample&why="+url.QueryEscape(granted.AuditID)+"&request="+granted.Request)
		b.load(t, s.ui+"#/events/nobody?cluster=sample")
		b.until(t, "an ID that nobody has", readsIn("#main", "No stored request"))
	})
	b.blameless(t)
}
