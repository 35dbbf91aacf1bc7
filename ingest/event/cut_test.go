package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

const bindingsURI = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

// bindingOf returns a ClusterRoleBinding as an apiserver writes it.
func bindingOf(t testing.TB, subjects []rbacv1.Subject) []byte {
	t.Helper()
	b := rbacv1.ClusterRoleBinding{Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
		Name: "cluster-admin"}}
	b.Kind, b.APIVersion, b.Name, b.UID, b.ResourceVersion = "ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "door", "u1", "7"
	b.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 1000)}
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// keptBinding is what is left of a binding.
type keptBinding struct {
	rbacv1.ClusterRoleBinding
	Cut bool `json:"cut"`
}

func usersNamed(names ...string) (out []rbacv1.Subject) {
	for _, name := range names {
		out = append(out, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name})
	}
	return out
}

func stripped(verb, uri string, request, response []byte, room int) *Event {
	e := &Event{Verb: verb, RequestURI: uri, Stage: StageResponseComplete, Level: LevelRequestResponse, ResponseStatus: &Status{Code: 201}}
	StripBodies(e, len(request)+len(response), "digest")
	KeepBodies(e, request, response, room)
	return e
}

func TestKeepBodies(t *testing.T) {
	const room = 8 << 20
	var many []string
	for i := range 50_000 {
		many = append(many, fmt.Sprintf("user-%05d", i))
	}
	long := strings.Repeat("\x01", 1_400_000) // six bytes each, as JSON has it
	for name, tt := range map[string]struct {
		subjects []rbacv1.Subject
		room     int
		cut      bool
		kept     int
	}{
		"a name of 1.4 MB":           {usersNamed("a", long, "b"), room, true, 2},
		"50,000 subjects":            {usersNamed(many...), room, false, 50_000},
		"50,000 subjects in 1 MiB":   {usersNamed(many...), 1 << 20, true, 15_000},
		"what is not read is enough": {usersNamed("a"), 1000, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			body := bindingOf(t, tt.subjects)
			e := stripped("create", bindingsURI, body, body, tt.room)
			if n := len(e.RequestObject) + len(e.ResponseObject); n > tt.room {
				t.Fatalf("%d bytes are kept in room for %d", n, tt.room)
			}
			var b keptBinding
			if err := json.Unmarshal(e.ResponseObject, &b); err != nil {
				t.Fatalf("%v in %.200s", err, e.ResponseObject)
			}
			if b.RoleRef.Name != "cluster-admin" || b.Name != "door" || b.UID != "u1" || b.ResourceVersion != "7" ||
				len(b.Annotations) > 0 {
				t.Errorf("kept of the head: %+v of %+v", b.RoleRef, b.ObjectMeta)
			}
			if b.Cut != tt.cut || len(b.Subjects) < tt.kept*9/10 || len(b.Subjects) > max(tt.kept, tt.kept*11/10) {
				t.Errorf("%d subjects, cut %v, want about %d, %v", len(b.Subjects), b.Cut, tt.kept, tt.cut)
			}
			for i, s := range b.Subjects {
				if s.Kind != "User" || s.Name == "" || len(s.Name) > 100 {
					t.Fatalf("subject %d is %.200v", i, s)
				}
			}
		})
	}
}

// TestKeepBodiesOf: what else is kept, and what is not.
func TestKeepBodiesOf(t *testing.T) {
	big := bindingOf(t, usersNamed("a", strings.Repeat("x", 5000)))
	role := []byte(`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["` + strings.Repeat("x", 9000) +
		`"]}],"kind":"ClusterRole","metadata":{"name":"r","managedFields":[1]}}`)
	list := append(append([]byte(`{"kind":"ClusterRoleBindingList","items":[`), big...), "]}"...)
	options := []byte(`{"kind":"DeleteOptions","dryRun":["All"]}`)
	for name, tt := range map[string]struct {
		e                 *Event
		request, response string
	}{
		"a role": {stripped("update", "/apis/rbac.authorization.k8s.io/v1/clusterroles/r", nil, role, 6000), "",
			`{"cut":true,"kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`},
		"a list": {stripped("deletecollection", bindingsURI, options, list, 2000), `{"kind":"DeleteOptions","dryRun":["All"]}`,
			""},
		"a patch": {stripped("patch", bindingsURI+"/door", []byte(`[{"op":"remove","path":"/subjects"}]`), list, 2000),
			`[{"op":"remove","path":"/subjects"}]`, ""},
		"no room":            {stripped("create", bindingsURI, big, big, 100), "", ""},
		"what is not policy": {stripped("create", "/api/v1/namespaces/a/configmaps", options, options, 1000), "", ""},
		"a pod": {stripped("create", "/api/v1/namespaces/a/pods", nil, []byte(`{"kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},`+
			`"spec":{"nodeName":"n","containers":[{"image":"i"}]}}`), 1000),
			"", `{"kind":"Pod","metadata":{"name":"p","labels":{}},"spec":{"nodeName":"n","containers":[{}]}}`},
	} {
		if string(tt.e.RequestObject) != tt.request || string(tt.e.ResponseObject) != tt.response {
			t.Errorf("%s: kept %s and %s", name, tt.e.RequestObject, tt.e.ResponseObject)
		}
	}
}

// FuzzKeepBodies: whatever a body is, what is kept of it is JSON, there is room for it, and keeping
// it again changes nothing.
func FuzzKeepBodies(f *testing.F) {
	f.Add([]byte(`{"subjects":[{"kind":"User","name":"a"},{}],"roleRef":{"name":"r"}}`), 6000)
	f.Add([]byte(`{"kind":"ClusterRole","rules":[],"cut":false,"cut":true}`), 100)
	f.Add([]byte(`{"items":[{"rules":[1,[2],"3"]}],"rows":[{"object":null}]}`), 90)
	f.Fuzz(func(t *testing.T, body []byte, room int) {
		if !json.Valid(body) || room < 0 || room > 1<<20 {
			return
		}
		for _, uri := range []string{bindingsURI, "/api/v1/namespaces/a/secrets", "/api/v1/persistentvolumes"} {
			e := stripped("create", uri, body, body, room)
			if len(e.RequestObject)+len(e.ResponseObject) > room {
				t.Fatalf("%d and %d bytes in room for %d", len(e.RequestObject), len(e.ResponseObject), room)
			}
			for _, kept := range [][]byte{e.RequestObject, e.ResponseObject} {
				if kept != nil && !json.Valid(kept) {
					t.Fatalf("kept %s", kept)
				}
			}
			again := stripped("create", uri, e.RequestObject, e.ResponseObject, room)
			if string(again.ResponseObject) != string(e.ResponseObject) {
				t.Fatalf("kept %s, and then %s", e.ResponseObject, again.ResponseObject)
			}
		}
	})
}

// TestNamesOfMegabytes: an object of a name that its event has no room for is known under what stands
// for the name, the same in every event.
func TestNamesOfMegabytes(t *testing.T) {
	name := strings.Repeat("\x01é", 500_000)
	body := []byte(strings.Replace(string(bindingOf(t, usersNamed("a"))), `"door"`, string(quoted(t, name)), 1))
	e := &Event{
		Verb: "create", RequestURI: bindingsURI, Stage: StageResponseComplete,
		ObjectRef:      &ObjectRef{Resource: "clusterrolebindings", Name: name},
		ResponseStatus: &Status{Code: 201, Message: name, Reason: "x", Raw: quoted(t, map[string]string{"message": name})},
		Annotations:    Pairs{{"a", name}, {"b", "short"}},
	}
	ref := e.ObjectRef
	StripBodies(e, 2*len(body), "digest")
	KeepBodies(e, body, body, 8<<20)
	if n := len(AppendJSON(nil, e)); n > 20_000 {
		t.Errorf("%d bytes are left", n)
	}
	var b keptBinding
	if err := json.Unmarshal(e.ResponseObject, &b); err != nil {
		t.Fatal(err)
	}
	if b.Name != e.ObjectRef.Name || len(b.Name) > 200 || !strings.HasPrefix(b.Name, "\x01é\x01é") || b.Cut || len(b.Subjects) != 1 ||
		b.UID != "u1" {
		t.Errorf("kept %.500s of %.200q", e.ResponseObject, e.ObjectRef.Name)
	}
	if v, _ := e.Annotations.Get("b"); v != "short" || ref.Name != name || e.ResponseStatus.Code != 201 || e.ResponseStatus.Reason != "x" {
		t.Errorf("left: %.500q", AppendJSON(nil, e))
	}
	if other := ShortName(name + "x"); other == b.Name {
		t.Error("two names have the same stand-in")
	}
}

// TestKeepObject: what a listing shows is kept as what an event shows.
func TestKeepObject(t *testing.T) {
	for name, tt := range map[string]struct {
		resource, object string
		room             int
		want             string
	}{
		"whole": {"clusterroles.rbac.authorization.k8s.io", `{"metadata":{"name":"r","managedFields":[1]},"rules":[]}`, 200,
			`{"metadata":{"name":"r"},"rules":[]}`},
		"in part": {"rolebindings.rbac.authorization.k8s.io", `{"metadata":{"name":"b"},"subjects":[{"name":"` + strings.Repeat("x", 2000) +
			`"},{"name":"a"}]}`, 1000, `{"cut":true,"metadata":{"name":"b"},"subjects":[{"name":"a"}]}`},
		"no room": {"secrets", `{"metadata":{"name":"b"}}`, 9, ``},
	} {
		if got := KeepObject(tt.resource, []byte(tt.object), tt.room); string(got) != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func quoted(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
