package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

func TestAskedOf(t *testing.T) {
	for _, c := range []struct {
		args           string
		namespace, sub string
		all            bool
		resource, name string
		path, says     string
	}{
		{args: "pods", resource: "pods"},
		{args: "pods web-0", namespace: "n", resource: "pods", name: "web-0"},
		{args: "pods/web-0", resource: "pods", name: "web-0"},
		{args: "pods/exec", resource: "pods/exec"},
		{args: "pods/exec web-0", resource: "pods/exec", name: "web-0"},
		{args: "deployments.apps/scale web", all: true, resource: "deployments.apps/scale", name: "web"},
		{args: "deployments/scale.apps", resource: "deployments/scale.apps"},
		{args: "configmaps/kube-root-ca.crt", resource: "configmaps", name: "kube-root-ca.crt"},
		{args: "pods/log", sub: "exec", resource: "pods/exec", name: "log"},
		{args: "virtualmachines.kubevirt.io vm", sub: "start", resource: "virtualmachines.kubevirt.io/start", name: "vm"},
		{args: "/healthz/ready", path: "/healthz/ready"},
		{args: "/healthz x", says: "is a path"},
		{args: "/healthz", sub: "x", says: "is a path"},
		{args: "/healthz", all: true, says: "is a path"},
		{args: "pods/a b", says: `two names: "a" and "b"`},
		{args: "pods", namespace: "n", all: true, says: "exclude each other"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got, err := whatIsAsked(&cobra.Command{Use: "who-can"}, strings.Fields(c.args), c.namespace, c.sub, c.all)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want %q", err, c.says)
				}
				return
			}
			if want := (asked{c.resource, c.name, c.path}); err != nil || got != want {
				t.Errorf("%+v, want %+v: %v", got, want, err)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	words := []string{"secrets", "services", "serviceaccounts", "pods", "podtemplates", "nodes", "GET", ""}
	for word, want := range map[string]string{
		"secret": "secrets", "pod": "pods podtemplates", "podz": "pods", "service": "serviceaccounts services", "node": "nodes",
		"get": "GET", "GET": "", "": "", "x": "", "nothing-like-it": "", "sercets": "secrets", "pdos": "pods", "onde": "",
		strings.Repeat("s", 200): "",
	} {
		if got := strings.Join(query.Nearest(word, words, 2), " "); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestNearSubjects: a name is like another by its own letters, not by what Kubernetes puts before it.
func TestNearSubjects(t *testing.T) {
	known := []string{"alice", "carol", "system:kube-scheduler", "system:node:node-1", "system:serviceaccount:ci:deployer",
		"system:serviceaccount:ci:runner", "system:serviceaccount:b:x"}
	for name, want := range map[string]string{
		"carlo": "carol", "Carol": "carol", "carolus": "carol", "caro": "carol", "cartoon": "", "al": "alice",
		"kube-scheduler": "system:kube-scheduler", "system:serviceaccount:ci:deploier": "system:serviceaccount:ci:deployer",
		"system:serviceaccount:zz:y": "", "deployer": "system:serviceaccount:ci:deployer",
		"system:node:node-7": "system:node:node-1", "": "",
	} {
		if got := strings.Join(query.NearSubjects(name, known, 3), " "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestNearestIsBounded: how many names there are is decided by who writes policy, and how much work they
// take is not.
func TestNearestIsBounded(t *testing.T) {
	word := strings.Repeat("a", 100)
	far := word[:90] + strings.Repeat("b", 10)
	for strangers, want := range map[int]int{100: 1, 10_000: 0} {
		if got := query.Nearest(word+"a", append(slices.Repeat([]string{far}, strangers), word[:99]+"c"), 3); len(got) != want {
			t.Errorf("behind %d others %d names are found, want %d", strangers, len(got), want)
		}
	}
}

// TestAccessIsSafeToPrint: names in policies are anybody's.
func TestAccessIsSafeToPrint(t *testing.T) {
	const bad = "x\x1b[2J\u202e\ny\tz"
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	policy := query.Policy{At: &at, Missing: []string{bad}}
	by := []query.Grant{{GrantNames: verdict.GrantNames{Binding: bad, Role: bad, Subject: "Group/" + bad}, Verbs: []string{bad}},
		{GrantNames: verdict.GrantNames{Binding: bad}}}
	var text string
	add := func(lines, hints string) { text += lines + hints }
	add(printed(printWhoCan, &query.WhoCanAnswer{Cluster: bad, Policy: policy,
		AccessRequest: query.AccessRequest{Verb: bad, Resource: bad, Group: bad, Subresource: bad, Namespace: bad, Name: bad},
		Subjects:      []query.Holder{{Kind: "User", Name: bad, Namespace: bad, Scope: "namespace:" + bad, Grants: by}},
		Hints:         []string{bad}}))
	add(printed(printWhoCan, &query.WhoCanAnswer{Cluster: "c", AccessRequest: query.AccessRequest{Verb: "get", Path: "/" + bad}}))
	add(printed(printCan, &query.CanAnswer{Cluster: bad, Policy: policy, Subject: bad, Groups: []string{bad},
		GroupsFrom: "asked", Hints: []string{bad}, Scopes: []query.Scope{{
			Namespace: bad, MissingRoles: []string{bad}, Rules: []query.HeldRule{
				{Rule: query.Rule{Verbs: []string{bad}, APIGroups: []string{bad}, Resources: []string{bad}, ResourceNames: []string{bad}},
					By: by}, {Rule: query.Rule{Verbs: []string{bad}, NonResourceURLs: []string{bad}}, By: by}}}}}))
	rule := rbacv1.PolicyRule{Verbs: []string{bad}, APIGroups: []string{bad}, Resources: []string{bad}, ResourceNames: []string{bad}}
	for _, d := range []query.Decision{
		{AccessRequest: query.AccessRequest{Verb: bad, Resource: bad, Namespace: bad, Name: bad}, Allowed: "yes", Grants: by},
		{AccessRequest: query.AccessRequest{Verb: bad, Path: bad}, Allowed: "no",
			Nearest: &query.NearestMiss{Rule: rule, Roles: []query.Offer{{Role: bad}}, Bindings: []query.Offer{{Binding: bad, Role: bad}},
				Almost: []query.Almost{{Grant: by[0], Lacks: bad}}}},
		{Allowed: "no", Nearest: &query.NearestMiss{Rule: rbacv1.PolicyRule{NonResourceURLs: []string{bad}}}},
	} {
		add(printed(printCan, &query.CanAnswer{Subject: bad, Request: &d}))
	}
	if strings.ContainsAny(text, "\x1b\u202e\t") || strings.Contains(text, "\ny") {
		t.Errorf("%q", text)
	}
	if n := strings.Count(text, "x"); n < 30 {
		t.Errorf("%d of the names are shown:\n%s", n, text)
	}
}
