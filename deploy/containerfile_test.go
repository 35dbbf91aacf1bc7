package deploy

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/config"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// stage is one FROM of a container file and what follows it.
type stage struct {
	base, name string
	steps      [][2]string // instruction, argument
}

// stages parses a container file: continuation lines joined, comments left out.
func stages(t *testing.T, text string) []stage {
	t.Helper()
	var out []stage
	text = regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text, "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch rest = strings.TrimSpace(rest); {
		case word == "":
		case word == "FROM":
			base, name, _ := strings.Cut(rest, " AS ")
			out = append(out, stage{base: base, name: name})
		case len(out) == 0 || !slices.Contains([]string{"WORKDIR", "COPY", "RUN", "ARG", "ENV", "USER", "EXPOSE", "ENTRYPOINT",
			"CMD"}, word):
			t.Fatalf("instruction %q is out of place, or none", line)
		default:
			s := &out[len(out)-1]
			s.steps = append(s.steps, [2]string{word, rest})
		}
	}
	return out
}

// TestContainerfile: what the container file copies and runs is there, the image it ends
// with has glibc and no root, and its environment is one the binary reads.
func TestContainerfile(t *testing.T) {
	all := stages(t, read(t, "Containerfile"))
	if len(all) != 3 {
		t.Fatalf("%d stages", len(all))
	}
	build, library, image := all[0], all[1], all[2]
	root := ".."

	// Go is new enough for the module, and copies name files of the repository.
	want := regexp.MustCompile(`(?m)^go (\d+)\.(\d+)`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))
	have := regexp.MustCompile(`golang:(\d+)\.(\d+)-`).FindStringSubmatch(build.base)
	if len(have) == 0 || have[1] != want[1] || number(t, have[2]) < number(t, want[2]) {
		t.Errorf("built with %s, the module wants go %s.%s", build.base, want[1], want[2])
	}
	produced := map[string][]string{
		"build":   {"/etc/ssl/certs/ca-certificates.crt", "/src/bin/retrial", "/src/bin/retrial-bench"}, // the base's, and make build's
		"library": {"/libchdb.so"},
	}
	placed := map[string]bool{}
	for _, s := range all {
		for _, step := range s.steps {
			if step[0] != "COPY" {
				continue
			}
			words := strings.Fields(step[1])
			from, local := strings.CutPrefix(words[0], "--from=")
			if local {
				words = words[1:]
			}
			for _, source := range words[:len(words)-1] {
				if local && !slices.Contains(produced[from], source) {
					t.Errorf("%s: stage %s does not make %s", step[1], from, source)
				}
				if _, err := os.Stat(filepath.Join(root, source)); !local && err != nil {
					t.Errorf("%s: %v", step[1], err)
				}
			}
			placed[words[len(words)-1]] = true
		}
	}

	// What it runs is there; the target builds the file that is copied.
	run := func(s stage) string {
		var b strings.Builder
		for _, step := range s.steps {
			if step[0] == "RUN" {
				b.WriteString(step[1] + "\n")
			}
		}
		return b.String()
	}
	if !strings.Contains(run(build), "make build VERSION=") || !strings.Contains(run(library),
		"scripts/fetch-libchdb.sh && cp /cache/retrial/libchdb/*/libchdb.so /libchdb.so") {
		t.Errorf("runs\n%s%s", run(build), run(library))
	}
	if info, err := os.Stat(filepath.Join(root, "scripts", "fetch-libchdb.sh")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the script cannot be run: %v", err)
	}
	if !strings.Contains(read(t, filepath.Join(root, "scripts", "fetch-libchdb.sh")),
		"folder=${XDG_CACHE_HOME:-$HOME/.cache}/retrial/libchdb/$version\n") {
		t.Error("the script puts the library elsewhere than it is copied from")
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		if out, err := exec.CommandContext(t.Context(), bash, "-n", filepath.Join(root, "scripts", "fetch-libchdb.sh")).
			CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	if makeTool, err := exec.LookPath("make"); err == nil {
		cmd := exec.CommandContext(t.Context(), makeTool, "-n", "build", "VERSION=v1.2.3")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "-o bin/ ./cmd/retrial ./cmd/retrial-bench") ||
			!strings.Contains(string(out), "version.Version=v1.2.3") {
			t.Errorf("make build: %v\n%s", err, out)
		}
	}

	// The image: glibc, no root, an environment that means something.
	if !regexp.MustCompile(`^docker\.io/library/debian:[a-z]+-slim$`).MatchString(image.base) {
		t.Errorf("the image is made on %s; the embedded store needs glibc", image.base)
	}
	defaults := config.Default()
	known := []string{chdb.EnvLibrary}
	for _, f := range defaults.Fields() {
		known = append(known, f.Env)
	}
	var user, entry, cmd string
	for _, step := range image.steps {
		switch step[0] {
		case "ENV":
			for _, pair := range strings.Fields(step[1]) {
				name, value, _ := strings.Cut(pair, "=")
				if !slices.Contains(known, name) {
					t.Errorf("%s means nothing", name)
				}
				if name == chdb.EnvLibrary && !placed[value] {
					t.Errorf("nothing is copied to %s", value)
				}
				if name != chdb.EnvLibrary && !strings.Contains(run(image), path.Dir(value)) && !strings.Contains(run(image), value) {
					t.Errorf("%s: nobody makes the folder", pair)
				}
			}
		case "USER":
			user = step[1]
		case "ENTRYPOINT":
			entry = step[1]
		case "CMD":
			cmd = step[1]
		}
	}
	if user != "65532:65532" || entry != `["/usr/local/bin/retrial"]` || !placed["/usr/local/bin/retrial"] || cmd != `["serve"]` {
		t.Errorf("runs %s %s as %q", entry, cmd, user)
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
