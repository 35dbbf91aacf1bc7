package abac

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/auth/authorizer/abac"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// TestMain silences Kubernetes' own line on every file with old lines.
func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}) // panics
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// perPolicy is how many requests are put to one policy file.
const perPolicy = 500

// line is what a generated line says; version "" is an old line without one.
type line struct {
	version                                                string
	user, group, apiGroup, resource, namespace, path, verb string
	readonly                                               bool
}

func (l *line) text() string {
	spec := map[string]any{}
	for key, value := range map[string]string{
		"user": l.user, "group": l.group, "apiGroup": l.apiGroup, "resource": l.resource, "namespace": l.namespace,
		"nonResourcePath": l.path,
	} {
		if value != "" {
			spec[key] = value
		}
	}
	if l.readonly {
		spec["readonly"] = true
	}
	object := spec
	if l.version != "" {
		object = map[string]any{"apiVersion": l.version, "kind": "Policy", "spec": spec}
	}
	out, err := json.Marshal(object)
	if err != nil {
		panic(err) // strings and booleans
	}
	return string(out)
}

type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) line() line {
	l := line{version: "abac.authorization.kubernetes.io/v1beta1", readonly: g.IntN(3) == 0}
	if g.IntN(6) == 0 {
		l.version = ""
	}
	l.user = g.pick("", "", "alice", "bob", "system:serviceaccount:a:b", "*")
	l.group = g.pick("", "", "devs", "ops", "system:authenticated", "system:unauthenticated", "*")
	if g.IntN(4) > 0 { // stars for everybody hide what other lines do
		l.user, l.group = strings.Trim(l.user, "*"), strings.Trim(l.group, "*")
	}
	l.resource = g.pick("", "pods", "secrets", "nodes", "*")
	l.namespace = g.pick("", "shop", "kube-system", "*")
	l.apiGroup = g.pick("", "apps", "*")
	l.path = g.pick("", "", "/healthz", "/api/*", "/api**", "/*", "*", "/a*b", "/api")
	if l.version == "" {
		l.apiGroup, l.path = "", ""
	}
	return l
}

func (g generator) file() string {
	var b strings.Builder
	for range g.IntN(30) {
		switch g.IntN(12) {
		case 0:
			b.WriteString("\n")
		case 1:
			b.WriteString("  # a comment\n")
		}
		l := g.line()
		b.WriteString(l.text() + "\n")
	}
	return b.String()
}

func (g generator) user() event.User {
	u := event.User{Username: g.pick("alice", "bob", "carol", "system:serviceaccount:a:b", "system:anonymous", "*")}
	for range g.IntN(4) {
		u.Groups = append(u.Groups, g.pick("devs", "ops", "system:authenticated", "system:unauthenticated", "*", "qa"))
	}
	return u
}

func (g generator) attributes() verdict.Attributes {
	a := verdict.Attributes{Verb: g.pick("get", "list", "watch", "create", "update", "delete", "head", "post", "")}
	if g.IntN(3) == 0 {
		a.Path = g.pick("/", "/healthz", "/healthz/ping", "/api", "/api/", "/api/v1", "/a*b", "/axb", "/*", "/metrics")
		return a
	}
	a.ResourceRequest, a.APIVersion = true, "v1"
	a.APIGroup, a.Resource, a.Subresource = g.pick("", "apps", "batch"), g.pick("pods", "secrets", "nodes", "jobs"),
		g.pick("", "", "log", "status")
	a.Namespace, a.Name = g.pick("", "shop", "kube-system", "other"), g.pick("", "x")
	return a
}

// alter makes a configuration wrong in one way; nil leaves it alone.
type alter func(*config.APIServer)

type compared struct{ policies, requests, allowed int }

// run compares n requests and returns the first disagreement.
func run(t *testing.T, n, seed uint64, wrong alter) (c compared, err error) {
	t.Helper()
	dir := t.TempDir()
	for lot := uint64(0); c.requests < int(n); lot++ {
		g := generator{rand.New(rand.NewPCG(seed, lot))}
		text := g.file()
		path := filepath.Join(dir, "policy.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return c, err
		}
		theirs, err := abac.NewFromFile(path)
		if err != nil {
			return c, fmt.Errorf("lot %d: %w in\n%s", lot, err, text)
		}
		history, _, err := config.ReadHistory(fstest.MapFS{
			"kube-apiserver.flags": {Data: []byte("--authorization-mode=ABAC\n--authorization-policy-file=/etc/policy.jsonl\n")},
			"policy.jsonl":         {Data: []byte(text)},
		})
		if err != nil {
			return c, fmt.Errorf("lot %d: %w in\n%s", lot, err, text)
		}
		cfg := history.At(time.Time{})
		if wrong != nil {
			wrong(cfg)
		}
		chain := authz.New(cfg)
		c.policies++
		for range perPolicy {
			u, a := g.user(), g.attributes()
			c.requests++
			decision, reason, _ := theirs.Authorize(context.Background(), &authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: u.Username, Groups: u.Groups}, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup,
				APIVersion: a.APIVersion,
				Resource:   a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
			})
			want := verdict.DecisionForbid
			if decision == authorizer.DecisionAllow {
				want = verdict.DecisionAllow
				c.allowed++
			}
			ans := chain.Authorize(&u, &a, &authz.Moment{}, nil)
			if ans.Decision != want || !ans.Gives(reason, nil) {
				return c, fmt.Errorf("lot %d: %+v %+v\nours %s by line %d, Kubernetes %s %q, with\n%s", lot, u, a, ans.Decision, ans.Line,
					want, reason, text)
			}
			if first := firstLine(theirs, &u, &a); wrong == nil && first != ordinal(text, ans.Line) {
				return c, fmt.Errorf("lot %d: %+v %+v\nline %d of the file is named, the first that allows it is policy %d, with\n%s", lot,
					u, a, ans.Line, first, text)
			}
		}
	}
	return c, nil
}

// firstLine returns which of Kubernetes' policies allows a request first, from 1; 0 for none.
func firstLine(theirs abac.PolicyList, u *event.User, a *verdict.Attributes) int {
	for i := range theirs {
		d, _, _ := theirs[i:i+1].Authorize(context.Background(), &authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: u.Username, Groups: u.Groups}, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup,
			Resource: a.Resource, ResourceRequest: a.ResourceRequest, Path: a.Path,
		})
		if d == authorizer.DecisionAllow {
			return i + 1
		}
	}
	return 0
}

// ordinal returns which policy a line of the file is, comments and empty lines not counted.
func ordinal(text string, line int) (n int) {
	for i, l := range strings.Split(text, "\n") {
		if i >= line {
			break
		}
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			n++
		}
	}
	return n
}

// number reads a setting of the environment.
func number(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestABAC compares ORACLE_ABAC generated requests (20000).
func TestABAC(t *testing.T) {
	n, seed := number(t, "ORACLE_ABAC", 20_000), number(t, "ORACLE_SEED", 1)
	c, err := run(t, n, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.allowed < c.requests/20 || c.allowed > c.requests*19/20 {
		t.Fatalf("the generator has become tame: %+v", c)
	}
	t.Logf("abac comparisons=%d disagreements=0 policies=%d allowed=%d seed=%d", c.requests, c.policies, c.allowed, seed)
}

// TestABACFindsMistakes shows that the generated policies tell mistakes apart.
func TestABACFindsMistakes(t *testing.T) {
	each := func(f func(*config.PolicyLine)) alter {
		return func(c *config.APIServer) {
			p := c.Authorization.Authorizers[0].Policy
			for i := range p.Lines {
				f(&p.Lines[i])
			}
		}
	}
	for name, wrong := range map[string]alter{
		"readonly lines allow writing": each(func(l *config.PolicyLine) { l.Readonly = false }),
		"every line is for reading":    each(func(l *config.PolicyLine) { l.Readonly = true }),
		"the user alone decides": each(func(l *config.PolicyLine) {
			if l.User != "" {
				l.Group = ""
			}
		}),
		"the group alone decides": each(func(l *config.PolicyLine) {
			if l.Group != "" {
				l.User = ""
			}
		}),
		"neither user nor group is everybody": each(func(l *config.PolicyLine) {
			if l.User == "" && l.Group == "" {
				l.Group = "*"
			}
		}),
		"an empty namespace is every one": each(func(l *config.PolicyLine) {
			if l.Namespace == "" {
				l.Namespace = "*"
			}
		}),
		"an empty group is every one": each(func(l *config.PolicyLine) {
			if l.APIGroup == "" {
				l.APIGroup = "*"
			}
		}),
		"a star in a path is a letter": each(func(l *config.PolicyLine) { l.NonResourcePath = strings.TrimSuffix(l.NonResourcePath, "*") }),
		"a path is a prefix": each(func(l *config.PolicyLine) {
			l.NonResourcePath += strings.TrimPrefix("*", l.NonResourcePath)
		}),
		"everybody was once everybody": func(c *config.APIServer) { c.Minor = 5; each(func(l *config.PolicyLine) { star(l) })(c) },
		"the last line has been forgotten": func(c *config.APIServer) {
			p := c.Authorization.Authorizers[0].Policy
			p.Lines = p.Lines[:max(0, len(p.Lines)-1)]
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := run(t, 100_000, 1, wrong); err == nil {
				t.Fatalf("%d requests do not tell it from the real rule", c.requests)
			}
		})
	}
}

// star makes all authenticated users everybody.
func star(l *config.PolicyLine) {
	if l.Group == "system:authenticated" {
		l.Group = "*"
	}
}
