package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A file or folder of ours in backticks, told by its slash.
	path = regexp.MustCompile(
		"`((?:cmd|ingest|rbacindex|replay|storage|analysis|dashboards|deploy|doctor|internal|query|test|docs|scripts)/[a-z0-9_/.*-]*)`")
	// What users are told to apply or to build from.
	manifest = regexp.MustCompile(`\bdeploy/[A-Za-z0-9_.-]*[A-Za-z0-9]`)
	title    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// TestLinks follows every relative link and manifest of every document, and in ARCHITECTURE.md every
// path: a map that leads nowhere is worse than none.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	documents := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (notOurs(name) || name == "data" || name == "testdata" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		documents++
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			checkLink(t, file, m[1])
		}
		for _, name := range manifest.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s: %v", file, name, err)
			}
		}
		if d.Name() == "ARCHITECTURE.md" {
			for _, m := range path.FindAllStringSubmatch(string(text), -1) {
				if found, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there (%v)", file, m[1], err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if documents < 10 {
		t.Errorf("only %d documents were found", documents)
	}
}

func checkLink(t *testing.T, file, target string) {
	t.Helper()
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return
	}
	name, anchor, _ := strings.Cut(target, "#")
	to := file
	if name != "" {
		to = filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
	}
	text, err := os.ReadFile(to)
	if info, serr := os.Stat(to); serr == nil && info.IsDir() {
		return
	}
	if err != nil {
		t.Errorf("%s links to %s: %v", file, target, err)
		return
	}
	if anchor == "" {
		return
	}
	for _, m := range title.FindAllStringSubmatch(string(text), -1) {
		if slug(m[1]) == anchor {
			return
		}
	}
	t.Errorf("%s links to %s: %s has no such heading", file, target, to)
}

// slug returns the anchor a forge gives a heading.
func slug(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		}
	}
	return b.String()
}
