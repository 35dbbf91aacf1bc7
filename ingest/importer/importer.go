// Package importer feeds audit log files through a receiver's local listener: decoded, redacted and acknowledged as what apiservers post.
//
// A file is read twice: first for the writes to objects the replica keeps (posted with
// policy=only, so that they are known before any event they affect), then for all events
// (with policy=done), in batches of which a few are in flight. A position file records what
// was acknowledged; an interrupted import continues after it. Posting something twice does no
// harm: the events' keys identify them.
//
// Files are JSON lines as the apiserver's log backend writes them, or EventLists (one, or
// several concatenated, as the webhook backend posts them); plain, gzip or zstd, detected by
// their first bytes. Standard input is spooled, encrypted with a key that exists only in
// memory: the receiver redacts secrets, and they must not reach a disk before.
//
// Follow tails one log while it is written and rotated, with its own position: follow.go polls, followfile.go finds files and splits lines.
package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
)

// File is one input.
type File struct {
	Name string // as reported
	Size int64  // bytes as stored, for progress; 0 when unknown
	// Open returns the content as stored from its beginning. It is called several times,
	// except for a Stream, for which it is called once.
	Open func() (io.ReadCloser, error)
	// Stream means that the content can be read only once, like standard input.
	Stream bool
}

// OpenFile returns the File of a path; "-" is standard input.
func OpenFile(path string) (File, error) {
	if path == "-" {
		stdin := func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }
		return File{Name: "standard input", Stream: true, Open: stdin}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return File{}, fmt.Errorf("import: %w", err)
	}
	if info.IsDir() {
		return File{}, fmt.Errorf("import %s: it is a directory: name the files in it", path)
	}
	f := File{Name: path, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(path) }}
	// A pipe or a process substitution has a name, but can be read only once.
	f.Stream = !info.Mode().IsRegular()
	return f, nil
}

// Target says where posts go, and bounds them.
type Target struct {
	// Client posts to BaseURL; see [SocketClient]. Required.
	Client  *http.Client
	BaseURL string // without a path, such as http://retrial or https://retrial.example:9443
	Cluster string
	// APIServer names the apiserver the log is from, may be empty.
	APIServer string

	// BatchEvents and BatchBytes bound one post; 0 is 1,000 events and 4 MiB.
	BatchEvents int
	BatchBytes  int
	// MaxLine is the longest line taken, in bytes; 0 is 64 MiB. It must be below the
	// receiver's body limit.
	MaxLine int

	// Sleep waits between attempts; nil is a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	Log   *zap.Logger // nil logs nothing
}

// Config is one import.
type Config struct {
	Target
	Files []File
	// State, when set, is posted before anything else: objects as kubectl prints them.
	State *File

	// Position is the path of the position file; empty imports without one. Keep it with what is imported into: it records what that has.
	Position string
	// SpoolDir is where a Stream is spooled; empty is the system's directory for
	// temporary files.
	SpoolDir string

	// InFlight is how many posts are in flight at once; 0 is 4. Batches start in order and overtake each other by no more than this many.
	InFlight int
	// MaxInflated bounds what one compressed file may inflate to, in bytes; 0 is 256 GiB.
	MaxInflated int64
	// Attempts is how often a post is tried before the import stops; 0 is 300: with push-back once a second, for five minutes.
	Attempts int

	// Progress is called from time to time, never concurrently; may be nil.
	Progress func(Progress)
}

// Progress is how far an import has come.
type Progress struct {
	File   string
	Pass   Pass
	Read   int64 // bytes of the file as stored
	Size   int64 // of the file as stored, 0 when unknown
	Events int64 // acknowledged in this pass of this file, in this run
}

// Pass is a part of an import.
type Pass string

// The passes in their order.
const (
	PassState  Pass = "state"
	PassSpool  Pass = "spool"
	PassPolicy Pass = "policy"
	PassEvents Pass = "events"
	// PassFollow is the only one of a [Follow].
	PassFollow Pass = "follow"
)

// Summary is what an import did. It is returned with an error as well.
type Summary struct {
	Files []FileSummary `json:"files"`
	Counts
	Retries    int64           `json:"retries"` // posts that had to be repeated
	State      json.RawMessage `json:"state,omitempty"`
	StateKnown bool            `json:"stateKnown,omitempty"` // the state was posted by an earlier run
}

// Counts is what became of lines in this run.
type Counts struct {
	Events      int64 `json:"events"`      // acknowledged
	Policy      int64 `json:"policy"`      // policy copies acknowledged
	DeadLetters int64 `json:"deadLetters"` // items the receiver made dead letters of
	Malformed   int64 `json:"malformed"`   // lines that are not events, too long ones included
}

// FileSummary is what happened to one file.
type FileSummary struct {
	Name  string `json:"name"`
	Lines int64  `json:"lines"` // read in this run, lines or items of a list
	Counts
	Resumed   int64     `json:"resumed,omitempty"`   // lines an earlier run imported
	Complete  bool      `json:"complete,omitempty"`  // an earlier run imported all of it
	Truncated bool      `json:"truncated,omitempty"` // the last line is cut off
	BadLines  []BadLine `json:"badLines,omitempty"`  // the first of the malformed
}

// BadLine is a line that is not an event, and why.
type BadLine struct {
	Line   int64  `json:"line"` // from 1; item number in a list
	Reason string `json:"reason"`
}

// maxBadLines is how many bad lines a summary names; the rest are only counted.
const maxBadLines = 100

// Errors that callers distinguish.
var (
	// ErrInflated means that a compressed file inflates beyond the limits.
	ErrInflated = errors.New("inflates beyond the limit")
	// ErrRefused means that the receiver refuses the import as a whole.
	ErrRefused = errors.New("refused by the receiver")
	// ErrUnavailable means that the receiver accepted none of the attempts of a post.
	ErrUnavailable = errors.New("receiver unavailable")
	// ErrFormat means that a file is not an audit log.
	ErrFormat = errors.New("not an audit log")
)

func (c Config) withDefaults() (Config, error) {
	if c.Client == nil {
		return c, errors.New("import: no HTTP client")
	}
	if c.Cluster == "" {
		return c, errors.New("import: no cluster configured")
	}
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&c.BatchEvents, 1000)
	set(&c.BatchBytes, 4<<20)
	set(&c.InFlight, 4)
	set(&c.MaxLine, 64<<20)
	set(&c.Attempts, 300)
	c.MaxInflated = cmp.Or(c.MaxInflated, 256<<30)
	if report := c.Progress; report == nil {
		c.Progress = func(Progress) {}
	} else {
		var mu sync.Mutex // a transport reads bodies on a goroutine of its own
		c.Progress = func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			report(p)
		}
	}
	if c.Sleep == nil {
		c.Sleep = sleep.For
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Log = c.Log.Named("ingest.importer")
	return c, nil
}

// SocketClient returns a client whose every connection goes to the Unix socket at path,
// whichever host a URL names.
func SocketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		MaxIdleConnsPerHost: 8,
	}}
}

// Import imports the files and returns once everything is acknowledged. After an error the summary says what was done; another continues.
func Import(ctx context.Context, cfg Config) (Summary, error) {
	var sum Summary
	cfg, err := cfg.withDefaults()
	if err != nil {
		return sum, err
	}
	pos, err := loadPositions(cfg.Position, cfg.Log)
	if err != nil {
		return sum, err
	}
	im := &run{cfg: cfg, pos: pos, sum: &sum}
	defer im.close()

	inputs := make([]*input, len(cfg.Files))
	sum.Files = make([]FileSummary, len(cfg.Files))
	for i, f := range cfg.Files {
		sum.Files[i].Name = f.Name
		if inputs[i], err = im.open(ctx, f, false, &sum.Files[i]); err != nil {
			return sum, fmt.Errorf("import %s: %w", f.Name, err)
		}
	}
	// All policy writes go before any events: rotated logs are one log. The state goes between: by then it is known when the log begins.
	if err := im.passes(ctx, PassPolicy, inputs); err != nil {
		return sum, err
	}
	if err := im.state(ctx, since(inputs)); err != nil {
		return sum, err
	}
	return sum, im.passes(ctx, PassEvents, inputs)
}

// passes reads every file that is not yet complete.
func (im *run) passes(ctx context.Context, kind Pass, inputs []*input) error {
	for _, in := range inputs {
		if in.summary.Complete {
			continue
		}
		err := im.pass(ctx, in, kind)
		if perr := im.pos.save(); err == nil {
			err = perr
		}
		if err != nil {
			return fmt.Errorf("import %s: %w", in.file.Name, err)
		}
	}
	return nil
}

// since returns the time of the earliest request in the files, zero if there is none.
func since(inputs []*input) time.Time {
	var all mark
	for _, in := range inputs {
		if in.mark.Since != 0 {
			all.earliest(time.UnixMicro(in.mark.Since))
		}
	}
	if all.Since == 0 {
		return time.Time{}
	}
	return time.UnixMicro(all.Since).UTC()
}

// run is one Import. Its fields belong to one goroutine, unless a method says otherwise.
type run struct {
	cfg    Config
	pos    *positions
	sum    *Summary
	spools []*spool
}

type input struct {
	file    File
	mark    *mark
	summary *FileSummary
}

func (im *run) close() {
	for _, s := range im.spools {
		s.close()
	}
}

// open spools a stream and finds the file's mark.
func (im *run) open(ctx context.Context, f File, isState bool, summary *FileSummary) (*input, error) {
	if f.Stream {
		s, err := im.spool(ctx, f)
		if err != nil {
			return nil, err
		}
		f = File{Name: f.Name, Size: s.size, Open: s.open}
	}
	m, err := im.pos.find(im.cfg.Cluster, f, isState)
	if err != nil {
		return nil, err
	}
	summary.Resumed = m.Line
	summary.Complete = m.Done
	if m.Line > 0 && !m.Done {
		im.cfg.Log.Info("continuing an earlier import", zap.String("cluster", im.cfg.Cluster),
			zap.String("file", f.Name), zap.Int64("line", m.Line))
	}
	return &input{file: f, mark: m, summary: summary}, nil
}

// state posts the state file, unless an earlier run did. since is when the log
// that comes with it begins.
func (im *run) state(ctx context.Context, since time.Time) error {
	f := im.cfg.State
	if f == nil {
		return nil
	}
	fail := func(err error) error { return fmt.Errorf("import state %s: %w", f.Name, err) }
	in, err := im.open(ctx, *f, true, &FileSummary{Name: f.Name})
	if err != nil {
		return fail(err)
	}
	if in.mark.Done {
		im.sum.StateKnown = true
		return nil
	}
	body := func() (io.ReadCloser, error) {
		r, err := im.reader(ctx, in.file, func(read int64) {
			im.cfg.Progress(Progress{File: f.Name, Pass: PassState, Read: read, Size: in.file.Size})
		})
		if err != nil {
			return nil, err
		}
		return &sharedBody{r: r}, nil
	}
	p := &poster{cfg: im.cfg, since: since}
	resp, err := p.post(ctx, PassState, body, -1)
	im.sum.Retries += p.retries.Load()
	if err != nil {
		return fail(err)
	}
	if resp.code >= 300 {
		return fail(fmt.Errorf("%w: %d: %s", ErrRefused, resp.code, firstLine(resp.body)))
	}
	if json.Valid(resp.body) {
		im.sum.State = resp.body
	}
	in.mark.Done = true
	return im.pos.save()
}

// jitter spreads d by a fifth, so that several importers do not retry in step.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1))
}
