package doctor

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// TestWaiting: every change is told once, what waits behind another step when its turn comes.
func TestWaiting(t *testing.T) {
	step := func(id, state, text, todo string) Step {
		return Step{ID: id, Title: "Step " + id, State: state, Text: text, Todo: todo}
	}
	looks := []struct {
		steps []Step
		err   error
		says  string
	}{
		{steps: []Step{step("a", StateWaiting, "1 s ago.", "do a"), step("b", StateWaiting, "b", "do b")},
			says: "waiting   Step a: 1 s ago.\n          do a\n"},
		{steps: []Step{step("a", StateWaiting, "2 s ago.", "do a"), step("b", StateWaiting, "b", "do b")}},
		{err: errors.New("it restarts")},
		{steps: []Step{step("a", StateFailed, "no\x1b[31m", "do c\nand d"), step("b", StateWaiting, "b", "do b")},
			says: "failed    Step a: no\\x1b[31m\n          do c\n          and d\n"},
		{steps: []Step{step("a", StateDone, "yes", ""), step("b", StateWaiting, "b", "do b")},
			says: "done      Step a: yes\nwaiting   Step b: b\n          do b\n"},
		{steps: []Step{step("a", StateDone, "yes, 2", ""), step("b", StateDone, "", "")}, says: "done      Step b\n"},
	}
	var out bytes.Buffer
	at := 0
	w := Waiting{Out: &out, Ask: func(context.Context) ([]Step, error) { return looks[at].steps, looks[at].err }}
	for ; at < len(looks); at++ {
		out.Reset()
		done, err := w.Look(t.Context())
		if err != nil || done != (at == len(looks)-1) || out.String() != looks[at].says {
			t.Errorf("look %d: done %v, %v, said\n%swant\n%s", at, done, err, out.String(), looks[at].says)
		}
	}
	at = 0
	out.Reset()
	w.told, w.idle = map[string]string{}, 0
	for range 2 * remindAfter {
		if _, err := w.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "still     Step a\n"); n != 1 || w.On != "Step a" {
		t.Errorf("%d reminders of %q:\n%s", n, w.On, out.String())
	}
	at = 2
	var err error
	for i := 0; err == nil && i <= lostAfter; i++ {
		_, err = w.Look(t.Context())
	}
	if err == nil || err.Error() != "it restarts" {
		t.Errorf("a server that cannot answer: %v", err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := w.Look(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
