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
	AuditID string    `json:"auditID"`
	Request string    `json:"request"` // identity of the request: audit IDs may be used again
	Time    time.Time `json:"time"`
	Subject string    `json:"subject"` // whom it was authorized as
	User    string    `json:"user"`    // the subject; the name will be removed in the next release
	// ImpersonatedBy is who authenticated, where that is not the subject.
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
	Verb           string `json:"verb"`
	RequestURI     string `json:"requestURI"`
	// Group, Resource, Subresource, Namespace and Name are those of the object the event names.
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	UserAgent   string `json:"userAgent,omitempty"`
	SourceIP    string `json:"sourceIP,omitempty"` // the nearest address, which the apiserver saw itself
	Stage       string `json:"stage"`              // of the judged event
	Code        int32  `json:"code"`               // of the response
	Recorded    string `json:"recorded"`           // decision of the apiserver
	Replayed    string `json:"replayed"`           // decision of the replica
	Outcome     string `json:"outcome"`
	Class       string `json:"class"`
	Cause       string `json:"cause"`      // what lies behind the class
	GrantCount  int    `json:"grantCount"` // how many grants allow it
	Grants      int    `json:"grants"`     // the count; the name will be removed in the next release
	Authorizer  string `json:"authorizer"`
}

// EventsRequest asks for requests with their verdicts, newest first, one a request.
type EventsRequest struct {
	Asks[EventsAnswer] `question:"events"`
	Filters
	Before string `json:"before" help:"go on behind this place in the list: older of the answer before"`
	Limit  int    `json:"limit" default:"50" min:"1" max:"500" help:"most requests of an answer"`
}

// EventsAnswer are requests, newest first.
type EventsAnswer struct {
	Events []Event `json:"events"`          // newest first, one a request
	Older  string  `json:"older,omitempty"` // when there are older ones: what before continues with
}

// Events answers with requests and their verdicts.
func (a *Service) Events(ctx context.Context, tables Tables, q EventsRequest) (out EventsAnswer, err error) {
	f, err := q.filter()
	if err == nil {
		err = a.marked(&f)
	}
	if err != nil {
		return out, err
	}
	if q.Before != "" {
		if f.Before.Received, f.Before.Key, err = parseCursor(q.Before); err != nil {
			return out, err
		}
	}
	limit := q.Limit
	f.Limit = limit + 1 // one more, to know whether there are older ones
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
		RequestURI: e.RequestURI, Stage: string(e.Stage), Code: e.Code(), UserAgent: e.UserAgent}
	if e.ImpersonatedUser != nil {
		line.ImpersonatedBy = e.User.Username
	}
	if o := e.ObjectRef; o != nil {
		line.Group, line.Resource, line.Subresource, line.Namespace, line.Name = o.APIGroup, o.Resource, o.Subresource, o.Namespace, o.Name
	}
	if n := len(e.SourceIPs); n > 0 {
		line.SourceIP = e.SourceIPs[n-1]
	}
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
