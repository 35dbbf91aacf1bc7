package config

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/replay/release"
)

// ofRelease refuses flags and feature gates that a kube-apiserver of this version does not
// have: it would not start with them. minor is its own version, 0 if that is not known; a
// version that it emulates has the same flags, but other gates.
func (b *builder) ofRelease(minor int) error {
	if minor == 0 || b.a.Source != "" {
		return nil
	}
	for _, fl := range b.f.list {
		first, last, known := release.FlagSpan(fl.name)
		if !known {
			continue
		}
		if why := outside(minor, first, last); why != "" {
			return fmt.Errorf("%s: --%s: Kubernetes 1.%d has no such flag: %s; is the version right (%s, kubernetesVersion)?",
				fl.where, fl.name, minor, why, serverFile)
		}
	}
	r := release.Of(minor)
	if minor != b.a.Minor || r.Minor != minor {
		return nil
	}
	names := make([]string, 0, len(b.a.Gates))
	for name := range b.a.Gates {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		gate, has := r.Gate(name)
		first, last, known := release.GateSpan(name)
		switch {
		case has && gate.Locked && b.a.Gates[name] != gate.Default:
			return fmt.Errorf("%s: %s is locked to %v in Kubernetes %v: the apiserver does not start with %v", b.f.at("feature-gates"),
				name, gate.Default, r, !gate.Default)
		case !has && known:
			return fmt.Errorf("%s: Kubernetes %v has no feature gate %s: %s; is the version right (%s, kubernetesVersion)?",
				b.f.at("feature-gates"), r, name, outside(minor, first, last), serverFile)
		}
	}
	return nil
}

// outside says how a version lies outside of the first and the last release that have something,
// "" if it does not. What the oldest table has may be older; what the newest has may stay.
func outside(minor int, first, last *release.Release) string {
	all := release.All()
	switch {
	case minor < first.Minor && first != all[0]:
		return fmt.Sprintf("it came with %v", first)
	case minor > last.Minor && last != all[len(all)-1]:
		return fmt.Sprintf("it was last in %v", last)
	}
	return ""
}

// readable refuses a configuration file of a version that the release does not read.
func (b *builder) readable(data []byte) error {
	r := release.Of(b.a.Minor)
	var head struct{ APIVersion, Kind string }
	if b.a.Minor == 0 || r.Minor != b.a.Minor || yaml.Unmarshal(data, &head) != nil {
		return nil
	}
	const group = "apiserver.config.k8s.io/"
	for _, version := range r.Config(head.Kind) {
		if head.APIVersion == group+version {
			return nil
		}
	}
	return fmt.Errorf("apiVersion %q: Kubernetes %v reads %s in %v", head.APIVersion, r, head.Kind, r.Config(head.Kind))
}
