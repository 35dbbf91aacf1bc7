package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// manifest is what a pod's description says about the server in it.
type manifest struct {
	words  []word
	mounts []mount
	minor  int // of the image's tag, 0 if it is not one of Kubernetes
}

// podSpec is the part of a pod's description that matters.
type podSpec struct {
	Containers []struct {
		Name         string   `json:"name"`
		Image        string   `json:"image"`
		Command      []string `json:"command"`
		Args         []string `json:"args"`
		VolumeMounts []struct {
			Name      string `json:"name"`
			MountPath string `json:"mountPath"`
			SubPath   string `json:"subPath"`
		} `json:"volumeMounts"`
	} `json:"containers"`
	Volumes []struct {
		Name     string `json:"name"`
		HostPath *struct {
			Path string `json:"path"`
		} `json:"hostPath"`
	} `json:"volumes"`
}

// object is anything that may hold a pod's description: a Pod, something with a template, or
// a list of them.
type object struct {
	Kind string `json:"kind"`
	Spec struct {
		podSpec
		Template struct {
			Spec podSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Items []object `json:"items"`
}

// manifestOf reads a manifest; it returns nil without an error if it describes something else.
func manifestOf(data []byte, aggregated bool) (*manifest, error) {
	var found []*manifest
	for _, doc := range yamlDocuments(data) {
		var o object
		if err := yaml.Unmarshal(doc, &o); err != nil {
			return nil, nil //nolint:nilerr // not YAML, or of another shape: not a pod
		}
		found = append(found, o.servers(aggregated)...)
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d containers in it run an apiserver: keep one", len(found))
}

func yamlDocuments(data []byte) [][]byte {
	var docs [][]byte
	for _, d := range regexp.MustCompile(`(?m)^---\s*$`).Split(string(data), -1) {
		if strings.TrimSpace(d) != "" {
			docs = append(docs, []byte(d))
		}
	}
	return docs
}

func (o *object) servers(aggregated bool) []*manifest {
	var found []*manifest
	for i := range o.Items {
		found = append(found, o.Items[i].servers(aggregated)...)
	}
	switch o.Kind {
	case "Pod":
		found = append(found, o.Spec.server(aggregated)...)
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		found = append(found, o.Spec.Template.Spec.server(aggregated)...)
	}
	return found
}

// server returns the containers that run an apiserver, by the name of the command or the image
// or, for aggregated ones, by flags of delegated authentication.
func (p *podSpec) server(aggregated bool) []*manifest {
	hosts := map[string]string{}
	for _, v := range p.Volumes {
		if v.HostPath != nil {
			hosts[v.Name] = v.HostPath.Path
		}
	}
	var found []*manifest
	for _, c := range p.Containers {
		arguments := slices.Concat(c.Command, c.Args)
		isServer := c.Name == "kube-apiserver" || strings.Contains(c.Image, "kube-apiserver") ||
			slices.ContainsFunc(c.Command, func(a string) bool { return path.Base(strings.Fields(a + " x")[0]) == "kube-apiserver" })
		if aggregated && !isServer {
			isServer = len(p.Containers) == 1 || strings.Contains(strings.Join(arguments, " "), "--requestheader-") ||
				strings.Contains(strings.Join(arguments, " "), "-kubeconfig")
		}
		if !isServer {
			continue
		}
		m := &manifest{minor: minorOfImage(c.Image)}
		for _, a := range arguments {
			if strings.HasPrefix(a, "-") || !strings.Contains(a, " -") {
				m.words = append(m.words, word{text: a})
				continue
			}
			// A shell's command line: sh -c "exec kube-apiserver --a --b".
			more, err := shellWords(a)
			if err != nil {
				more = nil
				for f := range strings.FieldsSeq(a) {
					more = append(more, word{text: f})
				}
			}
			for _, w := range more {
				m.words = append(m.words, word{text: w.text})
			}
		}
		for _, v := range c.VolumeMounts {
			if host, ok := hosts[v.Name]; ok {
				m.mounts = append(m.mounts, mount{path.Clean(v.MountPath), path.Join(host, v.SubPath)})
			}
		}
		slices.SortFunc(m.mounts, func(a, b mount) int { return len(b.container) - len(a.container) })
		found = append(found, m)
	}
	return found
}

var tagVersion = regexp.MustCompile(`^v?1\.(\d{1,3})(?:\D|$)`)

// minorOfImage returns the Kubernetes minor version of an image's tag, 0 if the image is not
// tagged with one.
func minorOfImage(image string) int {
	repository, _, _ := strings.Cut(image, "@")
	colon := strings.LastIndex(repository, ":")
	if colon < 0 || colon < strings.LastIndex(repository, "/") {
		return 0
	}
	name := path.Base(repository[:colon])
	if !strings.Contains(name, "apiserver") && !strings.Contains(name, "hyperkube") {
		return 0
	}
	return minorOf(repository[colon+1:])
}

// minorOf returns the minor version of "1.36", "v1.36.3" and the like, 0 for anything else.
func minorOf(version string) int {
	m := tagVersion.FindStringSubmatch(strings.TrimSpace(version))
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
