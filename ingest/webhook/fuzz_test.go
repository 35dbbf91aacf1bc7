package webhook

import "testing"

// FuzzPost checks that no body makes the handler panic, that every body has one of the
// answers the package comment lists, and that the account of its events balances.
func FuzzPost(f *testing.F) {
	f.Add([]byte(list(read("a"), write("b", "{}"), "17", `"x"`)))
	f.Add([]byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := trusted(t, Config{MaxBody: 64 << 10, MaxEvent: 500})
		w := b.post(auditPath, string(body))
		switch w.Code {
		case 200:
		case 400, 413:
			if len(b.producer.letters(t)) != 1 {
				t.Errorf("answer %d and %d dead letters", w.Code, len(b.producer.letters(t)))
			}
		default:
			t.Errorf("answer %d %s", w.Code, w.Body)
		}
		b.balanced(t)
	})
}
