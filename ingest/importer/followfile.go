package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
)

// headBytes is how much of a first line identifies a file: audit ID and times are near its
// beginning.
const headBytes = 64 << 10

// headOf returns the identity of a file: the digest of its first line, or of headBytes of a longer one; empty until the file has that much.
func headOf(r io.ReaderAt) (string, error) {
	head, err := io.ReadAll(io.NewSectionReader(r, 0, headBytes))
	if err != nil {
		return "", err
	}
	return headDigest(head), nil
}

func headDigest(head []byte) string {
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	} else if len(head) < headBytes {
		return ""
	}
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:])
}

// followSource is a file of a log that can be read from an offset on.
type followSource interface {
	// from returns the inflated content after the first skip bytes, and how many bytes of it
	// there are, -1 if that is unknown.
	from(ctx context.Context, skip int64) (r io.ReadCloser, left int64, err error)
}

// plainFile is a file of which the first size bytes are read; a writer may be appending to it.
type plainFile struct {
	f    *os.File
	size int64
}

func (p plainFile) from(ctx context.Context, skip int64) (io.ReadCloser, int64, error) {
	left := max(0, p.size-skip)
	return io.NopCloser(&counted{r: io.NewSectionReader(p.f, skip, left), ctx: ctx}), left, nil
}

type packedFile struct {
	im   *run
	path string
}

func (p packedFile) from(ctx context.Context, skip int64) (io.ReadCloser, int64, error) {
	c, err := p.im.reader(ctx, File{Name: p.path, Open: func() (io.ReadCloser, error) { return os.Open(p.path) }}, nil)
	if err != nil {
		return nil, 0, err
	}
	if _, err := io.CopyN(io.Discard, c, skip); err != nil && err != io.EOF {
		_ = c.Close()
		return nil, 0, err
	}
	return c, -1, nil
}

// seen is a rotated file as of the last poll.
type seen struct {
	info   os.FileInfo
	head   string
	broken bool // logged, and ignored until it changes
}

type sibling struct {
	path   string
	info   os.FileInfo
	packed bool
	head   string
}

// siblingNames matches rotated logs: kube-apiserver's audit-2026-11-22T06-40-00.000.log, logrotate's audit.log.1 and audit.log-20261122.
func siblingNames(path string) *regexp.Regexp {
	base := filepath.Base(path)
	ext := filepath.Ext(base)
	stem := regexp.QuoteMeta(strings.TrimSuffix(base, ext))
	return regexp.MustCompile(`^(?:` + stem + `-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}` + regexp.QuoteMeta(ext) +
		`|` + regexp.QuoteMeta(base) + `[.-]\d[0-9A-Za-z.-]*?)(\.gz|\.zst)?$`)
}

// siblings lists the rotated files, oldest first. Of a file plain and compressed the plain one counts: the other may not be whole yet.
func (f *follower) siblings() ([]sibling, error) {
	names := siblingNames(f.cfg.Path)
	dir := filepath.Dir(f.cfg.Path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	var list []sibling
	known := map[string]seen{}
	plain := map[string]bool{}
	for _, e := range entries {
		m := names.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // removed in the meantime, or not a file
		}
		s := sibling{path: filepath.Join(dir, e.Name()), info: info, packed: m[1] != ""}
		k, ok := f.known[e.Name()]
		if ok && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) && os.SameFile(k.info, info) {
			if known[e.Name()] = k; k.broken {
				continue
			}
			s.head = k.head
		}
		if s.head == "" {
			if s.head, err = f.siblingHead(s); err != nil && !f.rested(info) {
				f.again = true // being written, or removed in the meantime
				continue
			} else if err != nil {
				f.cfg.Log.Warn("rotated file skipped: it cannot be read", zap.String("file", s.path), zap.Error(err))
				known[e.Name()] = seen{info: info, broken: true}
				continue
			}
		}
		if s.head == "" {
			f.again = f.again || info.Size() > 0 && !f.rested(info)
			continue
		}
		known[e.Name()] = seen{info: info, head: s.head}
		plain[s.head] = plain[s.head] || !s.packed
		list = append(list, s)
	}
	f.known = known
	kept := list[:0]
	for _, s := range list {
		if !s.packed || !plain[s.head] {
			kept = append(kept, s)
		}
	}
	slices.SortStableFunc(kept, func(a, b sibling) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), strings.Compare(a.path, b.path))
	})
	return kept, nil
}

func (f *follower) siblingHead(s sibling) (string, error) {
	if !s.packed {
		file, err := os.Open(s.path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		return headOf(file)
	}
	r, _, err := packedFile{&run{cfg: f.post}, s.path}.from(context.Background(), 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, headBytes))
	if digest := headDigest(head); digest != "" {
		return digest, nil
	}
	return "", err
}

// rested reports whether a file has been unchanged for the grace period.
func (f *follower) rested(info os.FileInfo) bool {
	return f.cfg.Now().Sub(info.ModTime()) >= grace
}

func (f *follower) rotated(ctx context.Context) error {
	list, err := f.siblings()
	if err != nil {
		return err
	}
	head := ""
	if f.held != nil {
		if head, err = headOf(f.held); err != nil {
			return fmt.Errorf("follow %s: %w", f.cfg.Path, err)
		}
	}
	for _, s := range list {
		m := f.pos.enter(s.head, s.path)
		if s.packed && m.Packed {
			continue
		}
		if err := f.sibling(ctx, s, m, s.head == head); err != nil {
			return err
		}
	}
	return nil
}

// sibling posts the rest of one rotated file. open means that it is a copy of the file at the
// path, which is still being written.
func (f *follower) sibling(ctx context.Context, s sibling, m *followMark, open bool) error {
	if s.packed {
		rested := f.rested(s.info)
		err := f.drain(ctx, m, packedFile{&run{cfg: f.post}, s.path}, rested)
		switch {
		case err != nil && !errors.Is(err, errContent):
			return err
		case !rested:
			f.again = true // it may still be written
			return nil
		case err != nil:
			f.cfg.Log.Warn("rotated file is corrupt: what precedes the damage was imported", zap.String("file", s.path), zap.Error(err))
		}
		m.Packed = true
		return f.pos.save()
	}
	if s.info.Size() <= m.Offset {
		return nil
	}
	file, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.again = true // compressed a moment ago
		return nil
	}
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	defer file.Close()
	whole := f.rested(s.info) && !open
	if err := f.drain(ctx, m, plainFile{file, s.info.Size()}, whole); err != nil {
		return err
	}
	f.again = f.again || !whole
	return nil
}

// errContent marks an error in a file's content, which does not stop following the others.
var errContent = errors.New("content")

// drain posts the lines of a file after its mark. whole means that an incomplete line at its end
// is final.
func (f *follower) drain(ctx context.Context, m *followMark, src followSource, whole bool) error {
	fail := func(err error) error { return fmt.Errorf("follow %s: %w", m.Name, err) }
	r, left, err := src.from(ctx, m.Offset)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", errContent, err))
	}
	defer r.Close()
	if left == 0 {
		return nil
	}
	from, events := m.Offset, 0
	lines := &offsetLines{r: bufio.NewReaderSize(r, 256<<10), max: f.post.MaxLine}
	b, at := newPost(0, 0), m.Offset
	flush := func() error {
		if at == m.Offset {
			return nil
		}
		if f.done.Events == 0 && events == 0 && f.done.Malformed >= manyBad {
			return fmt.Errorf("%w: none of its first %d lines is an event; "+
				"set --audit-log-format=json on kube-apiserver", ErrFormat, f.done.Malformed)
		}
		if err := f.deliver(ctx, b); err != nil {
			return err
		}
		m.Offset = at
		f.done.File = m.Name
		b = newPost(0, f.post.BatchBytes/4)
		return f.pos.save()
	}
	for {
		line, n, err := lines.next(whole)
		if err == io.EOF {
			break
		}
		if err != nil {
			if ferr := flush(); ferr != nil { // what came before it is valid
				return fail(ferr)
			}
			return fail(fmt.Errorf("%w: %w", errContent, err))
		}
		if len(b.ends) > 0 && (len(b.ends) >= f.post.BatchEvents || len(b.body)+len(line) > f.post.BatchBytes) {
			if err := flush(); err != nil {
				return fail(err)
			}
		}
		if item, ok := f.item(line, n); item != nil {
			b.add(item, 0)
			if ok {
				events++
			}
		}
		at += int64(n)
	}
	if err := flush(); err != nil {
		return fail(err)
	}
	if left > 0 {
		f.done.Behind += left - (m.Offset - from)
	}
	return nil
}

// item returns what is posted of a line, nil for a blank one; ok is true if it is an event.
func (f *follower) item(line []byte, n int) (item []byte, ok bool) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, false
	}
	if n > f.post.MaxLine {
		f.done.Malformed++
		return quote(fmt.Appendf(nil, "%d bytes are over the limit of %d: %s", n, f.post.MaxLine, line)), false
	}
	if _, err := event.DecodeValid(line); err == nil {
		return line, true
	}
	f.done.Malformed++
	if json.Valid(line) {
		return line, false
	}
	return quote(line), false
}

func (f *follower) deliver(ctx context.Context, b *post) error {
	if len(b.ends) == 0 {
		return nil
	}
	p := pass{kind: PassFollow, post: f.poster}
	if err := p.deliver(ctx, b); err != nil {
		return err
	}
	f.done.Posts++
	f.done.Events += b.events
	f.done.DeadLetters += b.letters
	return nil
}

// offsetLines splits lines and counts their bytes, line breaks included.
type offsetLines struct {
	r    *bufio.Reader
	max  int
	line []byte
}

// tooLongPrefix is how much of a line over the limit is kept.
const tooLongPrefix = 4 << 10

// next returns the next line and how many bytes it takes; of a line longer than max it returns
// only the beginning. A last line without a line break is returned if whole is set, otherwise it
// is io.EOF.
func (l *offsetLines) next(whole bool) (line []byte, n int, err error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		n += len(part)
		switch {
		case n <= l.max:
			l.line = append(l.line, part...)
		case len(l.line) > tooLongPrefix:
			l.line = l.line[:tooLongPrefix]
		case len(l.line) < tooLongPrefix:
			l.line = append(l.line, part[:min(len(part), tooLongPrefix-len(l.line))]...)
		}
		switch {
		case err == nil:
			return l.line, n, nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && n > 0 && whole:
			return l.line, n, nil
		default:
			return nil, 0, err
		}
	}
}
