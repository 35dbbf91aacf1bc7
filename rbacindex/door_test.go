package rbacindex_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

func TestNewRefuses(t *testing.T) {
	var none *rbacv1.Role
	for _, c := range []struct {
		name    string
		objects []any
		want    string
	}{
		{"another type", []any{&metav1.ObjectMeta{Name: "x"}}, "not an rbac.authorization.k8s.io/v1 object"},
		{"a value instead of a pointer", []any{rbacv1.Role{}}, "not an rbac.authorization.k8s.io/v1 object"},
		{"nil", []any{nil}, "not an rbac.authorization.k8s.io/v1 object"},
		{"a nil pointer", []any{none}, "not an rbac.authorization.k8s.io/v1 object"},
		{"a Role without namespace", []any{namespaceRole("", "r")}, `Role "r": no namespace`},
		{"a RoleBinding without namespace", []any{namespaceBinding("", "b", "Role", "r")}, `RoleBinding "b": no namespace`},
		{"one key twice", []any{clusterRole("r"), clusterRole("r")}, "two objects with key ClusterRole/r"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := rbacindex.New(c.objects...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	s := rbacindex.Empty()
	for _, c := range []struct {
		name   string
		change rbacindex.Change
		want   string
	}{
		{"object of another name", rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "a"},
			Object: clusterRole("b")}, "the object's key is ClusterRole/b"},
		{"object of another kind", rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindRole, Namespace: "n", Name: "b"},
			Object: clusterRole("b")}, "the object's key is ClusterRole/b"},
		{"another type", rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindRole, Namespace: "n", Name: "b"}, Object: "x"},
			"not an rbac"},
		{"deleting an unknown kind", rbacindex.Change{Key: rbacindex.Key{Name: "b"}}, "not an rbac"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.Apply(c.change); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := s.Apply(rbacindex.Change{Key: rbacindex.Key{Name: "b"}}); !errors.Is(err, rbacindex.ErrUnsupportedObject) {
		t.Errorf("error %v is not ErrUnsupportedObject", err)
	}
	if next, err := s.Apply(rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindRole, Namespace: "n", Name: "absent"}}); err != nil ||
		next == nil {
		t.Errorf("deleting what is absent: %v", err)
	}
}

func TestFromJSON(t *testing.T) {
	for _, c := range []struct{ name, kind, raw, want, err string }{
		{name: "role", kind: "Role", raw: `{"metadata":{"namespace":"n","name":"r"},"rules":[{"verbs":["get"]}],"future":1}`,
			want: "Role/n/r"},
		{name: "cluster role", kind: "ClusterRole", raw: `{"metadata":{"name":"r"}}`, want: "ClusterRole/r"},
		{name: "role binding", kind: "RoleBinding", raw: `{"metadata":{"namespace":"n","name":"b"},"subjects":null}`,
			want: "RoleBinding/n/b"},
		{name: "cluster role binding", kind: "ClusterRoleBinding",
			raw: `{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"r"}}`, want: "ClusterRoleBinding/b"},
		{name: "another kind", kind: "Pod", raw: `{}`, err: `decode "Pod": not an rbac`},
		{name: "not JSON", kind: "Role", raw: `{`, err: "decode Role: "},
		{name: "no namespace", kind: "Role", raw: `{"metadata":{"name":"r"}}`, err: `decode Role: key of Role "r": no namespace`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k, err := rbacindex.FromJSON(c.kind, []byte(c.raw))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || k.String() != c.want {
				t.Fatalf("key %s, error %v, want %s", k, err, c.want)
			}
			if of, err := rbacindex.KeyOf(o); err != nil || of != k {
				t.Errorf("KeyOf %s %v", of, err)
			}
		})
	}
}

// TestRulesForEqualsTwin: the rules visited are those that decide. Every request is allowed by
// exactly the bindings that have a visited rule allowing it.
func TestRulesForEqualsTwin(t *testing.T) {
	for seed := range uint64(300) {
		g := newGenerator(seed + 1<<40)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		for range 10 {
			a := g.aimed(objects)
			want := tw.authorize(a)
			first := map[rbacindex.Key]string{}
			res := s.RulesFor(a.User, a.Groups, a.Namespace, func(gr rbacindex.Grant, r *rbacv1.PolicyRule) bool {
				if _, ok := first[gr.BindingKey()]; !ok && rbacindex.RuleAllows(a, r) {
					first[gr.BindingKey()] = fmt.Sprintf("%s [subject %d rule %d]", gr.Reason(), gr.SubjectIndex(), gr.Rule())
				}
				return true
			})
			var got []string
			for _, line := range first {
				got = append(got, line)
			}
			slices.Sort(got)
			errs := res.Errors()
			slices.Sort(errs)
			if !slices.Equal(got, want.grants) || !slices.Equal(errs, want.errors) {
				t.Fatalf("seed %d request %+v\nrules allow %q\nerrors %q\ntwin %s", seed, *a, got, errs, want)
			}
			concerned := map[rbacindex.Key]bool{}
			s.BindingsOf(a.User, a.Groups, a.Namespace, func(b, role rbacindex.Key, sub rbacv1.Subject) bool {
				if concerned[b] {
					t.Errorf("seed %d: %s visited twice", seed, b)
				}
				concerned[b] = true
				return true
			})
			for k := range tw.objects {
				if got, want := concerned[k], tw.concerns(a, k); got != want {
					t.Errorf("seed %d request %+v: binding %s concerns the subject: %t, want %t", seed, *a, k, got, want)
				}
			}
		}
	}
}

// concerns reports whether the object of that key is a binding in the request's scope with
// a matching subject.
func (t *twin) concerns(a *rbacindex.Attributes, k rbacindex.Key) bool {
	var subjects []rbacv1.Subject
	switch b := t.objects[k].(type) {
	case *rbacv1.ClusterRoleBinding:
		subjects = b.Subjects
	case *rbacv1.RoleBinding:
		if b.Namespace == a.Namespace {
			subjects = b.Subjects
		}
	}
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return twinSubject(a, s, k.Namespace) })
}

// TestVisitsEndEarly: every visitor can be stopped at any point.
func TestVisitsEndEarly(t *testing.T) {
	s, err := rbacindex.New(fixtures()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, visit := range map[string]func(more func() bool){
		"All": func(more func() bool) { s.All(func(rbacindex.Key, any) bool { return more() }) },
		"RulesFor": func(more func() bool) {
			s.RulesFor("alice", list("ops"), "default", func(rbacindex.Grant, *rbacv1.PolicyRule) bool { return more() })
		},
		"BindingsOf": func(more func() bool) {
			s.BindingsOf("alice", list("ops", "devs"), "default", func(_, _ rbacindex.Key, _ rbacv1.Subject) bool { return more() })
		},
		"Dangling": func(more func() bool) { s.Dangling(func(_, _ rbacindex.Key) bool { return more() }) },
		"ReferencingRole": func(more func() bool) {
			s.ReferencingRole(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "podread"}, func(rbacindex.Key) bool { return more() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := 0
			visit(func() bool { all++; return true })
			if all < 2 {
				t.Fatalf("%d visits are too few to stop", all)
			}
			for stop := 1; stop <= all; stop++ {
				n := 0
				visit(func() bool { n++; return n < stop })
				if n != stop {
					t.Errorf("stopped at %d, visited %d", stop, n)
				}
			}
		})
	}
}

// TestAuthorizeAllocatesNothing: with room in the buffer, a known subject costs no memory,
// whatever the request looks like.
func TestAuthorizeAllocatesNothing(t *testing.T) {
	w := newWorkload(t, 1000)
	s, err := rbacindex.New(w.objects...)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]rbacindex.Grant, 0, 256)
	for _, kind := range workloadCases {
		t.Run(kind, func(t *testing.T) {
			requests := w.requests(kind, 500)
			path := requests[0]
			path.ResourceRequest, path.Verb, path.Path, path.Namespace = false, "get", "/healthz/etcd", ""
			requests = append(requests, path)
			for i := range requests { // meet the subjects
				s.Authorize(&requests[i], buf)
			}
			i := 0
			if n := testing.AllocsPerRun(len(requests)-1, func() {
				s.Authorize(&requests[i%len(requests)], buf)
				i++
			}); n != 0 {
				t.Errorf("%v allocations a decision", n)
			}
		})
	}
}

// TestBootstrapPolicy asks what everybody knows of a fresh cluster, and holds the whole
// policy against the twin.
func TestBootstrapPolicy(t *testing.T) {
	objects := bootstrap(t)
	s, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	if r, cr, rb, crb := s.Len(); r != 7 || cr != 69 || rb != 7 || crb != 51 {
		t.Errorf("%d roles, %d cluster roles, %d role bindings, %d cluster role bindings", r, cr, rb, crb)
	}
	authenticated := list("system:authenticated")
	for _, c := range []struct {
		name string
		a    rbacindex.Attributes
		want string
	}{
		{"discovery", rbacindex.Attributes{User: "joe", Groups: authenticated, Verb: "get", Path: "/apis/apps/v1"},
			`RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"`},
		{"version without credentials", rbacindex.Attributes{User: "system:anonymous", Groups: list("system:unauthenticated"), Verb: "get",
			Path: "/version"},
			`RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer" to Group ` +
				`"system:unauthenticated"`},
		{"stranger", rbacindex.Attributes{User: "joe", Groups: authenticated, Verb: "list", Resource: "secrets", ResourceRequest: true},
			""},
		{"controller by service account", rbacindex.Attributes{User: "system:serviceaccount:kube-system:deployment-controller",
			Groups: authenticated, Verb: "update", APIGroup: "apps",
			Resource: "deployments", Subresource: "status", Namespace: "x", Name: "y", ResourceRequest: true},
			`RBAC: allowed by ClusterRoleBinding "system:controller:deployment-controller" of ClusterRole ` +
				`"system:controller:deployment-controller" to ServiceAccount "deployment-controller/kube-system"`},
		{"masters by cluster-admin", rbacindex.Attributes{User: "root", Groups: list("system:masters"), Verb: "escalate",
			APIGroup: "rbac.authorization.k8s.io", Resource: "clusterroles", ResourceRequest: true},
			`RBAC: allowed by ClusterRoleBinding "cluster-admin" of ClusterRole "cluster-admin" to Group "system:masters"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := s.Authorize(&c.a, nil).Reason(); got != c.want {
				t.Errorf("reason %q\nwant   %q", got, c.want)
			}
		})
	}
	tw := newTwin(objects...)
	for seed := range uint64(2000) {
		compare(t, seed, s, tw, newGenerator(seed).aimed(objects))
	}
}

// TestWorkloadEqualsTwin holds the measured requests to the definition as well.
func TestWorkloadEqualsTwin(t *testing.T) {
	w := newWorkload(t, 1000)
	s, err := rbacindex.New(w.objects...)
	if err != nil {
		t.Fatal(err)
	}
	tw := newTwin(w.objects...)
	for _, kind := range workloadCases {
		requests := w.requests(kind, 60)
		for i := range requests {
			compare(t, uint64(i), s, tw, &requests[i])
		}
	}
}
