package state_test

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
)

// What scripts do not reach: odd URIs, missing and broken bodies.
func TestFromEvent(t *testing.T) {
	binding := newFields(t, state.RoleBindings, "a/b", []string{"uid=u1", "rv=10"})
	account := newFields(t, state.ServiceAccounts, "a/sa", []string{"uid=u1", "rv=10", "created=12:00:00"})
	held := newFields(t, state.ServiceAccounts, "a/sa", []string{"uid=u1", "rv=11", "deleting=12:00:00", "finalizers=x"})
	const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings"
	for _, tc := range []struct {
		name     string
		verb     string
		uri      string
		code     int32
		request  string
		response string
		status   string // raw
		want     string // shape
		err      bool
	}{
		{name: "create", verb: "create", uri: rbac, code: 201, response: string(binding.object(true)), want: "rolebindings a/b u1@10 content"},
		{name: "slashes and escapes", verb: "update", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings/system%3Ab", code: 200, want: "rolebindings a/system:b unknown"},
		{name: "trailing slash", verb: "patch", uri: rbac + "/b/", code: 200, want: "rolebindings a/b unknown"},
		{name: "v1beta1", verb: "patch", uri: strings.Replace(rbac, "v1", "v1beta1", 1) + "/b", code: 200, want: "rolebindings a/b unknown"},
		{name: "get", verb: "get", uri: rbac + "/b", code: 200, response: string(binding.object(true))},
		{name: "another resource", verb: "create", uri: "/api/v1/namespaces/a/configmaps", code: 201},
		{name: "another group's roles", verb: "create", uri: "/apis/example.com/v1/namespaces/a/roles", code: 201},
		{name: "token subresource", verb: "create", uri: "/api/v1/namespaces/a/serviceaccounts/sa/token", code: 201},
		{name: "objects in a namespace named like a subresource", verb: "patch", uri: "/api/v1/namespaces/a/status/x", code: 200},
		{name: "namespace", verb: "patch", uri: "/api/v1/namespaces/a", code: 200, want: "namespaces a unknown"},
		{name: "namespace status", verb: "update", uri: "/api/v1/namespaces/a/status", code: 200, want: "namespaces a unknown"},
		{name: "namespace that is not the core group's", verb: "patch", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/a", code: 200},
		{name: "rolebinding without a namespace", verb: "patch", uri: "/apis/rbac.authorization.k8s.io/v1/rolebindings/b", code: 200},
		{name: "clusterrole in a namespace", verb: "patch", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/a/clusterroles/b", code: 200},
		{name: "no status, an answer that is the object", verb: "create", uri: rbac, response: string(binding.object(true)), want: "rolebindings a/b u1@10 content"},
		{name: "no status, an answer that is a refusal", verb: "create", uri: rbac, response: `{"kind":"Status","status":"Failure","code":403}`},
		{name: "no status, a deletion", verb: "delete", uri: rbac + "/b", response: `{"kind":"Status","status":"Success","details":{"uid":"u1"}}`, want: "rolebindings a/b u1@ deleted"},
		{name: "no status, no answer", verb: "create", uri: rbac},
		{name: "answer cut", verb: "create", uri: rbac, code: 201, response: `{"kind":"RoleBinding`, want: "rolebindings all-of a unknown", err: true},
		{name: "answer of another kind", verb: "update", uri: rbac + "/b", code: 200, response: `{"kind":"Table","apiVersion":"meta.k8s.io/v1"}`, want: "rolebindings a/b unknown"},
		{name: "delete recorded as status only", verb: "delete", uri: rbac + "/b", code: 200, status: `{"metadata":{},"status":"Success","details":{"uid":"u9"},"code":200}`, want: "rolebindings a/b u9@ deleted"},
		{name: "delete answered with the object", verb: "delete", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 200, response: string(account.object(true)), want: "serviceaccounts a/sa u1@ deleted"},
		{name: "delete held back", verb: "delete", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 202, response: string(held.object(true)), want: "serviceaccounts a/sa u1@11 content"},
		{name: "collection, foreground", verb: "deletecollection", uri: rbac, code: 200, request: `{"propagationPolicy":"Foreground"}`, response: `{"kind":"RoleBindingList","items":[{"metadata":{"name":"b","uid":"u1"}}]}`, want: "rolebindings a/b unknown"},
		{name: "collection, orphaning by query", verb: "deletecollection", uri: rbac + "?propagationPolicy=Orphan", code: 200, response: `{"kind":"RoleBindingList","items":[{"metadata":{"name":"b","uid":"u1"}}]}`, want: "rolebindings a/b unknown"},
		{name: "collection, empty", verb: "deletecollection", uri: rbac, code: 200, response: `{"kind":"RoleBindingList","items":[]}`},
		{name: "collection, broken", verb: "deletecollection", uri: rbac, code: 200, response: `{"kind":"RoleBindingList","items":[`, want: "rolebindings all-of a deleted", err: true},
		{name: "a dry run that may have been none", verb: "delete", uri: rbac + "/b?dryRun=All", code: 200, status: `{"metadata":{},"status":"Success","details":{"uid":"u9"},"code":200}`, want: "rolebindings a/b unknown"},
		{name: "a dry run of a collection that may have been none", verb: "deletecollection", uri: rbac + "?dryRun=All", code: 200, response: `{"kind":"RoleBindingList","items":[]}`, want: "rolebindings all-of a deleted"},
		{name: "options of the body, not those of the query", verb: "delete", uri: rbac + "/b?dryRun=All", code: 200, request: `{"kind":"DeleteOptions"}`, response: `{"kind":"Status","status":"Success","details":{"uid":"u1"}}`, want: "rolebindings a/b u1@ deleted"},
		{name: "a parameter the apiserver drops", verb: "create", uri: rbac + "?dryRun=All;", code: 201, response: string(binding.object(true)), want: "rolebindings a/b u1@10 content"},
		{name: "patch at level Request", verb: "patch", uri: rbac + "/b", code: 200, request: `[{"op":"add"}]`, want: "rolebindings a/b unknown"},
		{name: "update at level Request of an object that ends", verb: "update", uri: "/api/v1/namespaces/n/finalize", code: 200,
			request: `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"u1","deletionTimestamp":"2026-01-02T12:00:00Z"},"spec":{}}`, want: "namespaces n u1@ deleted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &event.Event{Stage: event.StageResponseComplete, Verb: tc.verb, RequestURI: tc.uri,
				RequestObject: []byte(tc.request), ResponseObject: []byte(tc.response)}
			if tc.code != 0 {
				e.ResponseStatus = &event.Status{Code: tc.code, Raw: []byte(tc.status)}
			}
			obs, err := state.FromEvent(e)
			if (err != nil) != tc.err {
				t.Errorf("error %v", err)
			}
			var got []string
			for _, o := range obs {
				got = append(got, shape(o))
			}
			if g := strings.Join(got, "; "); g != tc.want {
				t.Errorf("got %q, want %q", g, tc.want)
			}
		})
	}
}

// shape renders an observation in a few words.
func shape(o state.Observation) string {
	s, _, _ := strings.Cut(o.Resource, ".")
	switch {
	case o.AllOf:
		s += " all-of " + o.Namespace
	case o.Namespace != "":
		s += " " + o.Namespace + "/" + o.Name
	default:
		s += " " + o.Name
	}
	if o.UID != "" || o.ResourceVersion != "" {
		s += " " + o.UID + "@" + o.ResourceVersion
	}
	switch {
	case o.Deleted:
		s += " deleted"
	case o.Unknown:
		s += " unknown"
	case o.Object != nil:
		s += " content"
	}
	return s
}

// FromEvent takes any bytes for bodies and any URI.
func FuzzFromEvent(f *testing.F) {
	f.Add("delete", "/api/v1/namespaces/a/serviceaccounts/x?dryRun=All&propagationPolicy=%", []byte(`{"kind":"Status","status":{}}`), []byte(`{}`))
	f.Add("deletecollection", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", []byte(`{"kind":"RoleList","items":[null,{}]}`), []byte(`[]`))
	f.Add("update", "/api/v1/namespaces/a/finalize", []byte(`null`), []byte(`{"metadata":{"deletionTimestamp":"x"}}`))
	f.Fuzz(func(t *testing.T, verb, uri string, response, request []byte) {
		e := &event.Event{Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, RequestObject: request, ResponseObject: response,
			ResponseStatus: &event.Status{Code: 200, Raw: response}}
		obs, _ := state.FromEvent(e)
		s := state.New("c")
		s.Apply(obs...)
		before := describe(s, future)
		if effects := s.Apply(obs...); len(effects) != 0 {
			t.Fatalf("applying twice had effects %+v", effects)
		}
		for _, o := range obs {
			if _, err := state.DecodeObservation(o.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if d := diff(before, describe(s, future)); d != "" {
			t.Fatal(d)
		}
	})
}
