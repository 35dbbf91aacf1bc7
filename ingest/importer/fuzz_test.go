package importer

import (
	"bytes"
	"testing"
)

// FuzzEntries checks that no content makes the cutter panic, run on forever, or lose the
// order of numbers.
func FuzzEntries(f *testing.F) {
	f.Add([]byte(line("a", false) + "\n" + line("b", true)))
	f.Add([]byte(`{"kind":"EventList","items":[` + line("a", false) + `]}`))
	f.Add([]byte(`{"items":[{}],"kind":"EventList"} {"items":null}`))
	f.Add([]byte("\xef\xbb\xbf\n\r\n{\"kind\":\"EventList\"}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := newEntries(bytes.NewReader(content), 1000)
		if err != nil {
			return
		}
		var last int64
		for range len(content) + 2 {
			e, err := entries.next()
			if err != nil {
				return
			}
			if e.n <= last {
				t.Fatalf("entry %d after %d", e.n, last)
			}
			if e.raw == nil && e.tooLong == nil {
				t.Fatal("an entry with nothing in it")
			}
			last = e.n
		}
		t.Fatal("more entries than bytes")
	})
}
