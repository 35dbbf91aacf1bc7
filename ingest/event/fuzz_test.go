package event

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/test/recorded"
)

// addEvents seeds a fuzz target with recorded events, and with texts the grammar is about.
func addEvents(f *testing.F, wrap func([]byte) []byte) {
	for _, line := range recorded.Slice(f) {
		f.Add(wrap(line))
	}
	for _, text := range []string{"", "{}", "null", "[]", `{"user":{}}`, `{"verb":"\ud800"}`, "{\"verb\":\"\xff\"}", `{"requestObject": [ 1e9 , {"a" : null} ] }`,
		`{"responseStatus":{"code":-1}}`, `{"annotations":{"b":"","a":null}}`, `{"user":{"extra":{"a":["",null]}}}`} {
		f.Add(wrap([]byte(text)))
	}
}

// FuzzDecode compares with upstream's decoder wherever both accept, and takes what was
// decoded through the encoder and back.
func FuzzDecode(f *testing.F) {
	addEvents(f, func(b []byte) []byte { return b })
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Decode(raw)
		if err != nil {
			var at *jsontext.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(raw) || e != nil {
				t.Fatalf("%v at %+v", err, at)
			}
			return
		}
		if u, err := upstream(raw); err == nil && !repeated(raw) {
			sameAsUpstream(t, raw, e, u)
		}
		canonical := AppendJSON(nil, e)
		again, err := Decode(canonical)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("round trip: %v\n got %+v\nwant %+v", err, again, e)
		}
		if !bytes.Equal(AppendJSON(nil, again), canonical) {
			t.Fatal("encoding is not stable")
		}
	})
}

// FuzzDecodeList holds a list against its items decoded alone.
func FuzzDecodeList(f *testing.F) {
	addEvents(f, func(b []byte) []byte { return append(append([]byte(listHead), b...), "]}"...) })
	f.Add(recorded.List(recorded.Slice(f)[:3]...))
	f.Add([]byte(`{"items":[{},{"verb":1}],"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := collect(body)
		if err != nil {
			if !errors.Is(err, ErrNotEventList) || len(items) != 0 {
				t.Fatalf("%d items, %v", len(items), err)
			}
			return
		}
		for i, item := range items {
			alone, err := Decode(item.Raw)
			if item.Index != i || (err == nil) != (item.Err == nil) || !reflect.DeepEqual(alone, item.Event) {
				t.Fatalf("item %d: %v, alone %v\n%s", i, item.Err, err, item.Raw)
			}
		}
	})
}

// FuzzRedact plants a secret by the rules at a place the input chooses, disturbs the text
// as the input says, and looks for the secret in what comes out.
func FuzzRedact(f *testing.F) {
	r := NewRedactor(testKey)
	for i := range plants {
		f.Add(uint(i), uint(0), []byte(nil), uint(0))
		f.Add(uint(i), uint(37), []byte(`"}`), uint(3))
	}
	f.Fuzz(func(t *testing.T, which, at uint, insert []byte, drop uint) {
		text := plants[which%uint(len(plants))].event
		if pos := at % uint(len(text)); pos > 0 {
			text = text[:pos] + string(insert) + text[min(pos+drop%8, uint(len(text))):]
		}
		raw := []byte(text)
		if e, err := Decode(raw); err == nil {
			r.Redact(e)
			once := AppendJSON(nil, e)
			again, err := Decode(once)
			if err != nil {
				t.Fatalf("redacted event cannot be read: %v\n%s", err, once)
			}
			r.Redact(again)
			if twice := AppendJSON(nil, again); !bytes.Equal(once, twice) {
				t.Fatalf("redacting twice changes more\n%s\n%s", once, twice)
			}
			if at%uint(len(plants[which%uint(len(plants))].event)) == 0 && leaks(once) != nil {
				t.Fatalf("%q left in %s", leaks(once), once)
			}
			return
		}
		_ = r.RedactObject("secrets", raw)
		checkRaw(t, r, raw)
	})
}

// FuzzStatus looks for statuses that are passed over as clean and are not.
func FuzzStatus(f *testing.F) {
	for _, raw := range []string{
		`{"metadata":{},"status":"Failure","message":"secrets \"s\" is forbidden: User \"u\" cannot get resource \"secrets\"","reason":"Forbidden","details":{"name":"s","kind":"secrets"},"code":403}`,
		`{"metadata":{},"status":"Failure","message":"Secret \"s\" is invalid: data: Invalid value: \"hunter2\"","details":{"causes":[{"message":"Invalid value: \"hunter2\""}]},"code":422}`,
		`{"metadata":{},"code":201,"data":{"a":"b"}}`,
		`{"message":"password: hunter2hunter2","code":400}`,
		`{"metadata":{"message":"map[a:b]"},"code":500}`,
	} {
		f.Add([]byte(raw))
	}
	p := &pass{mac: hmac.New(sha256.New, testKey)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Status
		d := decoder{Scanner: jsontext.Scanner{Buf: raw}}
		if d.status(&s); d.Err != nil || !d.End() {
			return
		}
		for _, at := range []target{targetOther, targetSecret} {
			p.found = p.found[:0]
			if at == targetSecret && s.Message == "" && s.Code < 300 || !p.clean(&s, at) {
				continue
			}
			if got := p.statusBody(s.Raw, at); !bytes.Equal(got, s.Raw) {
				t.Fatalf("said to be clean, is\n%s\n%s", s.Raw, got)
			}
		}
	})
}

// checkRaw looks for planted secrets in redacted bytes. The names of an event's own public
// members are what the disturbance may have moved a secret behind.
func checkRaw(t *testing.T, r *Redactor, raw []byte) {
	got := r.RedactBytes(raw)
	for _, secret := range []string{jwt, planted} {
		at := bytes.Index(got, []byte(secret))
		if at < 0 {
			continue
		}
		if before := string(got[:at]); secret == planted && strings.LastIndexByte(before, ':') > 0 {
			open := strings.LastIndex(before, `":`)
			name := before[strings.LastIndexByte(before[:max(open, 0)], '"')+1 : max(open, 0)]
			if showing(scopeList, name) != scopeNone || showing(scopeUser, name) != scopeNone || showing(scopeRef, name) != scopeNone {
				continue
			}
		}
		t.Fatalf("%q left in %s\nof %s", secret, got, raw)
	}
}
