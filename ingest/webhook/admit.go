package webhook

import (
	"net/http"
	"strings"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"
)

// admit returns nil if the request may post to cluster, otherwise the refusal. It looks at
// the request's path and credentials alone; which cluster the body claims to come from never
// counts.
//
// A client without an accepted credential learns nothing about which clusters exist.
func (h *Handler) admit(r *http.Request, cluster string) *answer {
	if !validCluster(cluster) {
		return refuse(http.StatusNotFound, refusedName,
			"the cluster's name in the path must be a DNS label: 1 to 63 lower-case letters, digits or '-'")
	}
	if h.cfg.Trusted {
		return nil
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return h.admitCertificate(r, cluster)
	}
	if token, ok := bearer(r); ok {
		if err := h.clusters.Token(cluster, token); err != nil {
			h.log.Warn("token refused", zap.String("cluster", cluster), zap.String("remote", r.RemoteAddr), zap.Error(err))
			return refuse(http.StatusUnauthorized, refusedCredential, "the bearer token is not accepted for cluster %s: "+
				"`retrial cluster list` shows which clusters are registered, `retrial cluster add %s` registers one", cluster, cluster)
		}
		return nil
	}
	if h.cfg.Anonymous {
		if h.clusters.Known(cluster) {
			return nil
		}
		h.log.Warn("unknown cluster", zap.String("cluster", cluster), zap.String("remote", r.RemoteAddr))
		return refuse(http.StatusNotFound, refusedCluster, "cluster %s is not registered: `retrial cluster add %s` registers it",
			cluster, cluster)
	}
	h.log.Warn("no credential", zap.String("cluster", cluster), zap.String("remote", r.RemoteAddr))
	return refuse(http.StatusUnauthorized, refusedCredential,
		"no client certificate and no bearer token, or none from this receiver's authority: "+
			"`retrial cluster add %s` writes the webhook configuration with a credential in it", cluster)
}

func (h *Handler) admitCertificate(r *http.Request, cluster string) *answer {
	cert := r.TLS.VerifiedChains[0][0]
	owner, err := h.clusters.Certificate(cert)
	if err != nil {
		h.log.Warn("certificate refused", zap.String("cluster", cluster), zap.String("remote", r.RemoteAddr), zap.Error(err))
		return refuse(http.StatusUnauthorized, refusedCredential,
			"the client certificate is not accepted: %v; `retrial cluster rotate %s` issues a new one", err, owner)
	}
	if owner != cluster {
		h.log.Warn("certificate of another cluster", zap.String("cluster", cluster), zap.String("owner", owner),
			zap.String("remote", r.RemoteAddr))
		return refuse(http.StatusForbidden, refusedCluster, "the client certificate is cluster %s's, the path says %s: "+
			"post to /v1/clusters/%s/audit, or use the configuration that `retrial cluster add %s` writes", owner, cluster, owner, cluster)
	}
	return nil
}

// bearer returns the token of an Authorization header; the scheme's case does not matter.
func bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// validCluster reports whether name is a DNS-1123 label, as identity requires of a registered one. A trusted listener has no registry.
func validCluster(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// validAPIServer reports whether name is a DNS-1123 subdomain.
func validAPIServer(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
