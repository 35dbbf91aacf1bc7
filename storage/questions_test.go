package storage_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// answers asks and returns the rows as lines.
func answers(t *testing.T, s *storage.Store, name string, values map[string]string) []string {
	t.Helper()
	_, rows, err := s.Ask(context.Background(), name, "c", values)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return printed(rows)
}

func printed(rows [][]any) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		var cells []string
		for _, v := range r {
			if at, ok := v.(time.Time); ok {
				v = at.UTC().Format(time.RFC3339Nano)
			}
			cells = append(cells, fmt.Sprint(v))
		}
		out[i] = strings.Join(cells, "|")
	}
	return out
}

// counted turns counts by key into the lines of an answer, largest first.
func counted(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s|%d", k, m[k])
	}
	return keys
}

// TestQuestionsAgainstScan asks questions of a store with corrected rows in it and works the
// answers out again by looking at every row.
func TestQuestionsAgainstScan(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "b", rows(t, "other", 1))
	var fix []verdict.Row // some verdicts are corrected to drift
	for i := range in {
		if r := in[i]; r.Verdict != nil && i%17 == 0 {
			old, v := r, *r.Verdict
			old.Sign = -1
			v.Outcome, v.Class = verdict.OutcomeDrift, "unexplained"
			r.Verdict, r.Revision = &v, r.Revision+1
			fix = append(fix, old, r)
			in[i] = r
		}
	}
	insert(t, s, "fix", fix)

	users, verbs, agents, drift, denied := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	var ofAlice, byToken []string
	token, subject := "", ""
	for i := range in {
		if r := &in[i]; r.Verdict != nil && r.Verdict.Credential != "" && token == "" {
			token, subject = r.Verdict.Credential, r.Event.User.Username
		}
	}
	if token == "" {
		t.Fatal("no row has a credential: nothing is shown")
	}
	for i := range in {
		r := &in[i]
		e, v := r.Event, r.Verdict
		if e.User.Username == subject || e.EffectiveUser().Username == subject {
			ofAlice = append(ofAlice, e.AuditID)
		}
		if v == nil {
			continue
		}
		users[e.EffectiveUser().Username]++
		if who := e.EffectiveUser().Username; (who == "" || who == "system:anonymous") && v.Recorded != verdict.DecisionAllow {
			verbs[codec.Other+"|"]++
			agents[codec.Other]++
		} else {
			verbs[v.Attributes.Verb+"|"+v.Attributes.Resource]++
			agents[e.UserAgent]++
		}
		if v.Outcome == verdict.OutcomeDrift {
			drift[v.Class+"|"+v.Recorded.String()+"|"+v.Replayed.String()]++
		}
		if v.Recorded == verdict.DecisionForbid {
			denied[e.EffectiveUser().Username]++
		}
		if v.Credential == token {
			byToken = append(byToken, e.AuditID)
		}
	}
	all := map[string]string{"limit": "100000"}
	with := func(k, v string) map[string]string { return map[string]string{"limit": "100000", k: v} }
	same := func(what string, got, want []string) {
		t.Helper()
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, a scan finds %d\n got %.600q\nwant %.600q", what, len(got), len(want), got, want)
		}
	}
	same("top-users", answers(t, s, "top-users", all), counted(users))
	same("drift", answers(t, s, "drift", all), counted(drift))
	for _, l := range answers(t, s, "subjects", all) {
		var cells = strings.Split(l, "|")
		if cells[1] != fmt.Sprint(users[cells[0]]) || cells[2] != fmt.Sprint(denied[cells[0]]) {
			t.Errorf("subjects: %s; a scan finds %d requests, %d refused", l, users[cells[0]], denied[cells[0]])
		}
	}
	cut := func(lines []string, columns ...int) []string {
		for i, l := range lines {
			cells := strings.Split(l, "|")
			var keep []string
			for _, c := range columns {
				if c < 0 {
					c += len(cells)
				}
				keep = append(keep, cells[c])
			}
			lines[i] = strings.Join(keep, "|")
		}
		return lines
	}
	same("denials", cut(answers(t, s, "denials", all), 0, 1), counted(denied))
	same("top-agents", cut(answers(t, s, "top-agents", all), 0, 1), counted(agents))
	sorted := func(l []string) []string { slices.Sort(l); return l }
	same("top-verbs", sorted(answers(t, s, "top-verbs", all)), sorted(counted(verbs)))
	same("subject-events", sorted(cut(answers(t, s, "subject-events", with("subject", subject)), -1)), sorted(ofAlice))
	same("token", sorted(cut(answers(t, s, "token", with("credential", token)), -1)), sorted(byToken))
	var events int
	for _, l := range cut(answers(t, s, "rate", nil), 1) {
		var n int
		fmt.Sscan(l, &n)
		events += n
	}
	if events != len(in) {
		t.Errorf("rate: %d events of %d", events, len(in))
	}
	if got := answers(t, s, "audit-id", map[string]string{"id": in[0].Event.AuditID}); len(got) == 0 ||
		!strings.Contains(got[0], in[0].Event.RequestURI) {
		t.Errorf("audit-id: %q", got)
	}
	accessesAgainstScan(t, in, func(what string, values map[string]string, want map[string]int, columns ...int) {
		t.Helper()
		values["limit"] = "100000"
		same(what, sorted(cut(answers(t, s, what, values), columns...)), sorted(counted(want)))
	})
	unused := unusedAgainstScan(t, s, in)
	same("grants-never-used", answers(t, s, "grants-never-used", all), unused)
	seen := map[string]bool{}
	for _, l := range cut(answers(t, s, "first-seen", all), 1, 2, 3, 4, 5, 6, 7) {
		if seen[l] {
			t.Errorf("first-seen: %s twice", l)
		}
		seen[l] = true
	}
	if len(seen) == 0 {
		t.Error("first-seen: none")
	}
}

// TestQuestionWindow: a window is exact to the instant when its bounds are not whole minutes,
// and the two ways to ask agree.
func TestQuestionWindow(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	at := in[len(in)/2].Event.RequestReceivedTimestamp
	minute := at.Truncate(time.Minute)
	if at.Equal(minute) {
		t.Fatal("the moment is a whole minute: nothing is shown")
	}
	subject := in[len(in)/2].Event.User.Username
	sum := func(from, to string) int {
		values := map[string]string{"limit": "10000", "subject": subject}
		if from != "" {
			values["from"] = from
		}
		if to != "" {
			values["to"] = to
		}
		return len(answers(t, s, "subject-events", values))
	}
	want, wantMinute, all := 0, 0, 0
	for i := range in {
		if u := in[i].Event.ImpersonatedUser; in[i].Event.User.Username != subject && (u == nil || u.Username != subject) {
			continue
		}
		all++
		if in[i].Event.RequestReceivedTimestamp.Before(at) {
			want++
		}
		if in[i].Event.RequestReceivedTimestamp.Before(minute) {
			wantMinute++
		}
	}
	instant, whole := at.UTC().Format(time.RFC3339Nano), minute.UTC().Format(time.RFC3339)
	for name, c := range map[string][2]int{
		"everything":        {sum("", ""), all},
		"before an instant": {sum("", instant), want},
		"from an instant":   {sum(instant, ""), all - want},
		"before a minute":   {sum("", whole), wantMinute},
		"from a minute":     {sum(whole, ""), all - wantMinute},
		"none":              {sum(instant, instant), 0},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d events of %d", name, c[0], c[1])
		}
	}
}

// accessesAgainstScan works out who touched the object touched most, who read secrets, and what
// the roles of the rows were used for.
func accessesAgainstScan(t *testing.T, in []verdict.Row,
	same func(what string, values map[string]string, want map[string]int, columns ...int)) {
	t.Helper()
	objects, secrets := map[string]map[string]int{}, map[string]int{}
	roles := map[[3]string]map[string]int{} // kind, role and the namespace of its binding
	most := ""
	for i := range in {
		e, v := in[i].Event, in[i].Verdict
		if v == nil {
			continue
		}
		if ref := e.ObjectRef; ref != nil && ref.Name != "" && ref.Namespace != "" {
			o := strings.Join([]string{ref.Resource, ref.Namespace, ref.Name}, "|")
			if objects[o] == nil {
				objects[o] = map[string]int{}
			}
			objects[o][strings.Join([]string{e.User.Username, e.Verb, ref.Subresource, v.Recorded.String()}, "|")]++
			if most == "" || len(objects[o]) > len(objects[most]) {
				most = o
			}
		}
		a, subject := v.Attributes, e.EffectiveUser().Username
		name := storage.FoldName(a.Name)
		if v.Recorded == verdict.DecisionAllow && a.Resource == "secrets" && a.APIGroup == "" &&
			slices.Contains([]string{"get", "list", "watch"}, a.Verb) {
			secrets[strings.Join([]string{subject, a.Verb, a.Namespace, name}, "|")]++
		}
		for _, g := range v.Grants {
			key := [3]string{g.RoleKind, g.Role, g.BindingNamespace}
			if roles[key] == nil {
				roles[key] = map[string]int{}
			}
			roles[key][strings.Join([]string{g.Binding, subject, a.Verb, a.Resource, a.Namespace, name, storage.FoldPath(a.Path)}, "|")]++
		}
	}
	o := strings.Split(most, "|")
	if len(o) != 3 || len(roles) < 2 {
		t.Fatalf("the rows show nothing: object %q, %d roles", most, len(roles))
	}
	same("object", map[string]string{"resource": o[0], "namespace": o[1], "name": o[2]}, objects[most], 0, 1, 2, 3, 4)
	same("secrets-read", map[string]string{}, secrets, 0, 1, 2, 3, 4)
	for r, want := range roles {
		same("role-usage", map[string]string{"kind": r[0], "role": r[1], "namespace": r[2]}, want, 0, 1, 2, 3, 4, 5, 6, 7)
	}
}

// unusedAgainstScan stores bindings, used and not, and returns those that stand and let nothing
// through, as the question prints them.
func unusedAgainstScan(t *testing.T, s *storage.Store, in []verdict.Row) (unused []string) {
	t.Helper()
	used := map[string]bool{}
	use := func(grants []verdict.Grant) {
		for _, g := range grants {
			used[g.BindingKind+"|"+g.BindingNamespace+"|"+g.Binding] = true
		}
	}
	for i := range in {
		if v := in[i].Verdict; v != nil {
			use(v.Grants)
			for j := range v.Implied {
				use(v.Implied[j].Grants)
			}
		}
	}
	const binding, clusterBinding = "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"
	stands := map[string]bool{}
	var versions []verdict.PolicyVersion
	for i, b := range []struct {
		cluster, resource, namespace, name string
		deleted                            bool
	}{
		{"c", clusterBinding, "", "admins", false},
		{"c", clusterBinding, "", "idle", false},
		{"c", clusterBinding, "", "gone", false},
		{"c", clusterBinding, "", "gone", true},
		{"c", binding, "kube-system", "x\t\"y", false},
		{"c", binding, "default", "x\t\"y", false}, // the name is used in another namespace
		{"c", binding, "default", "admins", false}, // and by another kind
		{"c", binding, "default", "back", true},
		{"c", binding, "default", "back", false},
		{"c", "roles.rbac.authorization.k8s.io", "default", "no binding", false},
		{"other", clusterBinding, "", "elsewhere", false},
	} {
		// Versions of 9, 10, ...: as text the first is the newest.
		versions = append(versions,
			verdict.PolicyVersion{Cluster: b.cluster, Resource: b.resource, Namespace: b.namespace, Name: b.name, UID: "u",
				ResourceVersion: fmt.Sprint(7 + i), Deleted: b.deleted, Observation: []byte("{}"),
				Position: event.Position{Epoch: 1, Offset: int64(i)}, Observed: received})
		if kind := map[string]string{binding: "RoleBinding", clusterBinding: "ClusterRoleBinding"}[b.resource]; kind != "" &&
			b.cluster == "c" {
			stands[kind+"|"+b.namespace+"|"+b.name] = !b.deleted
		}
	}
	if err := s.SavePolicy(context.Background(), versions); err != nil {
		t.Fatal(err)
	}
	for b, is := range stands {
		if is && !used[b] {
			unused = append(unused, b)
		}
	}
	slices.Sort(unused)
	if len(unused) != 4 {
		t.Fatalf("%q are unused, want idle, back and two in default", unused)
	}
	return unused
}

// TestQuestionsGolden keeps the SQL of every question for review, with the indexes the engine
// uses on a store of one part.
func TestQuestionsGolden(t *testing.T) {
	if os.Getenv(storagetest.Clustered) != "" {
		t.Skip("NOT RUN: the plan is that of a single server")
	}
	s := storagetest.Open(t)
	insert(t, s, "a", rows(t, "c", 0))
	s.Exec(t, "OPTIMIZE TABLE retrial.events FINAL")
	fill := map[string]string{"subject": "alice", "resource": "secrets", "namespace": "default", "name": "db", "role": "admin",
		"id":         "5da2bf21-6b97-4948-b415-44ccd0377bc9",
		"credential": "JTI=1", "from": "2026-11-20T11:00:00Z", "to": "2026-11-20T12:00:00Z"}
	var b strings.Builder
	for _, q := range queries.Questions() {
		values := map[string]string{}
		for _, p := range q.Params {
			if v, ok := fill[p.Name]; ok {
				values[p.Name] = v
			}
		}
		sql, bound, err := q.Bind("`retrial`", "c", values)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.Ask(context.Background(), q.Name, "c", values); err != nil || len(got.Columns) == 0 {
			t.Errorf("%s: %v", q.Name, err)
		}
		fmt.Fprintf(&b, "-- %s: %s\n%s;\n\n", q.Name, q.About, sql)
		for _, line := range s.Explain(t, sql, bound) {
			fmt.Fprintf(&b, "   %s\n", line)
		}
		b.WriteByte('\n')
	}
	const path = "testdata/questions.golden.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Fatalf("the questions are not those of %s; review and run with -update\n%s", path, b.String())
	}
}

// TestAuditIDIsFoundByIndex: among many events, one is found by its audit ID without reading
// most of the others, be it a UUID, a text, or the ID of none.
func TestAuditIDIsFoundByIndex(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	odd := *in[1].Event
	odd.AuditID = "chosen by a client"
	in[1].Event = &odd
	insert(t, s, "a", in)
	const many = 200_000
	s.Exec(t, `INSERT INTO retrial.events (cluster, ingest_day, day, minute, request_received, request_key, user_name, verb, stage, sign, version, audit_uuid)
SELECT 'c', toDate('2026-11-20'), toDate('2026-11-20'), toDateTime('2026-11-20 00:00:00', 'UTC') + 60 * intDiv(number, 200) AS minute, toDateTime64(minute, 6, 'UTC'),
    sipHash128(number), concat('user ', toString(number % 50)), 'get', 'ResponseComplete', 1, 1, reinterpretAsUUID(sipHash128(number, 1))
FROM numbers(`+fmt.Sprint(many)+`)`)
	read := func() (n int64) {
		fmt.Sscan(s.Strings(t, "SELECT toString(value) FROM system.events WHERE event = 'SelectedRows'")[0], &n)
		return n
	}
	for name, id := range map[string]string{"UUID": in[0].Event.AuditID, "text": odd.AuditID,
		"no UUID": "00000000-0000-4000-8000-000000000001", "no text": "another", "zero": "00000000-0000-0000-0000-000000000000"} {
		t.Run(name, func(t *testing.T) {
			want := 0
			for i := range in {
				if in[i].Event.AuditID == id {
					want++
				}
			}
			began := read()
			if got := answers(t, s, "audit-id", map[string]string{"id": id}); len(got) != want {
				t.Errorf("audit-id: %d events of %d", len(got), want)
			}
			asked := read()
			s.Exec(t, "SYSTEM DROP QUERY CONDITION CACHE") // the engine remembers where the answer was
			got := 0
			if err := s.VisitWhy(ctx, "c", id, func(r verdict.Row) error {
				if got++; r.Event.AuditID != id {
					t.Errorf("why: visits %q", r.Event.AuditID)
				}
				return nil
			}); err != nil || got != want {
				t.Errorf("why: %d events of %d: %v", got, want, err)
			}
			// The filters leave out four granules of 8,192 rows at a time.
			if by, why := asked-began, read()-asked; by > many/2 || why > many/2 {
				t.Errorf("the question read %d rows and why %d, of %d", by, why, many)
			} else {
				t.Logf("the question read %d rows and why %d, of %d", by, why, many)
			}
		})
	}
}

// TestQuestionMistakes are told to who made them.
func TestQuestionMistakes(t *testing.T) {
	list := queries.Questions()
	for _, q := range list {
		for _, p := range q.Params {
			if p.About == "" {
				t.Errorf("%s does not say what %s is", q.Name, p.Name)
			}
		}
	}
	q := list[slices.IndexFunc(list, func(q queries.Question) bool { return q.Name == "subject-events" })]
	for name, c := range map[string]struct {
		values map[string]string
		says   string
	}{
		"missing":  {nil, "wants subject"},
		"unknown":  {map[string]string{"subject": "a", "colour": "red"}, `no parameter "colour"`},
		"time":     {map[string]string{"subject": "a", "from": "yesterday"}, "2026-11-20T11:36:00Z"},
		"number":   {map[string]string{"subject": "a", "limit": "-1"}, "want a number"},
		"overflow": {map[string]string{"subject": "a", "limit": "99999999999"}, "want a number"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := q.Bind("d", "c", c.values); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v does not say %q", err, c.says)
			}
		})
	}
	if _, bound, err := q.Bind("d", "c", map[string]string{"subject": "a\t'\\"}); err != nil || bound["subject"] != `a\t'\\` {
		t.Fatalf("%q %v", bound["subject"], err)
	}
}
