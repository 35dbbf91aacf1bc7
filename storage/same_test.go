package storage_test

import (
	"testing"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

func TestSameVerdict(t *testing.T) {
	a, b := verdict.Grant{Binding: "a", Rule: 1}, verdict.Grant{Binding: "b"}
	base := func() *verdict.Verdict {
		return &verdict.Verdict{Outcome: verdict.OutcomeMatch, Replayed: verdict.DecisionAllow, Grants: []verdict.Grant{a, b}}
	}
	for _, tc := range []struct {
		name   string
		change func(*verdict.Verdict)
		same   bool
	}{
		{"nothing", func(*verdict.Verdict) {}, true},
		{"policy revision", func(v *verdict.Verdict) { v.Revision++ }, true},
		{"engine", func(v *verdict.Verdict) { v.Engine = "2" }, true},
		{"order of grants", func(v *verdict.Verdict) { v.Grants = []verdict.Grant{b, a} }, true},
		{"empty for nil", func(v *verdict.Verdict) { v.Missing = []string{} }, true},
		{"outcome", func(v *verdict.Verdict) { v.Outcome = verdict.OutcomeDrift }, false},
		{"decision", func(v *verdict.Verdict) { v.Replayed = verdict.DecisionForbid }, false},
		{"cause", func(v *verdict.Verdict) { v.Cause = "x" }, false},
		{"one grant less", func(v *verdict.Verdict) { v.Grants = v.Grants[:1] }, false},
		{"one grant twice", func(v *verdict.Verdict) { v.Grants = []verdict.Grant{a, a} }, false},
		{"other rule", func(v *verdict.Verdict) { v.Grants = []verdict.Grant{{Binding: "a", Rule: 2}, b} }, false},
		{"missing", func(v *verdict.Verdict) { v.Missing = []string{"x"} }, false},
		{"impersonation", func(v *verdict.Verdict) { v.Impersonation = &verdict.ImpersonationCheck{} }, false},
		{"evidence", func(v *verdict.Verdict) { v.Evidence = []string{"x"} }, false},
		{"explained", func(v *verdict.Verdict) { v.Explained = []string{"oidc"} }, false},
		{"binds", func(v *verdict.Verdict) { v.Binds = []string{verdict.BindsAny} }, false},
		{"credential", func(v *verdict.Verdict) { v.Credential = "JTI=1" }, false},
		{"chain", func(v *verdict.Verdict) { v.Chain = []verdict.ChainStep{{Authorizer: "rbac"}} }, false},
		{"implied", func(v *verdict.Verdict) { v.Implied = []verdict.Implied{{Check: "x"}} }, false},
		{"review", func(v *verdict.Verdict) { v.Review = &verdict.ReviewCheck{} }, false},
		{"admission", func(v *verdict.Verdict) {
			v.Admission.Answers = []verdict.AdmissionAnswer{{Plugin: "NamespaceLifecycle", Outcome: "drift"}}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := base()
			tc.change(v)
			if codec.SameVerdict(base(), v) != tc.same || codec.SameVerdict(v, base()) != tc.same {
				t.Errorf("same is %v, want %v", !tc.same, tc.same)
			}
		})
	}
}
