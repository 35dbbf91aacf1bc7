package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/test/testfile"
)

// readings are what is read of a body, whole or pruned, by everything that reads it.
func readings(res kept.Resource, body []byte) (out []string) {
	into := func(v any) {
		if err := json.Unmarshal(body, v); err != nil {
			out = append(out, "error")
			return
		}
		text, err := json.Marshal(v)
		out = append(out, fmt.Sprintf("%s %v", text, err))
	}
	into(new(statusObject))
	into(new(deleteOptions))
	into(new(kept.Meta))
	var h kept.Head
	if err := json.Unmarshal(body, &h); err == nil {
		text, err := json.Marshal(h)
		out = append(out, fmt.Sprintf("%s %v %v", text, err, h.Gone(res)))
	}
	if res.Reduces() {
		for _, request := range []bool{false, true} {
			object, err := kept.Reduce(res, body, request)
			out = append(out, fmt.Sprintf("%s %v", object, err != nil))
		}
	}
	return out
}

// samePruned holds a body against what is left of it.
func samePruned(t *testing.T, e *event.Event, body []byte) {
	t.Helper()
	if len(body) == 0 {
		return
	}
	target, ok := parseTarget(e.RequestURI)
	if !ok {
		return
	}
	w := write{event: e, target: target}
	pruned := w.read(body)
	if got, want := readings(target.res, pruned), readings(target.res, body); !reflect.DeepEqual(got, want) {
		t.Fatalf("%s %s\nread of the pruned %q\nof the whole       %q\npruned %s\nwhole  %s", e.Verb, e.RequestURI, got, want, pruned, body)
	}
	var list, left struct{ Items []json.RawMessage }
	if json.Unmarshal(body, &list) != nil {
		return
	}
	if err := json.Unmarshal(pruned, &left); err != nil || len(left.Items) != len(list.Items) {
		t.Fatalf("%d of %d items are left, %v", len(left.Items), len(list.Items), err)
	}
	for i := range list.Items {
		if got, want := readings(target.res, left.Items[i]), readings(target.res, list.Items[i]); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %s item %d\nread of the pruned %q\nof the whole       %q", e.Verb, e.RequestURI, i, got, want)
		}
	}
}

// TestPrunedReadsTheSame: what is taken out of recorded bodies is read by nobody.
func TestPrunedReadsTheSame(t *testing.T) {
	bodies, before, after := 0, 0, 0
	for line := range bytes.Lines(testfile.Read(t, filepath.Join("..", "..", "..", "internal", "sample", "audit.jsonl"))) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if !event.KeepsPolicy(e) {
			continue
		}
		for _, body := range [][]byte{e.RequestObject, e.ResponseObject} {
			samePruned(t, e, body)
			if target, ok := parseTarget(e.RequestURI); ok && len(body) > 0 {
				bodies++
				before += len(body)
				after += len((&write{target: target}).read(body))
			}
		}
	}
	if bodies < 1000 || after*3 > before {
		t.Fatalf("%d bodies of %d bytes, %d are left: not what this is about", bodies, before, after)
	}
	t.Logf("%d bodies of %d bytes, %d are left", bodies, before, after)
}

func FuzzPrunedReadsTheSame(f *testing.F) {
	uris := []string{"/api/v1/namespaces/a/pods/x", "/api/v1/namespaces/a/secrets/x", "/api/v1/persistentvolumes/x",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests/x",
		"/api/v1/namespaces/x", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/x"}
	for i := range uris {
		f.Add(i, []byte(`{"kind":"Pod","metadata":{"name":"x","annotations":{"kubernetes.io/config.mirror":"y"}},"spec":{`+
			`"containers":[{"name":"c","env":[{"name":"e","valueFrom":{"secretKeyRef":{"name":"s"}}}]}],"volumes":[{"name":"v",`+
			`"secret":{"secretName":"s"}}]},"status":{"phase":"Failed"}}`))
		f.Add(i, []byte(`{"kind":"PodList","items":[{"metadata":{"NAME":"x"}},null,[1]],"status":"Success","details":{"uid":"u"}}`))
	}
	f.Fuzz(func(t *testing.T, uri int, body []byte) {
		// Bodies of events are JSON, and what is wrong in parts that nobody needs is nobody's
		// concern: annotations and data that are not strings cannot be in what an apiserver
		// answered with success.
		var loose struct {
			Metadata struct{ Annotations, Labels map[string]string }
			Data     map[string]string
			Items    []struct {
				Metadata struct{ Annotations, Labels map[string]string }
				Data     map[string]string
			}
		}
		if json.Unmarshal(body, &loose) != nil {
			return
		}
		samePruned(t, &event.Event{RequestURI: uris[uint(uri)%uint(len(uris))]}, body)
	})
}

// BenchmarkFromEvent reads the policy writes of the sample, one after another.
func BenchmarkFromEvent(b *testing.B) {
	var writes []*event.Event
	for line := range bytes.Lines(testfile.Read(b, filepath.Join("..", "..", "..", "internal", "sample", "audit.jsonl"))) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			b.Fatal(err)
		}
		if event.KeepsPolicy(e) {
			writes = append(writes, e)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := FromEvent(writes[i%len(writes)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
