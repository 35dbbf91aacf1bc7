package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage"
)

// api is the local API, read by the page, by `retrial why` and by whoever is let in:
//
//	GET api/v1/clusters                      the clusters there are events of, with their range
//	GET api/v1/overview?cluster=&from=&to=   what the first page shows
//	GET api/v1/events?cluster=&from=&to=&…   events with verdicts, newest first
//	GET api/v1/why?auditID=&cluster=         everything about the requests of an audit ID
//	GET api/v1/status                        how far the replay is behind
//	GET api/v1/drained                       answers when everything accepted is stored
//
// Times are RFC 3339. Errors are plain text. Names of members are part of the interface.
type api struct {
	sys *system
	log *zap.Logger
}

func newAPI(sys *system) http.Handler {
	a := api{sys: sys, log: sys.log.Named("api")}
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*http.Request) (any, error){
		"clusters": a.clusters, "overview": a.overview, "events": a.events, "why": a.why, "status": a.status, "drained": a.drained,
	} {
		mux.HandleFunc("GET /api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			v, err := answer(r)
			switch {
			case err == nil:
				writeJSON(w, v)
			case r.Context().Err() != nil:
				// The caller went away.
			case isBadRequest(err):
				http.Error(w, err.Error(), http.StatusBadRequest)
			default:
				a.log.Error("query failed", zap.String("path", path), zap.Error(err))
				http.Error(w, "the store could not answer: "+err.Error(), http.StatusInternalServerError)
			}
		})
	}
	return mux
}

// badRequest is an error of the caller.
type badRequest struct{ error }

func isBadRequest(err error) bool { _, ok := err.(badRequest); return ok } //nolint:errorlint // it is never wrapped

type clusterJSON struct {
	Name   string    `json:"name"`
	Events int64     `json:"events"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

func (a api) clusters(r *http.Request) (any, error) {
	list, err := a.sys.store.Clusters(r.Context())
	if err != nil {
		return nil, err
	}
	out := struct {
		Clusters []clusterJSON `json:"clusters"`
	}{Clusters: []clusterJSON{}}
	for _, c := range list {
		// The store knows whole minutes; the last one has not ended where its events have.
		out.Clusters = append(out.Clusters, clusterJSON{c.Name, c.Events, c.First, c.Last.Add(time.Minute)})
	}
	return out, nil
}

// window reads cluster, from and to.
func window(r *http.Request) (cluster string, from, to time.Time, err error) {
	q := r.URL.Query()
	if cluster = q.Get("cluster"); cluster == "" {
		return cluster, from, to, badRequest{fmt.Errorf("cluster is missing")}
	}
	if from, err = instant(q, "from"); err != nil {
		return cluster, from, to, err
	}
	if to, err = instant(q, "to"); err != nil {
		return cluster, from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		err = badRequest{fmt.Errorf("from %s is not before to %s", from.Format(time.RFC3339), to.Format(time.RFC3339))}
	}
	return cluster, from, to, err
}

func instant(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, badRequest{fmt.Errorf("%s: %q is no RFC 3339 time, such as 2026-11-20T11:36:00Z", name, s)}
	}
	return t, nil
}

type totalsJSON struct {
	Events        int64 `json:"events"`
	Requests      int64 `json:"requests"`
	Match         int64 `json:"match"`
	Drift         int64 `json:"drift"`
	Ambiguous     int64 `json:"ambiguous"`
	Indeterminate int64 `json:"indeterminate"`
	NotJudged     int64 `json:"not_judged"`
	Forbid        int64 `json:"forbid"`
}

type bucketJSON struct {
	Time   time.Time `json:"t"`
	Allow  int64     `json:"allow"`
	Forbid int64     `json:"forbid"`
	None   int64     `json:"none"`
}

type classJSON struct {
	Class   string `json:"class"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	Count   int64  `json:"count"`
}

type subjectJSON struct {
	User      string `json:"user"`
	Requests  int64  `json:"requests"`
	Forbidden int64  `json:"forbidden"`
	Drift     int64  `json:"drift"`
}

type nextJSON struct {
	Text     string `json:"text"`
	Requests int64  `json:"requests"`
}

type overviewJSON struct {
	From          time.Time     `json:"from"`
	To            time.Time     `json:"to"`
	BucketSeconds int64         `json:"bucketSeconds"`
	Totals        totalsJSON    `json:"totals"`
	Volume        []bucketJSON  `json:"volume"`
	Classes       []classJSON   `json:"classes"`
	Subjects      []subjectJSON `json:"subjects"`
	Next          *nextJSON     `json:"next,omitempty"`
}

func (a api) overview(r *http.Request) (any, error) {
	cluster, from, to, err := window(r)
	if err != nil {
		return nil, err
	}
	if from.IsZero() || to.IsZero() {
		return nil, badRequest{fmt.Errorf("from and to are needed")}
	}
	o, err := a.sys.store.Overview(r.Context(), cluster, from, to)
	if err != nil {
		return nil, err
	}
	out := overviewJSON{From: from, To: to, BucketSeconds: 60, Volume: []bucketJSON{}, Classes: []classJSON{}, Subjects: []subjectJSON{}}
	for _, b := range o.Volume {
		out.addBucket(b)
	}
	for _, c := range o.Outcomes {
		out.Totals.add(c.Outcome, c.Requests)
		if c.Class != "" {
			out.Classes = append(out.Classes, classJSON{c.Class, c.Outcome, replay.Explain(c.Class), c.Requests})
		}
	}
	for _, s := range o.Subjects {
		out.Subjects = append(out.Subjects, subjectJSON{s.Subject, s.Requests, s.Forbidden, s.Drift})
	}
	if len(o.Lacks) > 0 {
		out.Next = &nextJSON{o.Lacks[0].Missing, o.Lacks[0].Requests}
	}
	return out, nil
}

// addBucket folds one decision's count into its bucket; they come in the order of time.
func (o *overviewJSON) addBucket(b storage.Bucket) {
	n := len(o.Volume)
	if n == 0 || !o.Volume[n-1].Time.Equal(b.Start) {
		o.Volume = append(o.Volume, bucketJSON{Time: b.Start})
		n++
	}
	v := &o.Volume[n-1]
	o.Totals.Events += b.Events
	switch b.Recorded {
	case "allow":
		v.Allow += b.Events
	case "forbid":
		v.Forbid += b.Events
		o.Totals.Forbid += b.Events
	default:
		v.None += b.Events
	}
}

func (t *totalsJSON) add(outcome string, n int64) {
	t.Requests += n
	switch outcome {
	case "match":
		t.Match += n
	case "drift":
		t.Drift += n
	case "ambiguous":
		t.Ambiguous += n
	case "indeterminate":
		t.Indeterminate += n
	case "not_judged":
		t.NotJudged += n
	}
}

type eventJSON struct {
	AuditID    string    `json:"auditID"`
	Time       time.Time `json:"time"`
	User       string    `json:"user"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	Stage      string    `json:"stage"`
	Code       int32     `json:"code"`
	Recorded   string    `json:"recorded"`
	Replayed   string    `json:"replayed"`
	Outcome    string    `json:"outcome"`
	Class      string    `json:"class"`
	Cause      string    `json:"cause"`
	Grants     int       `json:"grants"`
}

func (a api) events(r *http.Request) (any, error) {
	cluster, from, to, err := window(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	f := storage.EventFilter{Cluster: cluster, From: from, To: to, Subject: q.Get("user"), Outcome: q.Get("outcome"), Class: q.Get("class"),
		Verb: q.Get("verb"), Resource: q.Get("resource"), Judged: true, Limit: 50}
	if s := q.Get("limit"); s != "" {
		if f.Limit, err = strconv.Atoi(s); err != nil || f.Limit < 1 {
			return nil, badRequest{fmt.Errorf("limit: %q is no positive number", s)}
		}
	}
	if s := q.Get("before"); s != "" {
		if f.Before, err = parseCursor(s); err != nil {
			return nil, badRequest{err}
		}
	}
	rows, err := a.sys.store.Events(r.Context(), f)
	if err != nil {
		return nil, err
	}
	out := struct {
		Events []eventJSON `json:"events"`
		Older  string      `json:"older,omitempty"` // what before= continues with
	}{Events: []eventJSON{}}
	for i := range rows {
		out.Events = append(out.Events, eventLine(&rows[i]))
	}
	if len(rows) == f.Limit {
		out.Older = formatCursor(storage.CursorOf(&rows[len(rows)-1]))
	}
	return out, nil
}

func eventLine(r *replay.Row) eventJSON {
	e := r.Event
	line := eventJSON{AuditID: e.AuditID, Time: e.RequestReceivedTimestamp, User: e.EffectiveUser().Username, Verb: e.Verb,
		RequestURI: e.RequestURI, Stage: string(e.Stage), Code: e.Code()}
	if v := r.Verdict; v != nil {
		line.Recorded, line.Replayed, line.Outcome = v.Recorded.String(), v.Replayed.String(), v.Outcome.String()
		line.Class, line.Cause, line.Grants = v.Class, v.Cause, len(v.Grants)
	}
	return line
}

func formatCursor(c storage.Cursor) string { return strconv.FormatInt(c.Received, 10) + "." + c.Key }

func parseCursor(s string) (storage.Cursor, error) {
	at, key, ok := strings.Cut(s, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return storage.Cursor{}, fmt.Errorf("before: %q is no place in a list of events", s)
	}
	return storage.Cursor{Received: n, Key: key}, nil
}

// requestJSON is one request with everything known about it.
type requestJSON struct {
	Cluster   string          `json:"cluster"`
	APIServer string          `json:"apiserver,omitempty"`
	Source    string          `json:"source"`
	Stages    []stageJSON     `json:"stages"`
	Event     json.RawMessage `json:"event"`   // of the last stage, as stored
	Verdict   *replay.Line    `json:"verdict"` // null when no stage was judged
}

type stageJSON struct {
	Stage string    `json:"stage"`
	Time  time.Time `json:"time"`
	Code  int32     `json:"code"`
}

type whyJSON struct {
	Requests []requestJSON `json:"requests"`
}

func (a api) why(r *http.Request) (any, error) {
	id := r.URL.Query().Get("auditID")
	if id == "" {
		return nil, badRequest{fmt.Errorf("auditID is missing")}
	}
	rows, err := a.sys.store.Why(r.Context(), r.URL.Query().Get("cluster"), id)
	if err != nil {
		return nil, err
	}
	return whyOf(rows), nil
}

// whyOf folds the rows of an audit ID, which come request by request, into requests.
func whyOf(rows []replay.Row) whyJSON {
	out := whyJSON{Requests: []requestJSON{}}
	var last event.Hash128
	for i := range rows {
		row := &rows[i]
		n := len(out.Requests)
		if n == 0 || last != row.Request || out.Requests[n-1].Cluster != row.Cluster {
			out.Requests = append(out.Requests, requestJSON{Cluster: row.Cluster, APIServer: row.APIServer, Source: row.Source})
			last = row.Request
			n++
		}
		req := &out.Requests[n-1]
		req.Stages = append(req.Stages, stageJSON{string(row.Event.Stage), row.Event.StageTimestamp, row.Event.Code()})
		req.Event = event.AppendJSON(nil, row.Event)
		if row.Verdict != nil {
			line := row.Verdict.Line(row.Event)
			req.Verdict = &line
		}
	}
	return out
}

func (a api) status(*http.Request) (any, error) {
	lag := a.sys.runner.Lag()
	return struct {
		Version     string `json:"version"`
		Lag         int64  `json:"lag"` // events accepted and not yet stored
		PolicyLag   int64  `json:"policyLag"`
		Corrections int64  `json:"corrections"`
	}{version, lag.Events, lag.Policy, lag.Corrections}, nil
}

func (a api) drained(r *http.Request) (any, error) {
	return struct{}{}, a.sys.runner.WaitDrained(r.Context())
}
