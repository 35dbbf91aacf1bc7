package cli

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// StartProgress returns a bar of total bytes, -1 for an unknown total. It is shown on w if that is a terminal.
func StartProgress(w io.Writer, what string, total int64) *progressbar.ProgressBar {
	f, ok := w.(*os.File)
	return progressbar.NewOptions64(total, progressbar.OptionSetVisibility(ok && term.IsTerminal(int(f.Fd()))),
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
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
