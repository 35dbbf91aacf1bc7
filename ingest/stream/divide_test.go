package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// crew are processes that divide work.
type crew struct {
	t  *testing.T
	mu sync.Mutex
	// has are the shares that processes have at the moment, by name.
	has     map[string]*Share
	changed chan struct{}
	stops   map[string]func()
}

func newCrew(t *testing.T) *crew {
	return &crew{t: t, has: map[string]*Share{}, changed: make(chan struct{}, 1), stops: map[string]func(){}}
}

// join has a process ask for a share.
func (c *crew) join(name string, client *Client) {
	ctx, cancel := context.WithCancel(deadline(c.t))
	done := make(chan error, 1)
	set := func(s *Share) {
		c.mu.Lock()
		if c.has[name] = s; s == nil {
			delete(c.has, name)
		}
		c.mu.Unlock()
		tell(c.changed)
	}
	go func() {
		done <- client.Divide(ctx, "work", func(ctx context.Context, s *Share) error {
			set(s)
			<-ctx.Done()
			set(nil)
			return nil
		})
	}()
	c.stops[name] = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(c.stops[name])
}

// until waits until so many processes have all parts between them.
func (c *crew) until(processes, parts int) map[string]*Share {
	c.t.Helper()
	for {
		c.mu.Lock()
		out, owner := map[string]*Share{}, map[int32]string{}
		whole := len(c.has) == processes
		for name, s := range c.has {
			out[name] = s
			whole = whole && s.Of == parts
			for _, p := range s.Parts {
				if owner[p] != "" {
					c.t.Errorf("part %d is that of %s and %s", p, owner[p], name)
				}
				owner[p] = name
			}
		}
		c.mu.Unlock()
		if whole && len(owner) == parts {
			return out
		}
		wait(c.t, fmt.Sprintf("%d processes to have %d parts", processes, parts), c.changed)
	}
}

// TestDivide: of one, two and three processes each has its share, no part two; who goes, in order or not, leaves its parts and how far they
// were to the others; and there are more parts once the topic has more partitions.
func TestDivide(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions, c.PartitionsEvery = 6, 100*time.Millisecond })
	client := func() *Client {
		c, err := NewClient(w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c := newCrew(t)
	c.join("a", w.Client)
	a := c.until(1, 6)["a"]
	if !a.All() {
		t.Errorf("alone with %v of %d", a.Parts, a.Of)
	}
	if at, err := a.Since(t.Context()); err != nil || !at.IsZero() {
		t.Errorf("since %s, %v, before anything is done", at, err)
	}
	second, third := client(), client()
	c.join("b", second)
	c.until(2, 6)
	c.join("c", third)
	shares := c.until(3, 6)
	has := map[string]int{}
	for name, s := range shares {
		if len(s.Parts) != 2 || s.All() {
			t.Errorf("%s has %v", name, s.Parts)
		}
		for i := range 1000 {
			if cluster := fmt.Sprint("cluster-", i); s.Has(cluster) {
				has[cluster]++
			}
		}
	}
	for i := range 1000 {
		if n := has[fmt.Sprint("cluster-", i)]; n != 1 {
			t.Errorf("cluster %d is in %d shares", i, n)
		}
	}
	// How far each is reaches whoever has the parts next.
	at := time.UnixMicro(time.Now().UnixMicro())
	for i, name := range []string{"a", "b", "c"} {
		if err := shares[name].Done(deadline(t), at.Add(time.Duration(i)*time.Second)); err != nil {
			t.Error(err)
		}
	}
	gone := shares["a"]
	c.stops["a"]()
	for name, s := range c.until(2, 6) {
		want := at.Add(2 * time.Second)
		for _, p := range s.Parts {
			for i, before := range []string{"a", "b"} {
				for _, q := range shares[before].Parts {
					if until := at.Add(time.Duration(i) * time.Second); p == q && until.Before(want) {
						want = until
					}
				}
			}
		}
		if since, err := s.Since(deadline(t)); err != nil || !since.Equal(want) {
			t.Errorf("%s goes on from %s with %v, want %s; %v", name, since.Sub(at), s.Parts, want.Sub(at), err)
		}
	}
	if err := gone.Done(deadline(t), time.Now()); err == nil {
		t.Error("who has lost its parts notes how far they are")
	}
	if _, err := w.SetLayout(deadline(t), 9, 1); errors.Is(err, ErrAuth) {
		return // those who may not alter a topic
	} else if err != nil {
		t.Fatal(err)
	}
	c.until(2, 9)
	c.stops["b"]()
	if s := c.until(1, 9)["c"]; !s.All() {
		t.Errorf("the last one has %v of %d", s.Parts, s.Of)
	}
}
