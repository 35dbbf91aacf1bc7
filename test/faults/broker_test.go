package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/stream"
)

// How a broker ends.
const (
	endClosed = "closed" // orderly
	endKilled = "killed" // its files stay as they are
	endPower  = "power"  // what was not synced is gone, or half gone
)

// inode names a file whatever it is called.
type inode uint64

func inodeOf(info fs.FileInfo) inode {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return inode(s.Ino)
	}
	return 0
}

// startBroker starts the broker on its present directory.
func (w *world) startBroker() error {
	cfg := embedded.Config{
		Dir: w.brokerDir(), MaxBytes: embedded.MinMaxBytes, Reserve: []string{stream.TopicDeadLetter}, Verify: stream.VerifyCommit,
		TrimInterval: 20 * time.Second, Sync: w.synced, Log: w.log.Named("broker"),
	}
	if w.plan.One {
		cfg.Consumers = stream.Consumers("")
	}
	b, err := embedded.Start(cfg)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.broker = b
	w.mu.Unlock()
	return nil
}

func (w *world) brokerDir() string { return filepath.Join(w.dir, fmt.Sprint("broker-", w.lives)) }

// synced notes what of a file is on disk from now on.
func (w *world) synced(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.durable[inodeOf(info)] = info.Size()
	return nil
}

func (w *world) brokerNow() (b *embedded.Broker, gone string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broker, w.gone
}

// endBroker ends the broker and leaves the directory as the kind of end would. Whatever was
// acknowledged was noted as synced before its answer could be seen, so copying now is late
// enough; commits are copied first, or they could tell of records copied too early.
func (w *world) endBroker(end string, rng *rand.Rand) error {
	w.mu.Lock()
	b := w.broker
	w.broker = nil
	w.mu.Unlock()
	if b == nil {
		return nil
	}
	from := w.brokerDir()
	if end == endClosed {
		err := b.Close()
		w.cutAll()
		return err
	}
	w.lives++
	to := w.brokerDir()
	copied, err := w.copyLog(filepath.Join(from, "log"), filepath.Join(to, "log"), end == endPower, rng)
	w.cutAll()
	err = errors.Join(err, b.Close(), os.RemoveAll(from))
	w.mu.Lock()
	w.durable = copied
	w.mu.Unlock()
	return err
}

func (w *world) copyLog(from, to string, power bool, rng *rand.Rand) (durable map[inode]int64, err error) {
	var names []string
	durable = map[inode]int64{}
	if err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // consumed and deleted meanwhile
		}
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		first := func(s string) int {
			if strings.HasSuffix(s, "groups.log") {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
	for _, name := range names {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if power {
			data = w.survives(name, info, data, rng)
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return nil, err
		}
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return nil, err
		}
		if info, err = os.Stat(target); err != nil {
			return nil, err
		}
		durable[inodeOf(info)] = info.Size() // what is found at a start is on disk
	}
	return durable, nil
}

// survives returns what a power failure leaves of a file: what was synced, and by chance a
// part of what was not. Files the broker writes whole it syncs before it renames them; the
// index it writes beside a log it never syncs.
func (w *world) survives(name string, info fs.FileInfo, data []byte, rng *rand.Rand) []byte {
	w.mu.Lock()
	kept, known := w.durable[inodeOf(info)]
	w.mu.Unlock()
	if !known {
		if !strings.HasSuffix(name, ".dat") && !strings.HasSuffix(name, ".idx") {
			return data
		}
		kept = 0
	}
	kept = min(kept, int64(len(data)))
	if rest := int64(len(data)) - kept; rest > 0 && rng.IntN(2) == 0 {
		kept += rng.Int64N(rest + 1)
	}
	return data[:kept]
}

// truncate cuts the newest file of a partition of the events, as a damaged disk would. The
// broker must not run.
func (w *world) truncate(partition int, share float64) error {
	dir := filepath.Join(w.brokerDir(), "log", "partitions", fmt.Sprintf("%s-%d", stream.TopicEvents, partition))
	files, err := filepath.Glob(filepath.Join(dir, "*.dat"))
	if err != nil || len(files) == 0 {
		return err
	}
	slices.Sort(files)
	last := files[len(files)-1]
	info, err := os.Stat(last)
	if err != nil {
		return err
	}
	return os.Truncate(last, int64(float64(info.Size())*share))
}

// forget removes what the broker has of a partition, as somebody who deletes a topic and
// makes it anew does. The broker must not run.
func (w *world) forget(partition int) error {
	return os.RemoveAll(filepath.Join(w.brokerDir(), "log", "partitions", fmt.Sprintf("%s-%d", stream.TopicEvents, partition)))
}
