package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

const (
	objRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"a","uid":"u1",` +
		`"resourceVersion":"7","creationTimestamp":"2026-01-02T12:00:00Z"},"rules":[]}`
	objRole2 = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"b","uid":"u2",` +
		`"resourceVersion":"8"},"rules":[]}`
	objCluster = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"c","uid":"u3",` +
		`"resourceVersion":"9"}}`
	objMap    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"a"},"data":{"password":"aHVudGVyMg=="}}`
	objSecret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"a"},"data":{"password":"aHVudGVyMg=="}}`
	objOther  = `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"r","namespace":"a"}}`
)

func TestReadObjects(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string // kind namespace/name resource
		err      string   // part of the error
	}{
		{name: "a List", in: `{"apiVersion":"v1","kind":"List","items":[` + objRole + `,` + objSecret +
			`],"metadata":{"resourceVersion":""}}`,
			want: []string{"Role a/r " + kept.Roles, "Secret a/s " + kept.Secrets}},
		{name: "items before the kind", in: `{"items":[` + objRole + `],"kind":"List"}`, want: []string{"Role a/r " + kept.Roles}},
		{name: "several Lists and single objects", in: `{"kind":"List","items":[` + objRole + `]}` + "\n" + objCluster +
			` {"kind":"List","items":[]}` + objRole2,
			want: []string{"Role a/r " + kept.Roles, "ClusterRole /c " + kept.ClusterRoles, "Role b/r " + kept.Roles}},
		{name: "typed list, items without kind", in: `{"kind":"NamespaceList","apiVersion":"v1","metadata":{},"items":[{"metadata":{` +
			`"name":"n"}}]}`,
			want: []string{"Namespace /n " + kept.Namespaces}},
		{name: "null items", in: `{"kind":"List","items":null}`},
		{name: "a kind of the same name in another group", in: objOther, want: []string{"Role a/r "}},
		{name: "empty input", in: "", err: "empty input"},
		{name: "truncated", in: `{"kind":"List","items":[` + objRole[:40], err: "unexpected EOF"},
		{name: "cut between items", in: `{"kind":"List","items":[` + objRole + `,`, err: "at byte 211"},
		{name: "broken item", in: `{"kind":"List","items":[{"a":}]}`, err: "invalid character"},
		{name: "YAML", in: "kind: List\nitems: []\n", err: "at byte 0: not JSON as kubectl get -o json prints it"},
		{name: "not objects", in: `[1,2]`, err: observe.ErrNotObjects.Error()},
		{name: "an object of something else", in: `{"a":1}`, err: observe.ErrNotObjects.Error()},
		{name: "items are not an array", in: `{"kind":"List","items":{}}`, err: observe.ErrNotObjects.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			err := observe.ReadObjects(strings.NewReader(tc.in), func(o observe.RawObject) error {
				got = append(got, fmt.Sprintf("%s %s/%s %s", o.Kind, o.Namespace, o.Name, o.Resource))
				if (o.Object != nil) != (o.Resource != "") {
					t.Errorf("%s: content of %d bytes, resource %q", o.Name, len(o.Object), o.Resource)
				}
				return nil
			})
			if tc.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
	t.Run("the visitor's error ends it", func(t *testing.T) {
		stop := errors.New("stop")
		if err := observe.ReadObjects(strings.NewReader(objRole+objRole2), func(observe.RawObject) error { return stop }); err != stop {
			t.Errorf("got %v", err)
		}
	})
}

func TestReadSnapshotKinds(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"in two namespaces", `{"kind":"List","items":[` + objRole + `,` + objRole2 + `]}`, []string{kept.Roles}},
		{"in one namespace only", `{"kind":"List","items":[` + objRole + `]}`, nil},
		{"cluster-scoped", `{"kind":"List","items":[` + objCluster + `]}`, []string{kept.ClusterRoles}},
		{"single objects", objCluster + objRole + objRole2, nil},
		{"a page of a list", `{"kind":"ClusterRoleList","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"continue":"abc"},` +
			`"items":[` + objCluster + `]}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snap, _, err := observe.ReadSnapshot(strings.NewReader(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(snap.Kinds, tc.want) {
				t.Errorf("complete for %q, want %q", snap.Kinds, tc.want)
			}
		})
	}
	t.Run("what is skipped is counted and not held", func(t *testing.T) {
		snap, skipped, err := observe.ReadSnapshot(strings.NewReader(objMap + objMap + objSecret + objRole))
		if err != nil {
			t.Fatal(err)
		}
		if skipped["ConfigMap"] != 2 || len(snap.Objects) != 2 {
			t.Errorf("skipped %v, kept %d", skipped, len(snap.Objects))
		}
		if strings.Contains(dump(snap.Objects), "aHVudGVyMg") {
			t.Error("a secret was kept")
		}
	})
}

// A state file without times is of the second of the newest creation in it.
func TestSnapshotWithoutTimes(t *testing.T) {
	snap := observe.Snapshot{Kinds: []string{kept.Roles}, Objects: []observe.Observation{{
		Resource: kept.Roles, Namespace: "a", Name: "r", UID: "u1", ResourceVersion: "7", Object: []byte(objRole),
	}}}
	s := state.New("c")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at   string
		want state.Known
	}{{"11:59:59", state.Unknown}, {"12:00:01", state.Present}} {
		if _, got := s.Version(kept.Roles, "a", "r", clock(t, tc.at)); got != tc.want {
			t.Errorf("at %s %s, want %s", tc.at, got, tc.want)
		}
	}
	for _, tc := range []struct {
		at   string
		want state.Known
	}{{"11:59:59", state.Unknown}, {"12:00:01", state.Absent}} {
		if _, got := s.Version(kept.Roles, "a", "none", clock(t, tc.at)); got != tc.want {
			t.Errorf("none at %s %s, want %s", tc.at, got, tc.want)
		}
	}
}

// What is written in the second of a listing, after it, was not there yet: it is not missing
// from the listing because it had gone.
func TestWritesInTheSecondOfAListing(t *testing.T) {
	snap := observe.Snapshot{Since: clock(t, "11:00:00"), Kinds: []string{kept.Roles}, Objects: []observe.Observation{{
		Resource: kept.Roles, Namespace: "a", Name: "r", UID: "u1", ResourceVersion: "7", Object: []byte(objRole),
	}}}
	written := clock(t, "12:00:00").Add(700 * time.Millisecond)
	later := observe.Observation{Source: observe.SourceAudit, Resource: kept.Roles, Namespace: "a", Name: "later", UID: "u2",
		ResourceVersion: "8",
		NotBefore:       written, NotAfter: written.Add(time.Millisecond), Object: []byte(strings.NewReplacer(`"r"`, `"later"`, `"u1"`,
			`"u2"`,
			`"7"`, `"8"`).Replace(objRole))}
	s := state.New("c")
	s.Apply(later)
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at   time.Time
		want state.Known
	}{{clock(t, "11:59:00"), state.Absent}, {written.Add(2 * time.Millisecond), state.Present}, {clock(t, "12:00:02"),
		state.Present}, {clock(t, "13:00:00"), state.Present}} {
		if _, got := s.Version(kept.Roles, "a", "later", tc.at); got != tc.want {
			t.Errorf("at %s %s, want %s", tc.at, got, tc.want)
		}
	}
}

// Objects written by hand, without anything a server adds, hold at all times.
func TestSnapshotWithoutMetadata(t *testing.T) {
	snap, _, err := observe.ReadSnapshot(strings.NewReader(`{"kind":"List","items":[
		{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"c"}},
		{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := state.New("c")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	v := s.RBAC(clock(t, "00:00:00"))
	if _, ok := v.RBAC.Get(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "c"}); !ok {
		t.Error("the role is missing")
	}
	if v.IsUnknown(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "d"}) || !v.IsUnknown(rbacindex.Key{Kind: rbacindex.KindRole,
		Namespace: "n", Name: "d"}) {
		t.Errorf("unknown %v, kinds %v", v.Unknown, v.UnknownKinds)
	}
	if a := s.Namespace("n", clock(t, "00:00:00"), clock(t, "00:00:01")); a != state.NamespaceActive {
		t.Errorf("namespace is %s", a)
	}
}

func TestOtherCluster(t *testing.T) {
	ns := func(name, uid, created string) observe.Observation {
		f := newFields(t, kept.Namespaces, name, []string{"uid=" + uid, "rv=4", "created=" + created})
		return observe.Observation{Resource: kept.Namespaces, Name: name, UID: uid, ResourceVersion: "4", Object: f.object(true)}
	}
	for _, tc := range []struct {
		name string
		have []observe.Observation
		load []observe.Observation
		want string // "" is accepted
	}{
		{"kube-system agrees", []observe.Observation{ns("kube-system", "u1", "11:00:00")}, []observe.Observation{ns("kube-system", "u1",
			"11:00:00")}, ""},
		{"kube-system differs", []observe.Observation{ns("kube-system", "u1", "11:00:00")}, []observe.Observation{ns("kube-system", "u2",
			"10:00:00")}, "namespace kube-system has uid u2, known here as u1"},
		{"nothing in common", []observe.Observation{ns("x", "u1", "11:00:00")}, []observe.Observation{ns("y", "u2", "11:00:00")}, ""},
		{"made anew", []observe.Observation{ns("x", "u1", "11:00:00")}, []observe.Observation{ns("x", "u2", "11:30:00")}, ""},
		{"same second, other uid", []observe.Observation{ns("x", "u1", "11:00:00")}, []observe.Observation{ns("x", "u2", "11:00:00")},
			"namespaces x has uid u2, known here as u1"},
		{"more agree than differ", []observe.Observation{ns("x", "u1", "11:00:00"), ns("y", "u3", "11:00:00")},
			[]observe.Observation{ns("x", "u2", "11:00:00"), ns("y", "u3", "11:00:00")}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := state.New("c")
			if _, err := s.LoadSnapshot(observe.Snapshot{Began: clock(t, "12:00:00"), Ended: clock(t, "12:00:01"),
				Objects: tc.have}); err != nil {
				t.Fatal(err)
			}
			revision := s.Revision()
			_, err := s.LoadSnapshot(observe.Snapshot{Began: clock(t, "12:10:00"), Ended: clock(t, "12:10:01"), Objects: tc.load})
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, state.ErrOtherCluster) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if s.Revision() != revision {
				t.Error("the state was changed")
			}
		})
	}
}

func TestObservationCodec(t *testing.T) {
	o := observe.Observation{
		Source: observe.SourceWatch, Resource: kept.Roles, Namespace: "a", Name: "r\x00\"", UID: "u", ResourceVersion: "7",
		Object: []byte(`{"a":1}`), NotBefore: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC), NotAfter: time.Date(2026, 1, 2, 3, 4,
			6, 0, time.UTC),
	}
	enc := o.Append([]byte("x"))
	if enc[0] != 'x' {
		t.Fatal("Append did not append")
	}
	d, err := observe.Decode(enc[1:])
	if err != nil {
		t.Fatal(err)
	}
	if again := d.Append(nil); !bytes.Equal(again, enc[1:]) {
		t.Errorf("%s, then %s", enc[1:], again)
	}
	if !d.NotBefore.Equal(o.NotBefore) || !d.NotAfter.Equal(o.NotAfter) || d.Name != o.Name || string(d.Object) != string(o.Object) ||
		d.Source != o.Source {
		t.Errorf("got %+v", d)
	}
	for _, tc := range []struct {
		name, in string
		version  bool
	}{
		{"newer version", `{"v":4,"source":"audit"}`, true},
		{"no version", `{"source":"audit"}`, true},
		{"unknown source", `{"v":1,"source":"rumour"}`, false},
		{"not JSON", `{"v":1`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := observe.Decode([]byte(tc.in))
			if err == nil || errors.Is(err, observe.ErrVersion) != tc.version {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("an object that is not JSON is stored as unknown", func(t *testing.T) {
		d, err := observe.Decode(observe.Observation{Source: observe.SourceAudit, Resource: kept.Roles, Name: "r",
			Object: []byte("{")}.Append(nil))
		if err != nil || !d.Unknown || d.Object != nil {
			t.Errorf("got %+v, %v", d, err)
		}
	})
}
