package main

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

// TestWhatIfFromTheStore asks what a draft would do from the log, from the store and from a running server: it is the same, and samples of
// accesses are requests that asked for just that.
func TestWhatIfFromTheStore(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	state, log := writeState(t, in.dir), writeLog(t, filepath.Join(in.dir, "audit.jsonl"), recorded(t))
	in.run(t, "import", "--cluster", "sample", "--state", state, log).ok(t)
	draft := in.file(t, "draft.yaml", makesAdmin)
	ask := func(more ...string) (a query.WhatIfAnswer, samples [][]string) {
		t.Helper()
		args := []string{"whatif", "-f", draft, "--delete", "ClusterRoleBinding/a-bot1", "--delete",
			"ClusterRoleBinding/kubeadm:cluster-admins", "-o", "json"}
		if err := json.Unmarshal([]byte(in.run(t, append(args, more...)...).ok(t).out), &a); err != nil {
			t.Fatal(err)
		}
		for i := range a.Accesses {
			samples = append(samples, a.Accesses[i].Sample)
			a.Accesses[i].Sample = nil
		}
		a.Cluster = ""
		return a, samples
	}
	read, first := ask("--state", state, "--events", log)
	stored, newest := ask()
	s := in.serve(t)
	served, same := ask()
	if !reflect.DeepEqual(stored, read) || !reflect.DeepEqual(served, read) || !reflect.DeepEqual(newest, same) ||
		read.Summary.Revoked == 0 {
		t.Fatalf("the log says %+v, the store %+v, the server %+v", read.Summary, stored.Summary, served.Summary)
	}
	const sampled, most = 200, 3
	checks := 0
	for i := range read.Accesses {
		x := &read.Accesses[i]
		if n := int(min(x.Count, most)); len(first[i]) == 0 || len(first[i]) > n || len(newest[i]) > n ||
			(len(newest[i]) > 0) != (i < sampled) {
			t.Fatalf("%d: %d requests, %v in the log, %v in the store", i, x.Count, first[i], newest[i])
		}
		if x.Check != "" {
			checks++
		} else if i%17 > 0 {
			continue
		}
		for _, id := range newest[i] {
			var why query.WhyAnswer
			s.get(t, "why?cluster=sample&auditID="+url.QueryEscape(id), &why)
			if !slices.ContainsFunc(why.Requests, func(r query.JudgedRequest) bool { return asks(t, &r, x) }) {
				t.Errorf("request %s did not ask for %+v", id, x)
			}
		}
	}
	if checks == 0 {
		t.Error("no check behind a request changes")
	}
}

// asks reports whether a request asked for an access, or a check behind it did.
func asks(t *testing.T, r *query.JudgedRequest, x *query.DraftedAccess) bool {
	t.Helper()
	e, err := r.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if x.Check != "" {
		return slices.ContainsFunc(r.Verdict.Implied, func(c verdict.ImpliedLine) bool { return c.Check == x.Check })
	}
	if e.EffectiveUser().Username != x.Subject || e.Verb != x.Verb {
		return false
	}
	if o := e.ObjectRef; x.Path == "" && o != nil {
		return o.Resource == x.Resource && o.Subresource == x.Subresource && o.APIGroup == x.APIGroup && o.Namespace == x.Namespace &&
			(o.Name == x.Name || x.Verb == "create") // the name of what was created is known afterwards
	}
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return path == x.Path
}
