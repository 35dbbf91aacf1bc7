// Package embedded runs ClickHouse inside this process: libchdb, loaded at run time without cgo, behind an http.RoundTripper that speaks as
// much of ClickHouse's HTTP interface as clickhouse-go uses. The driver, the SQL and the settings are therefore the same as against a real
// server; only the transport differs.
//
//	clickhouse-go ── *http.Request ──▶ Engine.RoundTrip ──▶ libchdb (C, own threads)
//	                                     │ one pooled connection per running statement
//	                                     └ control connection: anchor of the engine, KILL QUERY
//
// One data directory per process at a time, one process per data directory. A crash inside the engine takes the process with it; what was
// acknowledged before is in the store's files, synced if the tables are configured so (package storage does that).
package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/retrial-io/retrial/internal/procstat"
)

// Config holds where the engine's files are and what it may use.
type Config struct {
	// Path is the data directory; it is created if missing. Required.
	Path string
	// Library is the path of libchdb.so; empty: see [Locate].
	Library string
	// MaxMemory bounds what the engine allocates, in bytes, beside the Go heap. Default a quarter of what the process may use, half a GiB
	// at least and 1.5 GiB at most.
	MaxMemory int64
	// MaxQueryMemory bounds a single statement, in bytes. Default half of MaxMemory.
	MaxQueryMemory int64
	// MaxThreads a single statement may use. Default as many as Go uses, which follows the process's share of the processors; 8 at most.
	MaxThreads int
	// BackgroundThreads for merges. Default half of MaxThreads, and 2 at least.
	BackgroundThreads int
	// IdleConnections kept for reuse. Default 8.
	IdleConnections int
	// Log receives lifecycle messages; nil: none.
	Log *zap.Logger
}

func (c Config) withDefaults() Config {
	c.MaxMemory = cmp.Or(c.MaxMemory, usualMemory(procstat.Memory()))
	c.MaxQueryMemory = cmp.Or(c.MaxQueryMemory, c.MaxMemory/2)
	c.MaxThreads = cmp.Or(c.MaxThreads, min(runtime.GOMAXPROCS(0), 8))
	c.BackgroundThreads = cmp.Or(c.BackgroundThreads, max(c.MaxThreads/2, 2))
	c.IdleConnections = cmp.Or(c.IdleConnections, 8)
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c
}

// usualMemory returns MaxMemory for a process that may use so much; 0: it is not known.
func usualMemory(process int64) int64 {
	const least, most = 1 << 29, 3 << 29
	if process == 0 {
		return most
	}
	return min(max(process/4, least), most)
}

// Engine is a running embedded ClickHouse. It is an http.RoundTripper; its methods may be
// called from any goroutine. Close it once every response body is closed.
type Engine struct {
	cfg     Config
	lib     *library
	library string // its path
	lock    *os.File

	control   *conn // anchor: the engine lives as long as one connection does
	controlMu sync.Mutex

	mu     sync.Mutex
	idle   []*conn
	opened int // connections ever opened, for their names
	closed bool
	live   sync.WaitGroup
}

// Open starts the engine on the data directory. Errors wrap [ErrUnsuitable],
// [ErrNoLibrary], [ErrUnwritable], [ErrLocked] or [ErrRefused] and say what to do.
func Open(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := Suitable(); err != nil {
		return nil, err
	}
	path, err := Locate(cfg.Library)
	if err != nil {
		return nil, err
	}
	if cfg.Path == "" {
		return nil, errors.New("open embedded store: no data directory configured")
	}
	if cfg.Path, err = filepath.Abs(cfg.Path); err != nil {
		return nil, fmt.Errorf("open embedded store: %w", err)
	}
	lock, err := prepare(cfg)
	if err != nil {
		return nil, err
	}
	lib, err := loadLibrary(path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("%w: %w; %s", ErrUnsuitable, err, remedy)
	}
	e := &Engine{cfg: cfg, lib: lib, library: path, lock: lock}
	if e.control, err = e.connect(); err != nil {
		lock.Close()
		return nil, err
	}
	cfg.Log.Info("embedded store started", zap.String("path", cfg.Path),
		zap.String("library", path), zap.String("version", lib.version()), zap.Int64("max_memory_bytes", cfg.MaxMemory))
	return e, nil
}

// prepare creates the data directory, locks it and writes the engine's configuration file. The
// engine itself gives no reason if any of these fails.
func prepare(cfg Config) (*os.File, error) {
	if err := os.MkdirAll(cfg.Path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: create %s: %w; choose another with --data-dir", ErrUnwritable, cfg.Path, err)
	}
	lock, err := os.OpenFile(filepath.Join(cfg.Path, "retrial.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; choose another with --data-dir", ErrUnwritable, cfg.Path, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s: another retrial process uses it; stop that process, or choose another directory", ErrLocked,
				cfg.Path)
		}
		return nil, fmt.Errorf("%w: lock %s: %w", ErrUnwritable, cfg.Path, err)
	}
	if err := os.WriteFile(configPath(cfg), []byte(engineConfig), 0o600); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrUnwritable, cfg.Path, err)
	}
	return lock, nil
}

func configPath(cfg Config) string { return filepath.Join(cfg.Path, "engine.xml") }

// engineConfig is the server configuration. Passing one also keeps the engine from picking
// up a config.xml that happens to lie in the working directory.
const engineConfig = `<clickhouse>
  <mark_cache_size>67108864</mark_cache_size>
  <index_mark_cache_size>16777216</index_mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <mmap_cache_size>256</mmap_cache_size>
  <memory_worker_period_ms>500</memory_worker_period_ms>
</clickhouse>
`

// conn is one libchdb connection: one statement at a time.
type conn struct {
	outer   unsafe.Pointer // for close
	handle  uintptr
	name    string            // its log_comment, by which a statement of it is killed
	db      string            // database in use
	applied map[string]string // settings changed on it
}

// connect opens a connection. The path and the server settings take effect with the first one only.
func (e *Engine) connect() (*conn, error) {
	e.mu.Lock()
	e.opened++
	name := "retrial-" + strconv.Itoa(e.opened)
	e.mu.Unlock()
	args := []string{
		"chdb",
		"--config-file=" + configPath(e.cfg),
		"--path=" + e.cfg.Path,
		"--max_server_memory_usage=" + strconv.FormatInt(e.cfg.MaxMemory, 10),
		"--background_pool_size=" + strconv.Itoa(e.cfg.BackgroundThreads),
		"--max_memory_usage=" + strconv.FormatInt(e.cfg.MaxQueryMemory, 10),
		"--max_bytes_before_external_group_by=" + strconv.FormatInt(e.cfg.MaxQueryMemory/2, 10),
		"--max_bytes_before_external_sort=" + strconv.FormatInt(e.cfg.MaxQueryMemory/2, 10),
		"--max_threads=" + strconv.Itoa(e.cfg.MaxThreads),
		"--log_comment=" + name,
		// Statements here are many and short: compiling expressions costs more than it saves.
		"--compile_expressions=0", "--compile_aggregate_expressions=0", "--compile_sort_description=0",
	}
	outer := e.lib.open(args)
	if outer == nil {
		return nil, fmt.Errorf("%w: %s: another data directory is open in this process, "+
			"the files are damaged or of a newer version, or memory is short; see what the engine printed above", ErrRefused, e.cfg.Path)
	}
	return &conn{outer: outer, handle: *(*uintptr)(outer), name: name, applied: map[string]string{}}, nil
}

// errClosed is returned by every call after Close.
var errClosed = errors.New("embedded store is closed")

// acquire returns an idle connection, preferring one that already has the database and settings, or opens another.
func (e *Engine) acquire(db string, settings map[string]string) (*conn, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	e.live.Add(1)
	var c *conn
	if n := len(e.idle); n > 0 {
		best := n - 1
		for i := n - 1; i >= 0; i-- {
			if e.idle[i].fits(db, settings) {
				best = i
				break
			}
		}
		c = e.idle[best]
		e.idle = append(e.idle[:best], e.idle[best+1:]...)
	}
	e.mu.Unlock()
	if c == nil {
		var err error
		if c, err = e.connect(); err != nil {
			e.live.Done()
			return nil, err
		}
	}
	if err := e.adjust(c, db, settings); err != nil {
		e.discard(c)
		return nil, err
	}
	return c, nil
}

// release puts c back for reuse.
func (e *Engine) release(c *conn) {
	e.mu.Lock()
	keep := !e.closed && len(e.idle) < e.cfg.IdleConnections
	if keep {
		e.idle = append(e.idle, c)
	}
	e.mu.Unlock()
	if !keep {
		e.lib.closeConn(c.outer)
	}
	e.live.Done()
}

// discard closes c: its state is no longer known.
func (e *Engine) discard(c *conn) {
	e.lib.closeConn(c.outer)
	e.live.Done()
}

// MaxMemory returns how much memory the engine may use, in bytes.
func (e *Engine) MaxMemory() int64 { return e.cfg.MaxMemory }

// Close waits until running statements have ended, then stops the engine and frees the data directory.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	idle := e.idle
	e.idle = nil
	e.mu.Unlock()
	for _, c := range idle {
		e.lib.closeConn(c.outer)
	}
	e.live.Wait()
	e.controlMu.Lock()
	defer e.controlMu.Unlock()
	e.lib.closeConn(e.control.outer)
	e.cfg.Log.Info("embedded store stopped", zap.String("path", e.cfg.Path))
	if err := e.lock.Close(); err != nil { // closing releases the flock
		return fmt.Errorf("close embedded store: unlock %s: %w", e.cfg.Path, err)
	}
	return nil
}
