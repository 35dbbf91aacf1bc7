package config

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// ReloadWindow is how long after the stated time of a reload of --authorization-config or
// --authentication-config an apiserver may still run with the old file: it rereads its files
// when it is notified of a change, and otherwise once a minute.
const ReloadWindow = time.Minute

// History is a cluster's configuration over time, oldest first: of its kube-apiservers, and of
// those apiservers, aggregated ones included, whose own configuration was given. The zero History
// knows nothing. Once built, it does not change and is safe for concurrent readers.
type History struct {
	versions []version
	servers  map[string]*History
	divided  bool // every kube-apiserver has a configuration of its own
}

type version struct {
	from   time.Time
	cfg    *APIServer
	reload bool // of a running server: the one before it may last into this one's time
}

// Add records that a configuration was in force from a time on, until the next one added. The
// zero time means "always before". A configuration of the same time replaces the other.
func (h *History) Add(from time.Time, cfg *APIServer) { h.add(version{from: from, cfg: cfg}) }

// AddReload is Add for files that a running apiserver rereads: Settling covers the time in which
// it may not have done so yet.
func (h *History) AddReload(from time.Time, cfg *APIServer) {
	h.add(version{from: from, cfg: cfg, reload: true})
}

func (h *History) add(v version) {
	i := len(h.versions)
	for i > 0 && h.versions[i-1].from.After(v.from) {
		i--
	}
	if i > 0 && h.versions[i-1].from.Equal(v.from) {
		h.versions[i-1] = v
		return
	}
	h.versions = slices.Insert(h.versions, i, v)
}

// At returns the configuration in force at a time, nil if none was given.
func (h *History) At(at time.Time) *APIServer {
	if i := h.index(at); i >= 0 {
		return h.versions[i].cfg
	}
	if h != nil && h.divided {
		if alike := h.Alike(at); len(alike) > 0 {
			return alike[0]
		}
	}
	return nil
}

// Settling returns the configuration that may still have been in force at a time instead of At's,
// because a running apiserver reread its successor less than ReloadWindow ago; nil if only At's
// can have been.
func (h *History) Settling(at time.Time) *APIServer {
	i := h.index(at)
	if i < 1 || !h.versions[i].reload || !at.Before(h.versions[i].from.Add(ReloadWindow)) {
		return nil
	}
	before := h.versions[i-1].cfg
	if before.Digest != "" && before.Digest == h.versions[i].cfg.Digest {
		return nil // what was re-read changed nothing
	}
	return before
}

func (h *History) index(at time.Time) int {
	if h == nil {
		return -1
	}
	i := len(h.versions) - 1
	for i >= 0 && h.versions[i].from.After(at) {
		i--
	}
	return i
}

// Visit calls f for every version, oldest first, with the time it came into force (zero: always
// before).
func (h *History) Visit(f func(from time.Time, cfg *APIServer)) {
	if h == nil {
		return
	}
	for _, v := range h.versions {
		f(v.from, v.cfg)
	}
}

// AddServer gives the history of a single apiserver by its name; configurations of an
// aggregated one carry the name as Source.
func (h *History) AddServer(name string, server *History) {
	if h.servers == nil {
		h.servers = map[string]*History{}
	}
	h.servers[name] = server
}

// Server returns the history of a single apiserver by its name, nil if none was given. "" is that
// of all kube-apiservers without one, h itself.
func (h *History) Server(name string) *History {
	if h == nil || name == "" {
		return h
	}
	return h.servers[name]
}

// Of returns the history that applies to what an apiserver of that name sent: its own, otherwise
// that of all kube-apiservers.
func (h *History) Of(server string) *History {
	if own := h.Server(server); own != nil {
		return own
	}
	return h
}

// Alike returns the configurations of single kube-apiservers in force at a time, in the order of
// their names: one of them may apply to what was sent without a name, from merged logs, or by an
// apiserver whose own was not given.
func (h *History) Alike(at time.Time) []*APIServer {
	var out []*APIServer
	for _, name := range h.Servers() {
		if cfg := h.servers[name].At(at); cfg != nil && cfg.Source == "" {
			out = append(out, cfg)
		}
	}
	return out
}

// Servers returns the names of the apiservers with a configuration of their own, sorted.
func (h *History) Servers() []string {
	if h == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(h.servers))
}

// digest returns a short hash of what a configuration means: of every field but the digest
// itself. Field order is fixed and maps are sorted, so it is the same in every process.
func digest(a *APIServer) string {
	plain := *a
	plain.Digest = ""
	text, err := json.Marshal(&plain)
	if err != nil { // strings, numbers, booleans and lists of them
		panic(err)
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
