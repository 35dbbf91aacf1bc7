package event

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/test/recorded"
)

func TestDecodeFields(t *testing.T) {
	raw := `{
	 "kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a\u0031","stage":"ResponseComplete",
	 "requestURI":"/api/v1/pods?a=1\u0026b=2","verb":"list",
	 "user":{"username":"jane","uid":"7","groups":["b","a"],"extra":{"z":["1"],"a":null},"new":{"x": 1}},
	 "impersonatedUser":{"username":"joe"},
	 "authenticationMetadata":{"impersonationConstraint":"impersonate:user-info","more":[1, 2]},
	 "sourceIPs":["10.0.0.1","::1"],"userAgent":"x/1 \"q\" \ud83d\ude00",
	 "objectRef":{"resource":"pods","namespace":"n","name":"p","uid":"u","apiGroup":"g","apiVersion":"v1",
	  "resourceVersion":"5","subresource":"log","shard":"s1"},
	 "responseStatus":{"metadata":{}, "status":"Failure","message":"no","reason":"Forbidden","details":{"uid":"q"},"code":403},
	 "requestObject":{"a": [1, 2.50, "x y"]},"responseObject":null,
	 "requestReceivedTimestamp":"2026-11-20T11:36:06.542198Z","stageTimestamp":"2026-11-20T13:36:06.5421989+02:00",
	 "annotations":{"b":"2","a":"1","b":"3"},"future":{"k": null},"later":null}`
	e, err := Decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 11, 36, 6, 542198000, time.UTC)
	want := &Event{
		Level: LevelRequestResponse, AuditID: "a1", Stage: StageResponseComplete, RequestURI: "/api/v1/pods?a=1&b=2", Verb: "list",
		User: User{Username: "jane", UID: "7", Groups: []string{"b", "a"}, Extra: Extra{{Key: "a"}, {"z", []string{"1"}}},
			Unknown: []Member{{"new", []byte(`{"x":1}`)}}},
		ImpersonatedUser:       &User{Username: "joe"},
		AuthenticationMetadata: &AuthenticationMetadata{"impersonate:user-info", []Member{{"more", []byte(`[1,2]`)}}},
		SourceIPs:              []string{"10.0.0.1", "::1"}, UserAgent: "x/1 \"q\" \U0001F600",
		ObjectRef: &ObjectRef{"pods", "n", "p", "u", "g", "v1", "5", "log", []Member{{"shard", []byte(`"s1"`)}}},
		ResponseStatus: &Status{"Failure", "no", "Forbidden", 403,
			[]byte(`{"metadata":{},"status":"Failure","message":"no","reason":"Forbidden","details":{"uid":"q"},"code":403}`)},
		RequestObject:            []byte(`{"a":[1,2.50,"x y"]}`),
		RequestReceivedTimestamp: at, StageTimestamp: at,
		Annotations: Pairs{{"a", "1"}, {"b", "3"}},
		Unknown:     []Member{{"future", []byte(`{"k":null}`)}, {"later", []byte("null")}},
	}
	if !reflect.DeepEqual(e, want) {
		t.Fatalf("got  %+v\nwant %+v", e, want)
	}
	if v, ok := e.Annotations.Get("b"); v != "3" || !ok {
		t.Errorf("Get(b) = %q, %v", v, ok)
	}
	if v := e.User.Extra.Get("z"); len(v) != 1 || v[0] != "1" {
		t.Errorf("extra z = %q", v)
	}
	again, err := Decode(AppendJSON(nil, e))
	if err != nil || !reflect.DeepEqual(again, e) {
		t.Fatalf("round trip: %v\n got %+v\nwant %+v", err, again, e)
	}
}

func TestDecodeErrors(t *testing.T) {
	deep := strings.Repeat("[", jsontext.MaxDepth+1) + strings.Repeat("]", jsontext.MaxDepth+1)
	for _, c := range []struct{ name, raw, field, msg string }{
		{"empty", "", "", "unexpected end"},
		{"array", `[]`, "", "unexpected array, want object"},
		{"cut off", `{"verb":"ge`, "verb", "unexpected end"},
		{"cut off after name", `{"verb"`, "", "unexpected end, want colon"},
		{"cut off in body", `{"requestObject":{"a":[1,`, "requestObject", "unexpected end"},
		{"trailing", `{} {}`, "", "want end"},
		{"trailing comma", `{"verb":"get",}`, "", "want member name"},
		{"array trailing comma", `{"sourceIPs":["a",]}`, "sourceIPs", "want value"},
		{"no comma", `{"verb":"get" "level":"x"}`, "", "want comma"},
		{"wrong kind", `{"kind":"Pod"}`, "kind", "not Event"},
		{"wrong version", `{"apiVersion":"audit.k8s.io/v1beta1"}`, "apiVersion", "not audit.k8s.io/v1"},
		{"number for string", `{"verb":1}`, "verb", "unexpected number, want string"},
		{"user is text", `{"user":"jane"}`, "user", "unexpected string, want object"},
		{"groups is text", `{"user":{"groups":"a"}}`, "user.groups", "want array of strings"},
		{"group is number", `{"user":{"groups":["a",2]}}`, "user.groups", "want string"},
		{"extra is array", `{"impersonatedUser":{"extra":[]}}`, "impersonatedUser.extra", "want object"},
		{"annotation is object", `{"annotations":{"a":{}}}`, "annotations", "unexpected object, want string"},
		{"code is text", `{"responseStatus":{"code":"200"}}`, "responseStatus.code", "want number"},
		{"code is fraction", `{"responseStatus":{"code":200.5}}`, "responseStatus.code", "not a 32-bit integer"},
		{"code too large", `{"responseStatus":{"code":3000000000}}`, "responseStatus.code", "not a 32-bit integer"},
		{"details is text", `{"responseStatus":{"details":"x"}}`, "responseStatus.details", "want object"},
		{"timestamp", `{"stageTimestamp":"yesterday"}`, "stageTimestamp", "not an RFC 3339 timestamp"},
		{"timestamp number", `{"stageTimestamp":1}`, "stageTimestamp", "want string"},
		{"control byte", "{\"verb\":\"a\x01\"}", "verb", "control character"},
		{"escape", `{"verb":"a\x"}`, "verb", "malformed escape"},
		{"unicode escape", `{"verb":"\u12g4"}`, "verb", "malformed \\u escape"},
		{"number", `{"requestObject":01}`, "", "want comma"},
		{"minus", `{"requestObject":-}`, "requestObject", "malformed number"},
		{"literal", `{"requestObject":nul}`, "requestObject", "want value"},
		{"mismatched", `{"requestObject":[1}}`, "requestObject", "want comma or end of array"},
		{"too deep", `{"requestObject":` + deep + `}`, "requestObject", "nested too deeply"},
		{"unknown member's value", `{"x":tru}`, "", "want value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Decode([]byte(c.raw))
			var at *jsontext.Error
			if !errors.As(err, &at) || e != nil {
				t.Fatalf("got %v, %v", e, err)
			}
			if at.Field != c.field || !strings.Contains(at.Error(), c.msg) {
				t.Errorf("got %q, field %q; want %q in %q", at.Error(), at.Field, c.msg, c.field)
			}
			if at.Offset < 0 || at.Offset > len(c.raw) {
				t.Errorf("offset %d of %d", at.Offset, len(c.raw))
			}
		})
	}
}

func TestDecodeDepth(t *testing.T) {
	body := strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000)
	e, err := Decode([]byte(`{"requestObject":` + body + `}`))
	if err != nil || string(e.RequestObject) != body {
		t.Fatalf("10,000 levels: %v", err)
	}
}

func TestDecodeText(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"plain", `abc`, "abc"},
		{"empty", ``, ""},
		{"all escapes", `\"\\\/\b\f\n\r\t\u0041`, "\"\\/\b\f\n\r\tA"},
		{"surrogates", `\ud83d\ude00`, "\U0001F600"},
		{"lone high", `\ud83dx`, "\uFFFDx"},
		{"lone low", `\ude00`, "\uFFFD"},
		{"high high", `\ud83d\ud83d\ude00`, "\uFFFD\U0001F600"},
		{"bad utf-8", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"bad utf-8 and escape", "\\n\xff", "\n\uFFFD"},
		{"long with late escape", strings.Repeat("x", 37) + `\t`, strings.Repeat("x", 37) + "\t"},
		{"non-ascii", `grüße – 世界`, "grüße – 世界"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := []byte(`{"verb":"` + c.raw + `"}`)
			e, err := Decode(raw)
			if err != nil || e.Verb != c.want {
				t.Fatalf("got %q, %v; want %q", e.Verb, err, c.want)
			}
			u, err := upstream(raw)
			if err != nil || u.Verb != c.want {
				t.Fatalf("upstream has %q, %v", u.Verb, err)
			}
		})
	}
}

func TestDecodeLikeUpstream(t *testing.T) {
	for _, raw := range recorded.Slice(t) {
		checkLikeUpstream(t, raw)
	}
}

func TestDecodeLikeUpstreamSample(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole recording takes its time; a slice runs with -short")
	}
	for _, raw := range recorded.Sample(t) {
		checkLikeUpstream(t, raw)
	}
}

func TestDecodeLikeUpstreamCorpus(t *testing.T) {
	for _, raw := range recorded.Corpus(t, "full-requestresponse.jsonl") {
		checkLikeUpstream(t, raw)
	}
}

// checkLikeUpstream decodes a recorded event, compares it with upstream, and writes it out
// again.
func checkLikeUpstream(t *testing.T, raw []byte) {
	t.Helper()
	e, err := Decode(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	u, err := upstream(raw)
	if err != nil {
		t.Fatal(err)
	}
	sameAsUpstream(t, raw, e, u)
	canonical := AppendJSON(nil, e)
	sameValues(t, canonical, raw)
	again, err := Decode(canonical)
	if err != nil || !reflect.DeepEqual(again, e) {
		t.Fatalf("round trip: %v\n%s", err, canonical)
	}
	if twice := AppendJSON(nil, again); string(twice) != string(canonical) {
		t.Fatalf("encoding is not stable\n%s\n%s", canonical, twice)
	}
}

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string // RFC 3339 with nanoseconds, "" for an error
	}{
		{"2026-11-20T11:36:06Z", "2026-11-20T11:36:06Z"},
		{"2026-11-20T11:36:06.1Z", "2026-11-20T11:36:06.1Z"},
		{"2026-11-20T11:36:06.123456789Z", "2026-11-20T11:36:06.123456Z"},
		{"2026-11-20T11:36:06.123456+05:30", "2026-11-20T06:06:06.123456Z"},
		{"2026-01-01T00:30:00.000000+01:00", "2025-12-31T23:30:00Z"},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"},
		{"9999-12-31T23:59:59-01:00", ""},
		{"0000-01-01T00:00:00+01:00", ""},
		{"2023-02-29T00:00:00Z", ""},
		{"1900-02-29T00:00:00Z", ""},
		{"2026-13-01T00:00:00Z", ""},
		{"2026-04-31T00:00:00Z", ""},
		{"2026-11-20T24:00:00Z", ""},
		{"2026-11-20T11:36:60Z", ""},
		{"2026-11-20T11:36:06", ""},
		{"2026-11-20T11:36:06.Z", ""},
		{"2026-11-20T11:36:06.1234567891Z", ""},
		{"2026-11-20T11:36:06z", ""},
		{"2026-11-20 11:36:06Z", ""},
		{"2026-11-20T11:36:06+0100", ""},
		{"2026-1-20T11:36:06.00Z", ""},
		{"", ""},
	} {
		t.Run(c.in, func(t *testing.T) {
			got, ok := parseTime(c.in)
			if !ok {
				if c.want != "" {
					t.Fatal("refused")
				}
				return
			}
			if text := got.Format(time.RFC3339Nano); text != c.want {
				t.Fatalf("got %s, want %q", text, c.want)
			}
			if back, ok := parseTime(string(appendTime(nil, got))); !ok || back != got {
				t.Fatalf("written and read again: %v, %v", back, ok)
			}
		})
	}
}

func TestDaysFromEpoch(t *testing.T) {
	for day := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 13) {
		if got, want := daysFromEpoch(day.Year(), int(day.Month()), day.Day())*86400, day.Unix(); got != want {
			t.Fatalf("%v: %d, want %d", day, got, want)
		}
	}
}
