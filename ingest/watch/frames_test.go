package watch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// slow is a source whose reads take as long as the test says.
type slow struct {
	clock *clock
	takes []time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	s.clock.advance(s.takes[0])
	s.takes = s.takes[1:]
	return copy(p, "x"), nil
}

func TestTimedReader(t *testing.T) {
	c := newClock()
	began := c.now()
	in := &timedReader{
		r:      &slow{c, []time.Duration{time.Minute, 100 * time.Millisecond, time.Minute}},
		now:    c.now,
		quiet:  time.Second,
		budget: 3,
	}
	buf := make([]byte, 10)
	for i, step := range []struct {
		live bool
		want time.Time
		what string
	}{
		{false, time.Time{}, "the backlog may be on its way however long it takes"},
		{true, time.Time{}, "a short wait proves nothing"},
		{true, began.Add(time.Minute + 100*time.Millisecond), "a long wait proves that nothing was on its way when it began"},
	} {
		in.live = step.live
		if _, err := in.Read(buf); err != nil {
			t.Fatal(err)
		}
		if !in.drained.Equal(step.want) {
			t.Errorf("read %d: drained at %s, want %s: %s", i, in.drained, step.want, step.what)
		}
	}
	if _, err := in.Read(buf); !errors.Is(err, errMalformed) {
		t.Errorf("beyond the budget: %v", err)
	}
}

func TestBackoffGrowsWithinBounds(t *testing.T) {
	b := backoff{min: time.Second, max: 8 * time.Second, at: time.Second, jitter: func() float64 { return 0.5 }}
	var got []string
	for range 5 {
		got = append(got, b.next().String())
	}
	b.reset()
	got = append(got, b.next().String())
	if want := "750ms 1.5s 3s 6s 6s 750ms"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
