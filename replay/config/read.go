package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Files and folders with a meaning of their own.
const (
	serverFile       = "server.yaml"
	versionsFile     = "versions.yaml"
	aggregatedFolder = "aggregated"
	serversFolder    = "apiservers"
)

// Options are what Read cannot find in a folder.
type Options struct {
	// Minor is the Kubernetes minor version if nothing in the folder states it, 0 for a
	// current one.
	Minor int
	// Source, if not empty, means that the flags are those of the aggregated API server of
	// that name.
	Source string
	// Parent is the configuration of the kube-apiserver an aggregated API server delegates
	// to: what it looks up there instead of being given flags. May be nil.
	Parent *APIServer
	// Server names one of several kube-apiservers, "" for all of them.
	Server string

	other []string // folders that hold other versions
}

// serverSettings is server.yaml: what neither a manifest nor flags can state.
type serverSettings struct {
	// KubernetesVersion is "1.17"; an image's tag in a manifest is not needed then.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Source: the flags are those of the aggregated API server of this name.
	Source string `json:"source"`
	// Complete: the flags are all the server has, however few they look; an aggregated API
	// server may have none.
	Complete bool `json:"complete"`
}

// read reads the folder of one configuration: it holds a static-pod manifest or a file with the flags, and the files these name,
// as a flat or a mirrored copy. Errors in the two files that a running apiserver
// rereads are left in authnErr and authzErr: a running one would go on without them. override
// names files, by flag, that replace those the flags name.
func read(fsys fs.FS, folder string, o Options, override map[string]string) (*builder, error) {
	t, err := newTree(fsys, o.other)
	if err != nil {
		return nil, err
	}
	b := &builder{t: t, a: &APIServer{Minor: o.Minor, Source: o.Source}, r: &Reading{Folder: folder}, parent: o.Parent, override: override}
	settings, err := t.settings()
	if err != nil {
		return nil, err
	}
	if settings.Source != "" {
		b.a.Source = settings.Source
	}
	if err := b.findServer(settings); err != nil {
		return b, err
	}
	if b.r.Server, b.r.Aggregated = b.a.Source, b.a.Source != ""; !b.r.Aggregated {
		b.r.Server = o.Server
	}
	return b, b.build()
}

func (t *tree) settings() (serverSettings, error) {
	var s serverSettings
	if !slices.Contains(t.files, serverFile) {
		return s, nil
	}
	data, err := t.read(serverFile)
	if err != nil {
		return s, err
	}
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w: it may set kubernetesVersion, source and complete", serverFile, err)
	}
	if s.KubernetesVersion != "" && minorOf(s.KubernetesVersion) == 0 {
		return s, fmt.Errorf("%s: invalid kubernetesVersion %q: want one such as 1.36", serverFile, s.KubernetesVersion)
	}
	return s, nil
}

// findServer finds the manifest or the flags.
func (b *builder) findServer(settings serverSettings) error {
	aggregated := b.a.Source != ""
	var found []string
	for _, p := range b.t.files {
		m, fl, err := b.t.server(p, aggregated)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		switch {
		case m != nil:
			b.f, b.t.mounts = flagsOf(m.words, p), m.mounts
			if !aggregated && m.minor > 0 {
				b.a.Minor = m.minor
			}
			b.r.understood(p, "a manifest, %d flags", len(b.f.list))
		case fl != nil:
			b.f = fl
			b.r.understood(p, "%d flags", len(fl.list))
		default:
			continue
		}
		found = append(found, p)
	}
	switch {
	case len(found) == 1:
	case len(found) == 0 && aggregated && settings.Complete:
		b.f = &flags{file: serverFile} // what it delegates goes without flags
		return nil
	case len(found) == 0:
		return fmt.Errorf("it holds no configuration of an apiserver: want its static-pod manifest (kube-apiserver.yaml), or its flags " +
			"in a file named *.flags " +
			"(one flag a line, or a copy of /proc/PID/cmdline), beside the files they name")
	default:
		return fmt.Errorf("%s: each is the configuration of an apiserver: keep one, and put those of other times "+
			"into sub-folders named by the time from which they apply, such as 2026-11-20T18:30:00Z",
			strings.Join(found, " and "))
	}
	b.t.used[found[0]], b.t.used[versionsFile] = true, true
	if len(b.f.list) == 0 {
		return fmt.Errorf("%s: it sets no flag: copy the whole command line", found[0])
	}
	if m := minorOf(settings.KubernetesVersion); m > 0 {
		b.a.Minor = m
	}
	b.complete = settings.Complete
	return nil
}

// server reads a file if it holds a server's manifest or flags.
func (t *tree) server(p string, aggregated bool) (*manifest, *flags, error) {
	base := path.Base(p)
	ext := path.Ext(base)
	switch ext {
	case ".yaml", ".yml", ".json", ".manifest":
		if base == serverFile || base == versionsFile {
			return nil, nil, nil
		}
		data, err := t.peek(p)
		if err != nil || data == nil {
			return nil, nil, err
		}
		if m, err := manifestOf(data, aggregated); m != nil || err != nil {
			return m, nil, err
		}
		if words, err := t.rancher(p, data); words != nil || err != nil {
			return nil, flagsOf(words, p), err
		}
		if ext != ".json" || !strings.Contains(base, "apiserver") {
			return nil, nil, nil
		}
	case ".flags", ".args", ".cmdline":
	case "", ".service", ".conf", ".env", ".sh", ".log", ".txt":
		if base != "cmdline" && !strings.Contains(base, "apiserver") {
			return nil, nil, nil
		}
	default:
		return nil, nil, nil
	}
	data, err := t.peek(p)
	if err != nil || data == nil {
		return nil, nil, err
	}
	words, err := wordsOf(data)
	if err != nil {
		return nil, nil, err
	}
	fl := flagsOf(words, p)
	if len(fl.list) == 0 && ext != ".flags" {
		return nil, nil, nil
	}
	return nil, fl, nil
}

// peek reads a file that may not be part of the configuration; one that is too large is not.
func (t *tree) peek(p string) ([]byte, error) {
	info, err := fs.Stat(t.fsys, p)
	if err != nil {
		return nil, readError(p, err)
	}
	if info.IsDir() || info.Size() > maxBytes {
		return nil, nil
	}
	data, err := fs.ReadFile(t.fsys, p)
	if err != nil {
		return nil, readError(p, err)
	}
	return data, nil
}

// Report is how a folder was understood: for people, in the order in which it was read.
type Report struct {
	Versions []*Reading `json:"versions"`
}

// Reading is how one configuration was understood.
type Reading struct {
	// From is since when it is in force, zero for always.
	From time.Time `json:"from,omitzero"`
	// Folder is its path in the folder read, "." for that one.
	Folder string `json:"folder"`
	// Server is the name of a single apiserver, "" for all kube-apiservers without a
	// configuration of their own.
	Server string `json:"server,omitempty"`
	// Aggregated: the server is an aggregated API server.
	Aggregated bool `json:"aggregated,omitempty"`
	// Version is "1.36", "" if nothing states it.
	Version string `json:"kubernetesVersion,omitempty"`
	Digest  string `json:"digest"`
	// Authenticators and Authorizers are those it runs, in the order they are asked.
	Authenticators []Note `json:"authenticators"`
	Authorizers    []Note `json:"authorizers"`
	// Understood are the files and flags that are used, Ignored those that decide neither
	// identities nor what is allowed, with the reason.
	Understood []Note `json:"understood"`
	Ignored    []Note `json:"ignored,omitempty"`
	// Missing are files and flags that were not given, with what remains unknown without
	// them: the ones to add.
	Missing []Note `json:"missing,omitempty"`
	// NotEvaluable is what stays open although it was understood, since no log shows it.
	NotEvaluable []Note `json:"notEvaluable,omitempty"`
	// Warnings are likely mistakes, and settings that weaken the cluster.
	Warnings []string `json:"warnings,omitempty"`
}

// Note is one line of a report.
type Note struct {
	Subject string `json:"subject"` // a file, a flag or a part, never a credential
	Text    string `json:"text"`
}

// Complete reports whether nothing is missing from any version.
func (r *Report) Complete() bool {
	return r != nil && !slices.ContainsFunc(r.Versions, func(v *Reading) bool { return len(v.Missing) > 0 })
}

func (v *Reading) understood(subject, format string, args ...any) {
	v.Understood = append(v.Understood, Note{subject, fmt.Sprintf(format, args...)})
}

func (v *Reading) open(subject, format string, args ...any) {
	v.NotEvaluable = append(v.NotEvaluable, Note{subject, fmt.Sprintf(format, args...)})
}

func (v *Reading) missing(subject, format string, args ...any) {
	v.Missing = append(v.Missing, Note{subject, fmt.Sprintf(format, args...)})
}

func (v *Reading) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}
