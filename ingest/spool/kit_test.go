package spool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// disk is a file system that remembers what was synced. Names and bytes are kept apart, as
// a real one does: a synced file whose name was not is gone after a power failure.
type disk struct {
	mu      sync.Mutex
	names   map[string]*inode // as this process sees them
	durable map[string]*inode // as they are after a power failure
	free    int64
	syncs   int
	// before, when set, may refuse an operation: "write", "sync", "syncdir", "open",
	// "remove", "rename". For "write" a refusal leaves half of the bytes. It is called
	// without the lock.
	before func(op, name string) error
}

type inode struct {
	bytes, synced []byte
}

func newDisk() *disk {
	return &disk{names: map[string]*inode{}, durable: map[string]*inode{}, free: 1 << 40}
}

func (d *disk) ask(op, name string) error {
	d.mu.Lock()
	before := d.before
	d.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(op, name)
}

func (d *disk) set(before func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

func (d *disk) Open(name string, flag int) (File, error) {
	if err := d.ask("open", name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, fs.ErrNotExist
	case n != nil && flag&os.O_EXCL != 0:
		return nil, fs.ErrExist
	case n == nil:
		n = &inode{}
		d.names[name] = n
	case flag&os.O_TRUNC != 0:
		n.bytes = nil
	}
	return &handle{d, name, n}, nil
}

func (d *disk) Remove(name string) error {
	if err := d.ask("remove", name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	return nil
}

func (d *disk) Rename(from, to string) error {
	if err := d.ask("rename", from); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.names {
		names = append(names, name)
	}
	return names, nil
}

func (d *disk) Sync() error {
	if err := d.ask("syncdir", ""); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.durable = map[string]*inode{}
	for name, n := range d.names {
		d.durable[name] = n
	}
	return nil
}

func (d *disk) Free() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.free, nil
}

// kill returns the disk as the next process finds it after kill -9: everything that was
// written is there.
func (d *disk) kill() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	for name, n := range d.names {
		after.names[name] = &inode{bytes: bytes.Clone(n.bytes), synced: bytes.Clone(n.synced)}
		after.durable[name] = after.names[name]
	}
	return after
}

// powerLoss returns the disk after a power failure: names are those that were synced, or
// any mixture with those that were not; of bytes that were not synced any beginning is there,
// and some of it wrong.
func (d *disk) powerLoss(rnd *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	keep := func(name string, n *inode) {
		b := bytes.Clone(n.synced)
		if len(n.bytes) > len(b) {
			extra := bytes.Clone(n.bytes[len(b):])
			extra = extra[:rnd.IntN(len(extra)+1)]
			if len(extra) > 0 && rnd.IntN(2) == 0 {
				clear(extra[rnd.IntN(len(extra)):])
			}
			b = append(b, extra...)
		}
		after.names[name] = &inode{bytes: b, synced: bytes.Clone(b)}
		after.durable[name] = after.names[name]
	}
	for name, n := range d.durable {
		if d.names[name] == n || rnd.IntN(2) == 0 {
			keep(name, n)
		}
	}
	for name, n := range d.names {
		if d.durable[name] != n && rnd.IntN(2) == 0 {
			keep(name, n)
		}
	}
	return after
}

// segments returns the names of files of a kind, "seg" or "kept".
func (d *disk) files(kind string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.names {
		if _, k, ok := parseName(name); ok && k == kind {
			names = append(names, name)
		}
	}
	return names
}

type handle struct {
	d    *disk
	name string
	n    *inode
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if at >= int64(len(h.n.bytes)) {
		return 0, io.EOF
	}
	n := copy(b, h.n.bytes[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	err := h.d.ask("write", h.name)
	if err != nil {
		b = b[:len(b)/2]
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if grow := at + int64(len(b)) - int64(len(h.n.bytes)); grow > 0 {
		h.n.bytes = append(h.n.bytes, make([]byte, grow)...)
	}
	return copy(h.n.bytes[at:], b), err
}

func (h *handle) Sync() error {
	if err := h.d.ask("sync", h.name); err != nil {
		return err
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.d.syncs++
	h.n.synced = bytes.Clone(h.n.bytes)
	return nil
}

func (h *handle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.n.bytes = h.n.bytes[:size]
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.n.bytes)), nil
}

func (h *handle) Close() error { return nil }

// kafka stands for the producer. answer, when set, may refuse.
type kafka struct {
	mu     sync.Mutex
	recs   []stream.Record
	calls  int
	answer func(recs []stream.Record) error
	taken  chan struct{} // gets a token with each call that was taken
}

func newKafka() *kafka { return &kafka{taken: make(chan struct{}, 1<<16)} }

func (k *kafka) Produce(ctx context.Context, recs ...stream.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	if k.answer != nil {
		if err := k.answer(recs); err != nil {
			return err
		}
	}
	for _, r := range recs {
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		k.recs = append(k.recs, r)
	}
	select {
	case k.taken <- struct{}{}:
	default:
	}
	return ctx.Err()
}

func (k *kafka) set(answer func([]stream.Record) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = answer
}

func (k *kafka) records() []stream.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]stream.Record(nil), k.recs...)
}

// gone returns the answer of brokers that cannot be reached.
func gone([]stream.Record) error { return fmt.Errorf("%w: connection refused", stream.ErrTransient) }

// rig is a spool with what surrounds it.
type rig struct {
	*Spool
	disk  *disk
	kafka *kafka
	reg   *prometheus.Registry
	logs  *observer.ObservedLogs
	stop  func()
}

// open opens a spool on a disk. drain starts its drainer.
func open(t *testing.T, d *disk, k *kafka, change ...func(*Config)) *rig {
	t.Helper()
	r, err := tryOpen(d, k, change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop() })
	return r
}

func tryOpen(d *disk, k *kafka, change ...func(*Config)) (*rig, error) {
	core, logs := observer.New(zapcore.DebugLevel)
	r := &rig{disk: d, kafka: k, reg: prometheus.NewRegistry(), logs: logs, stop: func() {}}
	cfg := Config{FS: d, MinFree: -1, Log: zap.New(core), Registerer: r.reg}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	r.Spool, err = Open(cfg, k)
	return r, err
}

// drain runs the drainer until the test ends or stop is called.
func (r *rig) drain() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
}

// drained waits until nothing is spooled.
func (r *rig) drained(t *testing.T) {
	t.Helper()
	r.until(t, "the spool to be empty", func() bool { return !r.Status().Spooling })
}

// until polls: nothing tells a test when the drainer has come to its end.
func (r *rig) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s\n%s", what, r.logged())
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *rig) logged() string {
	var b strings.Builder
	for _, e := range r.logs.All() {
		fmt.Fprintln(&b, e.Level, e.Message, e.ContextMap())
	}
	return b.String()
}

func (r *rig) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "retrial_spool_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			if len(labels) == 0 || m.GetLabel()[0].GetValue() == labels[0] {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %v", name, labels)
	return 0
}

func (r *rig) put(t *testing.T, recs ...stream.Record) {
	t.Helper()
	if err := r.Produce(t.Context(), recs...); err != nil {
		t.Fatal(err)
	}
}

// rec returns a record of a cluster with a value of some length that cannot be compressed.
func rec(cluster, id string, size int) stream.Record {
	rnd := rand.New(rand.NewPCG(uint64(len(id)), event.Content([]byte(cluster+id)).Lo))
	value := []byte(id + ":")
	for len(value) < size {
		value = append(value, byte(rnd.Uint32()))
	}
	return stream.Record{
		Topic:     stream.TopicEvents,
		Key:       []byte(id),
		Value:     value,
		Kind:      stream.KindEvent,
		Cluster:   cluster,
		Source:    "webhook",
		APIServer: "a1",
		Received:  time.UnixMicro(1700000000123456 + int64(len(id))).UTC(),
		Content:   event.Content(value),
	}
}

// policy returns a record of a cluster's policy.
func policy(cluster, id string) stream.Record {
	r := rec(cluster, id, 10)
	r.Topic, r.Kind, r.Key = stream.TopicPolicy, stream.KindPolicyEvent, []byte(cluster)
	return r
}

// ids returns what records were named when they were made.
func ids(recs []stream.Record) []string {
	var out []string
	for _, r := range recs {
		id, _, _ := strings.Cut(string(r.Value), ":")
		out = append(out, id)
	}
	return out
}
