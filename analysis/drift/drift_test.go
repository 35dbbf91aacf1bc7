package drift

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

const named = `RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "u"`

var at = time.Date(2026, 5, 4, 11, 0, 0, 0, time.UTC)

func TestLikelyCauses(t *testing.T) {
	drifted := func(recorded verdict.Decision, reason string, code int32, config string) Sample {
		return Sample{Outcome: verdict.OutcomeDrift, Recorded: recorded, RecordedReason: reason, Code: code, Config: config}
	}
	doubt := func(missing string) Sample {
		return Sample{Outcome: verdict.OutcomeDrift, Recorded: verdict.DecisionForbid, Code: 403, Missing: []string{missing}}
	}
	open := func(class string, missing ...string) Sample {
		return Sample{Outcome: verdict.OutcomeIndeterminate, Class: class, Missing: missing, Recorded: verdict.DecisionAllow}
	}
	cases := []struct {
		name string
		s    Sample
		want string
	}{
		{"a refusal that was carried out", drifted(verdict.DecisionForbid, "", 200, ""), KindContradiction},
		{"the reason names an object", drifted(verdict.DecisionAllow, named, 200, ""), KindState + " " + KindForged},
		{"missing roles", drifted(verdict.DecisionForbid, `RBAC: role.rbac.authorization.k8s.io "x" not found`, 403, ""), KindState},
		{"a webhook's text, nothing configured", drifted(verdict.DecisionAllow, "group ok", 200, "authorizers=node,rbac"),
			KindConfiguration},
		{"a webhook's text, configured", drifted(verdict.DecisionAllow, "group ok", 200, "x;apiserver=1"), KindAuthorizer},
		{"allowed in silence", drifted(verdict.DecisionAllow, "", 200, ""), KindConfiguration + " " + KindForged},
		{"allowed in silence, configured", drifted(verdict.DecisionAllow, "", 200, "x;apiserver=1"), KindForged},
		{"refused against a grant", drifted(verdict.DecisionForbid, "", 403, ""), KindState + " " + KindForged},
		{"refused in the node authorizer's words", drifted(verdict.DecisionForbid, "node: no relationship found between node 'n' and "+
			"this object", 403, "x;apiserver=1"), KindPods},
		{"refused against a grant in doubt", doubt(verdict.DoubtObject + "ClusterRole x: it was being deleted"), KindState},
		{"refused against a grant that may have gone", doubt(verdict.DoubtObject + "ClusterRole x: " + state.LostAnswer +
			" by then: it may have been done"), KindLost},
		{"a write nobody was told of", open(verdict.ClassUnknown, "ClusterRole y", "ClusterRole x ("+state.LostAnswer+")"), KindLost},
		{"a write too large to be recorded", open(verdict.ClassUnknown, "ClusterRoleBinding x ("+state.PartRecorded+")"), KindLevel},
		{"another version explains it", doubt(verdict.DoubtVersion + "Kubernetes 1.33 gives this answer"), KindVersion + " " + KindState +
			" " + KindForged},
		{"the version given is wrong", Sample{Outcome: verdict.OutcomeAmbiguous, Class: verdict.ClassVersion}, KindVersion},
		{"one of several apiservers", Sample{Outcome: verdict.OutcomeAmbiguous, Class: verdict.ClassSeveral}, KindConfiguration},
		{"the version is not known", open(verdict.ClassConfig, verdict.DoubtVersion+"Kubernetes 1.33 gives this answer"), KindVersion},
		{"a cloud's authorizer", open(verdict.ClassAuthorizer, "not-evaluable:authorizer"), KindAuthorizer},
		{"raced", Sample{Outcome: verdict.OutcomeAmbiguous}, KindRace},
		{"no state", open(verdict.ClassNoState), KindGap},
		{"pods", open(verdict.ClassNodeGraph), KindPods},
		{"a write without its object", open(verdict.ClassUnknown, "ClusterRole x"), KindLevel},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var kinds []string
			for _, c := range causes(&tc.s) {
				kinds = append(kinds, c.Kind)
				if c.Why == "" || c.Give == "" || rank(c.Kind) < 0 {
					t.Errorf("%+v does not say why, or what to give", c)
				}
			}
			if got := strings.Join(kinds, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	var samples []Sample
	for i := range 40 {
		at := at.Add(time.Duration(i) * time.Second)
		s := Sample{Cluster: "c", Outcome: verdict.OutcomeDrift, Class: verdict.ClassAllowForbid, Recorded: verdict.DecisionAllow,
			RecordedReason: named,
			User:           string(rune('a' + i%5)), Verb: "list", URI: "/api/v1/namespaces/ns/pods", AuditID: string(rune('A' + i)),
			At: at}
		if i%4 == 0 {
			s.Outcome, s.Class, s.Missing = verdict.OutcomeIndeterminate, verdict.ClassUnknown, []string{"ClusterRole x"}
		}
		samples = append(samples, s)
	}
	var want []Group
	for seed := range uint64(5) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		var c Collector
		for i := range samples {
			c.Add(&samples[i], 2)
		}
		got := c.Groups()
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("the order of samples shows:\n%+v\n%+v", got, want)
		}
	}
	if len(want) != 2 || want[0].Verdict != "drift" || want[0].Count != 60 || want[0].About != "RoleBinding ns/b" || want[0].Users != 5 ||
		want[1].About != "ClusterRole x" || want[1].Count != 20 {
		t.Fatalf("got %+v", want)
	}
	if x := want[0].Examples; len(x) != maxExamples || x[0].AuditID != "B" || !want[0].First.Equal(x[0].At) ||
		want[0].Last.Before(want[0].First) {
		t.Fatalf("examples are not the earliest: %+v", x)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	var c Collector
	for i := range maxGroups + 50 {
		s := Sample{Outcome: verdict.OutcomeIndeterminate, Class: verdict.ClassUnknown,
			Missing: []string{"ClusterRole " + time.Duration(i).String()}}
		c.Add(&s, 1)
	}
	groups := c.Groups()
	if len(groups) > maxGroups+1 || groups[0].About != "" || groups[0].Count != 50 {
		t.Fatalf("%d groups, the first about %q with %d", len(groups), groups[0].About, groups[0].Count)
	}
}
