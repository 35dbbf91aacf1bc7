package replay

import (
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/verdict"
)

// candidateConfig is a configuration the apiserver may have had instead of the one at base.
type candidateConfig struct {
	*configured
	class string // of a verdict that it explains
	text  string // what tells it apart
}

// candidateConfigs collects configurations that decide otherwise than the one at base.
type candidateConfigs struct {
	base *authz.Chain
	list []candidateConfig
}

func (cs *candidateConfigs) add(in *configured, class, text string) {
	if in.chain != cs.base && !slices.ContainsFunc(cs.list, func(c candidateConfig) bool { return c.chain == in.chain }) {
		cs.list = append(cs.list, candidateConfig{in, class, text})
	}
}

// otherConfigurations returns those that may have been in force during a window instead of the
// one the replica used: before or after a change of it; where it is not known which apiserver
// sent the event, those of all that may have; and other versions of Kubernetes, where the log
// shows them.
func (t *trial) otherConfigurations(from, to time.Time) []candidateConfig {
	cs := candidateConfigs{base: t.base.chain}
	if t.history != nil {
		raced := func(cfg *config.APIServer, at time.Time, text string) {
			if cfg != nil && cfg != t.in.cfg {
				cs.add(t.compiled(cfg, at), verdict.ClassConfigRaced, "configuration "+text)
			}
		}
		raced(t.history.At(from), from, "before the apiserver's configuration changed")
		raced(t.history.Settling(from), from, "before the apiserver read its new configuration")
		raced(t.history.Settling(t.base.At), t.base.At, "before the apiserver read its new configuration")
		raced(t.history.At(to), to, "after the apiserver's configuration changed")
	}
	t.merged(&cs)
	t.otherReleases(&cs)
	return cs.list
}

// merged adds the configurations of single kube-apiservers, one of which may have sent an event
// that does not say who did, or somebody without a configuration of their own.
func (t *trial) merged(cs *candidateConfigs) {
	for _, name := range t.history.Servers() {
		cfg := t.history.Server(name).At(t.base.At)
		if cfg == nil || cfg.Source != "" {
			continue
		}
		cs.add(t.eng.configured(cfg, nil, t.learned(cfg, name, t.base.At)), verdict.ClassSeveral, "configuration of the apiserver "+name)
	}
}

// otherReleases adds the configuration at base under the other versions that the log shows.
func (t *trial) otherReleases(cs *candidateConfigs) {
	kube, speaks := t.asked(t.in.cfg, t.base.At)
	given := t.given(speaks) > 0
	for i, minor := range t.releases(t.e.Server, t.base.At) {
		switch {
		case given && t.differs(speaks, minor):
			cs.add(t.eng.configured(t.in.cfg, kube, minor), verdict.ClassVersion,
				"rules of Kubernetes "+releaseName(minor)+", which the apiserver says it is, and not with those of the "+
					"version that was given")
		case !given && i > 0:
			cs.add(t.eng.configured(t.in.cfg, kube, minor), verdict.ClassSeveral,
				"rules of Kubernetes "+releaseName(minor)+", of which there was an apiserver at that time too")
		}
	}
}

// given returns the version that was given, 0 for none.
func (t *trial) given(cfg *config.APIServer) int {
	switch {
	case cfg == nil:
		return t.eng.cfg.KubernetesMinor
	case cfg.Guessed:
		return 0
	}
	return cfg.Minor
}

// releaseName returns a minor version as people write it.
func releaseName(minor int) string { return "1." + strconv.Itoa(minor) }

// differs reports whether a version an apiserver was seen with contradicts the one that was given.
func (t *trial) differs(cfg *config.APIServer, minor int) bool {
	given := t.given(cfg)
	return given > 0 && given != minor && (cfg == nil || !cfg.Emulates)
}

// unseenRelease returns the version of Kubernetes, the newest, under which the policy at base
// gives what is recorded, where the log does not show the apiserver's; 0 for none. given says
// that another was given.
func (t *trial) unseenRelease(rec *record) (minor int, given bool) {
	kube, speaks := t.asked(t.in.cfg, t.base.At)
	given = t.given(speaks) > 0
	if len(t.releases(t.e.Server, t.base.At)) > 0 {
		return 0, given
	}
	for _, r := range slices.Backward(release.All()) {
		m := t.base
		if m.chain = t.eng.configured(t.in.cfg, kube, r.Minor).chain; m.chain == t.base.chain {
			continue
		}
		ans := t.askAgain(&m)
		if ok, _ := agreesWith(&ans, rec, t.bufs.reason); ok {
			return r.Minor, given
		}
	}
	return 0, given
}
