package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
)

// sampled is one request of the sample, read without the store: its first event that is not only its arrival.
type sampled struct {
	*event.Event
	decision string // as annotated
}

// resource is what a request names, "" for none.
func (s *sampled) resource() string {
	if s.ObjectRef == nil {
		return ""
	}
	return s.ObjectRef.Resource
}

func (s *sampled) namespace() string {
	if s.ObjectRef == nil {
		return ""
	}
	return s.ObjectRef.Namespace
}

// requestsOfTheSample reads the requests of the sample's file, the earliest first.
func requestsOfTheSample(t *testing.T) (out []sampled) {
	t.Helper()
	file, err := sample.OpenAuditLog()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		e, err := event.Decode(slices.Clone(lines.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		id := e.AuditID + e.RequestURI + e.RequestReceivedTimestamp.String()
		if e.Stage == event.StageRequestReceived || seen[id] {
			continue
		}
		seen[id] = true
		one := sampled{Event: e, decision: "none"}
		for _, a := range e.Annotations {
			if a.Key == "authorization.k8s.io/decision" {
				one.decision = a.Value
			}
		}
		out = append(out, one)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(out, func(a, b sampled) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
	return out
}

// askSample asks a question of the sample with parameters.
func askSample[A any](t *testing.T, h http.Handler, question string, pairs ...string) (out A) {
	t.Helper()
	q := url.Values{"cluster": {"sample"}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	w := get(h, question+"?"+q.Encode())
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s %v: %d %s", question, pairs, w.Code, w.Body)
	}
	return out
}

// answersOfTheSample compares answers about the sample with the sample's file.
func answersOfTheSample(t *testing.T, h http.Handler) {
	all := requestsOfTheSample(t)
	t.Run("facets", func(t *testing.T) { facetsOfTheSample(t, h, all) })
	t.Run("histogram", func(t *testing.T) { histogramOfTheSample(t, h, all) })
	t.Run("events", func(t *testing.T) { eventsOfTheSample(t, h, all) })
	t.Run("refusals", func(t *testing.T) { refusalsOfTheSample(t, h, all) })
	t.Run("policy changes", func(t *testing.T) { policyChangesOfTheSample(t, h, all) })
	t.Run("first uses", func(t *testing.T) { firstUsesOfTheSample(t, h, all) })
	t.Run("dangers", func(t *testing.T) { dangersOfTheSample(t, h, all) })
	t.Run("complete", func(t *testing.T) { completedOfTheSample(t, h, all) })
}

func facetsOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	of := map[string]func(*sampled) string{
		"subject": func(s *sampled) string { return s.EffectiveUser().Username }, "verb": func(s *sampled) string { return s.Verb },
		"resource": (*sampled).resource, "namespace": (*sampled).namespace, "decision": func(s *sampled) string { return s.decision },
	}
	middle := all[len(all)/2].RequestReceivedTimestamp
	for _, from := range []string{"", middle.Format(time.RFC3339Nano)} {
		got := askSample[query.FacetsAnswer](t, h, "facets", "keys", "subject,verb,resource,namespace,decision", "limit", "100",
			"from", from)
		var requests int64
		for i := range all {
			if from == "" || !all[i].RequestReceivedTimestamp.Before(middle) {
				requests++
			}
		}
		if got.Requests != requests || !got.Whole || len(got.Facets) != 5 {
			t.Errorf("%d requests of %d, %+v", got.Requests, requests, got.Counted)
		}
		for _, f := range got.Facets {
			want := map[string]int64{}
			for i := range all {
				if from == "" || !all[i].RequestReceivedTimestamp.Before(middle) {
					want[of[f.Key](&all[i])]++
				}
			}
			if len(f.Values) != min(len(want), 100) || f.More != (len(want) > 100) {
				t.Errorf("%s: %d values of %d", f.Key, len(f.Values), len(want))
			}
			for _, v := range f.Values {
				if want[v.Value] != v.Requests {
					t.Errorf("%s %q: %d requests, want %d", f.Key, v.Value, v.Requests, want[v.Value])
				}
			}
		}
	}
}

func histogramOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	got := askSample[query.HistogramAnswer](t, h, "histogram", "split", "decision", "steps", "30")
	if len(got.Steps) > 30 || len(got.Steps) < 5 || len(got.Values) != 3 {
		t.Fatalf("%d steps by %v", len(got.Steps), got.Values)
	}
	step := time.Duration(got.StepSeconds) * time.Second
	for i, s := range got.Steps {
		want := make([]int64, len(got.Values))
		for j := range all {
			if at := all[j].RequestReceivedTimestamp; !at.Before(s.Time) && at.Before(s.Time.Add(step)) {
				want[slices.Index(got.Values, all[j].decision)]++
			}
		}
		if !slices.Equal(s.Counts, want) || s.Others != 0 {
			t.Errorf("step %d: %v and %d others, want %v", i, s.Counts, s.Others, want)
		}
	}
}

func eventsOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	where := `["namespace=kube-system","namespace=default","verb!=watch","verb!=list","path^=/api","code!^=2"]`
	var want []string
	for i := range all {
		s := &all[i]
		if (s.namespace() == "kube-system" || s.namespace() == "default") && s.Verb != "watch" && s.Verb != "list" &&
			strings.HasPrefix(s.RequestURI, "/api") && s.Code()/100 != 2 {
			want = append(want, s.AuditID)
		}
	}
	var got []string
	before := ""
	for {
		page := askSample[query.EventsAnswer](t, h, "events", "where", where, "limit", "7", "before", before)
		for _, e := range page.Events {
			got = append(got, e.AuditID)
			if e.Namespace != "kube-system" && e.Namespace != "default" || e.UserAgent == "" || e.SourceIP == "" {
				t.Errorf("a line %+v", e)
			}
		}
		if before = page.Older; before == "" {
			break
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("%d requests, want %d", len(got), len(want))
	}
	for _, bad := range []string{`["kind=x"]`, `["verb"]`, `["code=x"]`, `["outcome=maybe"]`, `verb=get`} {
		if w := get(h, "events?cluster=sample&where="+url.QueryEscape(bad)); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
}

func completedOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	requests := map[string]int64{}
	for i := range all {
		requests[all[i].EffectiveUser().Username]++
	}
	got := askSample[query.CompleteAnswer](t, h, "complete", "kind", "subject", "prefix", "System:ServiceAccount:K", "limit", "200")
	begins, told := true, map[string]bool{}
	for _, v := range got.Values {
		if is := strings.HasPrefix(v.Value, "system:serviceaccount:k"); is && !begins {
			t.Errorf("%s comes after those that only contain it", v.Value)
		} else if begins = is; v.Requests != requests[v.Value] || v.Kind != "ServiceAccount" {
			t.Errorf("%+v, want %d requests", v, requests[v.Value])
		}
		told[v.Value] = true
	}
	for name := range requests {
		if strings.Contains(name, "system:serviceaccount:k") && !told[name] {
			t.Errorf("%s is left out", name)
		}
	}
	for kind, has := range map[string]string{"namespace": "kube-system", "resource": "rolebindings.rbac.authorization.k8s.io",
		"verb": "watch", "group": "system:masters", "role": "cluster-admin", "binding": "cluster-admin", "rule": "pod-exec",
		"class": "no-state"} {
		got := askSample[query.CompleteAnswer](t, h, "complete", "kind", kind, "prefix", has[:4])
		if !slices.ContainsFunc(got.Values, func(v query.CompletedValue) bool { return v.Value == has }) {
			t.Errorf("%s: no %s in %+v", kind, has, got.Values)
		}
	}
	for _, bad := range []string{"kind=thing&cluster=sample", "kind=subject", "kind=name&cluster=sample"} {
		w := get(h, "complete?"+bad)
		if w.Code != http.StatusBadRequest || strings.Contains(bad, "thing") && !strings.Contains(w.Body.String(), "userAgent") {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
}
