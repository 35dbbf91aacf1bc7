// Package config is what the replica needs to know about a kube-apiserver's configuration: the
// authenticators and the authorizers it runs, in their order, with the content of their files.
//
// An APIServer is a plain value that Read makes from what people have (a static-pod manifest, a
// flags file, the files they name). Tokens, passwords and keys are discarded while parsing and
// are in no field. A History records which one was in force when.
//
// What could not be read or understood is marked as unknown: every part that can be unknown has
// a field Unknown, empty if the part is known, otherwise the reason, worded to follow
// "missing: ". An unknown part answers nothing: an unknown authorizer could allow, refuse or
// have no opinion; an unknown token file could hold any user. Nothing is assumed in its place.
//
// The package is pure: files come in as an fs.FS.
package config

import (
	"time"

	"github.com/retrial-io/retrial/replay/release"
)

// APIServer is the configuration of one kube-apiserver. It is immutable once made.
type APIServer struct {
	// Digest identifies the content: equal digests decide alike. Short, printable.
	Digest string
	// Minor is the Kubernetes minor version it behaves as (36 for 1.36), 0 for a current one.
	Minor int
	// Guessed means that Minor is only implied by its flags.
	Guessed bool `json:",omitempty"`
	// Emulates means that Minor is a version it emulates, whatever its own.
	Emulates bool `json:",omitempty"`
	// Binary is its own minor version where it emulates another; 0 when that is Minor, or not
	// known.
	Binary         int `json:",omitempty"`
	Authentication Authentication
	Authorization  Authorization
	Admission      Admission
	// Gates are the feature gates that were set, by name.
	Gates map[string]bool
	// Source names an aggregated API server whose events these are (delegated authentication
	// and authorization), "" for the kube-apiserver itself.
	Source string
	// Unknown holds the reasons of all unknown parts below, for people and for a quick test:
	// empty means that everything is known. These fields say which parts are:
	// Authentication.Unknown, Authentication.JWTUnknown, Anonymous.Unknown,
	// StaticUsers.Unknown, Authorization.Unknown, Authorizer.Unknown.
	Unknown []string
}

// Unknown returns a configuration of which nothing is known, for the given reason: it allows no
// judgement of authentication or authorization.
func Unknown(reason string) *APIServer {
	a := &APIServer{Unknown: []string{reason}}
	a.Authentication.Unknown, a.Authorization.Unknown = reason, reason
	a.Authentication.JWTUnknown, a.Authentication.Anonymous.Unknown = reason, reason
	a.Digest = digest(a)
	return a
}

// Enabled reports whether a feature is on: as its gate was set, otherwise as the release has it;
// if the release is not known, a set gate counts even if it may be locked. A nil receiver is an
// apiserver of which nothing is known.
func (a *APIServer) Enabled(feature string) bool {
	if a == nil {
		return release.Of(0).Enabled(feature, nil)
	}
	if v, ok := a.Gates[feature]; ok && a.Minor == 0 {
		return v
	}
	return release.Of(a.Minor).Enabled(feature, a.Gates)
}

// Release returns the release whose rules and messages it has: its own, whatever version it
// emulates. A nil receiver is an apiserver of which nothing is known.
func (a *APIServer) Release() *release.Release {
	switch {
	case a == nil:
		return release.Of(0)
	case a.Binary > 0:
		return release.Of(a.Binary)
	}
	return release.Of(a.Minor)
}

// Authentication is the configuration of a kube-apiserver's authenticators. A nil pointer, or
// false, is an authenticator that is not configured.
type Authentication struct {
	// Unknown is why there may be authenticators that are not listed here; "" if the list is
	// complete.
	Unknown string
	// JWTUnknown is why the issuers in JWT are not known (the AuthenticationConfiguration
	// was not given), "" when they are.
	JWTUnknown     string
	Anonymous      Anonymous
	RequestHeader  *RequestHeader
	ClientCA       bool
	TokenFile      *StaticUsers // --token-auth-file, read once at start
	BasicAuth      *StaticUsers // --basic-auth-file, up to 1.18
	Keystone       string       // --experimental-keystone-url, up to 1.9; "" when off
	ServiceAccount ServiceAccount
	Bootstrap      bool  // --enable-bootstrap-token-auth
	JWT            []JWT // OIDC flags, or the jwt list of an AuthenticationConfiguration
	Webhook        *TokenWebhook
	AnyToken       bool // --insecure-allow-any-token, up to 1.7: every token names its own user
	// Insecure: a port without authentication and authorization is served (--insecure-port,
	// up to 1.19), where every client is system:unsecured with group system:masters.
	Insecure bool
	// BindAddress is the one address the server listens on, which its own requests come from;
	// "" when it is any, and they come from the loopback interface.
	BindAddress string `json:",omitempty"`
}

// Anonymous is which requests without credentials are admitted as system:anonymous.
type Anonymous struct {
	// Unknown is why it is not known whether, and for which paths; "" if it is known.
	Unknown string
	Enabled bool
	// Paths are the decoded paths it is limited to, compared exactly; empty is every path.
	Paths []string
}

// RequestHeader is the front proxy's authenticator.
type RequestHeader struct {
	AllowedNames                                             []string // common names; empty: any certificate of the CA
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraPrefixes []string
}

// StaticUsers are the users of a token file or a basic-auth file. The credential column is
// gone; rows stay in the order of the file.
type StaticUsers struct {
	// Unknown is why the rows are not known (the file was not given), "" when they are all
	// here.
	Unknown string
	File    string // as the flag names it
	Users   []StaticUser
}

// StaticUser is one row.
type StaticUser struct {
	Name, UID string
	Groups    []string
}

// ServiceAccount is the service account tokens' authenticator.
type ServiceAccount struct {
	Enabled bool
	Issuers []string
	Lookup  bool // --service-account-lookup, on by default: the objects behind a token are looked up
	// MaxExpiration is --service-account-max-token-expiration, 0 for none.
	MaxExpiration time.Duration
}

// JWT is one issuer of an AuthenticationConfiguration, or the one of the OIDC flags.
type JWT struct {
	Issuer    string
	Audiences []string
	Username  Claim
	Groups    Claim
	UID       Claim
	Extra     []Extra
	// ClaimRules need claims, which no event holds; UserRules are about the user alone.
	ClaimRules, UserRules []Rule
}

// Claim is how a value is derived from a token: a claim with a prefix, or a CEL expression.
// All empty: it is not taken from the token.
type Claim struct {
	Claim, Prefix, Expression string
}

// Extra is one extra key with the expression of its value.
type Extra struct {
	Key, Expression string
}

// Rule is a validation rule in CEL.
type Rule struct {
	Expression, Message string
}

// TokenWebhook is the webhook token authenticator.
type TokenWebhook struct {
	CacheTTL time.Duration
	Version  string // of the TokenReview: v1 or v1beta1
}

// Authorization is the chain of authorizers, in the order in which they are asked. The
// privileged group system:masters, which comes first, is not part of it.
type Authorization struct {
	// Unknown is why the chain is not known; Authorizers is then empty. "" if it is known.
	Unknown     string
	Authorizers []Authorizer
	// AlwaysAllowPaths are allowed before any authorizer is asked; delegated authorization only,
	// exact or with a trailing *.
	AlwaysAllowPaths []string
	// Delegated chains ask the kube-apiserver by SubjectAccessReview instead.
	Delegated bool
}

// Authorizer is one of a chain.
type Authorizer struct {
	// Unknown is why this one's answers cannot be known: its type is not one of those above
	// (it may then allow, refuse or have no opinion), or its policy file was not given (ABAC:
	// it may allow or have no opinion). "" for all others, webhooks included.
	Unknown string
	Type    AuthorizerType
	// Name is unique in the chain: the lower-cased type, or a webhook's own name ("webhook"
	// when it comes from flags).
	Name   string
	Policy *Policy // of ABAC, nil when Unknown
	// SuperUser is of RBAC, up to 1.5: --authorization-rbac-super-user, a user name that RBAC
	// allows everything; "" for none.
	SuperUser string
	Webhook   *WebhookOptions // of Webhook
}

// Policy is an ABAC policy file, its lines in order.
type Policy struct {
	File  string
	Lines []PolicyLine
}

// PolicyLine is one line in the form of version v1beta1, converted as Kubernetes does on
// reading: unversioned lines spell out what they omit, and since 1.6 a * for the user or the
// group is the group system:authenticated. An empty field matches only an empty
// attribute.
type PolicyLine struct {
	Line            int // in the file, from 1
	User, Group     string
	Readonly        bool
	APIGroup        string
	Resource        string
	Namespace       string
	NonResourcePath string
}

// WebhookOptions configure a webhook authorizer.
type WebhookOptions struct {
	AuthorizedTTL, UnauthorizedTTL time.Duration
	CacheAuthorized, CacheDenied   bool
	// FailurePolicy is NoOpinion or Deny.
	FailurePolicy string
	// MatchConditions are CEL expressions over request, a SubjectAccessReviewSpec of v1.
	MatchConditions []string
}

// Admission is which admission plugins were switched on and off in addition to the defaults.
type Admission struct {
	Enabled, Disabled []string
	// Exact: Enabled came by --admission-control, which replaces the defaults.
	Exact bool
}
