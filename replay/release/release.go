// Package release tells what each minor release of Kubernetes has: its feature gates with their
// defaults, the flags of its kube-apiserver, its admission plugins, the versions of its
// configuration files, and the facts about decisions that no table of its sources holds.
//
//	minor version ──Of──▶ Release ──Enabled──▶ whether a feature is on
//	flag ──FlagSpan──▶ first and last release that has it
//
// The tables are read out of each release's sources by rbacindex/oracle/releases (make
// releases) and name the file each flag is declared in; docs/versions.md explains them. A new
// release is a line in that command's list.
//
// The package is pure: its tables are part of the program.
package release

import (
	"embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
)

// Assumed is the minor version taken where none is known.
const Assumed = 36

// Stage is how mature a feature is.
type Stage string

// Stages, as the sources name them.
const (
	Alpha      Stage = "alpha"
	Beta       Stage = "beta"
	GA         Stage = "ga"
	Deprecated Stage = "deprecated"
)

// Gate is a feature gate as one release has it.
type Gate struct {
	Stage   Stage
	Default bool
	Locked  bool // it cannot be set to anything but its default
}

// Flag is a flag of the kube-apiserver as one release has it.
type Flag struct {
	Type       string // bool, string, duration …; value for what parses itself
	Deprecated bool
	Source     string // the file that declares it: module@version/folder/file
}

// Plugin is an admission plugin as one release has it.
type Plugin struct {
	Name    string
	Default bool // on unless it is switched off
}

// Release is what one minor release has. It is immutable.
type Release struct {
	Minor int
	// Modules are the modules the tables are read from, as path@version; the first is
	// Kubernetes itself.
	Modules []string
	// Plugins are the admission plugins in the order in which they are asked.
	Plugins []Plugin

	gates   map[string]Gate
	gone    map[string]bool // gates an earlier release had last, with what became of them
	flags   map[string]Flag
	configs map[string][]string
}

//go:embed tables/*.txt
var tables embed.FS

// all are the releases in order, without gaps.
var all = sync.OnceValue(func() []*Release {
	var list []*Release
	for _, e := range must(tables.ReadDir("tables")) {
		r := must(parse(e.Name(), string(must(tables.ReadFile("tables/"+e.Name())))))
		if n := len(list); n > 0 {
			r.inherit(list[n-1])
		}
		list = append(list, r)
	}
	return list
})

// must returns what was read: the tables are part of the program, and a test reads them all.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// All returns the releases there are tables of, oldest first.
func All() []*Release { return all() }

// Of returns a minor release, 36 for 1.36. Of 0, a version that is not known, it is that of
// Assumed; an older one than all tables has the oldest, a newer one the newest.
func Of(minor int) *Release {
	if minor == 0 {
		minor = Assumed
	}
	list := all()
	return list[min(max(minor-list[0].Minor, 0), len(list)-1)]
}

// String returns "1.36".
func (r *Release) String() string { return "1." + strconv.Itoa(r.Minor) }

// Gate returns a feature gate; false if the release has none of that name.
func (r *Release) Gate(name string) (Gate, bool) {
	g, ok := r.gates[name]
	return g, ok
}

// Enabled reports whether a feature is on when some gates were set. A gate the release does
// not have yet is off; one that it has no more is what it was last.
func (r *Release) Enabled(name string, set map[string]bool) bool {
	g, ok := r.gates[name]
	switch {
	case !ok:
		return r.gone[name]
	case g.Locked || len(set) == 0:
		return g.Default
	}
	if v, ok := set[name]; ok {
		return v
	}
	if v, ok := set[wholeStage[g.Stage]]; ok {
		return v
	}
	return g.Default
}

// wholeStage are the gates that set all features of a stage which are not set by themselves.
var wholeStage = map[Stage]string{Alpha: "AllAlpha", Beta: "AllBeta"}

// Flag returns a flag of the kube-apiserver; false if the release has none of that name.
func (r *Release) Flag(name string) (Flag, bool) {
	f, ok := r.flags[name]
	return f, ok
}

// Config returns the versions of apiserver.config.k8s.io in which the release has a kind of
// configuration file, nil for none.
func (r *Release) Config(kind string) []string { return r.configs[kind] }

// FlagSpan returns the first and the last release that has a flag; false if none has it.
func FlagSpan(name string) (first, last *Release, ok bool) {
	return span(func(r *Release) bool { _, has := r.flags[name]; return has })
}

// GateSpan is FlagSpan of a feature gate.
func GateSpan(name string) (first, last *Release, ok bool) {
	return span(func(r *Release) bool { _, has := r.gates[name]; return has })
}

func span(has func(*Release) bool) (first, last *Release, ok bool) {
	for _, r := range all() {
		if has(r) {
			if first == nil {
				first = r
			}
			last = r
		}
	}
	return first, last, first != nil
}

// inherit takes over what became of features whose gates the release before had or had seen
// off.
func (r *Release) inherit(before *Release) {
	maps.Copy(r.gone, before.gone)
	for name, g := range before.gates {
		r.gone[name] = g.Default
	}
}

// parse reads a table: a word, a name, what is said of it, a line each.
func parse(file, text string) (*Release, error) {
	minor, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(file, "1."), ".txt"))
	if err != nil {
		return nil, fmt.Errorf("release table %s: want a name such as 1.36.txt", file)
	}
	r := &Release{Minor: minor, gates: map[string]Gate{}, gone: map[string]bool{}, flags: map[string]Flag{}, configs: map[string][]string{}}
	source, n := "", 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		name, rest := words[1], words[2:]
		switch {
		case words[0] == "source" && len(rest) == 0:
			source = name
		case words[0] == "module" && len(rest) == 1:
			r.Modules = append(r.Modules, name+"@"+rest[0])
		case words[0] == "gate" && len(rest) >= 2:
			r.gates[name] = Gate{Stage: Stage(rest[0]), Default: rest[1] == "on", Locked: len(rest) > 2}
		case words[0] == "flag" && len(rest) >= 1 && source != "":
			r.flags[name] = Flag{Type: rest[0], Deprecated: len(rest) > 1, Source: source}
		case words[0] == "admission" && len(rest) == 1:
			r.Plugins = append(r.Plugins, Plugin{Name: name, Default: rest[0] == "on"})
		case words[0] == "config" && len(rest) >= 1:
			r.configs[name] = rest
		default:
			return nil, fmt.Errorf("release table %s:%d: invalid line %q", file, n, strings.TrimSpace(line))
		}
	}
	return r, nil
}

// Fact is something a release does that no table of its sources holds: it came with a minor
// version and has stayed since.
type Fact struct {
	Since  int    // minor version
	Always int    // the first of which every patch release does it, 0 if that is Since
	Text   string // what an apiserver does since
	Source string // where the sources say it
}

// Facts the replica looks at. Those of Kubernetes before 1.28 stand where they are used.
var (
	LoopbackAuthenticated = Fact{29, 32, "the apiserver's own identity is in `system:authenticated` beside `system:masters`",
		"k8s.io/apiserver pkg/server/config.go (AuthorizeClientBearerToken)"}
	NodeSlices = Fact{30, 0, "resource slices are divided among nodes",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (Authorize)"}
	NodeSliceCollections = Fact{31, 0, "nodes delete collections of resource slices",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (authorizeResourceSlice)"}
	CertificateID = Fact{32, 0, "client certificates leave a credential id",
		"k8s.io/apiserver pkg/authentication/request/x509/x509.go (CommonNameUserConversion)"}
	NodeEphemeral = Fact{33, 0, "an ephemeral container has its pod's references taken anew",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/graph_populator.go (updatePod)"}
	NodeAccounts = Fact{33, 0, "the node authorizer has a rule for reading service accounts",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (authorizeServiceAccount)"}
	NodeEvents = Fact{35, 0, "nodes write events of `events.k8s.io`",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (NodeRules)"}
	NamedReasons = Fact{37, 0, "the reason of a refusal has the authorizer's name before it: `node: …`, `rbac: …`",
		"k8s.io/apiserver pkg/authorization/union/union.go (Authorize)"}
	NodeVolumeHealth = Fact{37, 0, "the node authorizer tells the status of a CSINode from its other subresources",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (authorizeCSINode)"}
)

// Has reports whether a fact holds in the newest patch release.
func (r *Release) Has(f Fact) bool { return r.Minor >= f.Since }

// MayLack reports whether there are patch releases in which a fact does not hold.
func (r *Release) MayLack(f Fact) bool { return r.Minor < max(f.Since, f.Always) }
