package codec

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// TestMadeUpIsBounded has somebody act as 100,000 users, and as one with 100,000 sets of groups, with
// a check behind each request and a key of a first-seen rule of its own: what they are counted for has the usual bounds, and what is beyond
// is counted.
func TestMadeUpIsBounded(t *testing.T) {
	const many = 100_000
	b := NewBlock(NewFolds())
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	subjects, sets, keys := map[string]bool{}, map[who]bool{}, map[uint64]bool{}
	folded := map[string]int{}
	marks, first := map[uint64]bool{}, 0
	send := func(user string, groups ...string) {
		t.Helper()
		first++
		row := verdict.Row{Cluster: "c", Sign: 1, Marks: []verdict.Mark{{Name: "rule" + verdict.MarkFirst, Key: uint64(1000 + first)}},
			Event: &event.Event{
				RequestReceivedTimestamp: at, Verb: "get", RequestURI: "/api/v1/pods",
				User: event.User{Username: "mallory"}, ImpersonatedUser: &event.User{Username: user, Groups: groups},
			}, Verdict: &verdict.Verdict{
				Recorded: verdict.DecisionAllow, Attributes: verdict.Attributes{Verb: "list", Resource: "pods", ResourceRequest: true},
				Implied: []verdict.Implied{{Check: verdict.CheckImpersonation, Recorded: verdict.DecisionAllow,
					Attributes: verdict.Attributes{Verb: "impersonate", Resource: "users", Name: user, ResourceRequest: true}}},
			}}
		if err := b.Append(&row); err != nil {
			t.Fatal(err)
		}
		subjects[b.at.who.subject], sets[b.at.who], keys[b.at.access.key] = true, true, true
		keys[b.impliedAccess.Items[len(b.impliedAccess.Items)-1]] = true
		if b.at.first == 0 {
			marks[row.Marks[0].Key] = true
		}
		if b.Rows == 10_000 {
			for cause, n := range b.FoldedAs {
				folded[cause] += n
			}
			b.Reset()
		}
	}
	for i := range many {
		send("victim", "system:authenticated", fmt.Sprint("made-up-", i))
	}
	if len(sets) != usualFolds.Groups+1 || folded["groups"] != many-usualFolds.Groups {
		t.Errorf("%d sets of groups of a subject, %d folded", len(sets), folded["groups"])
	}
	for i := range many {
		send(fmt.Sprint("nobody-", i), "g")
	}
	// All but victim and mallory are made up; beyond them there is one more.
	if n := usualFolds.Subjects; len(subjects) != n || folded["subject"] != many-(n-2) {
		t.Errorf("%d subjects, %d requests folded", len(subjects), folded["subject"])
	}
	// A subject has one access, mallory as many as anybody, for checks with other names.
	if most := usualFolds.Subjects + usualFolds.Groups + usualFolds.Accesses + usualFolds.Kinds + 4; len(keys) > most {
		t.Errorf("%d accesses, want %d at most", len(keys), most)
	}
	if n := usualFolds.First; len(marks) != n || folded["first-seen"] != 2*many-n {
		t.Errorf("%d keys of a first-seen rule, %d requests folded", len(marks), folded["first-seen"])
	}
	if held, _ := b.folds.Remembered(); held > usualFolds.Held {
		t.Errorf("%d held", held)
	}
}
