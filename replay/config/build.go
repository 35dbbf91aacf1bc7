package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/replay/release"
)

// builder makes an APIServer from flags.
type builder struct {
	t      *tree
	f      *flags
	a      *APIServer
	r      *Reading
	parent *APIServer

	complete bool // the settings declare that there are no more flags
	partial  string
	override map[string]string

	// Of the files a running apiserver re-reads.
	authnFile, authzFile bool
	authnErr, authzErr   error
	anonymousFile        bool // the file of --authentication-config configures anonymous requests
	policy               *Policy
	policyUnknown        string
}

// build fills the configuration from the flags.
func (b *builder) build() error {
	own := b.a.Minor
	if err := b.version(); err != nil {
		return err
	}
	var err error
	if b.a.Gates, err = b.f.gates(); err != nil {
		return err
	}
	switch {
	case own == 0 && !b.a.Emulates:
		own = b.a.Minor
	case b.a.Emulates && own != b.a.Minor:
		b.a.Binary = own
	}
	if err := b.ofRelease(own); err != nil {
		return err
	}
	if b.a.Source == "" && (b.f.set("authentication-kubeconfig") || b.f.set("authorization-kubeconfig")) {
		return fmt.Errorf("%s: --authentication-kubeconfig and --authorization-kubeconfig are flags of an aggregated API server: put "+
			"its folder into %s/NAME of the cluster's, or write source: NAME into %s",
			b.f.file, aggregatedFolder, serverFile)
	}
	b.whole()
	if b.a.Source != "" {
		err = b.delegated()
	} else {
		err = errors.Join(b.authorization(), b.authentication())
	}
	if err != nil {
		return err
	}
	b.admission()
	b.otherFlags()
	return nil
}

// finish sets the digest and the summary, once nothing changes any more.
func (b *builder) finish() {
	b.a.Unknown = b.a.unknowns()
	b.a.Digest = digest(b.a)
	b.summary()
}

// unknowns collects the reasons of all unknown parts, each once.
func (a *APIServer) unknowns() []string {
	reasons := []string{a.Authentication.Unknown, a.Authentication.JWTUnknown, a.Authentication.Anonymous.Unknown, a.Authorization.Unknown}
	for _, users := range []*StaticUsers{a.Authentication.TokenFile, a.Authentication.BasicAuth} {
		if users != nil {
			reasons = append(reasons, users.Unknown)
		}
	}
	for _, z := range a.Authorization.Authorizers {
		reasons = append(reasons, z.Unknown)
	}
	var out []string
	for _, r := range reasons {
		if r != "" && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// version determines which version's rules apply, and checks that every flag belongs to it.
func (b *builder) version() error {
	for _, v := range b.f.all("emulated-version") {
		component, version, ok := strings.Cut(v, "=")
		if !ok {
			component, version = "kube", v
		}
		if m := minorOf(version); component == "kube" && m > 0 {
			b.a.Minor, b.a.Emulates = m, true
			b.r.understood("--emulated-version", "it behaves as 1.%d", m)
		}
	}
	last, because := 0, ""
	for _, fl := range b.f.list {
		until := decisive[fl.name].until
		if until == 0 || fl.name == "insecure-port" && fl.value == "0" {
			continue
		}
		if b.a.Minor > until {
			return fmt.Errorf("%s: Kubernetes 1.%[3]d has no flag --%[2]s: it was last in 1.%[4]d; is the version right (%[5]s, "+
				"kubernetesVersion)?", fl.where, fl.name, b.a.Minor, until, serverFile)
		}
		if last == 0 || until < last {
			last, because = until, fl.name
		}
	}
	if b.a.Minor == 0 && last > 0 {
		b.a.Minor, b.a.Guessed = last, true
		b.r.missing("kubernetesVersion", "--%s was last in Kubernetes 1.%d, so 1.%d is assumed; set the version in %s", because, last, last,
			serverFile)
	}
	if b.a.Minor > 0 {
		b.r.Version = fmt.Sprintf("1.%d", b.a.Minor)
	}
	return nil
}

// whole checks whether these are all flags: of a part of them it is not known what was not set.
func (b *builder) whole() {
	if b.complete || b.a.Source != "" || b.f.set("etcd-servers") || b.f.set("etcd-config") {
		return
	}
	b.partial = "the flags are incomplete (--etcd-servers is not among them)"
	b.a.Authentication.Unknown = b.partial
	b.r.missing(b.f.file, "no kube-apiserver runs without --etcd-servers, so these are not all of its flags, and the others are not "+
		"known: copy the whole command line "+
		"(tr '\\0' '\\n' </proc/PID/cmdline); if these are all, write complete: true into %s", serverFile)
}

func (b *builder) admission() {
	ad := &b.a.Admission
	if b.f.set("admission-control") {
		ad.Enabled, ad.Exact = b.f.all("admission-control"), true
		b.r.understood("--admission-control", "exactly %s", strings.Join(ad.Enabled, ", "))
		return
	}
	ad.Enabled, ad.Disabled = b.f.all("enable-admission-plugins"), b.f.all("disable-admission-plugins")
	if len(ad.Enabled) > 0 {
		b.r.understood("--enable-admission-plugins", "%s, besides the defaults", strings.Join(ad.Enabled, ", "))
	}
	if len(ad.Disabled) > 0 {
		b.r.understood("--disable-admission-plugins", "%s", strings.Join(ad.Disabled, ", "))
	}
}

// otherFlags reports flags that decide nothing, and unknown ones. An unknown flag whose name
// mentions authentication or authorization could change either.
func (b *builder) otherFlags() {
	var plain, taken []string
	for _, fl := range b.f.list {
		_, known := decisive[fl.name]
		switch {
		case known:
			if name := "--" + fl.name; !slices.Contains(taken, name) {
				taken = append(taken, name)
			}
			continue
		case isHarmless(fl.name):
			if !slices.Contains(plain, fl.name) {
				plain = append(plain, fl.name)
			}
			continue
		}
		whose := "not a flag of Kubernetes"
		if b.a.Source != "" {
			whose = "a flag of the server's own"
		}
		reason := fmt.Sprintf("what the flag --%s does, %s", fl.name, whose)
		switch whatItSpeaksOf(fl.name) {
		case authorization:
			b.a.Authorization.Unknown, b.a.Authorization.Authorizers = reason, nil
			b.r.missing(fl.where+": --"+fl.name, "%s", whose+"; by its name it may change who is allowed what, so the authorizers are "+
				"assumed to be unknown")
		case authentication:
			b.a.Authentication.Unknown = reason
			b.r.missing(fl.where+": --"+fl.name, "%s", whose+"; by its name it may admit other identities, so none is assumed to be "+
				"impossible")
		default:
			b.r.Ignored = append(b.r.Ignored, Note{fl.where + ": --" + fl.name, whose + "; by its name it changes no decision"})
		}
	}
	slices.Sort(taken)
	if len(taken) > 0 {
		b.r.understood("taken into account", "%s", strings.Join(taken, ", "))
	}
	slices.Sort(plain)
	for _, name := range plain {
		b.r.Ignored = append(b.r.Ignored, Note{"--" + name, "changes neither identities nor what is allowed"})
	}
	for _, p := range b.t.files {
		if !b.t.used[p] {
			b.r.Ignored = append(b.r.Ignored, Note{p, "no flag names it"})
		}
	}
}

// file reads the file a flag names. ok is false, and the report says so, if it is not in the
// folder; effect says what remains open without it.
func (b *builder) file(name, effect string) (data []byte, where string, ok bool, err error) {
	value := b.f.text(name)
	p := b.override[name]
	if p == "" {
		if p, err = b.t.find(value); err != nil {
			return nil, "", false, fmt.Errorf("%s=%s: %w in the folder: copy files to the paths they have on the apiserver's machine",
				b.f.at(name), value, err)
		}
	}
	if p == "" {
		b.r.missing(value, "--%s names it, but it is not in the folder: %s", name, effect)
		return nil, "", false, nil
	}
	if data, err = b.t.read(p); err != nil {
		return nil, p, false, err
	}
	return data, p, true, nil
}

// notGiven returns the reason why the content of a file is not known.
func (b *builder) notGiven(name string) string {
	return fmt.Sprintf("the file %s of --%s", b.f.text(name), name)
}

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
	for _, name := range slices.Sorted(maps.Keys(b.a.Gates)) {
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
	if version, ok := strings.CutPrefix(head.APIVersion, group); ok && slices.Contains(r.Config(head.Kind), version) {
		return nil
	}
	return fmt.Errorf("apiVersion %q: Kubernetes %v reads %s in %v", head.APIVersion, r, head.Kind, r.Config(head.Kind))
}
