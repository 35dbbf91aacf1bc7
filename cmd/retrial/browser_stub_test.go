package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/retrial-io/retrial/dashboards/ui"
	"github.com/retrial-io/retrial/query/api"
)

// stub serves the page with answers of a test's own: what no real store would hold, and
// servers that fail.
type stub struct {
	url string

	mu      sync.Mutex
	answers map[string]any // by route; a string is an error's text, a func is asked
	asked   map[string][]url.Values
}

// openStub starts one with one cluster, "sample", and no findings. The routes a test does not
// set answer 404.
func openStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{asked: map[string][]url.Values{}, answers: map[string]any{
		"clusters": map[string]any{"clusters": []any{map[string]any{"name": "sample", "events": 10, "first": "2026-11-20T11:36:00Z",
			"last": "2026-11-20T11:45:00Z"}}},
		"classes": map[string]any{"outcomes": []any{}, "classes": []any{}},
		"status":  map[string]any{"version": "test", "lag": 0, "policyLag": 0, "corrections": 0},
		"overview": map[string]any{"cluster": "sample", "from": "2026-11-20T11:36:00Z", "to": "2026-11-20T11:45:00Z", "bucketSeconds": 10,
			"totals": map[string]any{}, "volume": []any{}, "decisions": []any{}, "classes": []any{}, "subjects": []any{}},
		"events":     map[string]any{"events": []any{}},
		"rules":      map[string]any{"rules": []any{}},
		"findings":   map[string]any{"findings": []any{}, "rules": map[string]any{}},
		"connection": map[string]any{"cluster": "sample", "steps": []any{}},
		"drift":      map[string]any{"cluster": "sample", "groups": []any{}},
	}}
	mux := http.NewServeMux()
	mux.Handle("/", ui.Handler())
	mux.HandleFunc("/api/v1/", func(w http.ResponseWriter, r *http.Request) {
		route := strings.TrimPrefix(r.URL.Path, "/api/v1/")
		s.mu.Lock()
		s.asked[route] = append(s.asked[route], r.URL.Query())
		answer, ok := s.answers[route]
		s.mu.Unlock()
		if f, is := answer.(func(url.Values) any); is {
			answer = f(r.URL.Query())
		}
		switch text, failed := answer.(string); {
		case !ok:
			api.Plain(w, http.StatusNotFound, "there is no "+route)
		case failed:
			api.Plain(w, http.StatusInternalServerError, text)
		default:
			api.Respond(w, answer)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + "/"
	return s
}

func (s *stub) set(route string, answer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[route] = answer
}

// last returns the latest question to a route.
func (s *stub) last(route string) url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.asked[route]); n > 0 {
		return s.asked[route][n-1]
	}
	return nil
}

type object = map[string]any

// answersOf are answers of every route the pages ask, made of strings: one row for each.
func answersOf(texts []string) map[string]any {
	var uses, rules, held, grants, found, known, unused, keeps, holders []any
	var apply, remove, rollback []any
	var drifts, lives, steps, answers, checks, missed []any
	for i, s := range texts {
		const first, last = "2026-11-20T11:36:01Z", "2026-11-20T11:44:01Z"
		grant := object{"binding": "ClusterRoleBinding/" + s, "role": "ClusterRole/" + s, "subject": "User/" + s, "rule": 0}
		uses = append(uses, object{"verb": s, "group": s, "resource": s, "subresource": s, "namespace": s, "name": s, "path": "",
			"requests": 1, "allowed": 1, "forbidden": 1, "first": first, "last": last})
		rules = append(rules,
			object{"binding": "ClusterRoleBinding/" + s, "role": "ClusterRole/" + s, "subject": "User/" + s, "rule": 0, "requests": 3})
		held = append(held, object{"verbs": []string{s}, "apiGroups": []string{s}, "resources": []string{s}, "resourceNames": []string{s},
			"by": []any{grant}})
		grants = append(grants, grant)
		found = append(found, object{"id": fmt.Sprintf("%032d", i), "rule": s, "title": s, "severity": s, "attack": []string{s},
			"cluster": s, "subject": s, "first": first, "last": last, "count": 7, "text": s,
			"evidence": []any{object{"auditID": s, "request": s, "time": first, "text": s}}})
		known = append(known, object{"id": s, "title": s, "description": s, "severity": s, "attack": []string{s}, "kind": s})
		unused = append(unused, object{"binding": "ClusterRoleBinding/" + s, "role": "ClusterRole/" + s, "rule": 1,
			"unused": []string{"get " + s}, "excess": 9})
		keeps = append(keeps, object{"binding": "RoleBinding/x/" + s, "role": "ClusterRole/" + s, "group": s, "relied": 2, "excess": 1,
			"undoes": []string{s}})
		holders = append(holders, object{"kind": "User", "name": s, "namespace": "", "scope": "namespace:" + s, "grants": []any{grant}})
		drifts = append(drifts, object{"cluster": s, "apiserver": s, "outcome": "drift", "class": s, "text": s, "about": s, "count": 3,
			"users": 2, "first": first, "last": last,
			"examples": []any{object{"auditID": s, "at": first, "subject": s, "verb": s, "requestURI": s, "cause": s}},
			"likely":   []any{object{"kind": s, "why": s, "give": s}}})
		issued := object{"at": first, "by": s, "from": s, "auditID": s, "expires": last, "serviceAccount": s, "pod": s, "node": s,
			"secret": s, "csr": s, "signer": s, "commonName": s, "organizations": []string{s}}
		lives = append(lives, object{"credential": s, "issue": issued, "explained": []string{s}, "users": []string{s}, "requests": 4,
			"forbidden": 1, "first": first, "last": last, "more": -1,
			"uses": []any{object{"user": s, "userAgent": s, "from": s, "pod": s, "node": s, "requests": 4, "first": first,
				"last": last}},
			"contradictions": []any{object{"name": s, "evidence": s}}})
		answers = append(answers, object{"authenticator": s, "why": s})
		steps = append(steps, object{"authorizer": s, "answer": s, "reason": s})
		checks = append(checks, object{"check": s, "asked": s, "replayed": "forbid", "recorded": "allow", "perhaps": s,
			"missing": []string{s}, "grants": []any{grant}})
		near := object{"rule": object{"verbs": []string{s}, "nonResourceURLs": []string{s}}, "roles": []any{object{"role": s, "rule": 0}},
			"bindings": []any{object{"binding": s, "role": s, "rule": 0}},
			"almost":   []any{object{"binding": s, "role": s, "subject": s, "rule": 0, "lacks": s}}}
		missed = append(missed, object{"check": s, "asked": s, "user": s, "replayed": "forbid", "missing": []string{s}, "nearest": near})
		apply = append(apply, object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
			"metadata": object{"name": s, "namespace": s, "labels": object{s: s}},
			"rules": []any{object{"verbs": []string{s}, "apiGroups": []string{""}, "resources": []string{s, s + "/" + s},
				"resourceNames": []string{}}}})
		remove = append(remove, object{"kind": "RoleBinding", "namespace": s, "name": s, "action": []string{"delete", "replace"}[i%2],
			"subjects": []any{}, "object": object{"subjects": []any{object{"kind": "User", "name": s}}}})
		rollback = append(rollback, object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
			"metadata": object{"name": s, "namespace": s}, "subjects": nil})
	}
	at := "2026-11-20T11:44:45Z"
	one := object{"subject": texts[0], "groups": [][]string{texts}, "system": true,
		"window": object{"from": "2026-11-20T11:36:00Z", "to": at, "requests": 10, "judged": 9, "coverage": 0.9},
		"excess": object{"before": 100, "after": 1, "kept": 2}, "proof": object{"holds": false, "requests": 5, "accesses": 4, "refused": 1,
			"refusals": 2, "newlyAllowed": 1, "allowedBefore": 1, "allowedByKept": 1, "implied": 1, "leftOut": 1, "failures": texts},
		"apply": apply, "remove": remove, "rollback": rollback,
		"size":   object{"apply": len(apply), "remove": len(remove), "rollback": len(rollback)},
		"unused": unused, "keeps": keeps, "gaps": texts}
	suggest := func(q url.Values) any {
		list := []any{}
		if s := q.Get("subject"); s != "" {
			mine := object{}
			for k, v := range one {
				mine[k] = v
			}
			mine["subject"] = s
			list = append(list, mine)
		} else {
			for _, s := range texts {
				list = append(list, object{"subject": s, "window": one["window"], "excess": one["excess"], "proof": object{"holds": true},
					"apply": []any{}, "remove": []any{}, "size": object{"apply": 1, "remove": 2, "rollback": 0}})
			}
		}
		return object{"cluster": "sample", "suggestions": list, "plan": object{"holds": true}}
	}
	scopes := []any{}
	for _, s := range texts {
		scopes = append(scopes, object{"namespace": s, "rules": held})
	}
	return map[string]any{
		"subject": object{"cluster": "sample", "subject": "x", "groups": [][]string{texts}, "groupsFrom": "requests", "first": at,
			"last": at, "requests": 100, "forbidden": 5, "drift": 1, "usage": uses, "more": true, "rules": rules},
		"can": object{"cluster": "sample", "subject": "x", "groups": texts, "groupsFrom": "requests", "at": at, "scopes": scopes[:1],
			"missing": texts, "superuser": true},
		"who-can": object{"cluster": "sample", "at": at, "verb": texts[0], "resource": texts[1], "group": "", "subresource": "",
			"namespace": texts[2], "name": texts[3], "subjects": holders, "missing": texts, "known": true},
		"suggest":  suggest,
		"findings": object{"findings": found, "older": "1.x", "rules": object{texts[0]: 3}},
		"rules":    object{"rules": known},
		"connection": object{"cluster": "sample",
			"steps": []any{object{"id": "registered", "title": texts[0], "state": "done", "text": texts[1]},
				object{"id": "connected", "title": texts[2], "state": "failed", "text": texts[3], "todo": strings.Join(texts, "\n")}}},
		"drift":   object{"cluster": "sample", "groups": drifts, "truncated": true},
		"lineage": object{"cluster": "sample", "subject": texts[0], "credentials": lives, "truncated": true},
		"explain-deny": object{"requests": []any{object{"cluster": "sample", "request": "r", "by": "check", "text": texts[0],
			"chain": steps, "checks": missed, "missing": texts}}},
		"why": object{"requests": []any{object{"cluster": "sample", "request": "r", "twin": texts[0], "chain": steps,
			"authenticators": answers, "issue": lives[0].(object)["issue"],
			"verdict": object{"outcome": "match", "recorded": "forbid", "replayed": "allow", "authorizer": "rbac", "grants": grants,
				"explained": texts, "credential": texts[1], "identity": texts, "evidence": texts,
				"implied": checks, "impersonation": object{"replayed": "forbid", "recorded": "forbid", "mode": texts[2], "cause": texts[3],
					"missing": texts, "grants": grants},
				"review": object{"kind": texts[0], "user": texts[1], "asked": texts[2], "recorded": "allow", "replayed": "forbid",
					"reason": texts[3], "outcome": "drift", "cause": texts[3]}},
			"event": object{"verb": "get", "requestURI": "/api/v1/namespaces/a/pods/b/log", "requestReceivedTimestamp": at,
				"user": object{"username": texts[0], "groups": texts}}}}},
	}
}

// decode brings JSON into a plain value.
func decode(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
