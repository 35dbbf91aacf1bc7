package event

import (
	"reflect"
	"testing"
	"time"
)

// The values are part of the stored data: a change of them needs a migration.
func TestKeysAreStable(t *testing.T) {
	e, err := Decode([]byte(`{"auditID":"a","user":{"username":"u"},"verb":"get","requestURI":"/x","stage":"ResponseComplete",
		"requestReceivedTimestamp":"2026-11-20T11:36:06.542198Z","stageTimestamp":"2026-11-20T11:36:06.551859Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	req := RequestKey("c", e)
	for _, c := range []struct {
		name string
		got  Hash128
		want string
	}{
		{"request", req, "51f94d4aec5be43511a2f8c21eb3ecda"},
		{"event", EventKey(req, e), "d3d6154432a980fcb53cc0c58107ed0f"},
		{"content", Content([]byte("retrial")), "2c16652fb5e5a6e90000000000000000"},
		{"empty content", Content(nil), "ef46db3751d8e9990000000000000000"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestKeysTellApart(t *testing.T) {
	base := Event{AuditID: "a", User: User{Username: "u"}, Verb: "get", RequestURI: "/x", Stage: StageResponseStarted,
		RequestReceivedTimestamp: time.UnixMicro(10).UTC(), StageTimestamp: time.UnixMicro(20).UTC()}
	key := func(cluster string, change func(e *Event)) (Hash128, Hash128) {
		e := base
		change(&e)
		req := RequestKey(cluster, &e)
		return req, EventKey(req, &e)
	}
	req, ev := key("c", func(*Event) {})
	for _, c := range []struct {
		name        string
		cluster     string
		change      func(e *Event)
		sameRequest bool
		sameEvent   bool
	}{
		{"nothing", "c", func(*Event) {}, true, true},
		{"cluster", "d", func(*Event) {}, false, false},
		{"audit ID", "c", func(e *Event) { e.AuditID = "b" }, false, false},
		{"user", "c", func(e *Event) { e.User.Username = "v" }, false, false},
		{"verb", "c", func(e *Event) { e.Verb = "list" }, false, false},
		{"URI", "c", func(e *Event) { e.RequestURI = "/y" }, false, false},
		{"received", "c", func(e *Event) { e.RequestReceivedTimestamp = time.UnixMicro(11) }, false, false},
		{"moved between fields", "c", func(e *Event) { e.AuditID, e.User.Username = "au", "" }, false, false},
		{"stage", "c", func(e *Event) { e.Stage = StageResponseComplete }, true, false},
		{"stage time", "c", func(e *Event) { e.StageTimestamp = time.UnixMicro(21) }, true, false},
		{"level", "c", func(e *Event) { e.Level = LevelRequest }, true, true},
		{"body", "c", func(e *Event) { e.RequestObject = []byte("{}") }, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, v := key(c.cluster, c.change)
			if (r == req) != c.sameRequest || (v == ev) != c.sameEvent {
				t.Errorf("request key same: %v, event key same: %v", r == req, v == ev)
			}
		})
	}
}

func TestHash128(t *testing.T) {
	h := Hash128{Hi: 0x0102030405060708, Lo: 0x090a0b0c0d0e0f10}
	if HashFromBytes(h.Bytes()) != h || h.String() != "0102030405060708090a0b0c0d0e0f10" {
		t.Errorf("%s, %v", h, h.Bytes())
	}
	b := h.Bytes()
	if out, err := h.AppendBinary([]byte{9}); err != nil || string(out) != "\x09"+string(b[:]) {
		t.Errorf("%x, %v", out, err)
	}
}

func TestKeepsPolicy(t *testing.T) {
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	for _, c := range []struct {
		name, verb, uri string
		code            int32
		stage           Stage
		body            string
		want            bool
	}{
		{"create role", "create", rbac + "/namespaces/x/roles", 201, StageResponseComplete, "", true},
		{"update role binding", "update", rbac + "/namespaces/x/rolebindings/y?fieldManager=a", 200, StageResponseComplete, "", true},
		{"patch cluster role", "patch", rbac + "/clusterroles/y", 200, StageResponseComplete, "", true},
		{"delete cluster role binding", "delete", rbac + "/clusterrolebindings/y", 200, StageResponseComplete, "", true},
		{"delete collection", "deletecollection", rbac + "/clusterrolebindings", 200, StageResponseComplete, "", true},
		{"beta version", "delete", "/apis/rbac.authorization.k8s.io/v1beta1/clusterroles/y", 200, StageResponseComplete, "", true},
		{"encoded path", "delete", rbac + "/cluster%72oles/y", 200, StageResponseComplete, "", true},
		{"create namespace", "create", "/api/v1/namespaces", 201, StageResponseComplete, "", true},
		{"delete namespace", "delete", "/api/v1/namespaces/x", 200, StageResponseComplete, "", true},
		{"finalize namespace", "update", "/api/v1/namespaces/x/finalize", 200, StageResponseComplete, "", true},
		{"namespace status", "patch", "/api/v1/namespaces/x/status", 200, StageResponseComplete, "", true},
		{"create service account", "create", "/api/v1/namespaces/x/serviceaccounts", 201, StageResponseComplete, "", true},
		{"a namespace called roles", "create", "/api/v1/namespaces/roles/configmaps", 201, StageResponseComplete, "", false},
		{"service account token", "create", "/api/v1/namespaces/x/serviceaccounts/y/token", 201, StageResponseComplete, "", true},
		{"create pod", "create", "/api/v1/namespaces/x/pods", 201, StageResponseComplete, "", true},
		{"label a pod", "patch", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete, `{"metadata":{"labels":{"a":"b"}}}`, false},
		{"a pod, written without a body", "patch", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete, "", true},
		{"a pod's finalizers", "patch", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete,
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`, true},
		{"a pod's finalizers, by their pointer", "patch", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete, `[{"op":"remove",` +
			`"path":"/metadata/finalizers/0"}]`, true},
		{"apply a pod", "patch", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete, `{"apiVersion":"v1","kind":"Pod",` +
			`"metadata":{"name":"y"}}`, true},
		{"update a pod", "update", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete, `{"kind":"Pod"}`, true},
		{"a pod, answered in a form it does not have", "patch", "/api/v1/namespaces/x/pods/y", 406, StageResponseComplete, "", true},
		{"apply a pod that was not there", "patch", "/api/v1/namespaces/x/pods/y", 201, StageResponseComplete, "", true},
		{"bind a pod", "create", "/api/v1/namespaces/x/pods/y/binding", 201, StageResponseComplete, "", true},
		{"bind a pod, the old way", "create", "/api/v1/namespaces/x/bindings", 201, StageResponseComplete, "", true},
		{"evict a pod", "create", "/api/v1/namespaces/x/pods/y/eviction", 201, StageResponseComplete, "", true},
		{"debug a pod", "patch", "/api/v1/namespaces/x/pods/y/ephemeralcontainers", 200, StageResponseComplete, "", true},
		{"a pod is ready", "patch", "/api/v1/namespaces/x/pods/y/status", 200, StageResponseComplete, `{"status":{"phase":"Running"}}`,
			false},
		{"a pod's finalizers, with its status", "patch", "/api/v1/namespaces/x/pods/y/status", 200, StageResponseComplete,
			`{"metadata":{"finalizers":null}}`, true},
		{"a pod's claims", "patch", "/api/v1/namespaces/x/pods/y/status", 200, StageResponseComplete,
			`{"status":{"resourceClaimStatuses":[]}}`, true},
		{"exec in a pod", "create", "/api/v1/namespaces/x/pods/y/exec", 101, StageResponseComplete, "", false},
		{"delete pod", "delete", "/api/v1/namespaces/x/pods/y", 200, StageResponseComplete, "", true},
		{"create node", "create", "/api/v1/nodes", 201, StageResponseComplete, "", true},
		{"a node is ready", "patch", "/api/v1/nodes/n/status", 200, StageResponseComplete, "", false},
		{"a node in a namespace", "patch", "/api/v1/namespaces/x/nodes/n", 200, StageResponseComplete, "", false},
		{"update secret", "update", "/api/v1/namespaces/x/secrets/y", 200, StageResponseComplete, "", true},
		{"bind a volume", "update", "/api/v1/persistentvolumes/y", 200, StageResponseComplete, "", true},
		{"a volume's phase", "update", "/api/v1/persistentvolumes/y/status", 200, StageResponseComplete, "", true},
		{"attach a volume", "create", "/apis/storage.k8s.io/v1/volumeattachments", 201, StageResponseComplete, "", true},
		{"storage class", "create", "/apis/storage.k8s.io/v1/storageclasses", 201, StageResponseComplete, "", false},
		{"resource slice", "create", "/apis/resource.k8s.io/v1/resourceslices", 201, StageResponseComplete, "", true},
		{"ask for a certificate", "create", "/apis/certificates.k8s.io/v1/certificatesigningrequests", 201, StageResponseComplete, "",
			true},
		{"sign a certificate", "update", "/apis/certificates.k8s.io/v1/certificatesigningrequests/y/status", 200, StageResponseComplete, "",
			true},
		{"a pod's certificate", "create", "/apis/certificates.k8s.io/v1/namespaces/x/podcertificaterequests", 201, StageResponseComplete,
			"", true},
		{"a pod's certificate is issued", "update", "/apis/certificates.k8s.io/v1/namespaces/x/podcertificaterequests/y/status", 200,
			StageResponseComplete, "", false},
		{"lease", "update", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n", 200, StageResponseComplete, "", false},
		{"list", "list", rbac + "/clusterroles", 200, StageResponseComplete, "", false},
		{"refused", "create", rbac + "/clusterroles", 403, StageResponseComplete, "", false},
		{"conflict", "create", rbac + "/clusterroles", 409, StageResponseComplete, "", false},
		{"done, and the answer has no such form", "create", rbac + "/clusterroles", 406, StageResponseComplete, "", true},
		{"deleted until one could not be", "deletecollection", rbac + "/clusterroles", 409, StageResponseComplete, "", true},
		{"a collection of no such method", "deletecollection", "/api/v1/namespaces", 405, StageResponseComplete, "", false},
		{"earlier stage", "create", rbac + "/clusterroles", 201, StageRequestReceived, "", false},
		{"dry run", "create", rbac + "/clusterroles?dryRun=All", 201, StageResponseComplete, "", false},
		{"dry run, encoded", "create", rbac + "/clusterroles?a=b&dry%52un=All", 201, StageResponseComplete, "", false},
		{"dry run in options", "delete", rbac + "/clusterroles/x", 200, StageResponseComplete, `{"kind":"DeleteOptions","dryRun":["All"]}`,
			false},
		{"options", "delete", rbac + "/clusterroles/x", 200, StageResponseComplete, `{"kind":"DeleteOptions","dryRun":[],` +
			`"x":{"dryRun":["All"]}}`, true},
		{"options say no dry run, the query is not read", "delete", rbac + "/clusterroles/x?dryRun=All", 200, StageResponseComplete,
			`{"kind":"DeleteOptions"}`, true},
		{"no body is recorded, there may have been one", "deletecollection", rbac + "/clusterroles?dryRun=All", 200, StageResponseComplete,
			"", true},
		{"a parameter with a semicolon does not exist", "create", rbac + "/clusterroles?dryRun=All;", 201, StageResponseComplete, "", true},
		{"a parameter with a broken escape does not exist", "patch", rbac + "/clusterroles/x?dryRun=%zz", 200, StageResponseComplete, "",
			true},
		{"other group", "create", "/apis/example.com/v1/clusterroles", 201, StageResponseComplete, "", false},
		{"no resource", "delete", "/api/v1/", 200, StageResponseComplete, "", false},
		{"non-resource", "create", "/roles", 200, StageResponseComplete, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Event{Verb: c.verb, RequestURI: c.uri, Stage: c.stage, ResponseStatus: &Status{Code: c.code},
				User: User{Username: "system:node:n"}}
			if c.body != "" {
				e.RequestObject = []byte(c.body)
			}
			if got := KeepsPolicy(e); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
	for name, c := range map[string]struct {
		e    Event
		want Outcome
	}{
		"no answer":                  {Event{}, PerhapsDone},
		"an answer without a code":   {Event{ResponseStatus: &Status{}}, PerhapsDone},
		"the apiserver failed on it": {Event{Stage: StagePanic, ResponseStatus: &Status{Code: 500}}, PerhapsDone},
		"the store did not answer": {Event{ResponseStatus: &Status{Code: 500, Message: "etcdserver: request timed out"}},
			PerhapsDone},
		"not available": {Event{ResponseStatus: &Status{Code: 503}}, PerhapsDone},
		"timed out":     {Event{ResponseStatus: &Status{Code: 504}}, PerhapsDone},
		"a webhook failed": {Event{ResponseStatus: &Status{Code: 500, Message: `Internal ` +
			`error occurred: failed calling webhook "a.b.c": x`}}, NotDone},
		"a name that reads like that": {Event{ResponseStatus: &Status{Code: 500,
			Message: `rpc error: clusterroles "Internal error occurred: failed calling webhook " x`}}, PerhapsDone},
		"the body was not read":          {Event{ResponseStatus: &Status{Code: 500, Message: "body closed by handler"}}, NotDone},
		"refused":                        {Event{ResponseStatus: &Status{Code: 403}}, NotDone},
		"there is one":                   {Event{ResponseStatus: &Status{Code: 409}}, NotDone},
		"there is one, of a form of its": {Event{ResponseStatus: &Status{Code: 406}}, PerhapsDone},
	} {
		if c.e.Verb, c.e.RequestURI = "create", rbac+"/clusterroles"; c.e.Stage == "" {
			c.e.Stage = StageResponseComplete
		}
		if got := OutcomeOf(&c.e); got != c.want || KeepsPolicy(&c.e) != (c.want != NotDone) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for name, want := range map[string]bool{
		"system:node:n": false, "system:kube-scheduler": false, "system:serviceaccount:kube-system:pod-garbage-collector": false,
		"jane": true, "system:serviceaccount:x:y": true, "system:admin": true,
	} {
		e := &Event{Verb: "patch", RequestURI: "/api/v1/namespaces/x/pods/y/status", Stage: StageResponseComplete,
			ResponseStatus: &Status{Code: 200}}
		if e.User.Username = name; KeepsPolicy(e) != want {
			t.Errorf("the status of a pod written by %s: got %v", name, !want)
		}
		e.User.Username, e.ImpersonatedUser = "jane", &User{Username: name}
		if KeepsPolicy(e) != want {
			t.Errorf("the status of a pod written as %s: got %v", name, !want)
		}
	}
	pod := &Event{Verb: "patch", RequestURI: "/api/v1/namespaces/x/pods/y", Stage: StageResponseComplete,
		ResponseStatus: &Status{Code: 200}, RequestObject: []byte(`{"spec":{}}`)}
	for answer, want := range map[string]bool{
		`{"kind":"Pod","metadata":{"name":"y"}}`:                                            false,
		`{"kind":"Pod","metadata":{"name":"y","deletionTimestamp":"2026-01-02T12:00:00Z"}}`: true,
	} {
		if pod.ResponseObject = []byte(answer); KeepsPolicy(pod) != want {
			t.Errorf("patch of a pod answered with %s: got %v", answer, !want)
		}
	}
}

// A write that found nothing says what was not there.
func TestMissing(t *testing.T) {
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	for _, c := range []struct {
		name, verb, uri, message string
		code                     int32
		want                     bool
	}{
		{"pod", "delete", "/api/v1/namespaces/x/pods/y", `pods "y" not found`, 404, true},
		{"pod, encoded", "delete", "/api/v1/namespaces/x/pods/%79", `pods "y" not found`, 404, true},
		{"evict", "create", "/api/v1/namespaces/x/pods/y/eviction", `pods "y" not found`, 404, true},
		{"bind", "create", "/api/v1/namespaces/x/pods/y/binding", `pods "y" not found`, 404, true},
		{"status of a pod", "patch", "/api/v1/namespaces/x/pods/y/status", `pods "y" not found`, 404, true},
		{"status of a pod, of a namespace that is missing", "patch", "/api/v1/namespaces/x/pods/y/status", `namespaces "x" not found`, 404,
			false},
		{"cluster role", "update", rbac + "/clusterroles/a:b", `clusterroles.rbac.authorization.k8s.io "a:b" not found`, 404, true},
		{"namespace", "delete", "/api/v1/namespaces/x", `namespaces "x" not found`, 404, true},
		{"a namespace that is missing", "create", "/api/v1/namespaces/x/pods", `namespaces "x" not found`, 404, false},
		{"a namespace that an update needs", "update", "/api/v1/namespaces/x/serviceaccounts/y", `namespaces "x" not found`, 404, false},
		{"a webhook says so", "delete", "/api/v1/namespaces/x/pods/y", `admission webhook "w" denied the request: pods "y" not found`, 404,
			false},
		{"another name", "delete", "/api/v1/namespaces/x/pods/y", `pods "z" not found`, 404, false},
		{"a version that is not served", "delete", rbac + "alpha1/roles/y", `the server could not find the requested resource`, 404, false},
		{"refused", "delete", "/api/v1/namespaces/x/pods/y", `pods "y" not found`, 403, false},
		{"read", "get", "/api/v1/namespaces/x/pods/y", `pods "y" not found`, 404, true},
		{"read, any version", "get", "/api/v1/namespaces/x/pods/y?resourceVersion=0", `pods "y" not found`, 404, false},
		{"read, no version", "get", "/api/v1/namespaces/x/pods/y?resourceVersion=&pretty=1", `pods "y" not found`, 404, true},
		{"read a log", "get", "/api/v1/namespaces/x/pods/y/log", `pods "y" not found`, 404, false},
		{"read a role", "get", rbac + "/clusterroles/y", `clusterroles.rbac.authorization.k8s.io "y" not found`, 404, true},
		{"read a role, any version", "get", rbac + "/clusterroles/y?resourceVersion=0", `clusterroles.rbac.authorization.k8s.io ` +
			`"y" not found`, 404, false},
		{"not kept", "delete", "/api/v1/namespaces/x/configmaps/y", `configmaps "y" not found`, 404, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Event{Verb: c.verb, RequestURI: c.uri, Stage: StageResponseComplete,
				ResponseStatus: &Status{Code: c.code, Status: "Failure", Reason: "NotFound", Message: c.message}}
			if got := KeepsPolicy(e); got != c.want {
				t.Errorf("kept: %v", got)
			}
		})
	}
}

// A request that wrote nothing says what was there.
func TestShows(t *testing.T) {
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	const there = `clusterrolebindings.rbac.authorization.k8s.io "y" already exists`
	for _, c := range []struct {
		name, verb, uri, reason, message string
		code                             int32
		want                             bool
	}{
		{"read", "get", rbac + "/namespaces/x/roles/y", "", "", 200, true},
		{"read, any version", "get", rbac + "/namespaces/x/roles/y?resourceVersion=0", "", "", 200, false},
		{"refused", "get", rbac + "/namespaces/x/roles/y", "Forbidden", "", 403, false},
		{"listed", "list", rbac + "/namespaces/x/roles", "", "", 200, false},
		{"a role without a namespace", "get", rbac + "/roles/y", "", "", 200, false},
		{"read a pod", "get", "/api/v1/namespaces/x/pods/y", "", "", 200, false},
		{"there already", "create", rbac + "/clusterrolebindings", "AlreadyExists", there, 409, true},
		{"there already, says a webhook", "create", rbac + "/clusterrolebindings", "AlreadyExists", `admission ` +
			`webhook "w" denied the request: ` + there, 409, false},
		{"another is there already", "create", rbac + "/clusterrolebindings", "AlreadyExists",
			`clusterrolebindings.rbac.authorization.k8s.io "z" already exists`, 409, false},
		{"a conflict", "update", rbac + "/clusterrolebindings/y", "Conflict", "", 409, false},
		{"a pod is there already", "create", "/api/v1/namespaces/x/pods", "AlreadyExists", `pods "y" already exists`, 409, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Event{Verb: c.verb, RequestURI: c.uri, Stage: StageResponseComplete, ObjectRef: &ObjectRef{Name: "y"},
				ResponseStatus: &Status{Code: c.code, Reason: c.reason, Message: c.message}}
			if Shows(e) != c.want || KeepsPolicy(e) != c.want {
				t.Errorf("shows: %t, kept: %t", Shows(e), KeepsPolicy(e))
			}
		})
	}
}

// A write that only looks like a dry run must not be taken for one.
func TestDryRunOf(t *testing.T) {
	const uri = "/api/v1/namespaces/x?dryRun=All"
	truncated := Pairs{{annotationTruncated, "true"}}
	for _, c := range []struct {
		name  string
		event Event
		want  DryRunAnswer
	}{
		{"create, by query", Event{Verb: "create", RequestURI: uri}, DryRun},
		{"create, the body says nothing", Event{Verb: "create", RequestURI: "/api/v1/namespaces",
			RequestObject: []byte(`{"dryRun":["All"]}`)}, NoDryRun},
		{"delete, no body at Metadata", Event{Verb: "delete", RequestURI: uri, Level: LevelMetadata}, MaybeDryRun},
		{"delete, no body at Request", Event{Verb: "delete", RequestURI: uri, Level: LevelRequest}, DryRun},
		{"delete, body cut off", Event{Verb: "delete", RequestURI: uri, Level: LevelRequestResponse, Annotations: truncated}, MaybeDryRun},
		{"delete, the body counts", Event{Verb: "delete", RequestURI: uri, RequestObject: []byte(`{"kind":"DeleteOptions"}`)}, NoDryRun},
		{"delete, the body asks", Event{Verb: "delete", RequestURI: "/api/v1/namespaces/x", RequestObject: []byte(`{"dryRun":["All"]}`)},
			DryRun},
		{"another parameter", Event{Verb: "create", RequestURI: "/api/v1/namespaces?fieldManager=dryRun"}, NoDryRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := DryRunOf(&c.event); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestStripBodies(t *testing.T) {
	shared := Pairs{{"a", "1"}, {"z", "2"}}
	e := &Event{Verb: "get", RequestObject: []byte("{}"), ResponseObject: []byte("{}"), Annotations: shared[:1:2]}
	StripBodies(e, 4096, "sha256:abc")
	want := &Event{Verb: "get", Annotations: Pairs{{"a", "1"}, {AnnotationStrippedBytes, "4096"}, {AnnotationStrippedDigest, "sha256:abc"}}}
	if !reflect.DeepEqual(e, want) || shared[1].Key != "z" {
		t.Errorf("%+v, %v", e, shared)
	}
}
