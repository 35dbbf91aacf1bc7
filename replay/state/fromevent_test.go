package state_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// What scripts do not reach: odd URIs, missing and broken bodies.
func TestFromEvent(t *testing.T) {
	binding := newFields(t, kept.RoleBindings, "a/b", []string{"uid=u1", "rv=10"})
	account := newFields(t, kept.ServiceAccounts, "a/sa", []string{"uid=u1", "rv=10", "created=12:00:00"})
	held := newFields(t, kept.ServiceAccounts, "a/sa", []string{"uid=u1", "rv=11", "deleting=12:00:00", "finalizers=x"})
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
		{name: "create", verb: "create", uri: rbac, code: 201, response: string(binding.object(true)),
			want: "rolebindings a/b u1@10 content"},
		{name: "slashes and escapes", verb: "update", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings/system%3Ab",
			code: 200, want: "rolebindings a/system:b unknown"},
		{name: "trailing slash", verb: "patch", uri: rbac + "/b/", code: 200, want: "rolebindings a/b patched"},
		{name: "v1beta1", verb: "patch", uri: strings.Replace(rbac, "v1", "v1beta1", 1) + "/b", code: 200,
			want: "rolebindings a/b patched"},
		{name: "get", verb: "get", uri: rbac + "/b", code: 200, response: string(binding.object(true)),
			want: "rolebindings a/b u1@10 content; rolebindings a/b unchanged"},
		{name: "get at level Metadata", verb: "get", uri: rbac + "/b", code: 200, want: "rolebindings a/b unchanged"},
		{name: "get of a state that may be old", verb: "get", uri: rbac + "/b?resourceVersion=0", code: 200,
			response: string(binding.object(true))},
		{name: "another resource", verb: "create", uri: "/api/v1/namespaces/a/configmaps", code: 201},
		{name: "another group's roles", verb: "create", uri: "/apis/example.com/v1/namespaces/a/roles", code: 201},
		{name: "token subresource", verb: "create", uri: "/api/v1/namespaces/a/serviceaccounts/sa/token", code: 201},
		{name: "objects in a namespace named like a subresource", verb: "patch", uri: "/api/v1/namespaces/a/status/x", code: 200},
		{name: "namespace", verb: "patch", uri: "/api/v1/namespaces/a", code: 200, want: "namespaces a unchanged update"},
		{name: "namespace status", verb: "update", uri: "/api/v1/namespaces/a/status", code: 200, want: "namespaces a unchanged update"},
		{name: "namespace that is not the core group's", verb: "patch", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/a", code: 200},
		{name: "rolebinding without a namespace", verb: "patch", uri: "/apis/rbac.authorization.k8s.io/v1/rolebindings/b", code: 200},
		{name: "clusterrole in a namespace", verb: "patch", uri: "/apis/rbac.authorization.k8s.io/v1/namespaces/a/clusterroles/b",
			code: 200},
		{name: "no status, an answer that is the object", verb: "create", uri: rbac, response: string(binding.object(true)),
			want: "rolebindings a/b u1@10 content"},
		{name: "no status, an answer that is a refusal", verb: "create", uri: rbac,
			response: `{"kind":"Status","status":"Failure","code":403}`},
		{name: "no status, a deletion", verb: "delete", uri: rbac + "/b",
			response: `{"kind":"Status","status":"Success","details":{"uid":"u1"}}`, want: "rolebindings a/b u1@ deleted"},
		{name: "no status, no answer", verb: "create", uri: rbac, want: "rolebindings all-of a unknown"},
		{name: "answer cut", verb: "create", uri: rbac, code: 201, response: `{"kind":"RoleBinding`,
			want: "rolebindings all-of a unknown", err: true},
		{name: "answer of another kind", verb: "update", uri: rbac + "/b", code: 200,
			response: `{"kind":"Table","apiVersion":"meta.k8s.io/v1"}`, want: "rolebindings a/b unknown"},
		{name: "delete recorded as status only", verb: "delete", uri: rbac + "/b", code: 200,
			status: `{"metadata":{},"status":"Success","details":{"uid":"u9"},"code":200}`, want: "rolebindings a/b u9@ deleted"},
		{name: "delete answered with the object", verb: "delete", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 200,
			response: string(account.object(true)), want: "serviceaccounts a/sa u1@ deleted"},
		{name: "delete held back", verb: "delete", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 202,
			response: string(held.object(true)), want: "serviceaccounts a/sa u1@11 content update"},
		{name: "collection, foreground", verb: "deletecollection", uri: rbac, code: 200, request: `{"propagationPolicy":"Foreground"}`,
			response: `{"kind":"RoleBindingList","items":[{"metadata":{"name":"b","uid":"u1"}}]}`, want: "rolebindings a/b unchanged " +
				"deleting"},
		{name: "collection, orphaning by query", verb: "deletecollection", uri: rbac + "?propagationPolicy=Orphan", code: 200,
			response: `{"kind":"RoleBindingList","items":[{"metadata":{"name":"b","uid":"u1"}}]}`, want: "rolebindings a/b unchanged " +
				"deleting"},
		{name: "collection, empty", verb: "deletecollection", uri: rbac, code: 200, response: `{"kind":"RoleBindingList","items":[]}`},
		{name: "collection, broken", verb: "deletecollection", uri: rbac, code: 200, response: `{"kind":"RoleBindingList","items":[`,
			want: "rolebindings all-of a deleted", err: true},
		{name: "a dry run that may have been none", verb: "delete", uri: rbac + "/b?dryRun=All", code: 200,
			status: `{"metadata":{},"status":"Success","details":{"uid":"u9"},"code":200}`, want: "rolebindings a/b perhaps deleted"},
		{name: "a dry run of a collection that may have been none", verb: "deletecollection", uri: rbac + "?dryRun=All", code: 200,
			response: `{"kind":"RoleBindingList","items":[]}`, want: "rolebindings all-of a deleted"},
		{name: "options of the body, not those of the query", verb: "delete", uri: rbac + "/b?dryRun=All", code: 200,
			request: `{"kind":"DeleteOptions"}`, response: `{"kind":"Status","status":"Success","details":{"uid":"u1"}}`,
			want: "rolebindings a/b u1@ deleted"},
		{name: "a parameter the apiserver drops", verb: "create", uri: rbac + "?dryRun=All;", code: 201,
			response: string(binding.object(true)), want: "rolebindings a/b u1@10 content"},
		{name: "patch at level Request", verb: "patch", uri: rbac + "/b", code: 200, request: `[{"op":"add"}]`,
			want: "rolebindings a/b patched"},
		{name: "update at level Request of an object that ends", verb: "update", uri: "/api/v1/namespaces/n/finalize", code: 200,
			request: `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"u1",` +
				`"deletionTimestamp":"2026-01-02T12:00:00Z"},"spec":{}}`, want: "namespaces n u1@ deleted"},
		// How objects end and change, as the generic registry has it.
		{name: "the garbage collector takes a finalizer away, the object ends", verb: "patch", uri: rbac + "/b", code: 200,
			request:  `{"metadata":{"resourceVersion":"9","finalizers":[]}}`,
			response: partial(`"uid":"u1","resourceVersion":"9","deletionTimestamp":"2026-01-02T12:00:00Z","deletionGracePeriodSeconds":0`),
			want:     "rolebindings a/b u1@ deleted"},
		{name: "the garbage collector takes an owner away", verb: "patch", uri: rbac + "/b", code: 200,
			request:  `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"o"}],"uid":"u1"}}`,
			response: partial(`"uid":"u1","resourceVersion":"12"`), want: "rolebindings a/b u1@12 unchanged"},
		{name: "a finalizer of several is taken away", verb: "patch", uri: rbac + "/b", code: 200,
			request:  `[{"op":"remove","path":"/metadata/finalizers/0"}]`,
			response: partial(`"uid":"u1","resourceVersion":"12","deletionTimestamp":"2026-01-02T12:00:00Z","finalizers":["x"]`),
			want:     "rolebindings a/b u1@12 unchanged deleting"},
		{name: "rules patched, only metadata answered", verb: "patch", uri: rbac + "/b", code: 200,
			request:  `{"metadata":{},"subjects":[]}`,
			response: partial(`"uid":"u1","resourceVersion":"12"`), want: "rolebindings a/b u1@12 unknown"},
		{name: "applied, only metadata answered: what is not named is taken away", verb: "patch", uri: rbac + "/b", code: 200,
			request:  `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"b"}}`,
			response: partial(`"uid":"u1","resourceVersion":"12"`), want: "rolebindings a/b u1@12 unknown"},
		{name: "updated, only metadata answered", verb: "update", uri: rbac + "/b", code: 200, request: string(binding.object(true)),
			response: partial(`"uid":"u1","resourceVersion":"12"`), want: "rolebindings a/b u1@12 content"},
		{name: "created, a table answered", verb: "create", uri: rbac, code: 201, request: string(binding.object(false)),
			response: table(partial(`"uid":"u1","resourceVersion":"12"`)), want: "rolebindings a/b u1@12 content"},
		{name: "a table of nothing", verb: "update", uri: rbac + "/b", code: 200, request: string(binding.object(true)),
			response: `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":null}]}`,
			want:     "rolebindings a/b content update"},
		{name: "a table with the object", verb: "patch", uri: rbac + "/b", code: 200, request: `{"subjects":[]}`,
			response: table(string(binding.object(true))), want: "rolebindings a/b u1@10 content"},
		{name: "metadata patched, no answer recorded", verb: "patch", uri: rbac + "/b", code: 200,
			request: `{"metadata":{"labels":{"a":"b"}}}`, want: "rolebindings a/b unchanged update"},
		{name: "moved into metadata", verb: "patch", uri: rbac + "/b", code: 200,
			request: `[{"op":"move","from":"/subjects","path":"/metadata/annotations/x"}]`, want: "rolebindings a/b patched"},
		{name: "update at level Request that finalizers survive", verb: "update", uri: "/api/v1/namespaces/a/serviceaccounts/sa",
			code: 200, request: string(held.object(true)), want: "serviceaccounts a/sa unchanged deleting"},
		{name: "account patched at level Metadata", verb: "patch", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 200,
			want: "serviceaccounts a/sa unchanged update"},
		{name: "a Secret's token was used", verb: "patch", uri: "/api/v1/namespaces/a/secrets/s", code: 200,
			request: `{"metadata":{"labels":{"kubernetes.io/legacy-token-last-used":"2026-01-02"}}}`, want: "secrets a/s content update"},
		{name: "delete held back, at level Metadata", verb: "delete", uri: rbac + "/b", code: 200, status: `{"metadata":{},"code":200}`,
			want: "rolebindings a/b unchanged deleting"},
		{name: "delete of an account, at level Metadata", verb: "delete", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 200,
			status: `{"metadata":{},"code":200}`, want: "serviceaccounts a/sa perhaps deleted"},
		{name: "delete held back, metadata answered", verb: "delete", uri: rbac + "/b", code: 200,
			response: partial(`"uid":"u1","resourceVersion":"12","deletionTimestamp":"2026-01-02T12:00:00Z",` +
				`"finalizers":["foregroundDeletion"]`),
			want: "rolebindings a/b u1@12 unchanged deleting update"},
		{name: "delete of an account, metadata answered", verb: "delete", uri: "/api/v1/namespaces/a/serviceaccounts/sa", code: 200,
			response: partial(`"uid":"u1","resourceVersion":"12"`), want: "serviceaccounts a/b u1@ deleted"},
		{name: "delete of a namespace, metadata answered", verb: "delete", uri: "/api/v1/namespaces/n", code: 200,
			response: partial(`"uid":"u1","resourceVersion":"12","deletionTimestamp":"2026-01-02T12:00:00Z"`),
			want:     "namespaces b u1@ unknown"},
		{name: "an update that leaves a namespace's finalizers alone", verb: "update", uri: "/api/v1/namespaces/n", code: 200,
			request: `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"u1",` +
				`"deletionTimestamp":"2026-01-02T12:00:00Z"},"spec":{}}`, want: "namespaces n unchanged deleting update"},
		{name: "collection, what held it back is taken away", verb: "deletecollection", uri: rbac, code: 200,
			request: `{"propagationPolicy":"Background"}`,
			response: `{"kind":"RoleBindingList","items":[{"metadata":{"name":"b","uid":"u1",` +
				`"deletionTimestamp":"2026-01-02T12:00:00Z","finalizers":["foregroundDeletion"]}}]}`, want: "rolebindings a/b u1@ " +
				"deleted update"},
		{name: "collection, a table answered", verb: "deletecollection", uri: rbac, code: 200, response: table(partial(`"uid":"u1"`)),
			want: "rolebindings a/b u1@ deleted update"},
		{name: "missing", verb: "delete", uri: rbac + "/b", code: 404,
			status: `{"metadata":{},"status":"Failure","reason":"NotFound","message":"rolebindings.rbac.authorization.k8s.io \"b\" ` +
				`not found","code":404}`, want: "rolebindings a/b missing"},
		{name: "an eviction that a second budget forbids", verb: "create", uri: "/api/v1/namespaces/a/pods/p/eviction", code: 201,
			request: `{"kind":"Eviction"}`,
			status: `{"metadata":{},"status":"Failure","message":"This pod has more than one PodDisruptionBudget, which the eviction ` +
				`subresource does not support.","code":201}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &event.Event{Stage: event.StageResponseComplete, Verb: tc.verb, RequestURI: tc.uri,
				RequestObject: []byte(tc.request), ResponseObject: []byte(tc.response)}
			if tc.code != 0 {
				e.ResponseStatus = status(t, tc.code, tc.status)
			}
			obs, err := observe.FromEvent(e)
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

// partial is an answer of metadata alone, of an object a/b.
func partial(members string) string {
	return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","namespace":"a",` + members + `}}`
}

// table is an answer in a row of a table.
func table(object string) string {
	return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[{"cells":["b"],"object":` + object + `}]}`
}

// status is the one of an event, decoded as an event's is.
func status(t *testing.T, code int32, raw string) *event.Status {
	t.Helper()
	s := &event.Status{Code: code, Raw: []byte(raw)}
	if raw == "" {
		return s
	}
	var in struct{ Status, Reason, Message string }
	if err := json.Unmarshal(s.Raw, &in); err != nil {
		t.Fatal(err)
	}
	s.Status, s.Reason, s.Message = in.Status, in.Reason, in.Message
	return s
}

// shape renders an observation in a few words.
func shape(o observe.Observation) string {
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
	case o.Deleted && o.Complete:
		s += " missing"
	case o.Deleted && o.Unknown:
		s += " perhaps deleted"
	case o.Deleted:
		s += " deleted"
	case o.Patch && o.Unknown:
		s += " perhaps patched"
	case o.Patch:
		s += " patched"
	case o.Unknown:
		s += " unknown"
	case o.Unchanged:
		s += " unchanged"
		if strings.Contains(string(o.Object), "deletionTimestamp") {
			s += " deleting"
		}
	case o.Object != nil:
		s += " content"
	}
	if o.Update {
		s += " update"
	}
	return s
}

// FromEvent takes any bytes for bodies and any URI.
func FuzzFromEvent(f *testing.F) {
	f.Add("delete", "/api/v1/namespaces/a/serviceaccounts/x?dryRun=All&propagationPolicy=%", []byte(`{"kind":"Status","status":{}}`),
		[]byte(`{}`))
	f.Add("deletecollection", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", []byte(`{"kind":"RoleList","items":[null,{}]}`),
		[]byte(`[]`))
	f.Add("update", "/api/v1/namespaces/a/finalize", []byte(`null`), []byte(`{"metadata":{"deletionTimestamp":"x"}}`))
	f.Fuzz(func(t *testing.T, verb, uri string, response, request []byte) {
		e := &event.Event{Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, RequestObject: request, ResponseObject: response,
			ResponseStatus: &event.Status{Code: 200, Raw: response}}
		obs, _ := observe.FromEvent(e)
		s := state.New("c")
		s.Apply(obs...)
		before := describe(s, future)
		if effects := s.Apply(obs...); len(effects) != 0 {
			t.Fatalf("applying twice had effects %+v", effects)
		}
		for _, o := range obs {
			if _, err := observe.Decode(o.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if d := diff(before, describe(s, future)); d != "" {
			t.Fatal(d)
		}
	})
}
