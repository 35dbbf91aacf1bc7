package recorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// backend is the log of an aggregated API server.
type backend struct {
	name  string
	log   func() []byte
	flags []string
}

// Beside adds the log of a server behind the aggregator, with its flags.
func (r *Recorder) Beside(name string, flags []string, log func() []byte) {
	r.servers = append(r.servers, backend{name, log, flags})
}

// Scenarios returns the requests so far, in order.
func (r *Recorder) Scenarios() []*Scenario { return r.sorted() }

// Finish stops the apiserver, so that all of the log is there, and writes the recording into
// a folder: uncompressed files as the product reads them.
func (r *Recorder) Finish(t testing.TB) string {
	t.Helper()
	if r.state == nil {
		t.Fatal("no state was taken")
	}
	logs := map[string][]byte{}
	for _, b := range r.servers { // they end while there is somebody to ask
		logs[b.name] = b.log()
	}
	arguments := r.Apiserver().Arguments(t)
	r.Apiserver().Stop(t)
	log := r.redact(r.Log(t)[r.from:])
	r.check(t, log)
	dir := t.TempDir()
	put := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("audit.jsonl", log)
	put("state.json", r.state)
	var lines bytes.Buffer
	for _, s := range r.sorted() {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(r.redact(text), '\n'))
	}
	put("scenarios.jsonl", lines.Bytes())
	config := func(name string, text []byte) {
		t.Helper()
		put(name, bytes.ReplaceAll(text, []byte(" DIR/"), []byte(" "+Generic+"/")))
	}

	for name, text := range r.configuration(arguments) {
		config("config/"+name, text)
	}
	if len(r.versions) > 0 {
		versions := "versions:\n- dir: .\n"
		for _, v := range r.versions {
			versions += fmt.Sprintf("- from: %s\n  %sConfig: %s\n", v.from.UTC().Format(time.RFC3339Nano), v.of, v.name)
			config("config/"+v.name, v.text)
		}
		put("config/versions.yaml", []byte(versions))
	}
	for _, b := range r.servers {
		put("audit-"+b.name+".jsonl", r.redact(logs[b.name]))
		put("config/aggregated/"+b.name+"/"+b.name+".flags", r.redact([]byte(strings.Join(b.flags, "\n")+"\n")))
	}
	t.Logf("%s, %d bytes of log", r, len(log))
	r.keep(t, dir)
	return dir
}

// configuration returns what the apiserver ran with, as a person would hand it over.
func (r *Recorder) configuration(arguments []string) map[string][]byte {
	files := map[string][]byte{}
	for name, text := range r.config.Files {
		if other, ok := r.config.Recorded[name]; ok {
			text = other
		}
		if text != nil {
			files[name] = text
		}
	}
	files["audit-policy.yaml"] = []byte(r.config.LogPolicy)
	flags := strings.Split(string(r.redact([]byte(strings.Join(arguments, "\n")))), "\n")
	if !r.config.Manifest {
		files["kube-apiserver.flags"] = []byte(strings.Join(flags, "\n") + "\n")
		return files
	}
	var m strings.Builder
	m.WriteString(`apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 192.0.2.10:6443
  labels:
    component: kube-apiserver
    tier: control-plane
  name: kube-apiserver
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-apiserver
`)
	for _, f := range flags {
		fmt.Fprintf(&m, "    - %s\n", f)
	}
	m.WriteString(`    image: registry.k8s.io/kube-apiserver:v1.36.3
    name: kube-apiserver
    volumeMounts:
    - mountPath: /etc/kubernetes
      name: k8s-conf
      readOnly: true
  hostNetwork: true
  priorityClassName: system-node-critical
  volumes:
  - hostPath:
      path: /etc/kubernetes
      type: DirectoryOrCreate
    name: k8s-conf
`)
	files["kube-apiserver.yaml"] = []byte(m.String())
	return files
}

// Keep is the environment variable that names the folder of kept recordings.
const Keep = "RETRIAL_RECORDINGS"

// keep replaces the kept recording, if there is to be one. Configurations stay readable, the
// rest is compressed.
func (r *Recorder) keep(t testing.TB, dir string) {
	t.Helper()
	root := os.Getenv(Keep)
	if root == "" || t.Failed() {
		return
	}
	to := filepath.Join(root, r.config.Name)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if slices.Contains([]string{".jsonl", ".json"}, filepath.Ext(name)) && !strings.HasPrefix(name, "config") {
			name, text = name+".zst", w.EncodeAll(text, nil)
		}
		if len(text) > 200<<10 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
