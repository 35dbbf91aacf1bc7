package detect

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// meant returns, per rule, the scenarios of the bundled recording's driver that the rule is for:
// prefixes of their names. Rules that are not listed have nothing to find in it.
func meant() map[string][]string {
	return map[string][]string{
		"credential-forged":          {"authn/stale-token"},
		"credentials-refused":        {"authn/", "tokens/", "bootstrap-token"},
		"csr-approved":               {"csr/approve"},
		"dangerous-role":             {"impersonation", "escalate-bind", "base"},
		"deleted-account-active":     {"authn/sa-deleted"},
		"ephemeral-container":        {"subresources/ephemeral"},
		"forbidden-burst":            {"random"},
		"host-level-pod":             {"admission/psa"},
		"impersonation-denied":       {"impersonation/"},
		"impersonation-denied-burst": {"impersonation/"},
		"impersonation-privileged":   {"impersonation/", "node/name-with"},
		"legacy-token":               {"authn/legacy"},
		"masters-used":               {"impersonation/masters"},
		"node-proxy":                 {"subresources/node-proxy"},
		"permission-enumeration":     {"random"},
		"pod-attach-portforward":     {"subresources/attach", "subresources/portforward"},
		"pod-exec":                   {"subresources/exec", "kubectl"},
		"secrets-enumeration":        {"rule-shapes"},
		"secrets-list":               {"routine"},
		"token-requested":            {"tokens/"},
		"webhook-configuration":      {"webhooks/"},
		"webhook-failed-open":        {"webhooks/"},
	}
}

// scenarios returns the names of what the driver did, by audit ID.
func scenarios(t *testing.T) map[string]string {
	t.Helper()
	dir := os.Getenv("RETRIAL_CORPUS")
	if dir == "" {
		t.Skip("RETRIAL_CORPUS does not name the folder of the recording's scenarios.jsonl: what its requests were meant " +
			"to do is not known")
	}
	f, err := os.Open(filepath.Join(dir, "scenarios.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s struct{ AuditID, Scenario string }
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out[s.AuditID] = s.Scenario
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAgainstIntent compares the findings for the whole recording with what its driver intended,
// and checks the table of docs/detections.md: a finding is true if most of its requests that the
// driver knows belong to scenarios that the rule is for. Requests that it does not know are the
// control plane's own, or those of tools that set no audit ID.
func TestAgainstIntent(t *testing.T) {
	scenario := scenarios(t)
	set := builtinSet(t)
	d := New(set, Config{})
	type group struct{ rule, group string }
	type selected struct {
		at       time.Time
		scenario string
	}
	requests := map[group][]selected{}
	var in input
	for _, q := range recording(t) {
		d.Observe("sample", q.event, q.verdict)
		in.reset("sample", q.event, q.verdict)
		for _, p := range set.rules {
			if !applies(set, p, &in) || !p.matches(&in) {
				continue
			}
			if p.expr != nil {
				if ok, err := p.expr.bool(&in); !ok || err != nil {
					continue
				}
			}
			b, err := p.appendGroup(nil, &in)
			if err != nil {
				t.Fatal(err)
			}
			g := group{p.rule.ID, string(b)}
			if len(p.counts) > 0 && p.counts[0].where != nil {
				if ok, err := p.counts[0].where.bool(&in); !ok || err != nil {
					continue // as in evidence: what the rule is about
				}
			}
			requests[g] = append(requests[g], selected{q.event.RequestReceivedTimestamp, scenario[q.event.AuditID]})
		}
	}
	type score struct{ findings, requests, meant, other, unknown int }
	got := map[string]*score{}
	for _, r := range set.Rules() {
		got[r.ID] = &score{}
	}
	byID := map[string]group{}
	for g := range requests {
		r := d.rules[g.rule].rule
		for w := int64(0); w < 48; w++ { // the recording's windows
			fold := int64(r.Window.Fold)
			begin := floor(nanos(recording(t)[0].event.RequestReceivedTimestamp), fold) + (w-24)*fold
			byID[identify("sample", g.rule, g.group, begin)] = g
		}
	}
	for _, f := range d.Flush() {
		s := got[f.Rule]
		s.findings++
		s.requests += int(f.Count)
		g, ok := byID[f.ID]
		if !ok {
			t.Fatalf("finding %s of %s has no group", f.ID, f.Rule)
		}
		for_, against := 0, 0
		for _, q := range requests[g] {
			switch {
			case q.at.Before(f.First) || q.at.After(f.Last) || q.scenario == "":
			case isMeant(f.Rule, q.scenario):
				for_++
			default:
				against++
			}
		}
		switch {
		case for_+against == 0:
			s.unknown++
		case for_ >= against:
			s.meant++
		default:
			s.other++
		}
	}
	doc, err := os.ReadFile("../../docs/detections.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range set.Rules() {
		s := got[r.ID]
		row := fmt.Sprintf("| `%s` | %s | %s | %d | %d | %d | %d | %d | ", r.ID, r.Severity, r.Kind, s.findings, s.requests, s.meant,
			s.other, s.unknown)
		if !strings.Contains(string(doc), "\n"+row) {
			t.Errorf("docs/detections.md does not say\n%s", row)
		}
	}
}

func isMeant(rule, scenario string) bool {
	for _, prefix := range meant()[rule] {
		if strings.HasPrefix(scenario, prefix) {
			return true
		}
	}
	return false
}

// applies reports whether the set's index leads from a request to a rule.
func applies(set *Set, p *program, in *input) bool {
	if len(p.rule.Match.Resources) == 0 {
		return true
	}
	for _, q := range set.byRes[resourceKey{in.attrs.APIGroup, in.attrs.Resource, in.attrs.Subresource}] {
		if q == p && in.attrs.ResourceRequest {
			return true
		}
	}
	return false
}
