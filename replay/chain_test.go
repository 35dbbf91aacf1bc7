package replay

import (
	"slices"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
)

func TestChain(t *testing.T) {
	node := event.User{Username: "system:node:a", Groups: []string{"system:nodes"}}
	alice := event.User{Username: "alice"}
	for name, tc := range map[string]struct {
		user event.User
		v    Verdict
		want []string // answers of masters, node, rbac
	}{
		"masters":         {alice, Verdict{Replayed: DecisionAllow, Authorizer: AuthorizerMasters}, []string{AnswerAllow, AnswerNotAsked, AnswerNotAsked}},
		"node":            {node, Verdict{Replayed: DecisionAllow, Authorizer: AuthorizerNode}, []string{AnswerNoOpinion, AnswerAllow, AnswerNotAsked}},
		"rbac":            {alice, Verdict{Replayed: DecisionAllow, Authorizer: AuthorizerRBAC}, []string{AnswerNoOpinion, AnswerNoOpinion, AnswerAllow}},
		"nobody":          {alice, Verdict{Replayed: DecisionForbid}, []string{AnswerNoOpinion, AnswerNoOpinion, AnswerNoOpinion}},
		"graph missing":   {node, Verdict{Class: ClassNodeGraph, Missing: []string{"pods"}}, []string{AnswerNoOpinion, AnswerUnknown, AnswerNoOpinion}},
		"state missing":   {alice, Verdict{Class: ClassNoState, Missing: []string{"roles"}}, []string{AnswerNoOpinion, AnswerNoOpinion, AnswerUnknown}},
		"unauthenticated": {event.User{}, Verdict{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range tc.v.Steps(&event.Event{User: tc.user}) {
				got = append(got, s.Answer)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
