package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// nasty are texts that have gone wrong somewhere before: quotes, escapes, control bytes,
// other scripts, what looks like the syntax around it.
var nasty = []string{"", "a", `"`, `\`, "tab\tline\nnul\x00", "'; DROP TABLE events; --", "ключ", "𝄞", `["a",0]`, "0", "<b>&amp;", " ",
	"x,y", "system:node:a"}

// verdictFrom makes any verdict from a source of choices, as the engine could: lists that are
// empty are nil.
func verdictFrom(r *rand.Rand) *verdict.Verdict {
	text := func() string { return nasty[r.IntN(len(nasty))] }
	list := func(n int) (out []string) {
		for range r.IntN(n) {
			out = append(out, text())
		}
		return out
	}
	decision := func() verdict.Decision { return verdict.Decision(r.IntN(4)) }
	outcome := func() verdict.Outcome { return verdict.Outcome(r.IntN(5)) }
	attributes := func() verdict.Attributes {
		return verdict.Attributes{Verb: text(), ResourceRequest: r.IntN(2) == 0, APIGroup: text(), APIVersion: text(), Resource: text(),
			Subresource: text(),
			Namespace:   text(), Name: text(), Path: text(), LabelSelector: text(), FieldSelector: text()}
	}
	grants := func() (out []verdict.Grant) {
		for range r.IntN(4) {
			out = append(out,
				verdict.Grant{BindingKind: "RoleBinding", BindingNamespace: text(), Binding: text(), RoleKind: text(), Role: text(),
					SubjectKind: text(), SubjectNamespace: text(), Subject: text(), Rule: r.IntN(3), Reason: text()})
		}
		return out
	}
	v := &verdict.Verdict{Outcome: outcome(), Class: text(), Cause: text(), Recorded: decision(), RecordedReason: text(),
		Replayed:   decision(),
		Authorizer: text(), Grants: grants(), Errors: list(3), Missing: list(3), Attributes: attributes(), Identity: list(3),
		Evidence: list(3), Explained: list(4), Binds: list(3), Credential: text(), Admission: earlierAdmission(text(), text(), text()),
		Revision: r.Uint64N(9), Engine: text(), Config: text()}
	if r.IntN(2) == 0 {
		v.Impersonation = &verdict.ImpersonationCheck{Replayed: decision(), Mode: text(), Grants: grants(), Missing: list(3)}
	}
	for range r.IntN(4) {
		step := verdict.ChainStep{Authorizer: text(), Answer: text(), Reason: text()}
		if len(v.Grants) > 0 && r.IntN(2) == 0 {
			step.Reason = v.Grants[r.IntN(len(v.Grants))].Reason
		}
		v.Chain = append(v.Chain, step)
	}
	for range r.IntN(4) {
		c := verdict.Implied{Check: "c" + text(), Attributes: attributes(), Replayed: decision(), Recorded: decision(),
			Covered: r.IntN(2) == 0, Perhaps: text(), Grants: grants(), Missing: list(3)}
		for range r.IntN(3) {
			c.Wanted = append(c.Wanted, rbacv1.PolicyRule{Verbs: []string{text()}, APIGroups: list(3), Resources: list(3),
				ResourceNames: list(3), NonResourceURLs: list(3)})
		}
		if r.IntN(3) == 0 {
			c.Check = "impersonation"
		}
		v.Implied = append(v.Implied, c)
	}
	if r.IntN(3) == 0 {
		v.Review = &verdict.ReviewCheck{Kind: text(), User: text(), Groups: list(3), Recorded: decision(), Replayed: decision(),
			Reason:  text(),
			Outcome: outcome(), Cause: text()}
		if r.IntN(2) == 0 {
			v.Review.Attributes = attributes()
		}
	}
	return v
}

// earlierAdmission is what the columns of admission from before the list of answers say.
func earlierAdmission(recorded, plugin, lifecycle string) verdict.Admission {
	adm := verdict.Admission{Recorded: recorded}
	if lifecycle != "" {
		adm.Answers = append(adm.Answers, verdict.AdmissionAnswer{Plugin: verdict.PluginNamespaceLifecycle, Outcome: lifecycle})
	}
	if plugin != "" {
		adm.Answers = append(adm.Answers, verdict.AdmissionAnswer{Plugin: plugin, Outcome: verdict.PluginRejected, Code: 403})
	}
	return adm
}

// TestAnyVerdictRoundTrips stores verdicts of every shape and reads them back.
func TestAnyVerdictRoundTrips(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	in := rows(t, "c", 0)
	want := map[string]*verdict.Verdict{}
	for i := range in {
		if in[i].Verdict != nil {
			in[i].Verdict = verdictFrom(r)
			for range r.IntN(3) {
				in[i].Verdict.Admission.Answers = append(in[i].Verdict.Admission.Answers,
					verdict.AdmissionAnswer{Plugin: nasty[r.IntN(len(nasty))],
						Name: nasty[r.IntN(len(nasty))], Outcome: nasty[r.IntN(len(nasty))], Reason: nasty[r.IntN(len(nasty))],
						Code: r.Int32()})
			}
			in[i].Verdict.CompleteImpersonation(in[i].Event.ImpersonatedUser != nil)
			want[in[i].EventKey.String()] = in[i].Verdict
		}
	}
	s := storagetest.Open(t)
	insert(t, s, "t", in)
	n := 0
	for _, row := range everything(t, s, in) {
		if row.Verdict == nil {
			continue
		}
		n++
		if !reflect.DeepEqual(row.Verdict, want[row.EventKey.String()]) {
			t.Fatalf("seed %d: verdict changed in the store\n was %+v\n is  %+v", seed, want[row.EventKey.String()], row.Verdict)
		}
	}
	if n != len(want) || n < 100 {
		t.Fatalf("%d of %d verdicts came back", n, len(want))
	}
	if got := consistent(t, s); got.Implied < 100 {
		t.Fatalf("seed %d: few checks are counted: %+v", seed, got)
	}
}

// TestCorrectionOfAnyPart replaces verdicts by ones that differ in a single part: the old row
// and the new one must not be taken for the same version.
func TestCorrectionOfAnyPart(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		name   string
		change func(*verdict.Verdict)
	}{
		{"evidence", func(v *verdict.Verdict) { v.Evidence = []string{"x"} }},
		{"explained", func(v *verdict.Verdict) { v.Explained = []string{"oidc"} }},
		{"binds", func(v *verdict.Verdict) { v.Binds = []string{verdict.BindsAny} }},
		{"credential", func(v *verdict.Verdict) { v.Credential = "JTI=1" }},
		{"chain", func(v *verdict.Verdict) { v.Chain = v.Chain[:1:1] }},
		{"reason in the chain", func(v *verdict.Verdict) {
			v.Chain = []verdict.ChainStep{v.Chain[0], {Authorizer: "rbac", Answer: "allow", Reason: v.Grants[1].Reason}}
		}},
		{"implied", func(v *verdict.Verdict) { v.Implied = []verdict.Implied{{Check: "exec"}} }},
		{"missing of implied", func(v *verdict.Verdict) { v.Implied = []verdict.Implied{{Check: "exec", Missing: []string{"x"}}} }},
		{"grants of implied", func(v *verdict.Verdict) { v.Implied = []verdict.Implied{{Check: "exec", Grants: v.Grants[1:2:2]}} }},
		{"admission", func(v *verdict.Verdict) {
			v.Admission.Answers = []verdict.AdmissionAnswer{{Plugin: "PodSecurity", Outcome: verdict.PluginPass}}
		}},
		{"reason of admission", func(v *verdict.Verdict) {
			v.Admission.Answers = []verdict.AdmissionAnswer{{Plugin: verdict.PluginNamespaceLifecycle, Outcome: verdict.PluginPass,
				Reason: "x"}}
		}},
		{"review", func(v *verdict.Verdict) { v.Review = &verdict.ReviewCheck{Kind: "TokenReview"} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := storagetest.Open(t)
			var old verdict.Row
			for _, r := range rows(t, "c", 0) {
				if r.Verdict != nil && r.Verdict.Replayed == verdict.DecisionAllow {
					old = r
					break
				}
			}
			insert(t, s, "a", []verdict.Row{old})
			changed := *old.Verdict
			tc.change(&changed)
			back, next := old, old
			back.Sign, next.Verdict = -1, &changed // the same revision: only the part tells them apart
			insert(t, s, "b", []verdict.Row{back, next})
			s.Exec(t, "OPTIMIZE TABLE retrial.events FINAL")
			var got []*verdict.Verdict
			for _, r := range everything(t, s, []verdict.Row{old}) {
				got = append(got, r.Verdict)
			}
			if len(got) != 1 || !reflect.DeepEqual(got[0], &changed) {
				t.Fatalf("stands: %s", fmt.Sprintf("%+v", got))
			}
			if err := s.Recover(ctx, 0, 1, nil); err != nil {
				t.Fatal(err)
			}
			consistent(t, s)
		})
	}
}
