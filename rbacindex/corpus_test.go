package rbacindex_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// recordedCase is a policy, a question about it, and what Kubernetes' own code answered, as
// the command oracle writes them (rbacindex/oracle/cmd/oracle -corpus).
type recordedCase struct {
	About   string
	Asked   string
	Objects []json.RawMessage
	Applied bool
	Request struct {
		User, Verb, Namespace, APIGroup, Resource, Subresource, Name, Path string
		Groups                                                             []string
		IsResource                                                         bool
	}
	Owner, Wanted []rbacv1.PolicyRule
	Ref           rbacv1.RoleRef
	Object        json.RawMessage
	Update        bool
	Answer        struct {
		Allowed, RoleAbsent bool
		Reason              string
		Grants, Errors      []string
		Rules               []struct {
			From string
			Rule int
		}
		Uncovered []rbacv1.PolicyRule
	}
}

// decodeObject reads an object, or the key of one that is deleted.
func decodeObject(raw json.RawMessage) (rbacindex.Change, error) {
	var head struct {
		Kind string
		Gone *struct{ Kind, Namespace, Name string }
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return rbacindex.Change{}, err
	}
	if g := head.Gone; g != nil {
		for k := rbacindex.KindRole; k <= rbacindex.KindClusterRoleBinding; k++ {
			if k.String() == g.Kind {
				return rbacindex.Change{Key: rbacindex.Key{Kind: k, Namespace: g.Namespace, Name: g.Name}}, nil
			}
		}
	}
	o, k, err := rbacindex.FromJSON(head.Kind, raw)
	return rbacindex.Change{Key: k, Object: o}, err
}

// snapshots returns the policy built at once and reached by one Apply per object.
func (c *recordedCase) snapshots() ([]*rbacindex.Snapshot, error) {
	applied := rbacindex.Empty()
	for _, raw := range c.Objects {
		w, err := decodeObject(raw)
		if err != nil {
			return nil, err
		}
		if applied, err = applied.Apply(w); err != nil {
			return nil, err
		}
		if c.Applied {
			c.ask(applied) // what is remembered for one version must not show in the next
		}
	}
	var objects []any
	applied.All(func(_ rbacindex.Key, o any) bool {
		objects = append(objects, o)
		return true
	})
	built, err := rbacindex.New(objects...)
	return []*rbacindex.Snapshot{built, applied}, err
}

func (c *recordedCase) attributes() *rbacindex.Attributes {
	r := &c.Request
	return &rbacindex.Attributes{User: r.User, Groups: r.Groups, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.APIGroup,
		Resource:    r.Resource,
		Subresource: r.Subresource, Name: r.Name, Path: r.Path, ResourceRequest: r.IsResource}
}

// ask puts the question to the index and says how the answer differs, "" if it does not.
func (c *recordedCase) ask(s *rbacindex.Snapshot) string {
	a, want := c.attributes(), &c.Answer
	switch c.Asked {
	case "decision":
		res := s.Authorize(a, nil)
		var grants []string
		for _, g := range res.Grants {
			grants = append(grants, strings.TrimPrefix(g.Reason(), "RBAC: allowed by "))
		}
		slices.Sort(grants)
		if wanted := want.Grants; len(wanted) > 0 && !slices.Equal(grants, wanted) || len(wanted) == 0 && len(grants) > 1 ||
			res.Allowed != want.Allowed {
			return fmt.Sprintf("grants %q", grants)
		}
		if want.Allowed && !slices.Contains(grants, strings.TrimPrefix(want.Reason, "RBAC: allowed by ")) ||
			!want.Allowed && !sameReason(res.Reason(), want.Reason) {
			return fmt.Sprintf("reason %q", res.Reason())
		}
		return sameSet(res.Errors(), want.Errors)
	case "rules":
		var got []string
		res := s.RulesFor(a.User, a.Groups, a.Namespace, func(g rbacindex.Grant, _ *rbacv1.PolicyRule) bool {
			got = append(got, fmt.Sprintf("%s#%d", strings.TrimPrefix(g.Reason(), "RBAC: allowed by "), g.Rule()))
			return true
		})
		var rules []string
		for _, r := range want.Rules {
			rules = append(rules, fmt.Sprintf("%s#%d", r.From, r.Rule))
		}
		return sameSet(got, rules) + sameSet(res.Errors(), want.Errors)
	case "covers":
		if got := uncovered(c.Owner, c.Wanted); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want.Uncovered) {
			return fmt.Sprintf("uncovered %q", got)
		}
		return ""
	case "bind":
		return c.escalation(s.MayBind(a.User, a.Groups, a.Namespace, c.Ref))
	case "write":
		w, err := decodeObject(c.Object)
		if err != nil {
			return err.Error()
		}
		name := ""
		if c.Update {
			name = w.Key.Name
		}
		e, err := s.MayWriteRole(a.User, a.Groups, w.Object, name)
		if err != nil {
			return err.Error()
		}
		return c.escalation(e)
	}
	return "an unknown question"
}

func (c *recordedCase) escalation(e rbacindex.Escalation) string {
	if e.Allowed != c.Answer.Allowed || e.RoleAbsent != c.Answer.RoleAbsent || !sameReason(e.Reason, c.Answer.Reason) {
		return fmt.Sprintf("%+v", e)
	}
	return ""
}

// sameReason compares texts up to the order of the errors at their end.
func sameReason(got, want string) bool {
	const more = "; resolution errors: "
	g, gotErrors, _ := strings.Cut(got, more)
	w, wantErrors, _ := strings.Cut(want, more)
	if strings.HasPrefix(g, "RBAC: [") && strings.HasPrefix(w, "RBAC: [") {
		return len(g) == len(w) // the errors are compared one by one
	}
	return g == w && len(gotErrors) == len(wantErrors)
}

func sameSet(got, want []string) string {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Sprintf("%q", got)
	}
	return ""
}

// TestRecordedAnswers puts questions that Kubernetes' own code has answered to the index.
func TestRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	allowed := 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var c recordedCase
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			asked[c.Asked]++
			if c.Answer.Allowed {
				allowed++
			}
			snapshots, err := c.snapshots()
			if err != nil {
				t.Fatalf("%s: %s: %v", name, c.About, err)
			}
			for _, s := range snapshots {
				for range 2 { // the first time, and from memory
					if text := c.ask(s); text != "" {
						t.Errorf("%s: ours: %s\n%s", c.About, text, lines.Bytes())
					}
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for kind, least := range map[string]int{"decision": 200, "rules": 20, "covers": 40, "bind": 20, "write": 20} {
		if asked[kind] < least {
			t.Errorf("%d cases of kind %s, want %d", asked[kind], kind, least)
		}
	}
	if allowed < 200 {
		t.Errorf("%d are allowed", allowed)
	}
}
