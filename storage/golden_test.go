package storage_test

import (
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recorder keeps the statements that pass.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	sql  []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.GetBody == nil { // rows to insert
		return r.next.RoundTrip(req)
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if _, err := io.Copy(&b, body); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(b.String(), "SELECT displayName()") { // the driver's, on a new connection
		r.mu.Lock()
		r.sql = append(r.sql, b.String())
		r.mu.Unlock()
	}
	return r.next.RoundTrip(req)
}

// TestGoldenQueries keeps every named query's SQL, as it is sent, for review.
func TestGoldenQueries(t *testing.T) {
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	ctx := context.Background()
	rec := &recorder{next: engine}
	s, err := storage.Open(ctx, storage.Config{Transport: rec})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := rows(t, "c", 0)[:20]
	insert(t, s, "a", in)
	rec.sql = nil
	from, to := in[0].Event.RequestReceivedTimestamp.Add(-time.Hour), in[0].Event.RequestReceivedTimestamp.Add(time.Hour)
	visit := func(verdict.Row) error { return nil }
	day := from.Truncate(24 * time.Hour)
	marks := verdict.MarkFilter{Cluster: "c", Rule: "rule", From: from, To: to, Every: time.Minute,
		Panes: []verdict.Pane{{Key: 7, Number: 8}}}
	var b strings.Builder
	for _, q := range []struct {
		name string
		run  func() error
	}{
		{"Clusters", func() error { _, err := s.Clusters(ctx); return err }},
		{"Volume", func() error { _, err := s.Volume(ctx, "c", from, to, time.Minute); return err }},
		{"Outcomes", func() error { _, err := s.Outcomes(ctx, "c", from, to); return err }},
		{"Lacks", func() error { _, err := s.Lacks(ctx, "c", from, to, 10); return err }},
		{"Overview of a short range", func() error { _, err := s.Overview(ctx, "c", from, to); return err }},
		{"Overview of another time",
			func() error { _, err := s.Overview(ctx, "c", from.Add(2*time.Hour), from.Add(5*time.Hour)); return err }},
		{"Overview of all there is",
			func() error { _, err := s.Overview(ctx, "c", from.AddDate(0, 0, -1), to.AddDate(0, 0, 1)); return err }},
		{"VisitWhy", func() error { return s.VisitWhy(ctx, "c", "id", visit) }},
		{"Writes", func() error {
			_, err := s.Writes(ctx, "c", []queries.Written{{Resource: "roles", Namespace: "n", Name: "r", From: from, To: to},
				{Resource: "clusterroles", Name: "c", From: from, To: day}})
			return err
		}},
		{"SubjectUsage", func() error {
			_, err := s.SubjectUsage(ctx, "c", "u", from, to, 10)
			return err
		}},
		{"Events by conditions", func() error {
			_, err := s.Events(ctx, queries.EventFilter{Cluster: "c", From: from, To: to, Judged: true, Where: []queries.Condition{
				{Column: "namespace", Value: "n"}, {Column: "resource", Value: "pods"}, {Column: "name", Value: "p"},
				{Column: "verb", Value: "get"}, {Column: "verb", Value: "l", Begins: true}, {Column: "group", Value: "g"},
				{Column: "code", Value: "403", Not: true}, {Column: "auditID", Value: "c92d", Begins: true},
				{Column: "rule", Value: "pod-exec"}, {Column: "path", Value: "/api", Begins: true}}})
			return err
		}},
		{"Facets", func() error {
			_, _, err := s.Facets(ctx, queries.EventFilter{Cluster: "c", From: from, To: to}, []string{"verb", "group"}, 10)
			return err
		}},
		{"Histogram", func() error {
			_, err := s.Histogram(ctx, queries.EventFilter{Cluster: "c", From: from, To: to}, "code", 3, 100)
			return err
		}},
		{"Completions of subjects", func() error {
			_, err := s.Completions(ctx, queries.Completing{Cluster: "c", Kind: "subject", Text: "b", Limit: 5})
			return err
		}},
		{"Completions of objects' names", func() error {
			_, err := s.Completions(ctx, queries.Completing{Cluster: "c", Kind: "name", Resource: "pods", Text: "b", Limit: 5})
			return err
		}},
		{"FirstUses", func() error {
			_, err := s.FirstUses(ctx, queries.FirstFilter{Cluster: "c", From: from, To: to, Limit: 10, Subjects: []string{"u"},
				Groups: []string{"g"}})
			return err
		}},
		{"FirstGrants", func() error {
			_, err := s.FirstGrants(ctx, queries.FirstFilter{Cluster: "c", From: from, To: to, Limit: 10})
			return err
		}},
		{"Unnamed", func() error { _, err := s.Unnamed(ctx, "c", from, to); return err }},
		{"GrantedUses", func() error {
			_, err := s.GrantedUses(ctx, "c", []verdict.Grant{{BindingKind: "RoleBinding", BindingNamespace: "n", Binding: "b"}}, from, to)
			return err
		}},
		{"Refusals", func() error {
			_, _, err := s.Refusals(ctx, queries.RefusalFilter{Cluster: "c", From: from, To: to, Limit: 10, Subjects: []string{"u"},
				Groups: []string{"g"}})
			return err
		}},
		{"PolicyWrites", func() error { _, err := s.PolicyWrites(ctx, "c", from, to, 10); return err }},
		{"AuditIDs", func() error { _, err := s.AuditIDs(ctx, "c", "c92d", 5); return err }},
		{"NearSubjects", func() error { _, err := s.NearSubjects(ctx, "c", "u", 5); return err }},
		{"Recording", func() error { _, err := s.Recording(ctx, "c", from, to); return err }},
		{"History of one subject", func() error {
			return s.History(ctx, "c", from, to, []string{in[0].Event.EffectiveUser().Username}, func(codec.Alike) error { return nil })
		}},
		{"Counted", func() error { _, _, err := s.Counted(ctx, "c"); return err }},
		{"Uses of one subject", func() error { return s.Uses(ctx, "c", []string{"u"}, func(verdict.Use) error { return nil }) }},
		{"Untold", func() error { return s.Untold(ctx, "c", []string{"u"}, true, func(codec.Alike) error { return nil }) }},
		{"Samples", func() error {
			_, err := s.Samples(ctx, "c", []queries.Sampled{{Subject: "u", Last: from},
				{Subject: "u", Check: verdict.CheckRoleBind, Last: to}}, 3)
			return err
		}},
		{"NewestPolicy", func() error {
			return s.NewestPolicy(ctx, "c", []string{"roles.rbac.authorization.k8s.io"}, func([]byte) error { return nil })
		}},
		{"NewestObject", func() error {
			_, err := s.NewestObject(ctx, "c", "roles.rbac.authorization.k8s.io", "n", "r")
			return err
		}},
		{"Known", func() error { _, err := s.Known(ctx, in); return err }},
		{"Standing", func() error {
			return s.Standing(ctx, []verdict.KnownRow{{Cluster: "c", Request: in[0].Request}}, visit)
		}},
		{"Affected", func() error {
			return s.Affected(ctx, verdict.AffectedFilter{Cluster: "c", Partitions: []int32{1}, From: from, To: to, Users: []string{"u"},
				Groups: []string{"g"}, Namespaces: []string{"n"}}, visit)
		}},
		{"Spans", func() error { _, err := s.Spans(ctx, 1); return err }},
		{"LoadPolicy", func() error {
			return s.LoadPolicy(ctx, []string{"c"}, func(verdict.PolicyVersion) error { return nil })
		}},
		{"MarkSums", func() error { _, _, err := s.MarkSums(ctx, nil, from); return err }},
		{"MarkSums of a share", func() error { _, _, err := s.MarkSums(ctx, []string{"c", "d"}, from); return err }},
		{"MarkedClusters", func() error { _, err := s.MarkedClusters(ctx, day); return err }},
		{"ClustersOf", func() error { _, err := s.ClustersOf(ctx, []string{"c", "d"}); return err }},
		{"Marked", func() error {
			filters := []verdict.MarkFilter{marks, {Cluster: "c", Rule: "other", From: from, To: to},
				{Cluster: "c", Rule: "third", From: from, To: to.Add(time.Hour)}, {Cluster: "d", Rule: "other", From: from, To: to}}
			return s.Marked(ctx, filters, func(verdict.Row, []int) error { return nil })
		}},
		{"MarkedCount", func() error { _, err := s.MarkedCount(ctx, marks); return err }},
		{"PaneCounts", func() error {
			_, err := s.PaneCounts(ctx, []verdict.MarkFilter{marks, {Cluster: "c", Rule: "other", From: from, To: to}},
				[][]verdict.Threshold{{{AtLeast: 6, Distinct: []string{"path"}}, {AtLeast: 1}},
					{{AtLeast: 3, Distinct: []string{"user", "uid"}}}})
			return err
		}},
		{"FirstSeen", func() error {
			_, err := s.FirstSeen(ctx, marks, day, verdict.FirstLimits{User: 64, Cluster: 4096, Examples: 5})
			return err
		}},
		{"Folded", func() error { _, err := s.Folded(ctx, day); return err }},
		{"Earliest", func() error { _, err := s.Earliest(ctx, "c"); return err }},
		{"Findings", func() error {
			_, err := s.Findings(ctx, queries.FindingFilter{Cluster: "c", From: from, To: to, At: to, Rule: "rule", Subject: "bob",
				Severities: []string{"high"}, Before: queries.FindingCursor{First: 1, ID: "id"}})
			return err
		}},
		{"FindingCounts", func() error { _, err := s.FindingCounts(ctx, queries.FindingFilter{Cluster: "c"}); return err }},
		{"FindingsOf", func() error {
			_, err := s.FindingsOf(ctx, []string{"c", "d"}, []string{"rule", "other"}, []time.Time{day})
			return err
		}},
		{"SpansDone", func() error { _, err := s.SpansDone(ctx, []string{"c", "d"}); return err }},
		{"CredentialUses", func() error { _, err := s.CredentialUses(ctx, "c", []string{"JTI=1"}, from, to, 10); return err }},
		{"Credentials", func() error { _, err := s.Credentials(ctx, "c", "u", from, to, 10); return err }},
		{"DriftGroups", func() error { _, err := s.DriftGroups(ctx, "c", from, to, 3, 100); return err }},
		{"Judged", func() error { _, _, err := s.Judged(ctx, "c", from, to); return err }},
		{"DirectRequests", func() error {
			_, err := s.DirectRequests(ctx, "c", []string{"wardle"}, []string{"system:aggregator"}, from, to)
			return err
		}},
		{"AuditSamples", func() error { _, err := s.AuditSamples(ctx, "c", from, to); return err }},
		{"FromLog", func() error { _, err := s.FromLog(ctx, "c", []time.Time{from, day, to}); return err }},
		{"Received", func() error { _, err := s.Received(ctx, "c", []time.Time{from, day, to}); return err }},
		{"ServerVolumes", func() error { _, err := s.ServerVolumes(ctx, "c", from, to); return err }},
		{"LetterCounts", func() error { _, err := s.LetterCounts(ctx, "c", from, to); return err }},
		{"Senders", func() error { _, err := s.Senders(ctx, "c", from, to); return err }},
		{"Pauses", func() error { _, err := s.Pauses(ctx, "c", from, to, false, 10); return err }},
		{"Unpaired", func() error { _, err := s.Unpaired(ctx, "c", from, to, 10); return err }},
		{"Totals", func() error { _, err := s.Totals(ctx); return err }},
	} {
		rec.sql = nil
		if err := q.run(); err != nil {
			t.Fatal(q.name, err)
		}
		if strings.HasPrefix(q.name, "Overview") || q.name == "Facets" { // the first is by itself, the others go at once
			slices.Sort(rec.sql[1:])
		}
		b.WriteString("-- " + q.name + "\n" + strings.Join(rec.sql, ";\n") + ";\n\n")
	}
	text := strings.ReplaceAll(b.String(), "SELECT "+storage.EveryColumn()+" FROM", "SELECT {every column} FROM")
	const path = "testdata/queries.golden.sql"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Fatalf("the queries are not those of %s; review and run with -update\n%s", path, text)
	}
}
