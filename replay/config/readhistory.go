package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// versionList is versions.yaml: what was in force when, if folders are not named by times.
type versionList struct {
	Versions []versionEntry `json:"versions"`
}

type versionEntry struct {
	// From is RFC 3339; the first version may leave it out: always before.
	From string `json:"from"`
	// Dir is a folder with a whole configuration, "." for the one versions.yaml is in.
	Dir string `json:"dir"`
	// AuthorizationConfig and AuthenticationConfig are files that replaced those in force while
	// the apiserver ran. Without Dir.
	AuthorizationConfig  string `json:"authorizationConfig"`
	AuthenticationConfig string `json:"authenticationConfig"`
	// Restart: the apiserver was restarted, although nothing else changed.
	Restart bool `json:"restart"`
}

// planned is one version to read.
type planned struct {
	from     time.Time
	folder   string
	override map[string]string // within folder, by flag
	restart  bool
	reload   bool // only files a running apiserver re-reads are given
}

// loaded is a version as read, for comparison with the next one.
type loaded struct {
	b *builder
	// start is what a running apiserver does not change; types are the authorizer types it
	// was started with.
	start     string
	types     []AuthorizerType
	anonymous Anonymous
}

// ReadHistory reads a cluster's configuration over time from a folder: the folder itself
// (always), sub-folders named by the time from which they apply, or what versions.yaml lists;
// those of single kube-apiservers, if they differ, in apiservers/NAME; and those of aggregated
// API servers in aggregated/NAME; each with versions in turn. The folder itself may be empty if
// all kube-apiservers have one of their own.
//
// Between two versions that differ only in the files of --authorization-config and
// --authentication-config the apiserver is assumed to have kept running: it then keeps what it
// had if a file is invalid, if a type of authorizer it started with is gone or a new one would
// have to be started, and if the file changes who is anonymous. The report warns of each. After
// any other change it was restarted, and the configuration must be valid.
//
// It returns an error for what no apiserver could run with, or is ambiguous: no or two
// configurations, flags that exclude each other, a policy file with a bad line. The error names
// file and line and never quotes a credential. A missing file is not an error: what depends on
// it is Unknown in the result, and the report says so. With an error, the report is returned as
// far as it came.
func ReadHistory(fsys fs.FS) (*History, *Report, error) {
	h, report := &History{}, &Report{}
	own, err := folders(fsys, serversFolder)
	if err != nil {
		return nil, report, err
	}
	if len(own) > 0 {
		if h.divided, err = nothingIn(fsys); err != nil {
			return nil, report, err
		}
	}
	if !h.divided {
		if err := readVersions(fsys, ".", Options{}, h, report); err != nil {
			return nil, report, err
		}
	}
	if err := readServers(fsys, own, h, report, func(name string) Options { return Options{Server: name} }); err != nil {
		return nil, report, err
	}
	aggregated, err := folders(fsys, aggregatedFolder)
	if err != nil {
		return nil, report, err
	}
	parent := h.newest()
	if parent == nil && len(own) > 0 {
		parent = h.servers[path.Base(own[0])].newest()
	}
	err = readServers(fsys, aggregated, h, report, func(name string) Options { return Options{Source: name, Parent: parent} })
	return h, report, err
}

// folders returns the sub-folders of a folder, each of which holds a server; none if there is no
// such folder.
func folders(fsys fs.FS, in string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, in)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, readError(in, err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, path.Join(in, e.Name()))
		}
	}
	return out, nil
}

// readServers reads the history of a server from each of the folders.
func readServers(fsys fs.FS, dirs []string, h *History, report *Report, options func(name string) Options) error {
	for _, dir := range dirs {
		name := path.Base(dir)
		sub, err := fs.Sub(fsys, dir)
		if err != nil {
			return readError(dir, err)
		}
		if h.servers[name] != nil {
			return fmt.Errorf("%s: there is also a folder %s: only one of them may use the apiserver's name", dir,
				path.Join(serversFolder, name))
		}
		server := &History{}
		if err := readVersions(sub, dir, options(name), server, report); err != nil {
			return err
		}
		h.AddServer(name, server)
	}
	return nil
}

// nothingIn reports whether a folder holds no configuration, of any time, except those of single
// servers.
func nothingIn(fsys fs.FS) (bool, error) {
	plan, err := planOf(fsys, false)
	if err != nil || len(plan) != 1 || plan[0].folder != "." {
		return false, err
	}
	if _, err := fs.Stat(fsys, versionsFile); err == nil {
		return false, nil
	}
	t, err := newTree(fsys, nil)
	if err != nil {
		return false, err
	}
	return !t.holdsServer(false), nil
}

func (h *History) newest() *APIServer {
	if h == nil || len(h.versions) == 0 {
		return nil
	}
	return h.versions[len(h.versions)-1].cfg
}

// readVersions reads all versions of one server. at is the path of fsys in the folder that was
// named, for messages.
func readVersions(fsys fs.FS, at string, o Options, h *History, report *Report) error {
	plan, err := planOf(fsys, o.Source != "")
	if err != nil {
		return within(at, err)
	}
	if !plan[0].from.IsZero() {
		h.Add(time.Time{}, Unknown("the apiserver's configuration before "+plan[0].from.Format(time.RFC3339)))
	}
	for _, p := range plan {
		o.other = append(o.other, p.folder)
	}
	var running *loaded
	for _, p := range plan {
		folder := path.Join(at, p.folder)
		sub, err := fs.Sub(fsys, p.folder)
		if err != nil {
			return within(folder, err)
		}
		b, err := read(sub, folder, o, p.override)
		if b != nil {
			b.r.From = p.from
			report.Versions = append(report.Versions, b.r)
		}
		if err != nil {
			return within(folder, err)
		}
		next := &loaded{b: b, start: b.startDigest(), types: required(b.a.Authorization.Authorizers),
			anonymous: b.a.Authentication.Anonymous}
		reload := running != nil && !p.restart && b.authzFile == running.b.authzFile && b.authnFile == running.b.authnFile &&
			(b.authzFile || b.authnFile) && next.start == running.start
		if p.reload && !reload {
			return within(folder, fmt.Errorf("%s: authorizationConfig and authenticationConfig replace files that the apiserver was "+
				"started with (--authorization-config, --authentication-config), but it was not",
				versionsFile))
		}
		switch {
		case reload:
			running.reloaded(next)
		case b.authnErr != nil || b.authzErr != nil:
			return within(folder, errors.Join(b.authnErr, b.authzErr))
		}
		b.finish()
		if reload {
			h.AddReload(p.from, b.a)
		} else {
			h.Add(p.from, b.a)
		}
		running = next
	}
	return nil
}

func within(folder string, err error) error {
	if folder == "." {
		return err
	}
	return fmt.Errorf("%s: %w", folder, err)
}

// startDigest returns a digest of everything an apiserver reads only at its start.
func (b *builder) startDigest() string {
	c := *b.a
	if b.authzFile {
		c.Authorization = Authorization{Authorizers: []Authorizer{{Policy: b.policy, Unknown: b.policyUnknown}}}
	}
	if b.authnFile {
		c.Authentication.JWT, c.Authentication.JWTUnknown = nil, ""
		c.Authentication.Anonymous = Anonymous{}
	}
	return digest(&c)
}

// reloaded applies what was read as a running apiserver would. next continues with what it was
// started with.
func (l *loaded) reloaded(next *loaded) {
	b, old := next.b, l.b.a
	keep := func(what string, err error) {
		b.r.warn("%s: a running apiserver does not accept it and keeps what it had: %v; if it was restarted, set restart: true in %s",
			what, err, versionsFile)
	}
	next.types, next.anonymous = l.types, l.anonymous
	if b.authzFile && old.Authorization.Unknown == "" && b.a.Authorization.Unknown == "" {
		err := b.authzErr
		if err == nil {
			err = reloadable(l.types, b.a.Authorization.Authorizers)
		}
		if err != nil {
			keep("--authorization-config", err)
			b.a.Authorization.Authorizers = old.Authorization.Authorizers
		}
	} else if b.authzErr != nil {
		b.a.Authorization.Unknown, b.a.Authorization.Authorizers = old.Authorization.Unknown, nil
	}
	if !b.authnFile {
		return
	}
	err := b.authnErr
	if err == nil && b.a.Authentication.JWTUnknown == "" && l.b.a.Authentication.JWTUnknown == "" &&
		!reflect.DeepEqual(b.a.Authentication.Anonymous, l.anonymous) {
		err = errors.New("who is anonymous must not change")
	}
	if err != nil {
		keep("--authentication-config", err)
		b.a.Authentication.JWT, b.a.Authentication.JWTUnknown = old.Authentication.JWT, old.Authentication.JWTUnknown
	}
	b.a.Authentication.Anonymous = l.anonymous
}

// reloadable returns an error if a chain cannot replace the running one: what the apiserver was
// started with must stay, and what needs a start cannot be added.
func reloadable(started []AuthorizerType, list []Authorizer) error {
	var now []AuthorizerType
	for _, z := range list {
		now = append(now, z.Type)
		if (z.Type == Node || z.Type == RBAC || z.Type == ABAC) && !slices.Contains(started, z.Type) {
			return fmt.Errorf("%s cannot be added while the apiserver runs", z.Type)
		}
	}
	for _, t := range started {
		if !slices.Contains(now, t) {
			return fmt.Errorf("%s was configured when the apiserver started and must stay", t)
		}
	}
	return nil
}

// planOf lists the versions in a folder, oldest first.
func planOf(fsys fs.FS, aggregated bool) ([]planned, error) {
	if data, err := fs.ReadFile(fsys, versionsFile); err == nil {
		return planFile(data)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, readError(versionsFile, err)
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, readError("the folder", err)
	}
	var plan []planned
	for _, e := range entries {
		if from, ok := folderTime(e.Name()); ok && e.IsDir() {
			plan = append(plan, planned{from: from, folder: e.Name()})
		}
	}
	slices.SortFunc(plan, func(a, b planned) int { return a.from.Compare(b.from) })
	for i := 1; i < len(plan); i++ {
		if plan[i].from.Equal(plan[i-1].from) {
			return nil, fmt.Errorf("%s and %s are of the same time", plan[i-1].folder, plan[i].folder)
		}
	}
	if len(plan) > 0 {
		// Files beside the folders are the version before them, if they are one at all.
		t, err := newTree(fsys, nil)
		if err != nil {
			return nil, err
		}
		if !t.holdsServer(aggregated) {
			return plan, nil
		}
	}
	return slices.Insert(plan, 0, planned{folder: "."}), nil
}

// holdsServer reports whether one of the files is, or is meant to be, a server's manifest or flags.
func (t *tree) holdsServer(aggregated bool) bool {
	return slices.ContainsFunc(t.files, func(p string) bool {
		m, fl, err := t.server(p, aggregated)
		return m != nil || fl != nil || err != nil
	})
}

func planFile(data []byte) ([]planned, error) {
	var list versionList
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", versionsFile, err)
	}
	if len(list.Versions) == 0 {
		return nil, fmt.Errorf("%s: it lists no versions", versionsFile)
	}
	var plan []planned
	for i, e := range list.Versions {
		p := planned{folder: e.Dir, restart: e.Restart}
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%s: versions[%d]: %s", versionsFile, i, fmt.Sprintf(format, args...))
		}
		if e.From != "" {
			from, err := time.Parse(time.RFC3339Nano, e.From)
			if err != nil {
				return nil, fail("from: invalid time %q: want RFC 3339, such as 2026-11-20T18:30:00Z", e.From)
			}
			p.from = from.UTC()
		}
		if i > 0 && !p.from.After(plan[i-1].from) {
			return nil, fail("from must be later than that of the version above")
		}
		switch files := e.AuthorizationConfig != "" || e.AuthenticationConfig != ""; {
		case files && (e.Dir != "" || e.Restart):
			return nil, fail("authorizationConfig and authenticationConfig are what a running apiserver rereads: set them without dir " +
				"and restart")
		case files && i == 0:
			return nil, fail("the first version must be a whole one: set dir")
		case files:
			if err := p.files(plan[i-1], e); err != nil {
				return nil, fail("%v", err)
			}
		case e.Dir == "":
			return nil, fail("dir is missing: name the folder with the configuration, . for this one")
		case !fs.ValidPath(path.Clean(e.Dir)):
			return nil, fail("dir: %q is not in this folder", e.Dir)
		default:
			p.folder = path.Clean(e.Dir)
		}
		plan = append(plan, p)
	}
	return plan, nil
}

// files makes a version from the one before it, with other files in place of two of its own.
func (p *planned) files(before planned, e versionEntry) error {
	p.folder, p.reload, p.override = before.folder, true, map[string]string{}
	maps.Copy(p.override, before.override)
	for name, file := range map[string]string{"authorization-config": e.AuthorizationConfig,
		"authentication-config": e.AuthenticationConfig} {
		if file == "" {
			continue
		}
		clean := path.Clean(file)
		if before.folder != "." {
			rel, ok := strings.CutPrefix(clean, before.folder+"/")
			if !ok {
				return fmt.Errorf("%q is not in %s, the folder of the version it changes", file, before.folder)
			}
			clean = rel
		}
		if !fs.ValidPath(clean) {
			return fmt.Errorf("%q is not in this folder", file)
		}
		p.override[name] = clean
	}
	return nil
}
