package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is what is read of one release.
type table struct {
	release
	modules []module
	gates   map[string]gate
	flags   map[string]flag
	plugins []plugin
	configs []configVersion
}

// gatePackages are where feature gates a kube-apiserver knows are declared; later ones have
// the last word.
var gatePackages = []struct{ module, folder string }{
	{"k8s.io/client-go", "features"},
	{"k8s.io/component-base", "logs/api/v1"},
	{"k8s.io/component-base", "metrics/features"},
	{"k8s.io/component-base", "zpages/features"},
	{"k8s.io/controller-manager", "pkg/features"},
	{"k8s.io/apiextensions-apiserver", "pkg/features"},
	{"k8s.io/apiserver", "pkg/features"},
	{"k8s.io/kubernetes", "pkg/features"},
}

// modulesRead are the modules the packages are of.
var modulesRead = []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver", "k8s.io/client-go",
	"k8s.io/component-base", "k8s.io/controller-manager"}

// read reads a release's sources.
func read(r release) (*table, error) {
	t := &table{release: r, gates: map[string]gate{}, flags: map[string]flag{}}
	minor, err := minorOf(r.version)
	if err != nil {
		return nil, err
	}
	byPath := map[string]module{}
	for _, path := range modulesRead {
		version := r.version
		if path != "k8s.io/kubernetes" {
			version = staged(version)
		}
		m, err := fetch(path, version)
		if err != nil {
			return nil, err
		}
		byPath[path] = m
		t.modules = append(t.modules, m)
	}
	for _, p := range gatePackages {
		s, err := parse(byPath[p.module], p.folder)
		if err != nil {
			return nil, err
		}
		if err := s.gates(minor, t.gates); err != nil {
			return nil, err
		}
	}
	for _, p := range flagPackages {
		s, err := parse(byPath[p.module], p.folder)
		if err != nil {
			return nil, err
		}
		s.flags(t.flags)
	}
	if t.plugins, err = plugins(byPath["k8s.io/kubernetes"], byPath["k8s.io/apiserver"]); err != nil {
		return nil, err
	}
	t.configs = configVersions(byPath["k8s.io/apiserver"])
	return t, nil
}

// text returns the table as the product reads it: a word, a name, what is said of it, a line each.
func (t *table) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Kubernetes %s, read from its sources by rbacindex/oracle/releases. Not to be edited.\n", t.minor)
	for _, m := range t.modules {
		fmt.Fprintf(&b, "module %s %s\n", m.path, m.version)
	}
	for _, g := range slices.Sorted(maps.Keys(t.gates)) {
		v := t.gates[g]
		fmt.Fprintf(&b, "gate %s %s %s%s\n", g, v.stage, map[bool]string{true: "on", false: "off"}[v.on],
			map[bool]string{true: " locked"}[v.locked])
	}
	for _, p := range t.plugins {
		fmt.Fprintf(&b, "admission %s %s\n", p.name, map[bool]string{true: "on", false: "off"}[p.on])
	}
	for _, c := range t.configs {
		fmt.Fprintf(&b, "config %s %s\n", c.kind, strings.Join(c.versions, " "))
	}
	bySource := map[string][]string{}
	for f, v := range t.flags {
		bySource[v.source] = append(bySource[v.source], f)
	}
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		fmt.Fprintf(&b, "source %s\n", source)
		slices.Sort(bySource[source])
		for _, f := range bySource[source] {
			v := t.flags[f]
			fmt.Fprintf(&b, "flag %s %s%s\n", f, v.kind, map[bool]string{true: " deprecated"}[v.deprecated])
		}
	}
	return b.Bytes()
}
