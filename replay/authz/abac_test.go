package authz

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

func TestABACStars(t *testing.T) {
	anonymous := event.User{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	known := event.User{Username: "alice", Groups: []string{"system:authenticated"}}
	p := &config.Policy{Lines: []config.PolicyLine{{User: "*", NonResourcePath: "/healthz"}, {User: "bob", Group: "*",
		NonResourcePath: "/readyz"}}}
	for name, tc := range map[string]struct {
		user  *event.User
		path  string
		minor int
		want  int
	}{
		"authenticated":                            {&known, "/healthz", 0, 1},
		"not authenticated":                        {&anonymous, "/healthz", 0, 0},
		"not authenticated, before 1.6":            {&anonymous, "/healthz", 5, 1},
		"a star takes the other field away":        {&known, "/readyz", 36, 2},
		"a star leaves the other field before 1.6": {&known, "/readyz", 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newABAC(p, tc.minor).allows(tc.user, &verdict.Attributes{Verb: "get", Path: tc.path}); got != tc.want {
				t.Errorf("line %d, want %d", got, tc.want)
			}
		})
	}
}

// linear returns the index's twin: it reads the file from the beginning.
func linear(p *config.Policy, u *event.User, a *verdict.Attributes) int {
	for i := range p.Lines {
		l := &p.Lines[i]
		subject, ok := subjectOf(l, 0)
		if !ok || !subject.is(u) || l.Readonly && !reads(a.Verb) {
			continue
		}
		star := func(want, have string) bool { return want == "*" || want == have }
		if a.ResourceRequest && star(l.Namespace, a.Namespace) && star(l.Resource, a.Resource) && star(l.APIGroup, a.APIGroup) {
			return l.Line
		}
		if path := l.NonResourcePath; !a.ResourceRequest && (path == a.Path || strings.HasSuffix(path, "*") && strings.HasPrefix(a.Path,
			strings.TrimRight(path, "*"))) {
			return l.Line
		}
	}
	return 0
}

// lines are n lines for users of their own and for some groups.
func lines(n int, r *rand.Rand) *config.Policy {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	p := &config.Policy{}
	for i := range n {
		l := config.PolicyLine{Line: i + 1, Readonly: r.IntN(3) == 0, APIGroup: pick("", "apps", "*"), Resource: pick("pods",
			"secrets", "*"),
			Namespace: pick("", "*", fmt.Sprint("ns", r.IntN(n))), NonResourcePath: pick("", "/healthz", "/api*", fmt.Sprintf("/x%d/*", i))}
		switch r.IntN(3) {
		case 0:
			l.User = fmt.Sprint("user", r.IntN(n))
		case 1:
			l.Group = pick("devs", "system:authenticated")
			l.Namespace = fmt.Sprint("ns", r.IntN(n))
		default:
			l.User, l.Group = fmt.Sprint("user", r.IntN(n)), pick("devs", "ops")
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

func TestABACIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	allowed := 0
	for range 200 {
		n := 1 + r.IntN(40)
		p := lines(n, r)
		x := newABAC(p, 0)
		for range 50 {
			u := event.User{Username: fmt.Sprint("user", r.IntN(n)), Groups: []string{"system:authenticated", "devs"}[:r.IntN(3)]}
			a := verdict.Attributes{Verb: []string{"get", "delete"}[r.IntN(2)], Path: []string{"/healthz", "/api/v1", "/x1/y",
				""}[r.IntN(3)]}
			if r.IntN(3) > 0 {
				a = verdict.Attributes{Verb: a.Verb, ResourceRequest: true, Resource: []string{"pods", "nodes"}[r.IntN(2)],
					Namespace: fmt.Sprint("ns", r.IntN(n))}
			}
			got, want := x.allows(&u, &a), linear(p, &u, &a)
			if got != want {
				t.Fatalf("%+v %+v: line %d, want %d of %+v", u, a, got, want, p.Lines)
			}
			if got > 0 {
				allowed++
			}
		}
	}
	if allowed < 500 {
		t.Fatalf("only %d allowed", allowed)
	}
}

// BenchmarkABAC asks for what the last line allows, of a user in four groups.
func BenchmarkABAC(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		p := lines(n, rand.New(rand.NewPCG(3, 4)))
		p.Lines = append(p.Lines, config.PolicyLine{Line: n + 1, Group: "last", Resource: "pods", Namespace: "here"})
		u := event.User{Username: "user1", Groups: []string{"system:authenticated", "devs", "ops", "last"}}
		a := verdict.Attributes{ResourceRequest: true, Verb: "update", Resource: "pods", Namespace: "here"}
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			x := newABAC(p, 0)
			b.ReportAllocs()
			for b.Loop() {
				if x.allows(&u, &a) == 0 {
					b.Fatal("not allowed")
				}
			}
		})
	}
}
