package verdict

import (
	"encoding/json"
	"testing"
)

// TestReportsOfBefore: a stored report with the old names alone counts with one that has the new ones.
func TestReportsOfBefore(t *testing.T) {
	var sum RejudgeReport
	for _, text := range []string{
		`{"visited":2,"changed":1,"transitions":[{"from":{"verdict":"drift","class":"x"},"to":{"verdict":"match","class":""},"count":1,` +
			`"examples":[{"auditID":"a","user":"u"}]}]}`,
		`{"visited":2,"changed":1,"transitions":[{"from":{"outcome":"drift","verdict":"drift","class":"x"},` +
			`"to":{"outcome":"match","verdict":"match","class":""},"count":1,"examples":[{"auditID":"b","subject":"u","user":"u"}]}]}`,
	} {
		var r RejudgeReport
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		sum.Merge(r)
	}
	if len(sum.Transitions) != 1 || sum.Transitions[0].Count != 2 || sum.Transitions[0].From.Outcome != "drift" {
		t.Fatalf("got %+v", sum.Transitions)
	}
	for _, e := range sum.Transitions[0].Examples {
		if e.Subject != "u" {
			t.Errorf("the subject of %s is %q", e.AuditID, e.Subject)
		}
	}
}
