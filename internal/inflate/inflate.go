// Package inflate opens files that may be compressed: plain, gzip or zstd, detected by their
// first bytes and never by their name.
package inflate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory a zstd stream may claim.
const maxWindow = 128 << 20

// Open opens the file at path.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := Reader(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return both{r, f}, nil
}

// Reader returns a reader that inflates r. Closing it frees the decoder and does not close r.
func Reader(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, 256<<10)
	magic, _ := b.Peek(4) // shorter content is plain
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, named("gzip", err)
		}
		return decoder{z, "gzip", func() { _ = z.Close() }}, nil // Close would repeat the error of Read
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, named("zstd", err)
		}
		return decoder{z, "zstd", z.Close}, nil
	}
	return io.NopCloser(b), nil
}

type decoder struct {
	io.Reader
	format string
	close  func()
}

func (d decoder) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	return n, named(d.format, err)
}

func (d decoder) Close() error { d.close(); return nil }

func named(format string, err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read %s: the file is cut off: %w", format, err)
	}
	return fmt.Errorf("read %s: %w", format, err)
}

type both struct {
	io.ReadCloser
	file io.Closer
}

func (b both) Close() error {
	return errors.Join(b.ReadCloser.Close(), b.file.Close())
}
