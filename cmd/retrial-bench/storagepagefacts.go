package main

import (
	"context"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/verdict"
)

// pageFacts is what pages of a store are asked about.
type pageFacts struct {
	events      int64
	first, last time.Time
	rules       []detect.Rule
	state       *state.State
	subjects    []string // some that made many requests, and one that made few
	credentials []string
	allowed     []string // audit IDs
	refused     []string // audit IDs
	writes      []string // audit IDs of writes to the policy
}

// pageFacts finds what to ask about, and writes to the policy in the store's last day unless that has been done.
func (b *storageBench) pageFacts(ctx context.Context) (*pageFacts, error) {
	f := &pageFacts{}
	clusters, err := b.store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	f.events, f.first, f.last = clusters[0].Events, clusters[0].First, clusters[0].Last.Add(time.Minute)
	for sql, to := range map[string]*[]string{
		"SELECT subject FROM retrial.activity GROUP BY subject HAVING subject LIKE 'system:serviceaccount:%-%' ORDER BY sum(count) DESC, " +
			"subject LIMIT 3": &f.subjects,
		"SELECT subject FROM retrial.activity GROUP BY subject HAVING subject LIKE 'oidc:%' ORDER BY sum(count), subject " +
			"LIMIT 2": &f.subjects,
		"SELECT max(credential) FROM retrial.events WHERE credential LIKE 'JTI=%' AND user_name LIKE '%-%:%' GROUP BY user_name " +
			"ORDER BY count() DESC LIMIT 3": &f.credentials,
		"SELECT audit_id FROM retrial.events WHERE recorded = 'allow' AND stage = 'ResponseComplete' AND length(grants) > 0 " +
			"ORDER BY sipHash64(audit_uuid) LIMIT 5": &f.allowed,
		"SELECT audit_id FROM retrial.events WHERE recorded = 'forbid' ORDER BY sipHash64(audit_uuid) LIMIT 5": &f.refused,
	} {
		rows, err := rawRows(ctx, b.engine, sql)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			*to = append(*to, r[0])
		}
	}
	if len(f.subjects) == 0 || len(f.credentials) == 0 || len(f.refused) == 0 {
		return nil, fmt.Errorf("%d events have too few subjects to ask about: generate more rows", f.events)
	}
	m, err := newRowMaker(b.seed)
	if err != nil {
		return nil, err
	}
	rules, err := server.LoadRules("", nil)
	if err != nil {
		return nil, err
	}
	f.rules, f.state = rules.Rules(), m.state
	return f, b.writePolicy(ctx, m, f)
}

// writtenPolicy is how many writes to the policy a store has in its last day: bindings of subjects that are refused much, each deleted some
// minutes after it was made.
const writtenPolicy = 2_000

// writePolicy applies the writes to the state, and inserts their events unless they are there.
func (b *storageBench) writePolicy(ctx context.Context, m *rowMaker, f *pageFacts) error {
	const prefix = "bench-write-"
	there, err := rawRows(ctx, b.engine, "SELECT count() FROM retrial.events WHERE startsWith(audit_text, '"+prefix+"')")
	if err != nil {
		return err
	}
	who, err := rawRows(ctx, b.engine, "SELECT subject FROM retrial.events WHERE recorded = 'forbid' AND subject LIKE '%:%' "+
		"GROUP BY subject ORDER BY count() DESC, subject LIMIT 200")
	if err != nil {
		return err
	}
	in, err := rawRows(ctx, b.engine, "SELECT DISTINCT namespace FROM retrial.accesses WHERE namespace != '' ORDER BY namespace")
	if err != nil {
		return err
	}
	step := min(24*time.Hour, f.last.Sub(f.first)) / (writtenPolicy + 1)
	rows := make([]verdict.Row, 0, writtenPolicy)
	for i := range writtenPolicy {
		at := f.last.Add(-time.Duration(writtenPolicy-i) * step).Truncate(time.Microsecond)
		binding, gone := i/2, i%2 == 1
		e := bindingWritten(fmt.Sprint(prefix, i), fmt.Sprint("bench-", binding), in[binding%len(in)][0],
			who[binding%len(who)][0], i, at, gone)
		if gone && i > writtenPolicy-20 {
			f.writes = append(f.writes, e.AuditID)
		}
		seen, err := observe.FromEvent(e)
		if err != nil {
			return err
		}
		f.state.Apply(seen...)
		r := verdict.Row{Cluster: benchCluster, Source: "webhook", Event: e, Sign: 1, Revision: 1, Received: e.StageTimestamp,
			Position: event.Position{Epoch: 2, Offset: int64(i)}, Request: event.RequestKey(benchCluster, e)}
		var text []byte
		m.finish(&r, &text, true)
		rows = append(rows, r)
	}
	if numeric(there[0][0]) > 0 {
		return nil
	}
	if err := b.store.Insert(ctx, "bench-policy", rows); err != nil {
		return err
	}
	return b.store.RollUp(ctx)
}

// bindingWritten is the end of a request that made a RoleBinding to a ClusterRole of the generated policy, or deleted it.
func bindingWritten(id, name, namespace, user string, revision int, at time.Time, gone bool) *event.Event {
	const group = "rbac.authorization.k8s.io"
	uri := "/apis/" + group + "/v1/namespaces/" + namespace + "/rolebindings"
	e := &event.Event{
		Level: event.LevelRequestResponse, AuditID: id, Stage: event.StageResponseComplete, Verb: "create", RequestURI: uri,
		User:      event.User{Username: "bench:admin", Groups: []string{"system:masters", "system:authenticated"}},
		UserAgent: "kubectl/v1.36.1", ObjectRef: &event.ObjectRef{Resource: "rolebindings", Namespace: namespace, Name: name,
			APIGroup: group, APIVersion: "v1"},
		RequestReceivedTimestamp: at, StageTimestamp: at.Add(2 * time.Millisecond),
		ResponseStatus: &event.Status{Code: 201, Raw: []byte(`{"metadata":{},"code":201}`)},
		ResponseObject: fmt.Appendf(nil, `{"apiVersion":"%[1]s/v1","kind":"RoleBinding","metadata":{"name":%[2]q,"namespace":%[3]q,`+
			`"uid":"uid-%[2]s","resourceVersion":"%[4]d","creationTimestamp":%[5]q},"roleRef":{"apiGroup":%[1]q,"kind":"ClusterRole",`+
			`"name":"engineer"},"subjects":[{"apiGroup":%[1]q,"kind":"User","name":%[6]q}]}`,
			group, name, namespace, 5_000_000_000+revision, at.UTC().Format(time.RFC3339), user),
	}
	if gone {
		e.Verb, e.RequestURI = "delete", uri+"/"+name
		e.ResponseStatus = &event.Status{Code: 200, Raw: []byte(`{"metadata":{},"code":200}`)}
		e.ResponseObject = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":%q,`+
			`"group":%q,"kind":"rolebindings","uid":"uid-%s"}}`, name, group, name)
	}
	e.Annotations = e.Annotations.Set(event.AnnotationDecision, "allow").Set(event.AnnotationReason, "")
	return e
}

// pagesOf lists what each page asks, in the order of its questions: dashboards/web/src/pages/*/queries.ts.
func pagesOf(f *pageFacts) []page {
	within, until := []string{"from", "to"}, []string{"", "at"}
	const others = `["resource=secrets","system=no"]`
	const writes = `["apiGroup=rbac.authorization.k8s.io","decision=allow","code^=2","subresource=","resource=roles",` +
		`"resource=clusterroles","resource=rolebindings","resource=clusterrolebindings","verb=create","verb=update","verb=patch",` +
		`"verb=delete","verb=deletecollection"]`
	subject := map[string][]string{"subject": f.subjects}
	user := map[string][]string{"subject": {}}
	for _, s := range f.subjects {
		user["subject"] = append(user["subject"], "user:"+s)
	}
	ids := map[string][]string{"auditID": f.allowed}
	const usual = "decision,outcome,subject,namespace,verb,resource,code,userAgent"
	const further = "user,impersonated,group,apiGroup,subresource,name,replayed,class,authorizer,apiserver,sourceIP,rule"
	return []page{
		{"every page", []pageQuestion{
			{name: "clusters"}, {name: "status"},
			{name: "complete", note: "search, subject", with: []string{"kind", "subject", "limit", "7"},
				varied: map[string][]string{"prefix": {"a", "pay", "system:serviceaccount:ads"}}},
			{name: "complete", note: "search, namespace", with: []string{"kind", "namespace", "limit", "7"},
				varied: map[string][]string{"prefix": {"a", "pay", "ads-"}}},
		}},
		{"Today", []pageQuestion{
			{name: "findings", with: []string{"limit", "200"}, ranged: within},
			{name: "completeness", ranged: within},
			{name: "first-uses", with: []string{"limit", "1000"}, ranged: within},
			{name: "refusals", with: []string{"limit", "500"}, ranged: within},
			{name: "dangers", with: []string{"limit", "2000"}, ranged: until},
			{name: "facets", note: "secrets", with: []string{"keys", "subject", "where", others}, ranged: within},
		}},
		{"Explore", []pageQuestion{
			{name: "events", with: []string{"limit", "200"}, ranged: within},
			{name: "facets", with: []string{"keys", usual, "limit", "6"}, ranged: within},
			{name: "histogram", with: []string{"split", "decision", "steps", "120"}, ranged: within},
		}},
		{"Explore, refused", []pageQuestion{
			{name: "events", with: []string{"limit", "200", "where", `["decision=forbid"]`}, ranged: within},
			{name: "facets", with: []string{"keys", "outcome,subject,namespace,verb,resource,code,userAgent", "limit", "6", "where",
				`["decision=forbid"]`}, ranged: within},
			{name: "facets", note: "decision", with: []string{"keys", "decision", "limit", "6"}, ranged: within},
			{name: "histogram", with: []string{"split", "decision", "steps", "120", "where", `["decision=forbid"]`}, ranged: within},
		}},
		{"Explore, a namespace", []pageQuestion{
			{name: "events", with: []string{"limit", "200", "where", `["namespace=ads-prod","verb!=watch"]`}, ranged: within},
			{name: "facets", with: []string{"keys", "decision,outcome,subject,resource,code,userAgent", "limit", "6", "where",
				`["namespace=ads-prod","verb!=watch"]`}, ranged: within},
			{name: "histogram", note: "by subject", with: []string{"split", "subject", "steps", "120", "where",
				`["namespace=ads-prod","verb!=watch"]`}, ranged: within},
			{name: "facets", note: "further columns", with: []string{"keys", further, "limit", "6", "where",
				`["namespace=ads-prod","verb!=watch"]`}, ranged: within, late: true},
		}},
		{"Event", []pageQuestion{
			{name: "why", varied: ids}, {name: "why", note: "refused", varied: map[string][]string{"auditID": f.refused}},
			{name: "explain-deny", varied: map[string][]string{"auditID": f.refused}},
			{name: "lineage", varied: map[string][]string{"credential": f.credentials}},
			{name: "can", varied: user, with: []string{"namespace", "ads-prod"}, ranged: until},
			{name: "events", note: "before", with: []string{"limit", "25"}, varied: subject, ranged: []string{"", "to"}},
			{name: "events", note: "after", with: []string{"limit", "500"}, varied: subject, ranged: within},
		}},
		{"Findings", []pageQuestion{
			{name: "findings", with: []string{"limit", "200"}, ranged: within},
			{name: "findings", note: "counts", with: []string{"limit", "1"}, ranged: within},
		}},
		{"Subjects", []pageQuestion{
			{name: "ask", note: "subjects", with: []string{"question", "subjects"}, ranged: []string{"", ""}},
			{name: "dangers", with: []string{"includeSystem", "true", "limit", "2000"}, ranged: until},
			{name: "suggest", note: "all", with: []string{"all", "true", "includeSystem", "true", "kept", "true"}},
		}},
		{"Subject", []pageQuestion{
			{name: "subject", varied: subject, ranged: within},
			{name: "can", varied: user, ranged: until},
			{name: "histogram", with: []string{"split", "decision"}, varied: subject, ranged: within},
			{name: "findings", with: []string{"limit", "50"}, varied: subject, ranged: within},
			{name: "lineage", with: []string{"limit", "20", "brief", "true"}, varied: subject, ranged: within},
			{name: "escalations", with: []string{"includeSystem", "true", "limit", "5"}, varied: user, ranged: until},
			{name: "suggest", with: []string{"includeSystem", "true", "kept", "true"}, varied: subject},
		}},
		{"Access", []pageQuestion{
			{name: "who-can", with: []string{"verb", "get", "resource", "secrets", "allNamespaces", "true"}, ranged: until},
			{name: "can", varied: user, ranged: until},
			{name: "changes", ranged: within},
			{name: "policy-changes", with: []string{"limit", "500"}, ranged: []string{"", ""}},
			{name: "histogram", note: "older writes", with: []string{"steps", "200", "where", writes}, ranged: []string{"", "to"}},
			{name: "complete", note: "names", with: []string{"kind", "name", "resource", "secrets", "limit", "20"},
				varied: map[string][]string{"prefix": {"", "a", "sync"}}},
			{name: "complete", note: "resources", with: []string{"kind", "resource", "limit", "20"},
				varied: map[string][]string{"prefix": {"", "s", "pods"}}},
		}},
		{"Changes", []pageQuestion{
			{name: "policy-changes", with: []string{"limit", "500"}, ranged: within},
			{name: "refusals", with: []string{"limit", "200"}, ranged: within},
			{name: "policy-changes", note: "one", varied: map[string][]string{"id": f.writes}},
		}},
		{"Trust", []pageQuestion{
			{name: "overview", ranged: within}, {name: "completeness", ranged: within}, {name: "drift", ranged: within}, {name: "classes"},
		}},
	}
}
