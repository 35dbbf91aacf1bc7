package storage_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestCompletenessQueries: what is asked about completeness is answered by apiserver, by the
// events' own time, and without what was taken back.
func TestCompletenessQueries(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)[:24]
	base := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return base.Add(time.Duration(seconds * float64(time.Second))) }
	// One event a second of two apiservers by turns; arrivals in two posts.
	change := func(i int, edit func(r *verdict.Row, e *event.Event)) {
		e := *in[i].Event
		e.Verb, e.Stage, e.RequestURI = "get", event.StageResponseComplete, "/api/v1/pods"
		e.ResponseStatus = &event.Status{Code: 200}
		e.RequestReceivedTimestamp, e.StageTimestamp = at(float64(i)), at(float64(i)+0.25)
		r := &in[i]
		r.Event, r.Source, r.APIServer, r.Received = &e, "webhook", []string{"a", "b"}[i%2], at(30)
		if i >= 12 {
			r.Received = at(60)
		}
		edit(r, &e)
		r.Request = event.RequestKey("c", &e)
		r.EventKey = event.EventKey(r.Request, &e)
	}
	for i := range in {
		change(i, func(*verdict.Row, *event.Event) {})
	}
	watch := func(i int, id string, stage event.Stage, from, end float64, code int32) {
		change(i, func(r *verdict.Row, e *event.Event) {
			e.AuditID, e.Verb, e.Stage, e.RequestURI = id, "watch", stage, "/api/v1/pods?watch=1&timeoutSeconds=300"
			e.RequestReceivedTimestamp, e.StageTimestamp = at(from), at(end)
			e.ResponseStatus.Code = code
			e.User, e.ImpersonatedUser = in[0].Event.User, nil
		})
	}
	watch(0, "paired", event.StageResponseStarted, 0, 0.25, 200)
	watch(2, "paired", event.StageResponseComplete, 0, 2.25, 200)
	watch(4, "open", event.StageResponseStarted, 4, 4.25, 200)
	watch(6, "no start", event.StageResponseComplete, 1, 6.25, 200)
	watch(8, "no login", event.StageResponseStarted, 8, 8.25, 401)
	for i := range in[10:14] { // those of b came from a log
		if i%2 == 1 {
			in[10+i].Source = "log"
		}
	}
	insert(t, s, "one", in)

	got, err := s.Received(ctx, "c", []time.Time{at(0), at(2), at(2.25), at(10), at(100)})
	if err != nil {
		t.Fatal(err)
	}
	want := []queries.Received{
		{APIServer: "a", Cut: at(0), Events: 1},
		{APIServer: "a", Cut: at(2.25), Events: 4},
		{APIServer: "a", Cut: at(10), Events: 7},
		{APIServer: "b", Cut: at(0), Events: 1},
		{APIServer: "b", Cut: at(2.25), Events: 4},
		{APIServer: "b", Cut: at(10), Events: 7},
	}
	if !slices.Equal(got, want) {
		t.Errorf("received %+v\nwant %+v", got, want)
	}
	fromLog, err := s.FromLog(ctx, "c", []time.Time{at(0), at(12), at(100)})
	if want := []queries.FromLog{
		{APIServer: "b", Cut: at(0), Events: 1, Last: at(30)},
		{APIServer: "b", Cut: at(12), Events: 1, Last: at(60)},
	}; err != nil || !slices.Equal(fromLog, want) {
		t.Errorf("from a log %+v, %v\nwant %+v", fromLog, err, want)
	}
	senders, err := s.Senders(ctx, "c", at(0), at(100))
	if err != nil {
		t.Fatal(err)
	}
	if want := []queries.Sender{
		{APIServer: "a", Events: 12, Webhook: 12, Log: 0, Posts: 2, First: at(30), Last: at(60)},
		{APIServer: "b", Events: 12, Webhook: 10, Log: 2, Posts: 2, First: at(30), Last: at(60)},
	}; !slices.Equal(senders, want) {
		t.Errorf("senders %+v\nwant %+v", senders, want)
	}
	volumes, err := s.ServerVolumes(ctx, "c", at(0), at(60))
	if want := []queries.ServerVolume{
		{APIServer: "a", Events: 12},
		{APIServer: "b", Events: 12},
	}; err != nil || !slices.Equal(volumes, want) {
		t.Errorf("volumes %+v, %v\nwant %+v", volumes, err, want)
	}
	var letters []verdict.StoredDeadLetter
	for i, l := range []event.DeadLetter{{Cluster: "c", Detail: "item 3: not an audit event"},
		{Cluster: "c", Detail: "40 more items from item 20 on, the first: not JSON"}, {Cluster: "other"}} {
		l.Source, l.Reason = "webhook", "malformed-item"
		letters = append(letters,
			verdict.StoredDeadLetter{DeadLetter: l, Position: event.Position{Epoch: 1, Offset: int64(i)}, Received: at(float64(61 * i))})
	}
	if err := s.SaveDeadLetters(ctx, "letters", letters); err != nil {
		t.Fatal(err)
	}
	counts, err := s.LetterCounts(ctx, "c", at(0), at(100))
	if want := []queries.LetterCount{
		{Minute: at(0), Items: 1},
		{Minute: at(60), Items: 40},
	}; err != nil || !slices.Equal(counts, want) {
		t.Errorf("letters %+v, %v\nwant %+v", counts, err, want)
	}
	pauses, err := s.Pauses(ctx, "c", at(0), at(100), true, 5)
	if err != nil {
		t.Fatal(err)
	}
	if want := []queries.Pause{
		{APIServer: "a", Before: at(30), After: at(60)},
		{APIServer: "b", Before: at(30), After: at(60)},
	}; !slices.Equal(pauses, want) {
		t.Errorf("pauses of arrival %+v\nwant %+v", pauses, want)
	}
	if pauses, err = s.Pauses(ctx, "c", at(0), at(100), false, 1); err != nil || len(pauses) != 2 ||
		pauses[0].After.Sub(pauses[0].Before) != 2*time.Second {
		t.Errorf("pauses %+v %v", pauses, err)
	}
	unpaired, err := s.Unpaired(ctx, "c", at(0), at(100), 10)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, u := range unpaired {
		ids = append(ids, u.AuditID+" lacks "+u.Missing)
	}
	if want := []string{"no start lacks ResponseStarted", "open lacks ResponseComplete"}; !slices.Equal(ids, want) {
		t.Errorf("unpaired %q, want %q", ids, want)
	}

	sample := queries.AuditSample{Cluster: "c", APIServer: "a", Taken: at(5), Earliest: at(4), Latest: at(5), Started: at(-100), Events: 7,
		WebhookErrors: 1, BufferErrors: 2, LogErrors: 3, Rejected: 4}
	later := sample
	later.Taken, later.Events = at(35), 9
	for range 2 { // saving again changes nothing
		if err := s.SaveAuditSamples(ctx, []queries.AuditSample{sample, later}); err != nil {
			t.Fatal(err)
		}
	}
	samples, err := s.AuditSamples(ctx, "c", at(0), at(35))
	if err != nil || len(samples) != 1 || samples[0] != sample {
		t.Errorf("samples %+v %v, want %+v", samples, err, sample)
	}
}

// TestUnpairedOfManyMinutes compares requests of which a stage is missing with what was stored, in few of many minutes; which of the stages
// has the verdict does not matter, nor what was taken back since.
func TestUnpairedOfManyMinutes(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	first := slices.IndexFunc(in, func(r verdict.Row) bool { return r.Verdict != nil })
	base := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var all []verdict.Row
	add := func(n int, verb string, stage event.Stage, judged bool) {
		r := in[first]
		e := *r.Event
		e.AuditID, e.Verb, e.Stage, e.ImpersonatedUser = fmt.Sprintf("request %03d", n), verb, stage, nil
		e.RequestURI = map[string]string{"watch": "/api/v1/pods?watch=1", "create": "/api/v1/namespaces/a/pods/b/exec"}[verb]
		e.ResponseStatus = &event.Status{Code: 200}
		e.RequestReceivedTimestamp = base.Add(time.Duration(n) * 10 * time.Second)
		e.StageTimestamp = e.RequestReceivedTimestamp.Add(time.Second)
		r.Event, r.Received, r.Position.Offset = &e, base, r.Position.Offset+int64(len(all))+1<<20
		if !judged {
			r.Verdict, r.Marks = nil, nil
		}
		r.Request = event.RequestKey("c", &e)
		r.EventKey = event.EventKey(r.Request, &e)
		all = append(all, r)
	}
	var want []string
	for n := range 600 {
		begin, end := true, true
		if n/6%9 == 0 { // halves are in every ninth minute
			begin, end = n%6 < 4, n%6 > 1
		}
		verb, early := []string{"watch", "create"}[n%2], n%50 != 3
		if begin {
			add(n, verb, event.StageResponseStarted, early || !end)
		}
		if end {
			add(n, verb, event.StageResponseComplete, !early || !begin)
		}
		switch id := fmt.Sprintf("request %03d", n); {
		case begin && !end:
			want = append(want, id+" lacks ResponseComplete")
		case end && !begin && verb == "watch":
			want = append(want, id+" lacks ResponseStarted")
		}
	}
	insert(t, s, "a", all)
	insert(t, s, "fix", revised(all, 4))
	for _, limit := range []int{1000, 7} {
		got, err := s.Unpaired(ctx, "c", base, base.Add(2*time.Hour), limit)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, u := range got {
			ids = append(ids, u.AuditID+" lacks "+u.Missing)
		}
		if expected := want[:min(limit, len(want))]; !slices.Equal(ids, expected) {
			t.Errorf("unpaired\n%q, want\n%q", ids, expected)
		}
	}
	uneven := s.Strings(t, "SELECT toString(count()) FROM (SELECT minute FROM retrial.halves GROUP BY minute HAVING sum(digest) != 0) "+
		"WHERE 1")
	if n, _ := strconv.Atoi(uneven[0]); n < 10 || n >= 100 {
		t.Errorf("%d of 100 minutes are looked at closely", n)
	}
}
