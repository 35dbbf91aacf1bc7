// Package ui serves the pages of Retrial: static files, built of dashboards/web (make web) into
// dist, which is committed and embedded. The pages ask the local API (api/v1/…, mounted by the
// wiring, described in docs/api.md) for everything they show.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/internal/gzipped"
)

//go:embed dist
var embedded embed.FS

// policy allows scripts, styles, images and connections of this origin only, and no script made
// from a string: an audit string that ever reached the page as markup could neither run nor send
// anything.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are fixed here: what a machine's table of types says must not matter.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

type file struct {
	body   []byte
	kind   string // Content-Type
	tag    string // ETag
	hashed bool   // its name changes with what is in it
	zipped func() []byte
}

// hashed matches the names that the build gives by content.
var hashed = regexp.MustCompile(`^/assets/.+-[A-Za-z0-9_-]{8}\.[a-z0-9]+$`)

// Handler serves the pages below "/". Files are validated by their hash, so that a page
// never mixes the files of two versions longer than a reload; those that are named by it are
// kept by the browser.
func Handler() http.Handler {
	files := map[string]*file{}
	err := fs.WalkDir(embedded, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		at := strings.TrimPrefix(name, "dist")
		files[at] = newFile(at, body)
		return err
	})
	if err != nil {
		panic(err) // the embedded folder is part of the binary
	}
	files["/"] = files["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		f, ok := files[r.URL.Path]
		switch {
		case !ok:
			http.Error(w, "page not found", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed: want GET", http.StatusMethodNotAllowed)
		default:
			f.serve(w, r)
		}
	})
}

func newFile(at string, body []byte) *file {
	sum := sha256.Sum256(body)
	return &file{
		body: body, kind: types[path.Ext(at)], tag: hex.EncodeToString(sum[:12]), hashed: hashed.MatchString(at),
		zipped: sync.OnceValue(func() []byte {
			var out bytes.Buffer
			z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
			_, _ = z.Write(body)                                    // a buffer takes everything
			_ = z.Close()
			return out.Bytes()
		}),
	}
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	if f.hashed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	body, tag := f.body, f.tag
	if gzipped.Accepted(r.Header.Get("Accept-Encoding")) {
		body, tag = f.zipped(), f.tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
