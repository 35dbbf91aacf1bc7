package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
)

// TestAuditPolicyCost says how many bytes a request takes under the shipped policy, and under
// another one beside it, of a log in which everything was recorded at level RequestResponse:
//
//	RETRIAL_FULL_LOG=full.jsonl RETRIAL_OTHER_POLICY=other.yaml go test ./deploy -run AuditPolicyCost -v
func TestAuditPolicyCost(t *testing.T) {
	file := os.Getenv("RETRIAL_FULL_LOG")
	if file == "" {
		t.Skip("a measurement: RETRIAL_FULL_LOG names no log")
	}
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	is := costOf(t, "shipped", AuditPolicy, log)
	if file := os.Getenv("RETRIAL_OTHER_POLICY"); file != "" {
		other, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("shipped is %.3f of the other", is/costOf(t, "other", other, log))
	}
}

// costOf returns the bytes a request takes in the log under a policy.
func costOf(t *testing.T, name string, text, log []byte) float64 {
	t.Helper()
	p, err := policy.LoadPolicyFromBytes(text)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.NewPolicyRuleEvaluator(p)
	type sum struct{ events, bytes int }
	levels := map[audit.Level]sum{}
	requests, total := 0, 0
	for line := range bytes.Lines(log) {
		line = bytes.TrimSpace(line)
		e, err := event.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if e.Stage == event.StageResponseComplete {
			requests++
		}
		a, err := request.Of(e.Verb, e.RequestURI)
		if err != nil {
			continue
		}
		got := rules.EvaluatePolicyRule(authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: e.User.Username, Groups: e.User.Groups}, Verb: a.Verb, Namespace: a.Namespace,
			APIGroup: a.APIGroup,
			Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
		})
		if got.Level == audit.LevelNone || slices.Contains(got.OmitStages, audit.Stage(e.Stage)) {
			continue
		}
		n := len(atLevel(t, line, got.Level, got.OmitManagedFields))
		s := levels[got.Level]
		levels[got.Level] = sum{s.events + 1, s.bytes + n}
		total += n
	}
	cost := float64(total) / float64(requests)
	t.Logf("%s: %.0f bytes a request of %d", name, cost, requests)
	for level, s := range levels {
		t.Logf("%s, level %s: %d events, %.0f bytes a request", name, level, s.events, float64(s.bytes)/float64(requests))
	}
	return cost
}

// atLevel returns an event as it would have been recorded at a level.
func atLevel(t *testing.T, line []byte, level audit.Level, omitManagedFields bool) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatal(err)
	}
	e["level"] = string(level)
	if level.Less(audit.LevelRequestResponse) {
		delete(e, "responseObject")
	}
	if level.Less(audit.LevelRequest) {
		delete(e, "requestObject")
	}
	if omitManagedFields {
		for _, body := range []string{"requestObject", "responseObject"} {
			withoutManagedFields(e[body])
		}
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func withoutManagedFields(v any) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	if m, ok := object["metadata"].(map[string]any); ok {
		delete(m, "managedFields")
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		withoutManagedFields(item)
	}
}
