package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Durability. The broker can sync every batch itself, but it does so inside its only loop,
// two files one after the other, and ignores the result. So it writes without syncing, and
// each acknowledgement is held back until the files it depends on are on disk:
//
//	broker loop: write batch ─▶ response ─▶ guardConn.Write ─▶ durable.wait ─▶ client
//	                                                            │ one round at a time; all that
//	                                                            ▼ waits joins the next one
//	                                                    fsync of every file touched, in parallel
//
// So records of many calls share a sync, fetches do not wait for one, and an error is noticed:
// after it nothing is acknowledged any more, since a second sync does not bring back what a
// failed one lost.

type part struct {
	topic     string
	partition int32
}

// durable makes what the broker has written survive a power failure.
type durable struct {
	dir  string                 // of the log
	sync func(f *os.File) error // (*os.File).Sync; tests put a fault here
	fail func(err error)        // called once, with the first error

	mu      sync.Mutex
	next    *round // the round that has not begun; nil if nothing waits
	running bool
	err     error // the first failure, or errClosed; final
	rounds  sync.WaitGroup

	synced map[part]int64 // by the running round only: base offset of the newest file synced
}

// round is one pass of syncs, with all that wait for it.
type round struct {
	parts   map[part]struct{}
	commits bool
	done    chan struct{}
	err     error
}

func newDurable(dir string, fail func(error)) *durable {
	return &durable{dir: dir, sync: (*os.File).Sync, fail: fail, synced: make(map[part]int64)}
}

// wait returns once the log of the partitions (and the commits), as written before the call, is
// on disk.
func (d *durable) wait(parts []part, commits bool) error {
	d.mu.Lock()
	if d.err != nil {
		d.mu.Unlock()
		return d.err
	}
	if d.next == nil {
		d.next = &round{parts: make(map[part]struct{}), done: make(chan struct{})}
	}
	r := d.next
	for _, p := range parts {
		r.parts[p] = struct{}{}
	}
	r.commits = r.commits || commits
	if !d.running {
		d.running = true
		d.rounds.Go(d.run)
	}
	d.mu.Unlock()
	<-r.done
	return r.err
}

// close refuses further waits and returns once no sync is under way.
func (d *durable) close() {
	d.mu.Lock()
	if d.err == nil {
		d.err = errClosed
	}
	d.mu.Unlock()
	d.rounds.Wait()
}

func (d *durable) run() {
	for {
		d.mu.Lock()
		r := d.next
		if d.next = nil; r == nil {
			d.running = false
			d.mu.Unlock()
			return
		}
		err := d.err
		d.mu.Unlock()
		if err == nil {
			err = d.flush(r)
			if err != nil {
				d.mu.Lock()
				d.err = err
				d.mu.Unlock()
				d.fail(err)
			}
		}
		r.err = err
		close(r.done)
	}
}

// flush syncs the files of a round in parallel: the disk's own queue merges them.
func (d *durable) flush(r *round) error {
	var files []string
	for p := range r.parts {
		dir := filepath.Join(d.dir, "partitions", fmt.Sprintf("%s-%d", url.PathEscape(p.topic), p.partition))
		bases, err := segments(dir)
		if err != nil {
			return err
		}
		from, known := d.synced[p]
		fresh := !known
		for _, b := range bases {
			if !known || b >= from {
				files = append(files, filepath.Join(dir, strconv.FormatInt(b, 10)+".dat"))
				fresh = fresh || b > from
			}
		}
		if fresh { // a file was created: its name must last, too
			files = append(files, dir)
		}
		if len(bases) > 0 {
			d.synced[p] = bases[len(bases)-1]
		}
	}
	if r.commits {
		files = append(files, filepath.Join(d.dir, "groups.log"))
	}
	errs := make([]error, len(files))
	var wg sync.WaitGroup
	for i, f := range files {
		wg.Go(func() { errs[i] = d.syncFile(f) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// segments returns the base offsets of a partition's files, in order.
func segments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sync partition: %w", err)
	}
	var bases []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".dat"); ok {
			if base, err := strconv.ParseInt(name, 10, 64); err == nil {
				bases = append(bases, base)
			}
		}
	}
	slices.Sort(bases)
	return bases, nil
}

func (d *durable) syncFile(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // consumed and deleted in the meantime
	}
	if err != nil {
		return fmt.Errorf("sync log: %w", err)
	}
	defer f.Close()
	if err := d.sync(f); err != nil {
		return fmt.Errorf("sync log: %w", err)
	}
	return nil
}

// responded is called with a whole response frame before the client sees it, and returns
// once what the response acknowledges is on disk.
func (d *durable) responded(key, version int16, frame []byte) error {
	switch kmsg.Key(key) {
	case kmsg.OffsetCommit:
		return d.wait(nil, true)
	case kmsg.Produce:
		resp := kmsg.NewPtrProduceResponse()
		resp.SetVersion(version)
		head := 8 // size, correlation ID
		if resp.IsFlexible() {
			head++ // no tags
		}
		if len(frame) < head {
			return errors.New("sync log: short produce response")
		}
		if err := resp.ReadFrom(frame[head:]); err != nil {
			return fmt.Errorf("sync log: read produce response: %w", err)
		}
		var parts []part
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 {
					parts = append(parts, part{t.Topic, p.Partition})
				}
			}
		}
		if len(parts) > 0 {
			return d.wait(parts, false)
		}
	}
	return nil
}
