package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/replay/admission"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
)

// configured is an apiserver's configuration with what the engine made of it.
type configured struct {
	cfg, kube *config.APIServer // as they were given; kube: of the kube-apiserver a delegating server asks
	minor     int               // the version that was learned, or is tried; 0: what cfg says
	// rules are cfg with that version. Without cfg they say nothing but the version, and are
	// nil where nobody says that either.
	rules     *config.APIServer
	chain     *authz.Chain
	authn     *authn.Evaluator
	admission *admission.Plugins
	text      string // the configuration, as verdicts carry it
}

// given returns the configuration by which identities and admission are judged, nil if none
// was given.
func (c *configured) given() *config.APIServer {
	if c.cfg == nil {
		return nil
	}
	return c.rules
}

// chains are the configurations an engine has compiled. Reading takes no lock.
type chains struct {
	known atomic.Pointer[[]*configured]
}

// maxConfigured bounds the configurations that are kept compiled; behind it the oldest goes.
const maxConfigured = 256

// ReleaseInConfig stands in Verdict.Config before the version of an apiserver that was learned
// from its log: what follows is not of the configuration that was given.
const ReleaseInConfig = ";release=1."

// configured returns a configuration compiled. kube matters to delegating servers only; minor
// is a version that holds instead of what the configuration says, 0 for none.
func (eng *Engine) configured(cfg, kube *config.APIServer, minor int) *configured {
	if cfg == nil || !cfg.Authorization.Delegated {
		kube = nil
	}
	known := eng.chains.known.Load()
	if known != nil {
		for _, k := range *known {
			if k.cfg == cfg && k.kube == kube && k.minor == minor {
				return k
			}
		}
	}
	made := &configured{cfg: cfg, kube: kube, minor: minor, authn: eng.authn, rules: versioned(cfg, minor)}
	if known != nil {
		for _, k := range *known {
			if k.minor == minor && sameConfiguration(k.cfg, cfg) && sameConfiguration(k.kube, kube) {
				made.chain, made.text = k.chain, k.text
			}
		}
	}
	switch {
	case made.chain != nil:
	case cfg == nil:
		eng.assume(made)
	default:
		if cfg.Authorization.Delegated {
			made.chain = authz.Delegated(cfg, versioned(kube, minor))
		} else {
			made.chain = authz.New(made.rules)
		}
		made.text = "authorizers=" + strings.Join(made.chain.Names()[1:], ",") + eng.options + ";apiserver=" + cfg.Digest
		if made.rules != cfg {
			made.text += ReleaseInConfig + strconv.Itoa(minor)
		}
	}
	if cfg != nil {
		made.admission = admission.New(made.rules)
	}
	for { // somebody else may add one at the same time
		var next []*configured
		if known = eng.chains.known.Load(); known != nil {
			next = slices.Clone(*known)
		}
		if next = append(next, made); len(next) > maxConfigured {
			next = slices.Delete(next, 0, 1)
		}
		if eng.chains.known.CompareAndSwap(known, &next) {
			return made
		}
	}
}

// assume compiles what holds of an apiserver whose configuration nobody gave.
func (eng *Engine) assume(c *configured) {
	minor, text := c.minor, eng.config
	switch {
	case minor == 0:
		minor = eng.cfg.KubernetesMinor
	case minor != eng.cfg.KubernetesMinor:
		text += ReleaseInConfig + strconv.Itoa(minor)
		c.authn = newAuthn(eng.cfg, minor)
	}
	c.chain, c.admission, c.text = authz.Assume(minor), admission.Assume(minor), text
	if minor > 0 {
		c.rules = &config.APIServer{Minor: minor}
	}
}

// versioned returns a configuration as it is of another version, 0 for its own.
func versioned(cfg *config.APIServer, minor int) *config.APIServer {
	if cfg == nil || minor == 0 || minor == cfg.Minor {
		return cfg
	}
	is := *cfg
	is.Minor, is.Emulates, is.Binary = minor, false, 0
	return &is
}

func sameConfiguration(a, b *config.APIServer) bool {
	return a == b || a != nil && b != nil && a.Digest != "" && a.Digest == b.Digest
}

// configure takes the configuration of the time at which the request is decided.
func (t *trial) configure(at time.Time) *configured {
	if t.eng.cfg.Apiserver != nil && t.s != nil {
		t.history = t.eng.cfg.Apiserver(t.s.Cluster(), t.e.Server)
	}
	t.in = t.compiled(t.history.At(at), at)
	t.cfg, t.v.Config = t.in.given(), t.in.text
	return t.in
}

// compiled returns a configuration with its chain. What a delegating server's kube-apiserver
// was told at that time belongs to it, and so does the version that was learned.
func (t *trial) compiled(cfg *config.APIServer, at time.Time) *configured {
	kube, speaks := t.asked(cfg, at)
	return t.eng.configured(cfg, kube, t.learned(speaks, t.e.Server, at))
}

// asked returns the configuration of the kube-apiserver that one asks which delegates, nil for
// one that does not, and of the two the one whose version decides.
func (t *trial) asked(cfg *config.APIServer, at time.Time) (kube, speaks *config.APIServer) {
	if cfg == nil || !cfg.Authorization.Delegated {
		return nil, cfg
	}
	kube = t.eng.asked(cfg, t.s.Cluster(), at)
	return kube, kube
}

// learned returns the likeliest version of an apiserver whose configuration does not say it, by its
// log; 0 where that does not tell, and where the configuration does.
func (t *trial) learned(cfg *config.APIServer, server string, at time.Time) int {
	if t.given(cfg) > 0 {
		return 0
	}
	if seen := t.releases(server, at); len(seen) > 0 {
		return seen[0]
	}
	return 0
}

// releases returns the minor versions an apiserver may have been of by its log, likeliest first.
func (t *trial) releases(server string, at time.Time) []int {
	if t.s == nil {
		return nil
	}
	t.bufs.releases = t.s.Releases(server, at, t.bufs.releases[:0])
	return t.bufs.releases
}

// ConfigsAt returns the configurations by which a request is judged that an apiserver took at a
// time, as its verdict carries them but for the version, which is learned from the log
// ([ReleaseInConfig]): that which is taken first, and those of single apiservers any of which
// may have sent an event that does not say who did.
func (eng *Engine) ConfigsAt(cluster, server string, at time.Time) []string {
	if eng.cfg.Apiserver == nil {
		return []string{eng.config}
	}
	h := eng.cfg.Apiserver(cluster, server)
	cfg := h.At(at)
	out := []string{eng.configured(cfg, eng.asked(cfg, cluster, at), 0).text}
	for _, alike := range h.Alike(at) {
		out = append(out, eng.configured(alike, nil, 0).text)
	}
	return out
}

// asked returns the configuration of the kube-apiserver that one asks which delegates, nil for
// one that does not.
func (eng *Engine) asked(cfg *config.APIServer, cluster string, at time.Time) *config.APIServer {
	if cfg == nil || !cfg.Authorization.Delegated {
		return nil
	}
	kube := eng.cfg.Apiserver(cluster, "").At(at)
	if kube == cfg {
		return nil
	}
	return kube
}

// ConfigOf names everything by which requests of a cluster are judged, whenever they were made:
// equal names judge alike.
func (eng *Engine) ConfigOf(cluster string) string {
	var b strings.Builder
	b.WriteString(eng.config)
	if eng.cfg.Apiserver != nil {
		write := func(server string, h *config.History) {
			h.Visit(func(from time.Time, cfg *config.APIServer) {
				fmt.Fprintf(&b, "\n%s from %d %s", server, from.UnixNano(), cfg.Digest)
			})
		}
		kube := eng.cfg.Apiserver(cluster, "")
		write("", kube)
		for _, server := range kube.Servers() {
			write(server, kube.Server(server))
		}
	}
	return fmt.Sprintf("%016x", xxhash.Sum64String(b.String()))
}
