package replay

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
)

// configured is an apiserver's configuration with what the engine made of it.
type configured struct {
	cfg, kube *config.APIServer // kube: of the kube-apiserver a delegating server asks
	chain     *authz.Chain
	text      string // the configuration, as verdicts carry it
}

// chains are the configurations an engine has compiled. Reading takes no lock.
type chains struct {
	plain *configured // of an apiserver about which nothing is known
	known atomic.Pointer[[]*configured]
}

// maxConfigured bounds the configurations that are kept compiled; behind it the oldest goes.
const maxConfigured = 256

// of returns a configuration compiled. kube matters to delegating servers only.
func (c *chains) of(cfg, kube *config.APIServer, engine string) *configured {
	if cfg == nil {
		return c.plain
	}
	if !cfg.Authorization.Delegated {
		kube = nil
	}
	known := c.known.Load()
	if known != nil {
		for _, k := range *known {
			if k.cfg == cfg && k.kube == kube {
				return k
			}
		}
	}
	made := &configured{cfg: cfg, kube: kube}
	if known != nil {
		for _, k := range *known {
			if sameConfiguration(k.cfg, cfg) && sameConfiguration(k.kube, kube) {
				made.chain, made.text = k.chain, k.text
			}
		}
	}
	if made.chain == nil {
		if kube != nil || cfg.Authorization.Delegated {
			made.chain = authz.Delegated(cfg, kube)
		} else {
			made.chain = authz.New(cfg)
		}
		made.text = "authorizers=" + strings.Join(made.chain.Names()[1:], ",") + engine + ";apiserver=" + cfg.Digest
	}
	for { // somebody else may add one at the same time
		var next []*configured
		if known = c.known.Load(); known != nil {
			next = slices.Clone(*known)
		}
		if next = append(next, made); len(next) > maxConfigured {
			next = slices.Delete(next, 0, 1)
		}
		if c.known.CompareAndSwap(known, &next) {
			return made
		}
	}
}

func sameConfiguration(a, b *config.APIServer) bool {
	return a == b || a != nil && b != nil && a.Digest != "" && a.Digest == b.Digest
}

// configure takes the configuration of the time at which the request is decided.
func (t *trial) configure(at time.Time) *configured {
	if t.eng.cfg.Apiserver != nil && t.s != nil {
		t.history = t.eng.cfg.Apiserver(t.s.Cluster(), t.e.Server)
	}
	in := t.configuredAt(at)
	t.cfg, t.v.Config = in.cfg, in.text
	return in
}

// configuredAt returns the configuration in force at a time.
func (t *trial) configuredAt(at time.Time) *configured {
	return t.compiled(t.history.At(at), at)
}

// compiled returns a configuration with its chain. What a delegating server's kube-apiserver
// was told at that time belongs to it.
func (t *trial) compiled(cfg *config.APIServer, at time.Time) *configured {
	var kube *config.APIServer
	if cfg != nil && cfg.Authorization.Delegated {
		kube = t.eng.asked(cfg, t.s.Cluster(), at)
	}
	return t.eng.chains.of(cfg, kube, t.eng.options)
}

// otherConfigurations returns those that may have been in force during a window instead of the
// one the replica used, each with what tells it apart, in words.
func (t *trial) otherConfigurations(from, to time.Time) (out []candidateChain) {
	if t.history == nil {
		return nil
	}
	add := func(cfg *config.APIServer, at time.Time, text string) {
		if cfg == nil || cfg == t.cfg {
			return
		}
		chain := t.compiled(cfg, at).chain
		for _, c := range out {
			if c.chain == chain {
				return
			}
		}
		if chain != t.base.chain {
			out = append(out, candidateChain{chain, text})
		}
	}
	add(t.history.At(from), from, "before the apiserver's configuration changed")
	add(t.history.Settling(from), from, "before the apiserver read its new configuration")
	add(t.history.Settling(t.base.At), t.base.At, "before the apiserver read its new configuration")
	add(t.history.At(to), to, "after the apiserver's configuration changed")
	return out
}

// candidateChain is a chain the apiserver may have had instead of the one at base.
type candidateChain struct {
	chain *authz.Chain
	text  string
}
