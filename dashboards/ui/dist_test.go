package ui_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/dashboards/ui"
)

// needNode leaves a test out where the tools of dashboards/web are not there: make web fetches them. With RETRIAL_REQUIRE_ALL
// they have to be.
func needNode(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat("../web/node_modules/vite")
	}
	if err == nil {
		return
	}
	if os.Getenv("RETRIAL_REQUIRE_ALL") != "" {
		t.Fatalf("NOT RUN: %v", err)
	}
	t.Skipf("NOT RUN: %v (make web)", err)
}

func node(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = "../web"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestDist builds the pages again: what is committed is what their source makes, byte for byte.
func TestDist(t *testing.T) {
	needNode(t)
	built := t.TempDir()
	node(t, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn", "--outDir", built)
	want, got := read(t, built), read(t, "dist")
	for name, body := range want {
		if !bytes.Equal(got[name], body) {
			t.Errorf("dist/%s is not what is built: run make web", name)
		}
		delete(got, name)
	}
	for name := range maps.Keys(got) {
		t.Errorf("dist/%s is not built any more: run make web", name)
	}
}

// TestGenerated holds the types of the API and the list of licences to what they are made of.
func TestGenerated(t *testing.T) {
	needNode(t)
	node(t, "scripts/generate.mjs", "--check")
}

// TestLockNamesNoHosts holds the lock file to versions and hashes: where packages come from is each machine's own.
func TestLockNamesNoHosts(t *testing.T) {
	lock, err := os.ReadFile("../web/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(lock, []byte(`"resolved"`)) {
		t.Error(`package-lock.json has "resolved" members`)
	}
}

// chunk is a line of the build's manifest.
type chunk struct {
	File    string   `json:"file"`
	CSS     []string `json:"css"`
	Imports []string `json:"imports"`
	Entry   bool     `json:"isEntry"`
	Dynamic bool     `json:"isDynamicEntry"`
}

// TestBudget bounds what a browser has to load, compressed: the first page with all it needs 150 KB, each further page 40 KB.
func TestBudget(t *testing.T) {
	files := read(t, "dist")
	var chunks map[string]chunk
	if err := json.Unmarshal(files["manifest.json"], &chunks); err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{"index.html": true}
	load(chunks, "index.html", first)
	pages := 0
	for name, c := range chunks {
		if !c.Dynamic {
			continue
		}
		own := map[string]bool{}
		load(chunks, name, own)
		if name == "src/pages/today/index.tsx" {
			maps.Copy(own, first)
			check(t, "the first page", files, own, 150_000)
			continue
		}
		maps.DeleteFunc(own, func(file string, _ bool) bool { return first[file] })
		check(t, name, files, own, 40_000)
		pages++
	}
	if pages == 0 {
		t.Error("no pages in the manifest")
	}
}

func load(chunks map[string]chunk, name string, into map[string]bool) {
	c := chunks[name]
	if into[c.File] {
		return
	}
	into[c.File] = true
	for _, css := range c.CSS {
		into[css] = true
	}
	for _, i := range c.Imports {
		load(chunks, i, into)
	}
}

func check(t *testing.T, what string, files map[string][]byte, names map[string]bool, most int) {
	t.Helper()
	sum := 0
	for name := range names {
		var out bytes.Buffer
		z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		_, _ = z.Write(files[name])
		_ = z.Close()
		sum += out.Len()
	}
	t.Logf("%s: %d bytes", what, sum)
	if sum > most {
		t.Errorf("%s takes %d bytes, more than %d: %v", what, sum, most, names)
	}
}

func read(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	return files
}

// TestServed asks for files as browsers do.
func TestServed(t *testing.T) {
	h := ui.Handler()
	ask := func(target string, header ...string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		h.ServeHTTP(w, r)
		return w
	}
	page := ask("/")
	if page.Code != 200 || page.Header().Get("Cache-Control") != "no-cache" ||
		!strings.Contains(page.Header().Get("Content-Security-Policy"), "trusted-types 'none'") {
		t.Errorf("/: %d %v", page.Code, page.Header())
	}
	for name, body := range read(t, "dist/assets") {
		target := "/assets/" + name
		plain, zipped := ask(target), ask(target, "Accept-Encoding", "br, gzip;q=0.5")
		if !bytes.Equal(plain.Body.Bytes(), body) || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is served as %v", target, plain.Header())
		}
		if got := plain.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", target, got)
		}
		z, err := gzip.NewReader(zipped.Body)
		if err != nil || zipped.Header().Get("Content-Encoding") != "gzip" || zipped.Header().Get("Vary") != "Accept-Encoding" {
			t.Fatalf("%s compressed: %v %v", target, zipped.Header(), err)
		}
		var out bytes.Buffer
		if _, err := out.ReadFrom(z); err != nil || !bytes.Equal(out.Bytes(), body) {
			t.Errorf("%s compressed is another: %v", target, err)
		}
		if again := ask(target, "Accept-Encoding", "gzip", "If-None-Match", zipped.Header().Get("ETag")); again.Code != 304 {
			t.Errorf("%s asked for again: %d", target, again.Code)
		}
	}
	for _, refusing := range []string{"gzip;q=0", "identity", "gzip; q=0.000", ""} {
		if got := ask("/", "Accept-Encoding", refusing).Header().Get("Content-Encoding"); got != "" {
			t.Errorf("%q is answered with %s", refusing, got)
		}
	}
	for _, none := range []string{"/manifest", "/nothing.js", "/dist/index.html", "/next/", "/assets/", "/../dist_test.go"} {
		if got := ask(none).Code; got != 404 {
			t.Errorf("%s: %d", none, got)
		}
	}
}
