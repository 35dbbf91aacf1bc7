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

// authenticator is one of those that an apiserver may ask who made a request.
type authenticator interface {
	// configured reports whether it is asked: yes, no, or open when that is not known.
	configured(c *compiled) says
	// answer reports whether it can have produced an identity, and why not, or what would tell.
	answer(x *subject, c *compiled, f *facts) (says, string)
}

// rank is that of an authenticator in the order in which they are asked.
type rank uint8

const (
	loopback rank = iota
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
	ranks // how many
)

// union is the table of all authenticators.
var union = [ranks]struct { //nolint:gochecknoglobals // constant table
	name string
	authenticator
}{
	loopback:      {ByLoopback, loopbackToken{}},
	requestHeader: {ByRequestHeader, headerProxy{}},
	basicAuth:     {ByBasicAuth, basicAuthFile{}},
	keystone:      {ByKeystone, keystonePassword{}},
	x509:          {ByX509, clientCertificate{}},
	tokenFile:     {ByTokenFile, staticTokenFile{}},
	legacyToken:   {ByLegacyToken, legacyAccountToken{}},
	boundToken:    {ByBoundToken, boundAccountToken{}},
	bootstrap:     {ByBootstrap, bootstrapTokens{}},
	jwt:           {ByJWT, jwtIssuers{}},
	webhook:       {ByWebhook, tokenWebhook{}},
	anyToken:      {ByAnyToken, anyTokens{}},
	anonymous:     {ByAnonymous, anonymousRequests{}},
	insecure:      {ByInsecure, insecurePort{}},
}

// Authenticators returns the names of all authenticators in the order of the union.
func Authenticators() []string {
	out := make([]string, ranks)
	for a := range union {
		out[a] = union[a].name
	}
	return out
}

// set is a set of authenticators.
type set uint16

func (s set) has(a rank) bool { return s&(1<<a) != 0 }

// sets keeps the names of every set met, so that results share them.
type sets [1 << ranks]atomic.Pointer[[]string]

func (t *sets) names(s set) []string {
	if s == 0 {
		return nil
	}
	if p := t[s].Load(); p != nil {
		return *p
	}
	var out []string
	for a := range ranks {
		if s.has(a) {
			out = append(out, union[a].name)
		}
	}
	t[s].Store(&out) // whoever comes first: they are equal
	return out
}
