package event_test

import (
	"bytes"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/test/recorded"
)

// samePlain holds the short way of encoding an item against the long one, as it came and
// redacted.
func samePlain(t *testing.T, r *redact.Redactor, item event.Item) (plain bool) {
	t.Helper()
	if item.Err != nil {
		return false
	}
	plain = item.TakenOver()
	if got, want := item.AppendJSON(nil), event.AppendJSON(nil, item.Event); !bytes.Equal(got, want) {
		t.Fatalf("as it came\n got %s\nwant %s\nitem %s", got, want, item.Raw)
	}
	item.RedactWith(r)
	if got, want := item.AppendJSON(nil), event.AppendJSON(nil, item.Event); !bytes.Equal(got, want) {
		t.Fatalf("redacted\n got %s\nwant %s\nitem %s", got, want, item.Raw)
	}
	return plain
}

// TestPlain: an apiserver's text is the canonical form but for a few, and what is taken over
// from it is what would have been written.
func TestPlain(t *testing.T) {
	r := redact.New(testKey)
	all, plain := 0, 0
	for _, lines := range [][][]byte{recorded.Slice(t), recorded.Sample(t)} {
		all, plain = 0, 0
		if err := event.DecodeList(recorded.List(lines...), func(item event.Item) error {
			all++
			if samePlain(t, r, item) {
				plain++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of %d as an apiserver wrote them", plain, all)
	}
	if plain*10 < all*8 {
		t.Errorf("only %d of %d of an apiserver's events are canonical", plain, all)
	}
}

// TestPlainOrNot names what is canonical and what is not.
func TestPlainOrNot(t *testing.T) {
	const (
		head = `"level":"Metadata","auditID":"a","stage":"ResponseComplete","requestURI":"/x","verb":"get",`
		tail = `"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z","stageTimestamp":"2026-01-02T03:04:05.000007Z"`
		user = `"user":{"username":"u"},`
	)
	for _, c := range []struct {
		name, text string
		plain      bool
	}{
		{"least", `{` + head + user + tail + `}`, true},
		{"an empty user", `{` + head + `"user":{},` + tail + `}`, true},
		{"kind and version before", `{"kind":"Event","apiVersion":"audit.k8s.io/v1",` + head + user + tail + `}`, true},
		{"kind behind", `{` + head + user + tail + `,"kind":"Event"}`, false},
		{"all there is", `{` + head + `"user":{"username":"u","uid":"i","groups":["g"],"extra":{"a":["x"],"b":["y","z"]}},` +
			`"impersonatedUser":{"username":"v"},"authenticationMetadata":{"impersonationConstraint":"c"},"sourceIPs":["::1"],` +
			`"userAgent":"k","objectRef":{"resource":"pods","namespace":"n","name":"p","uid":"i","apiGroup":"g","apiVersion":"v1",` +
			`"resourceVersion":"5","subresource":"status"},"responseStatus":{"code":200,"message":"a \"b\" \u003c",` +
			`"metadata":{}},"requestObject":{"a":"\u003c"},"responseObject":[1],` + tail + `,"annotations":{"a":"b","c":"d"}}`,
			true},
		{"white space", `{` + head + ` ` + user + tail + `}`, false},
		{"white space in a status", `{` + head + user + `"responseStatus":{ "code":200},` + tail + `}`, false},
		{"white space in a body", `{` + head + user + `"requestObject":{ "a":1},` + tail + `}`, false},
		{"escape", `{` + head + user + `"userAgent":"\u003c",` + tail + `}`, false},
		{"the escapes there are", `{` + head + user + `"userAgent":"\"\\\n\r\t",` + tail + `}`, true},
		{"an escape for what needs none", `{` + head + user + `"userAgent":"\/",` + tail + `}`, false},
		{"an escape with another spelling", `{` + head + user + `"userAgent":"\b",` + tail + `}`, false},
		{"an escape in a member's name", `{` + head + user + `"user\u0041gent":"x",` + tail + `}`, false},
		{"not UTF-8", `{` + head + user + "\"userAgent\":\"\xff\"," + tail + `}`, false},
		{"other order", `{"auditID":"a","level":"Metadata","stage":"ResponseComplete","requestURI":"/x","verb":"get",` + user + tail + `}`,
			false},
		{"twice", `{` + head + user + user + tail + `}`, false},
		{"something is missing", `{` + user + tail + `}`, false},
		{"no level", `{"auditID":"a","stage":"ResponseComplete","requestURI":"/x","verb":"get",` + user + tail + `}`, false},
		{"null", `{` + head + user + `"requestObject":null,` + tail + `}`, false},
		{"no user", `{` + head + `"user":null,` + tail + `}`, false},
		{"empty text", `{` + head + user + `"userAgent":"",` + tail + `}`, false},
		{"empty list", `{` + head + user + `"sourceIPs":[],` + tail + `}`, false},
		{"empty map", `{` + head + user + tail + `,"annotations":{}}`, false},
		{"empty values", `{` + head + `"user":{"extra":{"a":[]}},` + tail + `}`, false},
		{"map not in order", `{` + head + user + tail + `,"annotations":{"b":"1","a":"2"}}`, false},
		{"extra not in order", `{` + head + `"user":{"extra":{"b":["x"],"a":["y"]}},` + tail + `}`, false},
		{"user not in order", `{` + head + `"user":{"uid":"i","username":"u"},` + tail + `}`, false},
		{"reference not in order", `{` + head + user + `"objectRef":{"name":"p","resource":"pods"},` + tail + `}`, false},
		{"unknown member", `{` + head + user + tail + `,"novel":1}`, false},
		{"unknown member of the user", `{` + head + `"user":{"novel":1},` + tail + `}`, false},
		{"unknown member of the reference", `{` + head + user + `"objectRef":{"novel":1},` + tail + `}`, false},
		{"offset", `{` + head + user + `"requestReceivedTimestamp":"2026-01-02T03:04:05.1+00:00",` +
			`"stageTimestamp":"2026-01-02T03:04:05.000007Z"}`, false},
		{"milliseconds", `{` + head + user + `"requestReceivedTimestamp":"2026-01-02T03:04:05.100Z",` +
			`"stageTimestamp":"2026-01-02T03:04:05.000007Z"}`, false},
		{"the zero time", `{` + head + user + `"requestReceivedTimestamp":"0001-01-01T00:00:00.000000Z",` +
			`"stageTimestamp":"2026-01-02T03:04:05.000007Z"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			visited := 0
			if err := event.DecodeList(recorded.List([]byte(c.text)), func(item event.Item) error {
				visited++
				if item.Err != nil {
					t.Fatal(item.Err)
				}
				if got := samePlain(t, redact.New(testKey), item); got != c.plain {
					t.Errorf("taken over %t, want %t", got, c.plain)
				}
				return nil
			}); err != nil || visited != 1 {
				t.Fatal(visited, err)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	for _, line := range recorded.Slice(f) {
		f.Add(line)
		if e, err := event.Decode(line); err == nil {
			f.Add(event.AppendJSON(nil, e))
		}
	}
	r := redact.New(testKey)
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = event.DecodeList(recorded.List(raw), func(item event.Item) error {
			samePlain(t, r, item)
			return nil
		})
	})
}
