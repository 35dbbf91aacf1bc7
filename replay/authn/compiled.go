package authn

import (
	"net/url"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/config"
)

// compiled is what the evaluator keeps of one configuration.
type compiled struct {
	cfg *config.APIServer
	// complete: every authenticator is known, with all it needs.
	complete bool
	tokens   map[string][]row // by user name, nil if the file is not known or not configured
	basic    map[string]row   // the last row of a name wins
	issuers  []issuer
	paths    map[string]bool // anonymous, nil for every path
}

// row is one of a token file with the groups as given.
type row struct {
	uid    string
	groups []string
}

// compile prepares a configuration; it is done once for each.
func compile(cfg *config.APIServer) *compiled {
	c := &compiled{cfg: cfg}
	if cfg == nil {
		return c
	}
	a := &cfg.Authentication
	c.complete = a.Unknown == "" && a.JWTUnknown == "" && a.Anonymous.Unknown == "" &&
		(a.TokenFile == nil || a.TokenFile.Unknown == "") && (a.BasicAuth == nil || a.BasicAuth.Unknown == "")
	if f := a.TokenFile; f != nil && f.Unknown == "" {
		c.tokens = make(map[string][]row, len(f.Users))
		for i := range f.Users {
			u := &f.Users[i]
			c.tokens[u.Name] = append(c.tokens[u.Name], row{u.UID, u.Groups})
		}
	}
	if f := a.BasicAuth; f != nil && f.Unknown == "" {
		c.basic = make(map[string]row, len(f.Users))
		for i := range f.Users {
			u := &f.Users[i]
			c.basic[u.Name] = row{u.UID, u.Groups}
		}
	}
	for i := range a.JWT {
		c.issuers = append(c.issuers, compileIssuer(&a.JWT[i]))
	}
	if len(a.Anonymous.Paths) > 0 {
		c.paths = make(map[string]bool, len(a.Anonymous.Paths))
		for _, p := range a.Anonymous.Paths {
			c.paths[p] = true
		}
	}
	return c
}

// known reports whether a part of the configuration that is not there is certainly not there.
func (c *compiled) known() bool { return c.cfg != nil && c.cfg.Authentication.Unknown == "" }

// takesAnonymous reports whether anonymous requests are let in for the path of a request, where they are at all.
func (c *compiled) takesAnonymous(uri string) bool {
	return c.paths == nil || c.paths[decodedPath(uri)]
}

// decodedPath returns the path the apiserver compares: decoded, without the query.
func decodedPath(uri string) string {
	if !strings.Contains(uri, "%") {
		path, _, _ := strings.Cut(uri, "?")
		return path
	}
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return uri
	}
	return u.Path
}

// lagOf returns the slack given to every moment learnt from the state.
func lagOf(lag time.Duration) time.Duration {
	switch {
	case lag < 0:
		return 0
	case lag == 0:
		return defaultLag
	}
	return lag
}
