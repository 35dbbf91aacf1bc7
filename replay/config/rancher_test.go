package config

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestRancher: the files of config.yaml.d are read after config.yaml, by name; a list replaces
// what was said, or adds to it. All of it is one configuration.
func TestRancher(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string // of kube-apiserver's flags, in their order
	}{
		"a list": {map[string]string{"config.yaml": "kube-apiserver-arg: [anonymous-auth=false, --audit-log-path=/a]\ntoken: x\n"},
			"anonymous-auth=false audit-log-path=/a"},
		"its only item": {map[string]string{"config.yaml": "kube-apiserver-arg: anonymous-auth=false\n"}, "anonymous-auth=false"},
		"added": {map[string]string{"config.yaml": "kube-apiserver-arg: [anonymous-auth=false]\n",
			"config.yaml.d/90-retrial.yaml": "audit-policy-file: /p\nkube-apiserver-arg+: [audit-log-path=/a]\n"},
			"anonymous-auth=false audit-log-path=/a"},
		"replaced": {map[string]string{"config.yaml": "kube-apiserver-arg: [anonymous-auth=false]\n",
			"config.yaml.d/a.yaml": "kube-apiserver-arg: [audit-log-path=/a]\n"}, "audit-log-path=/a"},
		"by name": {map[string]string{"config.yaml.d/b.yaml": "kube-apiserver-arg+: [audit-log-path=/b]\n",
			"config.yaml.d/a.yaml": "kube-apiserver-arg: [audit-log-path=/a]\n"}, "audit-log-path=/a audit-log-path=/b"},
		"a silent main": {map[string]string{"config.yaml": "token: x\n", "config.yaml.d/a.yaml": "kube-apiserver-arg+: " +
			"[audit-log-path=/a]\n"}, "audit-log-path=/a"},
		"a mirrored copy": {map[string]string{"etc/rancher/rke2/config.yaml": "profile: cis\n",
			"etc/rancher/rke2/config.yaml.d/a.yml":     "kube-apiserver-arg+: [audit-log-path=/a]\n",
			"etc/rancher/rke2/config.yaml.d/notes.txt": "x"}, "audit-log-path=/a"},
		"another name": {map[string]string{"rke2.yaml": "kube-apiserver-arg: [anonymous-auth=true]\n"}, "anonymous-auth=true"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for file, text := range tc.files {
				fsys[file] = &fstest.MapFile{Data: []byte(text)}
			}
			b, err := read(fsys, ".", Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range b.f.list {
				got = append(got, f.name+"="+f.value)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("the flags are %q, want %q", strings.Join(got, " "), tc.want)
			}
		})
	}
}
