package config

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// dropInFolder lies beside the configuration file of k3s and rke2, config.yaml; its files are
// read after it, by name.
const dropInFolder = "config.yaml.d"

// rancher reads the arguments for kube-apiserver from the configuration of k3s and rke2, of which
// p is a file; it returns nil if there are none. All files of one configuration are read with the
// first that has any.
func (t *tree) rancher(p string, data []byte) ([]word, error) {
	if !arguable(data) {
		return nil, nil
	}
	parts := t.rancherParts(p)
	var list []string
	for i, part := range parts {
		data := data
		if part != p {
			var err error
			if data, err = t.peek(part); err != nil {
				return nil, err
			}
			if arguable(data) && i < slices.Index(parts, p) {
				return nil, nil // read with that one
			}
		}
		list = appendArguments(list, data)
		t.used[part] = true
	}
	words := []word{}
	for _, s := range list {
		words = append(words, word{text: "--" + strings.TrimLeft(s, "-")})
	}
	return words, nil
}

// rancherParts are the files of the configuration that p is one of, in the order they are read
// in.
func (t *tree) rancherParts(p string) []string {
	root := path.Dir(p)
	if path.Base(root) == dropInFolder {
		root = path.Dir(root)
	}
	var parts []string
	for _, f := range t.files { // sorted
		if f != p && path.Dir(f) == path.Join(root, dropInFolder) && (path.Ext(f) == ".yaml" || path.Ext(f) == ".yml") {
			parts = append(parts, f)
		}
	}
	main := path.Join(root, "config.yaml")
	switch {
	case path.Base(path.Dir(p)) == dropInFolder:
		parts = append(parts, p)
		slices.Sort(parts)
		if slices.Contains(t.files, main) {
			parts = slices.Insert(parts, 0, main)
		}
	case p == main:
		parts = slices.Insert(parts, 0, p)
	default:
		return []string{p} // a file of another name is alone
	}
	return parts
}

// rancherFile is the relevant part of a configuration file of k3s and rke2. A list may be written as
// its only item.
type rancherFile struct {
	Replace any `json:"kube-apiserver-arg"`
	Add     any `json:"kube-apiserver-arg+"`
}

func rancherFileOf(data []byte) (c rancherFile) {
	if yaml.Unmarshal(data, &c) != nil {
		return rancherFile{}
	}
	return c
}

// arguable reports whether a file sets arguments of kube-apiserver.
func arguable(data []byte) bool {
	c := rancherFileOf(data)
	return c.Replace != nil || c.Add != nil
}

// appendArguments adds a file's arguments to those of earlier files, or replaces them.
func appendArguments(list []string, data []byte) []string {
	c := rancherFileOf(data)
	if c.Replace != nil {
		list = texts(c.Replace)
	}
	return append(list, texts(c.Add)...)
}

// texts are the strings of a list, or of its only item.
func texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
