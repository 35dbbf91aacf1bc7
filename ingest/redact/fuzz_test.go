package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
)

// FuzzRedact plants a secret by the rules at a place the input chooses, disturbs the text
// as the input says, and looks for the secret in what comes out.
func FuzzRedact(f *testing.F) {
	r := New(TestKey)
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
		if e, err := event.Decode(raw); err == nil {
			r.Redact(e)
			once := event.AppendJSON(nil, e)
			again, err := event.Decode(once)
			if err != nil {
				t.Fatalf("redacted event cannot be read: %v\n%s", err, once)
			}
			r.Redact(again)
			if twice := event.AppendJSON(nil, again); !bytes.Equal(once, twice) {
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
		`{"metadata":{},"status":"Failure","message":"secrets \"s\" is forbidden: User \"u\" cannot get resource \"secrets\"",` +
			`"reason":"Forbidden","details":{"name":"s","kind":"secrets"},"code":403}`,
		`{"metadata":{},"status":"Failure","message":"Secret \"s\" is invalid: data: Invalid value: \"hunter2\"",` +
			`"details":{"causes":[{"message":"Invalid value: \"hunter2\""}]},"code":422}`,
		`{"metadata":{},"code":201,"data":{"a":"b"}}`,
		`{"message":"password: hunter2hunter2","code":400}`,
		`{"metadata":{"message":"map[a:b]"},"code":500}`,
	} {
		f.Add([]byte(raw))
	}
	p := &pass{mac: hmac.New(sha256.New, TestKey)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := event.DecodeStatus(raw)
		if err != nil || !json.Valid(raw) {
			return
		}
		for _, at := range []target{targetOther, targetSecret} {
			p.found = p.found[:0]
			if at == targetSecret && s.Message == "" && s.Code < 300 || !p.clean(s, at) {
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
