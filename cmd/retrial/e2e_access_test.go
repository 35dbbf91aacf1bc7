package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// TestAccessAgreesWithVerdicts asks a running server, for requests it has judged, who could
// make them at their time, and what their users could do: exactly the grants of the verdicts.
func TestAccessAgreesWithVerdicts(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	s := in.serve(t, "--replay-hold", "0s")
	in.run(t, "import", "--cluster", "prod", "--state", writeState(t, in.dir), writeLog(t, in.dir+"/audit.jsonl", portion(t))).ok(t)
	s.drained(t)

	var list struct{ Events []query.Event }
	s.get(t, "events?cluster=prod&limit=500&outcome=match", &list)
	asked, granted, refused := map[string]bool{}, 0, 0
	for _, e := range list.Events {
		if e.Authorizer == "masters" || e.Authorizer == "node" || asked[e.User+e.Verb+e.RequestURI] || len(asked) == 60 {
			continue
		}
		asked[e.User+e.Verb+e.RequestURI] = true
		var why query.WhyAnswer
		s.get(t, "why?cluster=prod&auditID="+url.QueryEscape(e.AuditID), &why)
		if len(why.Requests) != 1 || why.Requests[0].Verdict == nil {
			continue
		}
		ev, err := event.Decode(why.Requests[0].Event)
		if err != nil {
			t.Fatal(err)
		}
		a, err := request.Of(ev.Verb, ev.RequestURI)
		if err != nil || a.Verb == "" || a.ResourceRequest && strings.Contains(a.Subresource, ".") {
			continue // nothing that could be asked in these words
		}
		var want []string
		for _, g := range why.Requests[0].Verdict.Grants {
			want = append(want, g.Binding+" "+g.Role)
		}
		got := s.grantsOf(t, &a, ev)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(slices.Compact(want), slices.Compact(got)) {
			t.Errorf("%s %s by %s\nverdict %q\nwho-can %q", ev.Verb, ev.RequestURI, ev.EffectiveUser().Username, want, got)
		}
		if len(want) > 0 {
			granted++
		} else {
			refused++
		}
	}
	if granted < 10 {
		t.Errorf("%d granted and %d refused requests compared", granted, refused)
	}

	// The commands ask the server that runs.
	r := in.run(t, "who-can", "get", "/healthz").ok(t)
	says(t, r.out, "Who can get /healthz, in cluster prod", "Group system:authenticated")
	r = in.run(t, "can", "group:system:authenticated", "-o", "json").ok(t)
	says(t, r.out, `"groupsFrom": "asked"`, `"/healthz"`)
	in.run(t, "can", "x", "--cluster", "nobody").refused(t, cli.ExitNoMatch, "there is no cluster nobody; known: prod")
}

// grantsOf asks who can make a request at an event's time, and returns what the event's user
// has of it. What its user can do has to allow it as well.
func (s *running) grantsOf(t *testing.T, a *verdict.Attributes, e *event.Event) (out []string) {
	t.Helper()
	q := url.Values{"cluster": {"prod"}, "verb": {a.Verb}, "at": {e.RequestReceivedTimestamp.Format(time.RFC3339Nano)}}
	if a.ResourceRequest {
		resource := a.Resource + "." + a.APIGroup
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		q.Set("resource", resource)
		q.Set("namespace", a.Namespace)
		q.Set("name", a.Name)
	} else {
		q.Set("path", a.Path)
	}
	var answer query.WhoCanAnswer
	s.get(t, "who-can?"+q.Encode(), &answer)
	who := e.EffectiveUser()
	for _, h := range answer.Subjects {
		name := h.Name
		if h.Kind == "ServiceAccount" {
			name = "system:serviceaccount:" + h.Namespace + ":" + h.Name
		}
		if h.Kind == "Group" && !slices.Contains(who.Groups, name) || h.Kind != "Group" && name != who.Username {
			continue
		}
		for _, g := range h.Grants {
			if g.Kind != query.KindSuperuser {
				out = append(out, g.Binding+" "+g.Role)
			}
		}
	}
	return out
}
