package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/stream"
)

// disk decides over syncs and notes what was synced.
type disk struct {
	mu     sync.Mutex
	hold   chan struct{} // syncs wait until it is closed; nil: they do not
	held   chan struct{} // closed when a sync of log data waits
	err    error
	synced []string
}

func (d *disk) sync(f *os.File) error {
	d.mu.Lock()
	hold, err := d.hold, d.err
	if hold != nil && d.held != nil {
		close(d.held)
		d.held = nil
	}
	d.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err == nil {
		err = f.Sync()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = append(d.synced, f.Name())
	return err
}

func (d *disk) set(hold, held chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold, d.held, d.err, d.synced = hold, held, err, nil
}

func (d *disk) has(suffix string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range d.synced {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func withDisk(t *testing.T) (*disk, *stream.Client, *embedded.Broker) {
	t.Helper()
	b := start(t, t.TempDir())
	d := &disk{}
	b.SetSync(d.sync)
	return d, connect(t, b), b
}

// Nothing is acknowledged before it is on disk: neither records nor commits.
func TestAcknowledgedMeansSynced(t *testing.T) {
	d, c, _ := withDisk(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, tc := range []struct {
		name string
		do   func() error
		file string
	}{
		{"records", func() error { return c.Producer().Produce(ctx, record("a")) }, filepath.Join(stream.TopicPolicy+"-0", "0.dat")},
		{"commit", func() error { return c.CommitPolicy(ctx, map[int32]int64{0: 1}) }, "groups.log"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hold, held := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			defer release()
			d.set(hold, held, nil)
			done := make(chan error, 1)
			go func() { done <- tc.do() }()
			select {
			case <-held:
			case <-ctx.Done():
				t.Fatal("nothing was synced")
			}
			select {
			case err := <-done:
				t.Fatalf("acknowledged before the sync was done (%v)", err)
			default:
			}
			release()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if !d.has(tc.file) {
				t.Errorf("%s was not synced, but %v", tc.file, d.synced)
			}
			d.set(nil, nil, nil)
		})
	}
}

// What was written while one sync ran shares the next.
func TestSyncsAreShared(t *testing.T) {
	d, c, b := withDisk(t)
	hold, held := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release) // or the broker could not be closed
	d.set(hold, held, nil)
	var wg sync.WaitGroup
	var clients []*stream.Client
	for range 8 { // lanes of their own
		clients = append(clients, connect(t, b))
	}
	for i, c := range append(clients, c) {
		wg.Go(func() {
			if err := c.Producer().Produce(context.Background(), record(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	<-held
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for written := int64(0); written < 9; { // all are written, none acknowledged
		marks, err := c.HighWatermarks(ctx, stream.TopicPolicy)
		if err != nil {
			t.Fatal(err)
		}
		written = marks[0]
	}
	release()
	wg.Wait()
	n := 0
	for _, name := range d.synced {
		if strings.HasSuffix(name, ".dat") {
			n++
		}
	}
	if n > 3 {
		t.Errorf("%d syncs for nine records that came together", n)
	}
}

// After a failed sync nothing is acknowledged until the next start: what it lost, a later
// success does not bring back.
func TestFailedSyncIsFinal(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	d := &disk{}
	b.SetSync(d.sync)
	c := connect(t, b)
	produce(t, c, 0, 1)
	d.set(nil, nil, errors.New("input/output error"))
	short := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		return c.Producer().Produce(ctx, record("lost?"))
	}
	if err := short(); !errors.Is(err, stream.ErrTransient) {
		t.Errorf("sync fails: %v, want ErrTransient", err)
	}
	d.set(nil, nil, nil)
	if err := short(); !errors.Is(err, stream.ErrTransient) {
		t.Errorf("sync works again: %v, want ErrTransient", err)
	}
	c.Close()
	b.Close()
	c = connect(t, start(t, dir))
	produce(t, c, 1, 2)
	if values, _, _ := read(t, c); values[0] != "0" || values[len(values)-1] != "1" {
		t.Errorf("records %v", values)
	}
}
