package faults

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/retrial-io/retrial/ingest/spool"
)

// How the spool's disk fails.
const (
	diskFull = "full" // nothing more can be written
	diskBad  = "bad"  // nothing more can be synced
)

// disk is the folder of the spool, in memory. It knows what was synced, and after a power
// failure holds that and any part of the rest.
type disk struct {
	mu     sync.Mutex
	names  map[string]*node // as programs see them
	lasted map[string]*node // as of the folder's last sync
	broken string
	until  time.Time
}

type node struct{ data, synced []byte }

func newDisk() *disk { return &disk{names: map[string]*node{}, lasted: map[string]*node{}} }

// fail has the disk fail for a while; "" ends that.
func (d *disk) fail(how string, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken, d.until = how, time.Now().Add(wait)
}

// fault returns what writing or syncing meets. d.mu is held.
func (d *disk) fault(sync bool) error {
	switch {
	case d.broken == "" || !time.Now().Before(d.until):
		return nil
	case d.broken == diskBad && sync:
		return syscall.EIO
	case d.broken == diskFull && !sync:
		return syscall.ENOSPC
	}
	return nil
}

// power is a power failure: each name is what it was at the last sync or what it was made
// since, each file what was synced and by chance part of what was not.
func (d *disk) power(rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := map[string]*node{}
	all := map[string]bool{}
	for _, m := range []map[string]*node{d.names, d.lasted} {
		for name := range m {
			all[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := d.lasted[name]
		if rng.IntN(2) == 0 {
			n = d.names[name]
		}
		if n == nil {
			continue
		}
		kept := slices.Clone(n.synced)
		if len(n.data) > len(kept) && rng.IntN(2) == 0 {
			tail := slices.Clone(n.data[len(kept) : len(kept)+rng.IntN(len(n.data)-len(kept)+1)])
			if rng.IntN(3) == 0 {
				clear(tail) // the length was written, the content was not
			}
			kept = append(kept, tail...)
		}
		after[name] = &node{data: kept, synced: slices.Clone(kept)}
	}
	d.names, d.lasted = after, maps.Clone(after)
}

// mount is the disk as one process has it: a dead one writes nothing.
type mount struct {
	*disk
	p *process
}

var _ spool.FS = mount{}

func (m mount) Open(name string, flag int) (spool.File, error) {
	if err := m.p.alive(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n != nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case n == nil:
		if err := m.fault(false); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		n = &node{}
		m.names[name] = n
	case flag&os.O_TRUNC != 0:
		n.data = nil
	}
	return &file{m, name, n}, nil
}

func (m mount) Remove(name string) error {
	if err := m.p.alive(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(m.names, name)
	return nil
}

func (m mount) Rename(from, to string) error {
	if err := m.p.alive(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[from] == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	m.names[to] = m.names[from]
	delete(m.names, from)
	return nil
}

func (m mount) List() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.names)), m.p.alive()
}

func (m mount) Sync() error {
	if err := m.p.alive(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fault(true); err != nil {
		return err
	}
	m.lasted = maps.Clone(m.names)
	return nil
}

func (m mount) Free() (int64, error) { return 1 << 40, nil }

// file is an open file.
type file struct {
	m    mount
	name string
	n    *node
}

func (f *file) ReadAt(p []byte, at int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if at >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	if err := f.m.p.alive(); err != nil {
		return 0, err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.fault(false); err != nil {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: err}
	}
	if need := at + int64(len(p)); need > int64(len(f.n.data)) {
		f.n.data = append(f.n.data, make([]byte, need-int64(len(f.n.data)))...)
	}
	return copy(f.n.data[at:], p), nil
}

func (f *file) Sync() error {
	if err := f.m.p.alive(); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.fault(true); err != nil {
		return &fs.PathError{Op: "sync", Path: f.name, Err: err}
	}
	f.n.synced = slices.Clone(f.n.data)
	return nil
}

func (f *file) Truncate(size int64) error {
	if err := f.m.p.alive(); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.data = f.n.data[:min(size, int64(len(f.n.data)))]
	return nil
}

func (f *file) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *file) Close() error { return nil }
