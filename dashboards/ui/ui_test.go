package ui_test

import (
	"io/fs"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/dashboards/ui"
)

// markup are the ways by which a string becomes markup, code or a way out of the page.
var markup = regexp.MustCompile(
	`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|\beval\(|new ` +
		`Function|setTimeout\(['"]|window\.open|location\.(assign|replace|href\s*=)`)

var imported = regexp.MustCompile(`(?m)^import [^;]*?from '([^']+)';`)

// TestModules holds every script to what README.md promises: strings only ever become
// text, and each module that is imported is served as a script.
func TestModules(t *testing.T) {
	h := ui.Handler()
	scripts := 0
	assets := os.DirFS("assets")
	err := fs.WalkDir(assets, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".js" {
			return err
		}
		scripts++
		body, err := fs.ReadFile(assets, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(body), "\n") {
			if found := markup.FindString(line); found != "" && !strings.HasPrefix(strings.TrimSpace(line), "//") {
				t.Errorf("%s:%d: %s makes markup, code or a way out of the page of a string", name, i+1, found)
			}
		}
		for _, m := range imported.FindAllStringSubmatch(string(body), -1) {
			w := httptest.NewRecorder()
			target := path.Join("/", path.Dir(name), m[1])
			h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
			if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
				t.Errorf("%s imports %s: %d %s", name, target, w.Code, w.Header().Get("Content-Type"))
			}
		}
		return nil
	})
	if err != nil || scripts == 0 {
		t.Fatalf("%d scripts, %v", scripts, err)
	}
}
