package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

// received is when the test's rows were ingested.
var received = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// lines returns the lines of testdata/events.jsonl.zst: a slice of a recorded audit log,
// bodies, impersonation, refusals and several stages of requests included.
func lines(t testing.TB) [][]byte {
	t.Helper()
	return bytes.Split(bytes.TrimSpace(testfile.Read(t, "testdata/events.jsonl.zst")), []byte("\n"))
}

// rows makes rows of the lines, judged where the request's first stage after authorization
// is, as the runner does.
func rows(t testing.TB, cluster string, partition int32) []verdict.Row {
	t.Helper()
	return rowsOf(t, lines(t), cluster, partition, received)
}

func rowsOf(t testing.TB, lines [][]byte, cluster string, partition int32, at time.Time) []verdict.Row {
	t.Helper()
	judged := map[event.Hash128]bool{}
	var out []verdict.Row
	for i, line := range lines {
		r, err := storagetest.Row(cluster, line, event.Position{Epoch: 1, Partition: partition, Offset: int64(i)}, at)
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.Stage != event.StageRequestReceived && !judged[r.Request] {
			judged[r.Request] = true
			storagetest.Verdict(&r)
		}
		out = append(out, r)
	}
	return out
}

func totals(t testing.TB, s *storage.Store) queries.Totals {
	t.Helper()
	v, err := s.Totals(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// everything reads all standing rows of a cluster that Known reports, by event key.
func everything(t testing.TB, s *storage.Store, in []verdict.Row) map[event.Hash128]verdict.Row {
	t.Helper()
	ctx := context.Background()
	known, err := s.Known(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	out := map[event.Hash128]verdict.Row{}
	if err := s.Standing(ctx, known, func(r verdict.Row) error {
		if _, twice := out[r.EventKey]; twice {
			return fmt.Errorf("event %s twice", r.EventKey)
		}
		out[r.EventKey] = r
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRoundTrip stores real events and hostile ones and reads them back: the canonical
// JSON, the verdict and everything else of the row are the same.
func TestRoundTrip(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := append(rows(t, "c", 3), hostile(t)...)
	if err := s.Insert(ctx, "t1", in); err != nil {
		t.Fatal(err)
	}
	got := everything(t, s, in)
	if len(got) != len(in) {
		t.Fatalf("%d rows stored, %d read", len(in), len(got))
	}
	for _, want := range in {
		r, ok := got[want.EventKey]
		if !ok {
			t.Fatalf("event %s of audit ID %q is not there", want.EventKey, want.Event.AuditID)
		}
		a, b := event.AppendJSON(nil, want.Event), event.AppendJSON(nil, r.Event)
		if !bytes.Equal(a, b) {
			t.Fatalf("event changed in the store\n was %s\n is  %s", a, b)
		}
		if event.Content(b) != r.Content {
			t.Fatalf("content hash of %q differs", want.Event.AuditID)
		}
		if !reflect.DeepEqual(want.Verdict, r.Verdict) {
			t.Fatalf("verdict changed in the store\n was %+v\n is  %+v", want.Verdict, r.Verdict)
		}
		if !reflect.DeepEqual(want.Event.ResponseStatus, r.Event.ResponseStatus) {
			t.Fatalf("status changed in the store\n was %+v\n is  %+v", want.Event.ResponseStatus, r.Event.ResponseStatus)
		}
		want.Event, r.Event, want.Verdict, r.Verdict, r.Counted = nil, nil, nil, nil, nil
		if !reflect.DeepEqual(want, r) {
			t.Fatalf("row changed in the store\n was %+v\n is  %+v", want, r)
		}
	}
}

// hostile makes rows a client could provoke or a future apiserver could write.
func hostile(t testing.TB) []verdict.Row {
	t.Helper()
	weird := "tab\t newline\n nul\\u0000 quote\\\" back\\\\ {x:String} '; DROP TABLE events; --"
	weird = string(bytes.ReplaceAll(bytes.ReplaceAll([]byte(weird), []byte("\t"), []byte(`\t`)), []byte("\n"), []byte(`\n`)))
	docs := []string{
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"` + weird +
			`","stage":"ResponseComplete","requestURI":"` + weird + `","verb":"` + weird + `","user":{"username":"` + weird +
			`","uid":"u","groups":["` + weird + `","b"],"extra":{"` + weird + `":["` + weird + `","2"],"empty":[]},"future":{"a":[1]}},` +
			`"impersonatedUser":{"groups":["g","g"],"x":1},"authenticationMetadata":{},"sourceIPs":["` + weird + `"],"userAgent":"` +
			weird +
			`","objectRef":{},"responseStatus":{},"requestReceivedTimestamp":"2026-11-20T11:36:06.542198Z",` +
			`"stageTimestamp":"2026-11-20T11:36:06.551859Z","annotations":{"` + weird + `":"` + weird + `","a":""},"newMember":{"deep":["` +
			weird + `"]},"another":null}`,
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"no times","stage":"ResponseComplete",` +
			`"requestURI":"/","verb":"get","user":{},"requestReceivedTimestamp":null,"stageTimestamp":null}`,
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"far times","stage":"Panic","requestURI":"/",` +
			`"verb":"get","user":{},"requestReceivedTimestamp":"0002-01-01T00:00:00.000001Z",` +
			`"stageTimestamp":"9999-12-31T23:59:59.999999Z"}`,
	}
	var out []verdict.Row
	for i, doc := range docs {
		r, err := storagetest.Row("c '\\\t", []byte(doc), event.Position{Epoch: 1, Partition: 3, Offset: int64(100000 + i)}, received)
		if err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		storagetest.Verdict(&r)
		r.Verdict.Impersonation = &verdict.ImpersonationCheck{Replayed: verdict.DecisionForbid, Mode: "legacy",
			Missing: []string{"users/\t'x"}}
		r.Verdict.CompleteImpersonation(r.Event.ImpersonatedUser != nil)
		r.Verdict.Missing = []string{"clusterroles 'a'\n"}
		r.Verdict.Identity = []string{"sa-groups-mismatch"}
		r.Verdict.Admission = verdict.Admission{Recorded: "rejected",
			Answers: []verdict.AdmissionAnswer{{Plugin: "NamespaceLifecycle", Outcome: "match", Reason: "tab\t'x", Code: 403}}}
		out = append(out, r)
	}
	return out
}

// TestInsertTwice: the same block under the same token, and what Known says about it.
func TestInsertTwice(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	if known, err := s.Known(ctx, in); err != nil || len(known) != 0 {
		t.Fatalf("an empty store knows %d rows, %v", len(known), err)
	}
	if err := s.Insert(ctx, "a", in); err != nil {
		t.Fatal(err)
	}
	first := totals(t, s)
	if first.Events != int64(len(in)) || first.Volume != first.Events || first.Usage == 0 || first.Grants == 0 {
		t.Fatalf("after one insert of %d: %+v", len(in), first)
	}
	if err := s.Insert(ctx, "a", in); err != nil {
		t.Fatal(err)
	}
	if again := totals(t, s); again != first {
		t.Fatalf("the same token changed the store\n was %+v\n is  %+v", first, again)
	}
	known, err := s.Known(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(known) != len(in) {
		t.Fatalf("knows %d of %d rows", len(known), len(in))
	}
	want := map[event.Hash128]verdict.Row{}
	for _, r := range in {
		want[r.EventKey] = r
	}
	for _, k := range known {
		r, ok := want[k.EventKey]
		if !ok || k.Request != r.Request || k.Position != r.Position || k.Content != r.Content || k.Size != r.Size ||
			k.HasVerdict != (r.Verdict != nil) || k.Cluster != r.Cluster || k.Revision != r.Revision {
			t.Fatalf("known row %+v\n of %+v", k, r)
		}
	}
	other := rows(t, "other", 0)
	if known, err := s.Known(ctx, other); err != nil || len(known) != 0 {
		t.Fatalf("another cluster knows %d rows, %v", len(known), err)
	}
}

// Every standing row comes once, with the keys it was stored with.
func TestEventKeys(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	insert(t, s, "in", in)
	insert(t, s, "again", takenBack(in[:10]))
	insert(t, s, "others", rows(t, "d", 0))
	want, got := map[queries.StoredKey]int{}, map[queries.StoredKey]int{}
	for i := range in {
		want[queries.StoredKey{Request: in[i].Request, Event: in[i].EventKey}]++
	}
	if err := s.EventKeys(t.Context(), "c", func(k queries.StoredKey) error { got[k]++; return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%d keys stand, want %d", len(got), len(want))
	}
}
