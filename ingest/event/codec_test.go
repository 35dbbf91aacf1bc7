package event

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/retrial-io/retrial/test/recorded"
)

// AuditCodec returns the apiserver's own decoder of audit events.
func AuditCodec() runtime.Decoder {
	scheme := runtime.NewScheme()
	auditinstall.Install(scheme)
	return serializer.NewCodecFactory(scheme).UniversalDecoder(schema.GroupVersion{Group: "audit.k8s.io",
		Version: runtime.APIVersionInternal})
}

// throughCodec decodes a list with the apiserver's own codec, and takes its events back to the
// version they came in, as far as upstream's types go.
func throughCodec(codec runtime.Decoder, body []byte) ([]*auditv1.Event, error) {
	var list internal.EventList
	if _, _, err := codec.Decode(body, nil, &list); err != nil {
		return nil, err
	}
	out := make([]*auditv1.Event, len(list.Items))
	for i := range list.Items {
		out[i] = new(auditv1.Event)
		if err := auditv1.Convert_audit_Event_To_v1_Event(&list.Items[i], out[i], nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// TestCodec holds recorded events, in one list, against the apiserver's codec.
func TestCodec(t *testing.T) {
	lines := recorded.Slice(t)
	body := recorded.List(lines...)
	want, err := throughCodec(AuditCodec(), body)
	if err != nil || len(want) != len(lines) {
		t.Fatalf("%d of %d, %v", len(want), len(lines), err)
	}
	var lists Lists
	if err := lists.Decode(body, func(item Item) error {
		if item.Err != nil {
			return item.Err
		}
		sameAsUpstream(t, item.Raw, item.Event, want[item.Index])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// FuzzCodec holds every list that both take against the apiserver's codec, event by event,
// decoded into memory that another list was in before.
func FuzzCodec(f *testing.F) {
	addEvents(f, func(b []byte) []byte { return append(append([]byte(listHead), b...), "]}"...) })
	f.Add(recorded.List(recorded.Slice(f)[:3]...))
	codec := AuditCodec()
	used := recorded.List(recorded.Slice(f)[:20]...)
	f.Fuzz(func(t *testing.T, body []byte) {
		want, err := throughCodec(codec, body)
		if err != nil || repeated(body) {
			return
		}
		var lists Lists
		for _, list := range [][]byte{used, body} {
			var items []Item
			if lists.Decode(list, func(item Item) error { items = append(items, item); return nil }) != nil || &list[0] == &used[0] {
				continue
			}
			if len(items) != len(want) {
				t.Fatalf("%d items, the codec has %d", len(items), len(want))
			}
			for i := range items {
				if items[i].Err == nil {
					sameAsUpstream(t, items[i].Raw, items[i].Event, want[i])
				}
			}
		}
	})
}
