package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxRatio bounds inflated against compressed size: audit logs reach about 100, files made to
	// fill disks 1,000 and more. ratioGrace is how much may be inflated before it is checked:
	// small, repetitive files compress beyond any ratio and do no harm.
	maxRatio, ratioGrace = 500, 64 << 20
	// zstdWindow is the largest window, in bytes, about what decoding allocates: that of zstd --long=27, the largest zstd takes by default.
	zstdWindow = 128 << 20
	// progressStep is how many stored bytes are read between two reports.
	progressStep = 1 << 20
)

var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

type content struct {
	io.Reader
	close func()
}

func (c *content) Close() error { c.close(); return nil }

// reader opens f and inflates it if it is compressed, within the limits. progress, which may
// be nil, gets the stored bytes read so far.
func (im *run) reader(ctx context.Context, f File, progress func(read int64)) (*content, error) {
	raw, err := f.Open()
	if err != nil {
		return nil, err
	}
	stored := &counted{r: raw, ctx: ctx, progress: progress}
	buffered := bufio.NewReaderSize(stored, 256<<10)
	head, err := buffered.Peek(len(magicZstd))
	fail := func(err error) (*content, error) {
		_ = raw.Close()
		return nil, err
	}
	if err != nil && err != io.EOF {
		return fail(err)
	}
	limited := &limitedReader{stored: stored, max: im.cfg.MaxInflated}
	switch {
	case bytes.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return fail(fmt.Errorf("read gzip: %w", err))
		}
		limited.r, limited.format = z, "gzip"
		return &content{limited, func() { _ = z.Close(); _ = raw.Close() }}, nil
	case bytes.HasPrefix(head, magicZstd):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow),
			zstd.WithDecoderMaxMemory(uint64(im.cfg.MaxInflated)))
		if err != nil {
			return fail(fmt.Errorf("read zstd: %w", err))
		}
		limited.r, limited.format = z, "zstd"
		return &content{limited, func() { z.Close(); _ = raw.Close() }}, nil
	}
	return &content{buffered, func() { _ = raw.Close() }}, nil
}

// counted counts the stored bytes read and ends with the context.
type counted struct {
	r        io.Reader
	ctx      context.Context
	read     int64
	reported int64
	progress func(read int64)
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.read += int64(n)
	if c.progress != nil && (c.read-c.reported >= progressStep || err == io.EOF && c.read > c.reported) {
		c.reported = c.read
		c.progress(c.read)
	}
	return n, err
}

// limitedReader bounds what r, which inflates stored, may return.
type limitedReader struct {
	r      io.Reader
	stored *counted
	format string
	max    int64
	read   int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.read += int64(n)
	switch {
	case l.read > l.max:
		return 0, fmt.Errorf("%w: %d bytes of %s inflate to more than %d bytes", ErrInflated, l.stored.read, l.format, l.max)
	case l.read > ratioGrace && l.read/max(l.stored.read, 1) > maxRatio:
		return 0, fmt.Errorf("%w: %d bytes of %s inflate to %d, over the limit of %d to 1; no audit log compresses like that",
			ErrInflated, l.stored.read, l.format, l.read, maxRatio)
	}
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, fmt.Errorf("read %s: the file is cut off: %w", l.format, err)
	}
	return n, fmt.Errorf("read %s: %w", l.format, err)
}

// spool is a stream's content on disk, to be read twice. The file has no name, and its bytes are useless without the key in memory.
type spool struct {
	f    *os.File
	key  [32]byte
	size int64
}

// spool reads all of a stream. Compressed input stays compressed.
func (im *run) spool(ctx context.Context, f File) (*spool, error) {
	tmp, err := os.CreateTemp(im.cfg.SpoolDir, "retrial-import-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s := &spool{f: tmp}
	im.spools = append(im.spools, s) // and so is closed
	if err := os.Remove(tmp.Name()); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	rand.Read(s.key[:]) // never returns an error
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	src := &counted{r: in, ctx: ctx, progress: func(read int64) {
		im.cfg.Progress(Progress{File: f.Name, Pass: PassSpool, Read: read})
	}}
	s.size, err = io.Copy(cipher.StreamWriter{S: s.stream(), W: tmp}, src)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return s, nil
}

// stream returns the key stream from the first byte. The key is used for one file written
// once, so the counter may start at zero.
func (s *spool) stream() cipher.Stream {
	block, err := aes.NewCipher(s.key[:])
	if err != nil {
		panic(err) // only the length of the key can be wrong, and it is a constant
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize))
}

// open returns the content from the beginning; several readers may be open at once.
func (s *spool) open() (io.ReadCloser, error) {
	return io.NopCloser(cipher.StreamReader{S: s.stream(), R: io.NewSectionReader(s.f, 0, s.size)}), nil
}

func (s *spool) close() { _ = s.f.Close() }
