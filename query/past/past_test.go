package past_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query/past"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// rows have what two users asked for: ann may get any pod, bob one by a generated name.
type rows struct {
	requests int64
	fails    string   // the question that fails
	of       []string // whose events were read
}

var errAway = errors.New("the store is away")

func (r *rows) failed(question string) error {
	if r.fails == question {
		return errAway
	}
	return nil
}

func (r *rows) Recording(context.Context, string, time.Time, time.Time) (queries.Recording, error) {
	return queries.Recording{Requests: r.requests}, r.failed("recording")
}

func (r *rows) Counted(context.Context, string) (queries.Recording, time.Time, error) {
	return queries.Recording{Requests: r.requests}, time.Time{}, r.failed("counted")
}

func (r *rows) Uses(_ context.Context, _ string, _ []string, visit func(verdict.Use) error) error {
	for _, who := range []string{"ann", "bob"} {
		if err := visit(verdict.Use{Subject: who, Told: true, Recorded: verdict.DecisionAllow, Granted: true, Outcome: verdict.OutcomeMatch,
			Requests: 2, Attributes: attributes("web-*")}); err != nil {
			return err
		}
	}
	return r.failed("uses")
}

func (r *rows) Untold(context.Context, string, []string, bool, func(codec.Alike) error) error {
	return r.failed("untold")
}

func (r *rows) History(_ context.Context, _ string, _, _ time.Time, subjects []string, visit func(codec.Alike) error) error {
	r.of = subjects
	for _, who := range subjects {
		if err := visit(codec.Alike{Requests: 2, Event: &event.Event{User: event.User{Username: who}}, Verdict: &verdict.Verdict{
			Outcome: verdict.OutcomeMatch, Recorded: verdict.DecisionAllow, Replayed: verdict.DecisionAllow,
			Authorizer: verdict.AuthorizerRBAC, Attributes: attributes("web-x2x4x")}}); err != nil {
			return err
		}
	}
	return r.failed("history")
}

func (r *rows) NewestPolicy(context.Context, string, []string, func([]byte) error) error {
	return r.failed("policy")
}

func attributes(name string) verdict.Attributes {
	return verdict.Attributes{ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "shop", Name: name}
}

func policy(t *testing.T) *rbacindex.Snapshot {
	t.Helper()
	var objects []any
	for who, names := range map[string][]string{"ann": nil, "bob": {"web-x2x4x"}} {
		objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: who}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: names}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: who}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
				Kind: "ClusterRole", Name: who}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: who}}})
	}
	out, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCount: rollups tell what was used, and events what somebody used whose roles list names that rollups fold.
func TestCount(t *testing.T) {
	r := &rows{requests: 4}
	p, err := past.Count(context.Background(), r, "c", nil, policy(t))
	if err != nil || !slices.Equal(r.of, []string{"bob"}) || !slices.Equal(p.Collector.Subjects(), []string{"ann", "bob"}) {
		t.Errorf("events of %q were read, want bob's; subjects %q, %v", r.of, p.Collector.Subjects(), err)
	}
	if left := p.Collector.Unspelled(policy(t)); len(left) != 0 {
		t.Errorf("%q are not spelled out", left)
	}
	p, err = past.Count(context.Background(), &rows{}, "c", nil, policy(t))
	if err != nil || p.Recorded.Requests != 0 || len(p.Collector.Subjects()) != 0 {
		t.Errorf("%+v, %v of nothing", p, err)
	}
	for _, question := range []string{"counted", "uses", "untold", "history", "policy"} {
		if _, err := past.Count(context.Background(), &rows{requests: 4, fails: question}, "c", nil, policy(t)); !errors.Is(err, errAway) {
			t.Errorf("%s fails: %v", question, err)
		}
	}
}
