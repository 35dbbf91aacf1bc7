package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/retrial-io/retrial/internal/phrase"
)

// StartProgress returns a bar of total bytes, -1 for an unknown total. It is shown on w if that is a terminal.
func StartProgress(w io.Writer, what string, total int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, progressbar.OptionSetVisibility(isTerminal(w)),
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
}

// isTerminal reports whether what is written to w is seen on a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sayEvery is how often a line tells of progress where there is no terminal.
const sayEvery = 5 * time.Second

// Progress tells how far something is that takes long and has several steps: by a bar if it is seen on a terminal, else by a line every few
// seconds. What is done within those leaves no line.
type Progress struct {
	w     io.Writer
	shown bool                     // on a terminal
	bar   *progressbar.ProgressBar // of the step; nil: none has begun
	step  string
	now   func() time.Time
	next  time.Time // when the next line is due
}

// NewProgress returns the progress of something that begins now; nil: nobody is told.
func NewProgress(w io.Writer) *Progress {
	if w == nil {
		w = io.Discard
	}
	return &Progress{w: w, shown: isTerminal(w), now: time.Now, next: time.Now().Add(sayEvery)}
}

// At says how many bytes or events of a step are done, of a total that is 0 if it is not known.
func (p *Progress) At(step string, done, total int64, bytes bool) {
	switch {
	case p.shown:
		p.draw(step, done, total, bytes)
	case !p.now().Before(p.next):
		p.next = p.now().Add(sayEvery)
		text := amount(done, bytes)
		if total > 0 {
			text += " of " + amount(total, bytes)
		}
		fmt.Fprintf(p.w, "%s %s: %s\n", p.now().UTC().Format(time.TimeOnly), SafeLines(step), text)
	}
}

func amount(n int64, bytes bool) string {
	if bytes {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return phrase.Count(n, "event")
}

// draw draws the bar, a new one for each step.
func (p *Progress) draw(step string, done, total int64, bytes bool) {
	if p.bar == nil || p.step != step {
		p.Close()
		p.step, p.bar = step, progressbar.NewOptions64(cmp.Or(total, -1), progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(SafeLines(step)), progressbar.OptionShowBytes(bytes), progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
	}
	if total > 0 && total != p.bar.GetMax64() {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(done) // to the terminal
}

// Close removes the bar.
func (p *Progress) Close() {
	if p.bar != nil {
		_ = errors.Join(p.bar.Exit(), p.bar.Clear()) // on the terminal
	}
}

// TotalSize returns the total size of files, or -1 if one of them is not a regular file or is
// compressed: its inflated size is unknown.
func TotalSize(paths []string) int64 {
	var total int64
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil || !info.Mode().IsRegular() || compressed(p) {
			return -1
		}
		total += info.Size()
	}
	return total
}

func compressed(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 2)
	_, _ = io.ReadFull(f, magic)
	return magic[0] == 0x1f && magic[1] == 0x8b || magic[0] == 0x28 && magic[1] == 0xb5
}
