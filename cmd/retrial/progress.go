package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressBar is a bar on a terminal and nothing elsewhere.
type progressBar struct{ bar *progressbar.ProgressBar }

// newProgress starts a bar of so many bytes on w when w is a terminal. A total that is not
// known is -1.
func newProgress(w io.Writer, what string, total int64) *progressBar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progressBar{}
	}
	return &progressBar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())}
}

func (p *progressBar) add(n int64) {
	if p.bar != nil {
		_ = p.bar.Add64(n)
	}
}

func (p *progressBar) set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n)
	}
}

func (p *progressBar) describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

func (p *progressBar) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// totalSize returns the plain size of files when all of them are plain files whose size
// says so, else -1: what is compressed inflates to nobody knows how much.
func totalSize(paths []string) int64 {
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
