package embedded

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// span is a piece of the address space.
type span struct{ from, to uintptr }

// Slim takes the pages of the engine's program out of this process that were used to start it and to open the store: two thirds of them are
// never used again, and 100 MB. What is used again is mapped again, from the page cache. It changes nothing where the system does not tell
// what is mapped.
func (e *Engine) Slim() error {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil //nolint:nilerr // another system
	}
	defer maps.Close()
	path, err := filepath.EvalSymlinks(e.library)
	if err != nil {
		return fmt.Errorf("find the engine's program in memory: %w", err)
	}
	spans, err := untouched(maps, path)
	if err != nil {
		return err
	}
	for _, s := range spans {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("let go of unused pages of the engine's program: %w", errno)
		}
	}
	return nil
}

// untouched returns where a file is mapped and can only be read or run, and nothing of it has been changed in memory: what the dynamic
// loader has changed before it took the right to write away would be lost.
func untouched(smaps io.Reader, path string) (spans []span, err error) {
	var s span
	candidate, changed := false, false
	end := func() {
		if candidate && !changed {
			spans = append(spans, s)
		}
	}
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case !strings.HasSuffix(fields[0], ":"): // a mapping: addresses, rights, offset, device, inode, path
			end()
			candidate, changed = len(fields) == 6 && fields[5] == path && (fields[1] == "r-xp" || fields[1] == "r--p"), true
			if candidate {
				from, to, _ := strings.Cut(fields[0], "-")
				a, err1 := strconv.ParseUint(from, 16, 64)
				b, err2 := strconv.ParseUint(to, 16, 64)
				if err1 != nil || err2 != nil {
					return nil, fmt.Errorf("read what is mapped: %q", lines.Text())
				}
				s = span{uintptr(a), uintptr(b)}
			}
		case fields[0] == "Anonymous:": // pages of the process's own, which it has changed
			changed = fields[1] != "0"
		}
	}
	end()
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read what is mapped: %w", err)
	}
	return spans, nil
}
