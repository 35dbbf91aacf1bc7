package authn

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
	// ByInsecure is not an authenticator: the port without authentication of versions up to 1.19.
	ByInsecure = "insecure-port"
)

// says is what an authenticator says of an identity.
type says uint8

const (
	no   says = iota // it cannot have produced it
	open             // it can, as far as an event tells: what would tell is not recorded
	yes              // it produces just this
)

// Reasons that more than one authenticator gives.
const (
	whyNotConfigured = "not configured"
	whyMaybe         = "not-evaluable: the configuration of authentication is not known"
	whyRows          = "not-evaluable: the file's rows are not known"
	whyLegacy        = "the annotation of a legacy service account token is recorded"
	whyCredential    = "a credential id is recorded, which it does not give"
	whyExtra         = "extra is recorded, which it does not give"
	whyName          = "gives another kind of user name"
	whyGroups        = "gives other groups"
)

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

// set is a set of authenticators.
type set uint16

func (s set) has(a rank) bool { return s&(1<<a) != 0 }
