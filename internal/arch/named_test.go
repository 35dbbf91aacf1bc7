package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist: a page that says which test shows a thing names one that there is. So do the targets of make.
func TestNamedTestsExist(t *testing.T) {
	root := filepath.Join("..", "..")
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		there["make "+m[1]] = true
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+|make [a-z][a-z0-9-]*)")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	naming := map[string]bool{} // pages by their names
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			naming[filepath.Base(page)] = true
			if !there[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	for _, page := range []string{"threat-model.md", "reliability.md", "state.md", "ARCHITECTURE.md"} {
		if !naming[page] {
			t.Errorf("%s names no test", page)
		}
	}
}

// TestArchitectureNamesWhatIsThere: a path that ARCHITECTURE.md names is one of the repository. Parts in capitals
// stand for a name of one's own.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`([a-z][a-z-]*)(/[A-Za-z0-9_.-]+)+`").FindAllStringSubmatch(string(text), -1)
	if len(paths) < 50 {
		t.Fatalf("it names %d paths", len(paths))
	}
	placeholder := regexp.MustCompile(`(NNNN|NAME|\bID\b)`)
	for _, m := range paths {
		path := strings.Trim(m[0], "`")
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil || placeholder.MatchString(path) {
			continue // no folder of ours, such as audit.k8s.io/v1
		}
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("ARCHITECTURE.md names %s, which is not there", path)
		}
	}
}
