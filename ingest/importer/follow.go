package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// FollowConfig is one [Follow].
type FollowConfig struct {
	Target
	// Path is the log being written. The files it was rotated into lie beside it.
	Path string
	// Position is the path of the position file. Required: what it records as acknowledged is not posted again, unless power fails.
	Position string

	// Delay is how long a line waits before it is posted, so that the webhook, which waits for
	// a batch to fill, comes first: an event that the log brings first is then one that the
	// webhook lost. What a file held when it was rotated is posted at once.
	Delay time.Duration
	// Progress is called after every poll, by the goroutine of Follow; may be nil.
	Progress func(Followed)
	Now      func() time.Time // nil is time.Now
}

const pollEvery = 250 * time.Millisecond

// Followed is what a Follow has done so far, in this run.
type Followed struct {
	Events      int64 `json:"events"`      // acknowledged
	DeadLetters int64 `json:"deadLetters"` // items the receiver made dead letters of
	Malformed   int64 `json:"malformed"`   // lines that are not events
	Posts       int64 `json:"posts"`       // acknowledged
	Retries     int64 `json:"retries"`     // attempts that were not acknowledged
	Rotations   int64 `json:"rotations"`   // times that another file took the path
	Truncations int64 `json:"truncations"` // times that the file at the path was truncated
	// Behind is how many bytes of the log are not acknowledged, including an incomplete line
	// at its end, but not compressed files.
	Behind int64 `json:"behind"`
	// File is where the last acknowledged line lies.
	File string `json:"file"`
}

// grace is how long a rotated file must be unchanged before an incomplete line at its end is
// taken as final, and for how long after a change its folder is listed again: the times of
// folders are coarse.
const grace = 5 * time.Second

// Follow posts the log at cfg.Path as it grows, and the files it was rotated into, until
// ctx ends; then it returns ctx's error. It waits without limit for a receiver that is down;
// it returns [ErrRefused] if the receiver refuses, [ErrFormat] if the log holds no audit
// events.
//
// The log may be renamed, compressed (gzip, zstd), or copied and truncated, followed or not. Files are identified by their first line,
// which holds an audit ID and a time, never by name or inode. Only whole lines are posted; the position advances once they are
// acknowledged.
func Follow(ctx context.Context, cfg FollowConfig) (Followed, error) {
	f, err := newFollower(cfg)
	if err != nil {
		return Followed{}, err
	}
	defer f.close()
	for {
		if err := f.poll(ctx); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return f.done, err
		}
		f.done.Retries = f.poster.retries.Load()
		if f.cfg.Progress != nil {
			f.cfg.Progress(f.done)
		}
		if err := f.post.Sleep(ctx, pollEvery); err != nil {
			return f.done, err
		}
	}
}

// follower is one Follow; its fields belong to one goroutine.
type follower struct {
	cfg    FollowConfig
	post   Config // of the poster
	poster *poster
	pos    *followPosition
	done   Followed

	held    *os.File // the file at the path at the last poll
	heldFor string   // its identity, empty until its first line is whole
	grown   growth
	dirTime time.Time
	known   map[string]seen // of rotated files, by name
	again   bool            // a rotated file could not be read to its end yet
}

func newFollower(cfg FollowConfig) (*follower, error) {
	if cfg.Position == "" {
		return nil, errors.New("follow: no position file configured")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	post, err := Config{Target: cfg.Target, Attempts: math.MaxInt}.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg.Log = post.Log
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", cfg.Path, err)
	}
	cfg.Path = path
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it may come later, if its folder exists
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("follow %s: %w", path, err)
		}
	case err != nil:
		return nil, fmt.Errorf("follow: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("follow %s: not a regular file; name the one that --audit-log-path names", path)
	}
	pos, err := loadFollowPosition(cfg.Position, cfg.Cluster, cfg.Log)
	if err != nil {
		return nil, err
	}
	return &follower{cfg: cfg, post: post, poster: &poster{cfg: post}, pos: pos, known: map[string]seen{}}, nil
}

func (f *follower) close() {
	if f.held != nil {
		_ = f.held.Close()
	}
}

// poll posts what is new: the rest of the file that was at the path, then rotated files, oldest first, then the file at the path.
func (f *follower) poll(ctx context.Context) error {
	f.done.Behind = 0
	current, err := os.Stat(f.cfg.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("follow: %w", err)
	}
	moved, err := f.leave(ctx, current)
	if err != nil {
		return err
	}
	if f.held == nil && current != nil {
		if err := f.take(); err != nil {
			return err
		}
	}
	dir, err := os.Stat(filepath.Dir(f.cfg.Path))
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	if moved || f.again || !dir.ModTime().Equal(f.dirTime) || f.cfg.Now().Sub(dir.ModTime()) < grace {
		f.dirTime, f.again = dir.ModTime(), false
		if err := f.rotated(ctx); err != nil {
			return err
		}
	}
	if f.held == nil {
		return nil
	}
	return f.current(ctx, false)
}

// leave closes the held file if another took the path, its rest read first as siblings may not find it, and starts over if it was cut.
func (f *follower) leave(ctx context.Context, current os.FileInfo) (moved bool, err error) {
	if f.held == nil {
		return false, nil
	}
	info, err := f.held.Stat()
	if err != nil {
		return false, fmt.Errorf("follow: %w", err)
	}
	renamed := current == nil || !os.SameFile(info, current)
	head, err := headOf(f.held)
	if err != nil {
		return false, fmt.Errorf("follow %s: %w", f.cfg.Path, err)
	}
	m := f.pos.mark(f.heldFor)
	cut := f.heldFor != "" && (head != f.heldFor || m != nil && info.Size() < m.Offset)
	switch {
	case cut:
		f.done.Truncations++
		f.cfg.Log.Info("log was truncated", zap.String("path", f.cfg.Path))
		f.heldFor, f.grown = "", growth{} // its rest is in a copy; new content begins here
		if m != nil && head == m.Head {
			// Truncated and begun again with the same line: nothing shows what was read of it.
			m.Offset = 0
		}
		if !renamed {
			return true, nil
		}
	case renamed:
		f.done.Rotations++
		f.cfg.Log.Info("log was rotated", zap.String("path", f.cfg.Path))
	default:
		return false, nil
	}
	f.grown = growth{}
	if err := f.current(ctx, true); err != nil {
		return true, err
	}
	if err = f.held.Close(); err != nil {
		err = fmt.Errorf("follow: %w", err)
	}
	f.held, f.heldFor = nil, ""
	return true, err
}

func (f *follower) take() error {
	held, err := os.Open(f.cfg.Path)
	switch {
	case err == nil:
		f.held = held
	case !errors.Is(err, fs.ErrNotExist): // else it was moved a moment ago
		return fmt.Errorf("follow: %w", err)
	}
	return nil
}

// current posts what is new in the held file: with all set everything, otherwise what is older than the delay.
func (f *follower) current(ctx context.Context, all bool) error {
	info, err := f.held.Stat()
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	if f.heldFor == "" {
		if f.heldFor, err = headOf(f.held); err != nil {
			return fmt.Errorf("follow %s: %w", f.cfg.Path, err)
		}
		if f.heldFor == "" {
			f.done.Behind += info.Size()
			return nil
		}
	}
	m, size := f.pos.enter(f.heldFor, f.cfg.Path), info.Size()
	if !all && f.cfg.Delay > 0 {
		size = f.grown.before(f.cfg.Now(), size, f.cfg.Delay)
		f.done.Behind += max(0, info.Size()-max(size, m.Offset))
	}
	return f.drain(ctx, m, plainFile{f.held, size}, false)
}

type growth struct{ sizes []sizeAt }

type sizeAt struct {
	at   time.Time
	size int64
}

// before records the size of now and returns that of a delay ago, 0 if none was recorded
// then. A file that was truncated starts over.
func (g *growth) before(now time.Time, size int64, delay time.Duration) int64 {
	n := len(g.sizes)
	if n > 0 && size < g.sizes[n-1].size {
		g.sizes, n = nil, 0
	}
	if n == 0 || size > g.sizes[n-1].size {
		g.sizes = append(g.sizes, sizeAt{now, size})
	}
	old := 0
	for old+1 < len(g.sizes) && now.Sub(g.sizes[old+1].at) >= delay {
		old++
	}
	g.sizes = g.sizes[old:]
	if now.Sub(g.sizes[0].at) < delay {
		return 0
	}
	return g.sizes[0].size
}
