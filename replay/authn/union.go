package authn

import (
	"sync/atomic"

	"github.com/retrial-io/retrial/replay/config"
)

// union is the table of all authenticators.
var union = [ranks]struct { //nolint:gochecknoglobals // constant table
	name string
	// configured reports whether an apiserver has it by its configuration; nil: every one has.
	configured func(*config.Authentication) bool
	answer     func(*subject, *compiled, *facts) (says, string)
}{
	loopback:      {ByLoopback, nil, loopbackToken},
	requestHeader: {ByRequestHeader, func(a *config.Authentication) bool { return a.RequestHeader != nil }, headerProxy},
	basicAuth:     {ByBasicAuth, func(a *config.Authentication) bool { return a.BasicAuth != nil }, basicAuthFile},
	keystone:      {ByKeystone, func(a *config.Authentication) bool { return a.Keystone != "" }, keystonePassword},
	x509:          {ByX509, func(a *config.Authentication) bool { return a.ClientCA }, clientCertificate},
	tokenFile:     {ByTokenFile, func(a *config.Authentication) bool { return a.TokenFile != nil }, staticTokenFile},
	legacyToken:   {ByLegacyToken, func(a *config.Authentication) bool { return a.ServiceAccount.Enabled }, legacyAccountToken},
	boundToken:    {ByBoundToken, func(a *config.Authentication) bool { return a.ServiceAccount.Enabled }, boundAccountToken},
	bootstrap:     {ByBootstrap, func(a *config.Authentication) bool { return a.Bootstrap }, bootstrapTokens},
	jwt:           {ByJWT, func(a *config.Authentication) bool { return len(a.JWT) > 0 || a.JWTUnknown != "" }, jwtIssuers},
	webhook:       {ByWebhook, func(a *config.Authentication) bool { return a.Webhook != nil }, tokenWebhook},
	anyToken:      {ByAnyToken, func(a *config.Authentication) bool { return a.AnyToken }, anyTokens},
	anonymous:     {ByAnonymous, nil, anonymousRequests},
	insecure:      {ByInsecure, func(a *config.Authentication) bool { return a.Insecure }, insecurePort},
}

// ask asks one authenticator. why is a constant: the details are in contradictions.
func (x *subject) ask(a rank, c *compiled, f *facts) (answer says, why string) {
	z := &union[a]
	configured := z.configured == nil || c.cfg != nil && z.configured(&c.cfg.Authentication)
	if !configured && c.known() {
		return no, whyNotConfigured
	}
	if answer, why = z.answer(x, c, f); !configured && answer == open {
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
