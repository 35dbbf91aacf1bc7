package event

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/test/recorded"
)

// listHead begins a list of events.
const listHead = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`

// collect decodes a list into its items.
func collect(body []byte) ([]Item, error) {
	var items []Item
	err := DecodeList(body, func(item Item) error {
		items = append(items, item)
		return nil
	})
	return items, err
}

func TestDecodeList(t *testing.T) {
	lines := recorded.Slice(t)
	items, err := collect(recorded.List(lines...))
	if err != nil || len(items) != len(lines) {
		t.Fatalf("%d items of %d, %v", len(items), len(lines), err)
	}
	for i, item := range items {
		alone, err := Decode(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		if item.Err != nil || item.Index != i || !reflect.DeepEqual(item.Event, alone) {
			t.Fatalf("item %d: %v\n got %+v\nwant %+v", i, item.Err, item.Event, alone)
		}
		if fromRaw, err := Decode(item.Raw); err != nil || !reflect.DeepEqual(fromRaw, alone) {
			t.Fatalf("item %d: its text does not hold it: %v", i, err)
		}
	}
}

func TestDecodeListBadItems(t *testing.T) {
	good := `{"auditID":"good","verb":"get"}`
	for _, c := range []struct{ name, item, msg string }{
		{"wrong type", `{"auditID":"x","verb":7,"requestObject":{"a":"}"}}`, "verb: unexpected number"},
		{"null", `null`, "unexpected null, want object"},
		{"number", `12`, "want object"},
		{"list", `[{"verb":"x"}]`, "want object"},
		{"pod", `{"kind":"Pod","apiVersion":"v1"}`, "kind: not Event"},
		{"time", `{"stageTimestamp":"x","verb":"y"}`, "stageTimestamp: not an RFC 3339"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := listHead + good + " , " + c.item + "\n," + good + "]}"
			items, err := collect([]byte(body))
			if err != nil || len(items) != 3 {
				t.Fatalf("%d items, %v", len(items), err)
			}
			bad := items[1]
			if bad.Event != nil || bad.Err == nil || !strings.Contains(bad.Err.Error(), c.msg) || string(bad.Raw) != c.item {
				t.Errorf("bad item: %v, %q", bad.Err, bad.Raw)
			}
			for _, i := range []int{0, 2} {
				if items[i].Err != nil || items[i].Event.AuditID != "good" {
					t.Errorf("neighbour %d: %+v", i, items[i])
				}
			}
		})
	}
}

func TestDecodeListNoList(t *testing.T) {
	good := listHead + `{"auditID":"a"},{"auditID":"b"}]}`
	for _, c := range []struct{ name, body string }{
		{"empty", ""},
		{"text", "hello"},
		{"event", `{"kind":"Event","apiVersion":"audit.k8s.io/v1"}`},
		{"no kind", `{"apiVersion":"audit.k8s.io/v1","items":[]}`},
		{"other list", strings.Replace(good, "EventList", "PodList", 1)},
		{"other version", strings.Replace(good, "audit.k8s.io/v1", "audit.k8s.io/v1beta1", 1)},
		{"core events", strings.Replace(good, "audit.k8s.io/v1", "v1", 1)},
		{"kind after items", `{"items":[{"auditID":"a"}],"apiVersion":"audit.k8s.io/v1","kind":"PodList"}`},
		{"items object", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":{}}`},
		{"metadata text", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":"x","items":[]}`},
		{"cut off", good[:len(good)-3]},
		{"cut off in the second item", good[:len(good)-6]},
		{"trailing", good + "{}"},
		{"crowded", listHead + strings.Repeat("{},", 2*crowdedFrom) + "{}]}"},
		{"no comma", listHead + `{} {}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			items, err := collect([]byte(c.body))
			if !errors.Is(err, ErrNotEventList) || len(items) != 0 {
				t.Fatalf("%d items, %v", len(items), err)
			}
			var at *jsontext.Error
			if !errors.As(err, &at) {
				t.Fatalf("%v does not say where", err)
			}
		})
	}
}

func TestDecodeListOrderAndNull(t *testing.T) {
	for _, c := range []struct {
		name, body string
		n          int
	}{
		{"items first", `{"items":[{"auditID":"a"}],"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`, 1},
		{"no items", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`, 0},
		{"null items", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":null,"items":null,"x":[1]}`, 0},
		{"empty items", `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[ ]}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if items, err := collect([]byte(c.body)); err != nil || len(items) != c.n {
				t.Fatalf("%d items, %v", len(items), err)
			}
		})
	}
}

func TestDecodeListStops(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	err := DecodeList([]byte(listHead+`{},{},{}]}`), func(Item) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if err != stop || n != 2 {
		t.Fatalf("%d visits, %v", n, err)
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*lineChunk)
	for _, c := range []struct {
		name, in string
		max      int
		want     []string // lines, or "!N" for a line too long of N bytes
		numbers  []int
	}{
		{"nothing", "", 10, nil, nil},
		{"one", "a\n", 10, []string{"a"}, []int{1}},
		{"no end", "a\nb", 10, []string{"a", "b"}, []int{1, 2}},
		{"blank lines", "\n \t\na\r\n\r\nb\n\n", 10, []string{"a", "b"}, []int{3, 5}},
		{"byte order mark", "\xef\xbb\xbfa\nb\n", 10, []string{"a", "b"}, []int{1, 2}},
		{"exactly the limit", "12345\n123456\n1\n", 5, []string{"12345", "!6", "1"}, []int{1, 2, 3}},
		{"too long at the end", "1\n123456", 5, []string{"1", "!6"}, []int{1, 2}},
		{"long ones", long + "\n" + long + "\nz", 4 * lineChunk, []string{long, long, "z"}, []int{1, 2, 3}},
		{"far too long", "a\n" + long + "\nz\n", 100, []string{"a", "!786432", "z"}, []int{1, 2, 3}},
		{"far too long at the end", "a\n" + long, 100, []string{"a", "!786432"}, []int{1, 2}},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
		} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				l := NewLines(wrap(strings.NewReader(c.in)), c.max)
				var got [][]byte
				for i := 0; ; i++ {
					line, n, err := l.Next()
					if err == io.EOF {
						break
					}
					var long *LineTooLongError
					if errors.As(err, &long) {
						line = fmt.Appendf(nil, "!%d", long.Size)
						if long.Line != n || len(long.Prefix) == 0 || !strings.Contains(c.in, string(long.Prefix)) {
							t.Errorf("error %+v in line %d", long, n)
						}
					} else if err != nil {
						t.Fatal(err)
					}
					if i >= len(c.numbers) || n != c.numbers[i] {
						t.Fatalf("line number %d at %d", n, i)
					}
					got = append(got, line) // kept: the memory is the caller's
				}
				if len(got) != len(c.want) {
					t.Fatalf("%d lines, want %d", len(got), len(c.want))
				}
				for i := range got {
					if string(got[i]) != c.want[i] {
						t.Errorf("line %d: %.50q, want %.50q", i, got[i], c.want[i])
					}
				}
				if _, _, err := l.Next(); err != io.EOF {
					t.Errorf("after the end: %v", err)
				}
			})
		}
	}
}

func TestLinesReadError(t *testing.T) {
	broken := errors.New("broken pipe")
	l := NewLines(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(broken)), 0)
	if line, _, err := l.Next(); string(line) != "a" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	for range 2 {
		if line, _, err := l.Next(); !errors.Is(err, broken) || line != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
}
