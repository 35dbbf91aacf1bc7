package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// krewPlugin is what of a plugin's manifest krew reads (krew.googlecontainertools.github.com/v1alpha2), to be decoded strictly.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
			Files  []struct {
				From string `json:"from"`
				To   string `json:"to"`
			} `json:"files"`
		} `json:"platforms"`
	} `json:"spec"`
}

// TestKrewManifest: filled in as krew's release bot does, the manifest is one that krew takes, and names the archives and the files that
// make package makes.
func TestKrewManifest(t *testing.T) {
	const tag = "v1.2.3"
	text, err := os.ReadFile(filepath.Join("kubectl", "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fill, err := template.New("krew").Funcs(template.FuncMap{"addURIAndSha": func(uri, tag string) string {
		return "uri: " + strings.ReplaceAll(uri, "{{ .TagName }}", tag) + "\n      sha256: " + strings.Repeat("0", 64)
	}}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var filled strings.Builder
	if err := fill.Execute(&filled, map[string]string{"TagName": tag}); err != nil {
		t.Fatal(err)
	}
	var p krewPlugin
	if err := yaml.UnmarshalStrict([]byte(filled.String()), &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "retrial" ||
		p.Spec.Version != tag || len(p.Spec.ShortDescription) > 80 || len(p.Spec.Platforms) != 2 {
		t.Errorf("%+v", p)
	}
	packs, err := os.ReadFile(filepath.Join("..", "scripts", "package.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range p.Spec.Platforms {
		os, arch := x.Selector.MatchLabels["os"], x.Selector.MatchLabels["arch"]
		if want := "/releases/download/" + tag + "/retrial_" + tag + "_" + os + "_" + arch + ".tar.gz"; !strings.HasSuffix(x.URI, want) ||
			!strings.Contains(string(packs), "retrial_${version}_linux_${arch}.tar.gz") {
			t.Errorf("archive %s, want …%s", x.URI, want)
		}
		if x.Bin != "kubectl-retrial" || !regexp.MustCompile(`(?m)^for arch in .*\b`+arch+`\b`).Match(packs) {
			t.Errorf("%s %s: %+v", os, arch, x)
		}
		for _, f := range x.Files {
			if !strings.Contains(string(packs), "/"+f.From) {
				t.Errorf("%s is not in the archive that scripts/package.sh makes", f.From)
			}
		}
	}
}

// TestKubectlCompletion: the file that kubectl runs to complete a plugin's line asks the plugin, with the words as they are.
func TestKubectlCompletion(t *testing.T) {
	dir := t.TempDir()
	plugin := "#!/bin/sh\nprintf '%s|' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl-retrial"), []byte(plugin), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join("kubectl", "kubectl_complete-retrial"), "can", "a b", "")
	c.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	if out, err := c.CombinedOutput(); err != nil || string(out) != "__complete|can|a b||" {
		t.Errorf("%q, error %v", out, err)
	}
}
