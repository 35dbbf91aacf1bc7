package authn

import "sync/atomic"

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

// ask asks one authenticator. why is a constant: the details are in contradictions.
func (x *subject) ask(a rank, c *compiled, f *facts) (answer says, why string) {
	z := &union[a]
	configured := z.configured(c)
	if configured == no {
		return no, whyNotConfigured
	}
	if answer, why = z.answer(x, c, f); configured == open && answer == open {
		why = whyMaybe
	}
	return answer, why
}

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
