package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// ofTheSample are the parameters that questions are asked with; words in braces come from the
// sample. Others are asked of the sample and all of its time, see [askedOf].
var ofTheSample = map[string][]string{
	"overview": {"cluster=sample&from={from}&to={to}", "cluster=sample&from={from}&to={middle}"},
	"events": {"cluster=sample&limit=500", "cluster=sample&limit=3&decision=forbid", "cluster=sample&outcome=not_judged&limit=100",
		"cluster=sample&user={user}&verb=get&limit=20&from={from}&to={to}", "cluster=sample&outcome=ambiguous",
		"cluster=sample&limit=500&where={where}"},
	"refusals":       {"cluster=sample&limit=500", "cluster=sample&from={middle}&includeSystem=true", "cluster=sample&subject={user}"},
	"policy-changes": {"cluster=sample&limit=500", "cluster=sample&from={from}&to={middle}", "cluster=sample&id={made}"},
	"first-uses": {"cluster=sample&from={middle}&limit=1000&includeSystem=true", "cluster=sample&from={from}",
		"cluster=sample&from={middle}&to={to}&subject={user}"},
	"dangers": {"cluster=sample", "cluster=sample&includeSystem=true&limit=2000&from={from}&to={to}",
		"cluster=sample&unused=true&danger=bind"},
	"facets":    {"cluster=sample", "cluster=sample&keys=group,sourceIP,name&limit=100&where={where}&from={from}&to={middle}"},
	"histogram": {"cluster=sample", "cluster=sample&split=decision&steps=20", "cluster=sample&split=group&where={where}"},
	"complete": {"kind=cluster", "kind=rule&prefix=secret", "kind=class&prefix=recorded", "cluster=sample&kind=subject&limit=100",
		"cluster=sample&kind=group&prefix=system", "cluster=sample&kind=namespace", "cluster=sample&kind=resource&prefix=role&limit=100",
		"cluster=sample&kind=verb", "cluster=sample&kind=name&resource=pods&limit=200", "cluster=sample&kind=path&prefix=/",
		"cluster=sample&kind=userAgent&prefix=kube", "cluster=sample&kind=role&prefix=admin", "cluster=sample&kind=binding&limit=200"},
	"why": {"auditID={allowed}", "auditID={begin}", "auditID={forbidden}&cluster=sample", "auditID={allowed}&at={to}", "auditID={raced}",
		"auditID={made}", "auditID=absent"},
	"explain-deny": {"auditID={forbidden}", "auditID={forbidden}&at={to}", "auditID={allowed}", "auditID={raced}", "auditID=absent"},
	"who-can": {"cluster=sample&verb=list&resource=secrets", "cluster=sample&verb=create&resource=pods/exec&namespace=kube-system",
		"cluster=sample&verb=get&path=/metrics", "cluster=sample&verb=get&resource=pods&allNamespaces=true&at={middle}"},
	"can": {"cluster=sample&subject={user}", "cluster=sample&group=system:authenticated",
		"cluster=sample&subject={user}&verb=bind&resource=clusterroles&name=cluster-admin",
		"cluster=sample&subject={user}&at={middle}", "cluster=sample&subject=carlo",
		"cluster=sample&subject=system:serviceaccount:ci:deploier", "cluster=sample&subject=api"},
	"changes":     {"cluster=sample&from={from}", "cluster=sample&from={middle}", "cluster=sample&from={from}&to={middle}&subject={user}"},
	"escalations": {"cluster=sample&limit=50", "cluster=sample&subject={user}&includeSystem=true"},
	"hygiene":     {"cluster=sample", "cluster=sample&includeSystem=true"},
	"drift":       {"cluster=sample", "cluster=sample&from={middle}"},
	"lineage": {"cluster=sample&subject={user}&limit=200", "cluster=sample&subject=system:anonymous",
		"cluster=sample&credential={credential}"},
	"findings": {"cluster=sample&limit=500", "limit=500&min-severity=high", "cluster=sample&limit=3&to={middle}"},
	"subject":  {"cluster=sample&user={user}", "cluster=sample&user={user}&from={from}&to={to}"},
	"suggest": {"cluster=sample&subject={user}", "cluster=sample&all=true&includeSystem=true&includeUnseen=true",
		"cluster=sample&all=true&from={middle}"},
	"ask": {"cluster=sample&question=audit-id&values={id}", "cluster=sample&question=denials", "cluster=sample&question=drift",
		"cluster=sample&question=first-seen",
		"cluster=sample&question=grants-never-used", "cluster=sample&question=object&values={object}", "cluster=sample&question=rate",
		"cluster=sample&question=role-usage&values={role}", "cluster=sample&question=secrets-read",
		"cluster=sample&question=subject-events&values={subject}", "cluster=sample&question=subjects",
		"cluster=sample&question=token&values={token}",
		"cluster=sample&question=top-agents", "cluster=sample&question=top-users", "cluster=sample&question=top-verbs"},
	"completeness": {"cluster=sample&from={from}&to={to}&settle=1s"},
	"query-log":    {"before=2000-01-01T00:00:00Z"}, // before anybody can have asked: a log knows nothing of who asks
	"rejudge":      {"cluster=sample"},
}

// ofTheServer are the members of an answer that depend on the server, and why. Answers to anything
// else are the same to the byte.
var ofTheServer = map[string]map[string]string{
	"can?cluster=sample&subject={user}&at={middle}": {
		"groupsSeen": "a store counts groups by day and may tell a later time of the moment's day; a log knows the request",
	},
	"changes?cluster=sample&from={from}&to={middle}&subject={user}": {"groupsSeen": "as of can"},
}

// TestEveryQuestionOfALog asks every question of a server that was fed with the sample, and of the
// sample's files: the answers are the same, byte for byte.
func TestEveryQuestionOfALog(t *testing.T) {
	storagetest.Need(t)
	if testing.Short() {
		t.Skip("imports the sample; runs without -short")
	}
	ctx, folder := t.Context(), filepath.Join("..", "internal", "sample")
	stateFile, logFile := filepath.Join(folder, sample.StateName), filepath.Join(folder, sample.AuditLogName)
	cfg := config.Default()
	cfg.DataDir, cfg.KeyFile = filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "hmac.key")
	im := Import{Config: cfg, Cluster: "sample", Logs: []string{logFile}, State: stateFile, Wait: true}
	if _, err := im.Run(ctx); err != nil {
		t.Fatal(err)
	}
	sys := &system{cfg: cfg, log: zap.NewNop(), reg: prometheus.NewRegistry()}
	stored, err := sys.stored(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fill := fromTheSample(t, stored)
	want := map[string]*httptest.ResponseRecorder{}
	for _, q := range (&query.Service{}).Questions() {
		if q.Action {
			continue
		}
		if q.Posted {
			want[q.Name] = post(stored, q.Name)
			continue
		}
		for _, params := range askedOf(t, &q) {
			path := q.Name + "?" + fill.Replace(params)
			want[path] = get(stored, path)
		}
	}
	answersOfTheSample(t, stored)
	if err := sys.close(); err != nil {
		t.Fatal(err)
	}

	var hints bytes.Buffer
	log := Log{Cluster: "sample", States: []string{stateFile}, Events: []string{logFile}, Streams: cli.Streams{Err: &hints}}
	if log.Key, err = KnownKey(cfg); err != nil || log.Key == nil {
		t.Fatalf("no key, %v", err)
	}
	service, done, err := log.service(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
		if hints.Len() > 0 {
			t.Errorf("said %s", hints.String())
		}
	}()
	handler := newLogAPI(service)
	for _, q := range service.Questions() {
		if q.Action {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w,
				httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/"+q.Name+"?cluster=sample&since=2026-01-01T00:00:00Z", nil))
			if w.Code < 400 {
				t.Errorf("%s was done", q.Name)
			}
			continue
		}
		if q.Posted {
			same(t, q.Name, want[q.Name], post(handler, q.Name),
				map[string]string{"sample": "a store groups requests, and has no audit IDs"})
			continue
		}
		for _, params := range askedOf(t, &q) {
			path := q.Name + "?" + fill.Replace(params)
			same(t, path, want[path], get(handler, path), ofTheServer[q.Name+"?"+params])
		}
	}
}

// askedOf returns the parameters a question is asked with.
func askedOf(t *testing.T, q *query.Question) []string {
	t.Helper()
	if list := ofTheSample[q.Name]; len(list) > 0 {
		return list
	}
	var all []string
	for _, p := range q.Parameters() {
		switch {
		case p.Name == "cluster":
			all = append(all, "cluster=sample")
		case p.Name == "from", p.Name == "to":
			all = append(all, p.Name+"={"+p.Name+"}")
		case p.Required:
			t.Errorf("%s needs %s: say with what it is asked", q.Name, p.Name)
		}
	}
	return []string{strings.Join(all, "&")}
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/"+path, nil))
	return w
}

// post asks a question that is posted: there is one, of a draft.
func post(h http.Handler, name string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/"+name,
		strings.NewReader(`{"cluster":"sample","delete":["ClusterRoleBinding/a-bot1","ClusterRoleBinding/kubeadm:cluster-admins"]}`))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	return w
}

// same compares answers, but for members that depend on the server.
func same(t *testing.T, path string, want, got *httptest.ResponseRecorder, but map[string]string) {
	t.Helper()
	a, b := want.Body.Bytes(), got.Body.Bytes()
	if len(but) > 0 && want.Code == http.StatusOK && got.Code == http.StatusOK {
		a, b = without(t, a, but), without(t, b, but)
	}
	if want.Code >= 400 && want.Code == got.Code && want.Code != http.StatusBadRequest {
		return // the words say where it was looked for
	}
	if want.Code == got.Code && bytes.Equal(a, b) {
		return
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	around := func(text []byte) []byte { return text[max(0, at-300):min(len(text), at+300)] }
	t.Errorf("%s\nserver %d, %d bytes: …%s…\nlog    %d, %d bytes: …%s…", path, want.Code, len(a), around(a), got.Code, len(b), around(b))
}

// without returns JSON without some members, wherever they are.
func without(t *testing.T, text []byte, but map[string]string) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name := range v {
				if _, left := but[name]; left {
					delete(v, name)
					continue
				}
				walk(v[name])
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fromTheSample looks up what the questions name.
func fromTheSample(t *testing.T, h http.Handler) *strings.Replacer {
	t.Helper()
	ask := func(path string, into any) {
		t.Helper()
		w := get(h, path)
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	var clusters query.ClustersAnswer
	ask("clusters", &clusters)
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	first, last := clusters.Clusters[0].First, clusters.Clusters[0].Last
	var overview query.OverviewAnswer
	ask("overview?cluster=sample&from="+stamp(first)+"&to="+stamp(last), &overview)
	user := ""
	for _, s := range overview.Subjects {
		if user == "" && strings.HasPrefix(s.User, "system:serviceaccount:") {
			user = s.User
		}
	}
	one := func(filter string) string {
		var events query.EventsAnswer
		ask("events?cluster=sample&limit=1&"+filter, &events)
		return events.Events[0].AuditID
	}
	allowed := one("decision=allow&user=" + url.QueryEscape(user))
	var why query.WhyAnswer
	ask("why?auditID="+allowed, &why)
	credential := why.Requests[0].Verdict.Credential
	object := func(pairs ...string) string {
		values := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			values[pairs[i]] = pairs[i+1]
		}
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return url.QueryEscape(string(text))
	}
	where, err := json.Marshal([]string{"verb!=watch", "namespace=default", "namespace^=kube-", "code!^=5", "userAgent!="})
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("{where}", url.QueryEscape(string(where)), "{begin}", allowed[:4], "{from}", stamp(first),
		"{to}", stamp(last), "{middle}", stamp(first.Add(last.Sub(first)/2).Truncate(time.Minute)),
		"{user}", url.QueryEscape(user), "{allowed}", allowed, "{forbidden}", one("decision=forbid"), "{raced}", one("outcome=ambiguous"),
		"{made}", one("verb=create&resource=clusterroles"), "{credential}", url.QueryEscape(credential), "{token}",
		object("credential", credential), "{id}", object("id", allowed), "{subject}", object("subject", user),
		"{object}", object("resource", "namespaces", "name", "kube-system"), "{role}", object("role", "system:node"))
}

// TestLogStoreIsRemoved: the temporary store of a log leaves nothing behind, whether it was filled or
// filling it was interrupted.
func TestLogStoreIsRemoved(t *testing.T) {
	storagetest.Need(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	folder := filepath.Join("..", "internal", "sample")
	log := Log{Cluster: "sample", States: []string{filepath.Join(folder, sample.StateName)},
		Events: []string{filepath.Join(folder, sample.AuditLogName)}, Streams: cli.Streams{Err: &bytes.Buffer{}}}
	service, done, err := log.service(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := func() int {
		t.Helper()
		list, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	if _, err := service.Tables(interrupted); err == nil || left() != 0 {
		t.Errorf("interrupted: %v, %d files are left", err, left())
	}
	if _, err := service.Tables(t.Context()); err != nil || left() != 1 {
		t.Errorf("%v, %d folders", err, left())
	}
	if err := done(); err != nil || left() != 0 {
		t.Errorf("%v, %d files are left", err, left())
	}
	log.Library = filepath.Join(temp, "nowhere.so")
	if service, done, err = log.service(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Tables(t.Context()); err == nil || !strings.Contains(err.Error(), "fetch-libchdb.sh") || left() != 0 {
		t.Errorf("without the library: %v, %d files are left", err, left())
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}
