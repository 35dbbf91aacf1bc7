package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what was read into the fixtures")

// files is a folder in memory.
func files(a *txtar.Archive) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range a.Files {
		if f.Name != "want" {
			m[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return m
}

// TestFixtures reads every folder of testdata and compares the configurations, and what is
// said of them, with what stands in the fixture.
func TestFixtures(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 15 {
		t.Fatalf("fixtures: %d, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h, report, err := ReadHistory(files(a))
			if err != nil {
				t.Fatal(err)
			}
			got := compact(t, shown(h, report))
			last := &a.Files[len(a.Files)-1]
			if *update {
				if last.Name != "want" {
					a.Files = append(a.Files, txtar.File{Name: "want"})
					last = &a.Files[len(a.Files)-1]
				}
				last.Data = got
				if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if last.Name != "want" || !bytes.Equal(got, last.Data) {
				t.Errorf("read:\n%s\nwant:\n%s", got, last.Data)
			}
		})
	}
}

// compact prints a value as YAML without what is empty, off or nil.
func compact(t *testing.T, v any) []byte {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := yaml.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.Marshal(prune(plain)); err != nil {
		t.Fatal(err)
	}
	return text
}

func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			value = prune(value)
			switch value {
			case nil, "", false, 0.0:
				delete(v, key)
			default:
				v[key] = value
			}
		}
		if len(v) == 0 {
			return nil
		}
		return v
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
		return v
	}
	return v
}

// shownVersion is one configuration with the report on it, in the order of the fixture.
type shownVersion struct {
	Config  *APIServer `json:"config"`
	Reading *Reading   `json:"reading"`
}

// shown pairs configurations and readings. What decides nothing is left out: it is long.
func shown(h *History, report *Report) []shownVersion {
	var out []shownVersion
	add := func(h *History, server string) {
		var readings []*Reading
		for _, r := range report.Versions {
			if r.Server == server {
				readings = append(readings, r)
			}
		}
		for i, v := range h.versions {
			s := shownVersion{Config: v.cfg}
			if r := i - (len(h.versions) - len(readings)); r >= 0 {
				s.Reading = readings[r]
				plain := s.Reading.Ignored[:0:0]
				for _, n := range s.Reading.Ignored {
					if n.Text != "changes neither identities nor what is allowed" {
						plain = append(plain, n)
					}
				}
				s.Reading.Ignored = plain
			}
			out = append(out, s)
		}
	}
	add(h, "")
	for _, name := range h.Servers() {
		add(h.Server(name), name)
	}
	return out
}
