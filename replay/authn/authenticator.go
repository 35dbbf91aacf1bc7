package authn

import "sync/atomic"

// Authenticators by name, in the order in which an apiserver asks them. No version has all of
// them; those it has are asked in this order.
const (
	ByLoopback      = "loopback"       // the apiserver's own token for itself
	ByRequestHeader = "request-header" // front proxy
	ByBasicAuth     = "basic-auth-file"
	ByKeystone      = "keystone"
	ByX509          = "x509"
	ByTokenFile     = "token-file"
	ByLegacyToken   = "service-account-legacy"
	ByBoundToken    = "service-account-bound"
	ByBootstrap     = "bootstrap-token"
	ByJWT           = "jwt" // OIDC flags and AuthenticationConfiguration
	ByWebhook       = "webhook-token"
	ByAnyToken      = "any-token"
	ByAnonymous     = "anonymous"
	// ByInsecure is no authenticator: the port without authentication of versions up to 1.19.
	ByInsecure = "insecure-port"
)

// authenticator is the number of one, its place in the order.
type authenticator uint8

const (
	loopback authenticator = iota
	requestHeader
	basicAuth
	keystone
	x509
	tokenFile
	legacyToken
	boundToken
	bootstrap
	jwt
	webhook
	anyToken
	anonymous
	insecure
	authenticators // how many
)

var names = [authenticators]string{
	ByLoopback, ByRequestHeader, ByBasicAuth, ByKeystone, ByX509, ByTokenFile, ByLegacyToken,
	ByBoundToken, ByBootstrap, ByJWT, ByWebhook, ByAnyToken, ByAnonymous, ByInsecure,
}

// Authenticators returns the names of all authenticators in the order of the union.
func Authenticators() []string { return append([]string(nil), names[:]...) }

// set is a set of authenticators.
type set uint16

func (s set) has(a authenticator) bool { return s&(1<<a) != 0 }

// sets keeps the names of every set met, so that results share them.
type sets [1 << authenticators]atomic.Pointer[[]string]

func (t *sets) names(s set) []string {
	if s == 0 {
		return nil
	}
	if p := t[s].Load(); p != nil {
		return *p
	}
	var out []string
	for a := authenticator(0); a < authenticators; a++ {
		if s.has(a) {
			out = append(out, names[a])
		}
	}
	t[s].Store(&out) // whoever comes first: they are equal
	return out
}
