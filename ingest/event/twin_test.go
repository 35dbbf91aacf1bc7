package event

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	authnv1 "k8s.io/api/authentication/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// upstream decodes with the library the apiserver's codec decodes JSON with.
func upstream(raw []byte) (*auditv1.Event, error) {
	var e auditv1.Event
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &e)
	return &e, err
}

// fromUpstream returns the event upstream's type holds, in ours.
func fromUpstream(u *auditv1.Event) *Event {
	e := &Event{
		Level: Level(u.Level), AuditID: string(u.AuditID), Stage: Stage(u.Stage),
		RequestURI: u.RequestURI, Verb: u.Verb, User: *userFrom(&u.User),
		SourceIPs: noEmpty(u.SourceIPs), UserAgent: u.UserAgent,
		RequestReceivedTimestamp: u.RequestReceivedTimestamp.UTC(), StageTimestamp: u.StageTimestamp.UTC(),
	}
	if u.ImpersonatedUser != nil {
		e.ImpersonatedUser = userFrom(u.ImpersonatedUser)
	}
	if a := u.AuthenticationMetadata; a != nil {
		e.AuthenticationMetadata = &AuthenticationMetadata{ImpersonationConstraint: a.ImpersonationConstraint}
	}
	if r := u.ObjectRef; r != nil {
		e.ObjectRef = &ObjectRef{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name, UID: string(r.UID),
			APIGroup: r.APIGroup, APIVersion: r.APIVersion, ResourceVersion: r.ResourceVersion, Subresource: r.Subresource}
	}
	if s := u.ResponseStatus; s != nil {
		e.ResponseStatus = &Status{Status: s.Status, Message: s.Message, Reason: string(s.Reason), Code: s.Code}
	}
	if u.RequestObject != nil {
		e.RequestObject = jsontext.Compact(u.RequestObject.Raw)
	}
	if u.ResponseObject != nil {
		e.ResponseObject = jsontext.Compact(u.ResponseObject.Raw)
	}
	for k, v := range u.Annotations {
		e.Annotations = append(e.Annotations, Pair{k, v})
	}
	slices.SortStableFunc(e.Annotations, comparePairs)
	return e
}

func userFrom(u *authnv1.UserInfo) *User {
	out := &User{Username: u.Username, UID: u.UID, Groups: noEmpty(u.Groups)}
	for k, v := range u.Extra {
		out.Extra = append(out.Extra, ExtraEntry{k, noEmpty(v)})
	}
	out.Extra = lastExtra(out.Extra)
	return out
}

func noEmpty(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
}

// modelled returns an event without what upstream's type has no room for.
func modelled(e *Event) *Event {
	out := *e
	out.Unknown, out.User.Unknown = nil, nil
	if e.ImpersonatedUser != nil {
		u := *e.ImpersonatedUser
		u.Unknown = nil
		out.ImpersonatedUser = &u
	}
	if e.AuthenticationMetadata != nil {
		a := *e.AuthenticationMetadata
		a.Unknown = nil
		out.AuthenticationMetadata = &a
	}
	if e.ObjectRef != nil {
		r := *e.ObjectRef
		r.Unknown = nil
		out.ObjectRef = &r
	}
	if e.ResponseStatus != nil {
		s := *e.ResponseStatus
		s.Raw = nil
		out.ResponseStatus = &s
	}
	return &out
}

// sameAsUpstream fails the test when an event is not what upstream decodes.
func sameAsUpstream(t *testing.T, raw []byte, e *Event, u *auditv1.Event) {
	t.Helper()
	got, want := modelled(e), fromUpstream(u)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("decoded differently from upstream\n got %+v\nwant %+v\ntext %.2000s", got, want, raw)
	}
}

// sameValues fails the test when two JSON texts do not mean the same. Timestamps compare
// as text, which holds for what an apiserver writes.
func sameValues(t *testing.T, got, want []byte) {
	t.Helper()
	var g, w map[string]any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("encoded text is not JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	for name, fixed := range map[string]string{"kind": Kind, "apiVersion": APIVersion} {
		if _, ok := w[name]; !ok {
			w[name] = fixed
		}
	}
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("encoded event means something else\n got %s\nwant %s", got, want)
	}
}

// repeated reports whether some object of a JSON text names a member twice; upstream merges
// those, we take the last.
func repeated(raw []byte) bool {
	doc, ok := jsontext.ParseTree(raw)
	if !ok {
		return false
	}
	for i := range doc.Next(0) {
		if doc.Kind(i) != '{' {
			continue
		}
		seen := map[string]bool{}
		twice := false
		doc.Members(i, func(name string, _ int) {
			twice = twice || seen[name]
			seen[name] = true
		})
		if twice {
			return true
		}
	}
	return false
}
