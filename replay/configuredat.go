package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/replay/config"
)

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
