// Package ui is the web page of Retrial: static files, served by the binary. The page asks
// the local API (api/v1/…, mounted by the wiring, described in docs/api.md) for everything
// it shows.
//
// There is no build step: the files in assets are what the browser runs. README.md says how
// they are put together and where a new view goes.
package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

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
}

type file struct {
	body []byte
	kind string // Content-Type
	tag  string // ETag
}

// Handler serves the page below "/". Files are validated by their hash, so that a page
// never mixes the files of two versions longer than a reload.
func Handler() http.Handler {
	files := map[string]file{}
	err := fs.WalkDir(assets, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := assets.ReadFile(name)
		sum := sha256.Sum256(body)
		files[name[len("assets"):]] = file{body, types[path.Ext(name)], `"` + hex.EncodeToString(sum[:12]) + `"`}
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
			h.Set("Cache-Control", "no-cache")
			h.Set("Content-Type", f.kind)
			h.Set("ETag", f.tag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
		}
	})
}
