package sqlgate

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/klauspost/compress/zstd"
)

// body reads a request's body, decompressed as the headers and arguments say, up to limit bytes.
func body(r *http.Request, blocks bool, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, denied("external tables are not offered")
	}
	in := io.Reader(io.LimitReader(r.Body, limit+1))
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "":
	case "gzip":
		z, err := gzip.NewReader(in)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "the body is not gzip: %s", err)
		}
		in = z
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "the body is not zstd: %s", err)
		}
		defer z.Close()
		in = z
	default:
		return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "unknown encoding %q of the body: want gzip, zstd or none", enc)
	}
	if blocks {
		in = compress.NewReader(in)
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "read the query: %s", err)
	}
	if int64(len(b)) > limit {
		return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "the query is longer than %d bytes", limit)
	}
	return b, nil
}

// blockBytes is how much is compressed at a time.
const blockBytes = 1 << 20

// blockWriter compresses what is written into ClickHouse's blocks.
type blockWriter struct {
	out  io.Writer
	pack *compress.Writer
	buf  []byte
}

func newBlockWriter(w io.Writer, method string) (*blockWriter, error) {
	m := compress.LZ4
	switch strings.ToUpper(method) {
	case "", "LZ4", "LZ4HC":
	case "ZSTD":
		m = compress.ZSTD
	case "NONE":
		m = compress.None
	default:
		return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "unknown network_compression_method %q: want LZ4, ZSTD or NONE", method)
	}
	return &blockWriter{out: w, pack: compress.NewWriter(compress.LevelZero, m)}, nil
}

// Write implements io.Writer.
func (b *blockWriter) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	for len(b.buf) >= blockBytes {
		if err := b.flush(blockBytes); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (b *blockWriter) flush(n int) error {
	if err := b.pack.Compress(b.buf[:n]); err != nil {
		return fmt.Errorf("compress answer: %w", err)
	}
	b.buf = append(b.buf[:0], b.buf[n:]...)
	_, err := b.out.Write(b.pack.Data)
	return err
}

// Close writes what is left; it does not close the underlying writer.
func (b *blockWriter) Close() error {
	if len(b.buf) == 0 {
		return nil
	}
	return b.flush(len(b.buf))
}

// acceptsGzip reports whether the caller requests gzip in both ways that ClickHouse requires.
func acceptsGzip(r *http.Request, enabled string) bool {
	if enabled != "1" && enabled != "true" {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}
