package inflate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestOpen(t *testing.T) {
	const text = "one line\nanother\n"
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, _ = g.Write([]byte(text))
	_ = g.Close()
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	for name, tc := range map[string]struct {
		content []byte
		want    string
	}{
		"plain":                  {[]byte(text), text},
		"gzip":                   {gz.Bytes(), text},
		"zstd":                   {zs.Bytes(), text},
		"empty":                  {nil, ""},
		"shorter than the magic": {[]byte("{"), "{"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "misleading.gz") // the name does not matter
			if err := os.WriteFile(path, tc.content, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenTruncated(t *testing.T) {
	var gz bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, _ = g.Write(bytes.Repeat([]byte("x"), 1<<16))
	_ = g.Close()
	r, err := Reader(bytes.NewReader(gz.Bytes()[:gz.Len()/2]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "read gzip: the file is cut off") {
		t.Errorf("a file cut in half was read with error %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closing tells the error of reading again: %v", err)
	}
}
