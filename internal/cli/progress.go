package cli

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress is a bar on a terminal and nothing elsewhere.
type Progress struct{ bar *progressbar.ProgressBar }

// StartProgress starts a bar of total bytes on w if w is a terminal; -1 is an unknown total.
func StartProgress(w io.Writer, what string, total int64) *Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &Progress{}
	}
	return &Progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())}
}

// Add counts n more bytes.
func (p *Progress) Add(n int64) {
	if p.bar != nil {
		_ = p.bar.Add64(n)
	}
}

// Set sets how many bytes are done.
func (p *Progress) Set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n)
	}
}

// Total sets how many bytes there are.
func (p *Progress) Total(n int64) {
	if p.bar != nil {
		p.bar.ChangeMax64(n)
	}
}

// Describe sets what is being done.
func (p *Progress) Describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

// Finish removes the bar.
func (p *Progress) Finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
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
