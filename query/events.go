package query

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Event is a request with its verdict, in one line.
type Event struct {
	AuditID    string    `json:"auditID"`
	Request    string    `json:"request"` // identity of the request: audit IDs may be used again
	Time       time.Time `json:"time"`
	Subject    string    `json:"subject"` // whom it was authorized as
	User       string    `json:"user"`    // the subject; the name will be removed in the next release
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	Stage      string    `json:"stage"`    // of the judged event
	Code       int32     `json:"code"`     // of the response
	Recorded   string    `json:"recorded"` // decision of the apiserver
	Replayed   string    `json:"replayed"` // decision of the replica
	Outcome    string    `json:"outcome"`
	Class      string    `json:"class"`
	Cause      string    `json:"cause"`      // what lies behind the class
	GrantCount int       `json:"grantCount"` // how many grants allow it
	Grants     int       `json:"grants"`     // the count; the name will be removed in the next release
	Authorizer string    `json:"authorizer"`
}

// EventsRequest asks for requests with their verdicts, newest first, one a request. All filters are exact.
type EventsRequest struct {
	Asks[EventsAnswer] `question:"events"`
	Cluster            string    `json:"cluster" required:"true" help:"cluster the question is about"`
	From               time.Time `json:"from" help:"requests at or after this time"`
	To                 time.Time `json:"to" help:"requests before this time"`
	Subject            string    `json:"subject" old:"user" help:"whom the request was authorized as"`
	Verb               string    `json:"verb" help:"verb of the request"`
	Resource           string    `json:"resource" help:"resource of the request, without group"`
	Decision           string    `json:"decision" enum:"allow,forbid,none" help:"decision the apiserver recorded"`
	Outcome            string    `json:"outcome" enum:"match,drift,ambiguous,indeterminate,not_judged" help:"outcome of the verdict"`
	Class              string    `json:"class" help:"class of the verdict, one of those of classes"`
	Before             string    `json:"before" help:"go on behind this place in the list: older of the answer before"`
	Limit              int       `json:"limit" default:"50" min:"1" max:"500" help:"most requests of an answer"`
}

func (r EventsRequest) check() error {
	if r.Class != "" && verdict.Explain(r.Class) == "" {
		return Bad("class: there is no class %q; api/v1/classes lists them", r.Class)
	}
	return before(r.From, r.To)
}

// EventsAnswer are requests, newest first.
type EventsAnswer struct {
	Events []Event `json:"events"`          // newest first, one a request
	Older  string  `json:"older,omitempty"` // when there are older ones: what before continues with
}

// Events answers with requests and their verdicts.
func (*Service) Events(ctx context.Context, tables Tables, q EventsRequest) (out EventsAnswer, err error) {
	f := queries.EventFilter{Cluster: q.Cluster, From: q.From, To: q.To, Subject: q.Subject, Verb: q.Verb, Resource: q.Resource,
		Recorded: q.Decision, Outcome: q.Outcome, Class: q.Class, Limit: q.Limit, Judged: true}
	if q.Before != "" {
		if f.Before.Received, f.Before.Key, err = parseCursor(q.Before); err != nil {
			return out, err
		}
	}
	limit := f.Limit
	f.Limit++ // one more, to know whether there are older ones
	rows, err := tables.Events(ctx, f)
	if err != nil {
		return out, err
	}
	out.Events = []Event{}
	for i := range rows[:min(len(rows), limit)] {
		out.Events = append(out.Events, eventLine(&rows[i]))
	}
	if len(rows) > limit {
		c := queries.CursorOf(&rows[limit-1])
		out.Older = formatCursor(c.Received, c.Key)
	}
	return out, nil
}

// System reports whether a subject is Kubernetes' own.
func System(subject string) bool { return kubenames.Own(subject) }

func eventLine(r *verdict.Row) Event {
	e := r.Event
	subject := e.EffectiveUser().Username
	line := Event{AuditID: e.AuditID, Request: r.Request.String(), Time: e.RequestReceivedTimestamp, Subject: subject, User: subject,
		Verb:       e.Verb,
		RequestURI: e.RequestURI, Stage: string(e.Stage), Code: e.Code()}
	if v := r.Verdict; v != nil {
		line.Recorded, line.Replayed, line.Outcome = v.Recorded.String(), v.Replayed.String(), v.Outcome.String()
		line.Class, line.Cause, line.Authorizer = v.Class, v.Cause, v.Authorizer
		line.GrantCount, line.Grants = len(v.Grants), len(v.Grants)
	}
	return line
}

// formatCursor writes a place in a list, behind which another answer goes on.
func formatCursor(at int64, key string) string { return strconv.FormatInt(at, 10) + "." + key }

func parseCursor(s string) (at int64, key string, err error) {
	text, key, _ := strings.Cut(s, ".")
	if at, err = strconv.ParseInt(text, 10, 64); err != nil || key == "" {
		return 0, "", Bad("invalid before %q: want what an answer gave as older", s)
	}
	return at, key, nil
}
