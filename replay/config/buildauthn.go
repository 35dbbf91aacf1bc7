package config

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/retrial-io/retrial/replay/release"
)

// authentication reads the authenticators; the chain of authorizers is read before, since
// AlwaysAllow changes who is anonymous.
func (b *builder) authentication() error {
	b.a.Authentication.ClientCA = b.f.text("client-ca-file") != ""
	err := errors.Join(b.requestHeader(), b.serviceAccounts(), b.bootstrap(), b.staticFiles(), b.outside(), b.jwt(), b.anonymous(),
		b.bindAddress())
	b.insecure()
	return err
}

// requestHeader reads the front proxy's headers. Without its CA no header is used.
func (b *builder) requestHeader() error {
	if b.f.text("requestheader-client-ca-file") == "" {
		return nil
	}
	h := &RequestHeader{
		AllowedNames: b.f.all("requestheader-allowed-names"), UsernameHeaders: b.f.all("requestheader-username-headers"),
		UIDHeaders: b.f.all("requestheader-uid-headers"), GroupHeaders: b.f.all("requestheader-group-headers"),
		ExtraPrefixes: b.f.all("requestheader-extra-headers-prefix"),
	}
	for _, flag := range []string{"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names"} {
		if slices.ContainsFunc(b.f.all(flag), func(v string) bool { return strings.TrimSpace(v) == "" }) {
			return fmt.Errorf("%s: an empty value", b.f.at(flag))
		}
	}
	b.a.Authentication.RequestHeader = h
	if len(h.AllowedNames) > 0 {
		return nil
	}
	if b.overlap() {
		err := fmt.Errorf("%s: it shares a certificate with --client-ca-file and --requestheader-allowed-names is not set: "+
			"every client could name any user", b.f.at("requestheader-client-ca-file"))
		if b.a.Minor >= 36 || b.a.Minor == 0 {
			return err // as in the apiserver
		}
		b.r.warn("%v", err)
		return nil
	}
	b.r.warn("--requestheader-allowed-names is not set: every certificate of the front proxy's CA may name any user")
	return nil
}

// overlap reports whether the CAs of clients and of the front proxy have a certificate in common,
// if both are in the folder.
func (b *builder) overlap() bool {
	blocks := func(name string) [][]byte {
		p, err := b.t.find(b.f.text(name))
		if b.f.text(name) == "" || err != nil || p == "" {
			return nil
		}
		data, err := b.t.read(p)
		if err != nil {
			return nil // no decision depends on it
		}
		var out [][]byte
		for {
			var block *pem.Block
			if block, data = pem.Decode(data); block == nil {
				return out
			}
			out = append(out, block.Bytes)
		}
	}
	clients := blocks("client-ca-file")
	return slices.ContainsFunc(blocks("requestheader-client-ca-file"), func(proxy []byte) bool {
		return slices.ContainsFunc(clients, func(client []byte) bool { return bytes.Equal(proxy, client) })
	})
}

func (b *builder) serviceAccounts() error {
	sa := &b.a.Authentication.ServiceAccount
	// Keys default to the serving key, so it is always on.
	sa.Enabled = true
	sa.Issuers = b.f.all("service-account-issuer")
	var err1, err2 error
	sa.Lookup, err1 = b.f.bool("service-account-lookup", b.a.Minor == 0 || b.a.Minor >= 7)
	sa.MaxExpiration, err2 = b.f.duration("service-account-max-token-expiration", 0)
	if b.f.set("service-account-signing-endpoint") && (b.f.set("service-account-key-file") || b.f.set("service-account-signing-key-file")) {
		return fmt.Errorf("%s: it excludes --service-account-key-file and --service-account-signing-key-file",
			b.f.at("service-account-signing-endpoint"))
	}
	seen := map[string]bool{}
	for _, issuer := range sa.Issuers {
		if issuer == "" || seen[issuer] {
			return fmt.Errorf("%s: %q is empty or named twice", b.f.at("service-account-issuer"), issuer)
		}
		seen[issuer] = true
	}
	return errors.Join(err1, err2)
}

func (b *builder) bootstrap() error {
	on, err := b.f.bool("enable-bootstrap-token-auth", false)
	if !b.f.set("enable-bootstrap-token-auth") {
		on, err = b.f.bool("experimental-bootstrap-token-auth", false)
	}
	b.a.Authentication.Bootstrap = on
	return err
}

// staticFiles reads the files whose rows are users.
func (b *builder) staticFiles() error {
	an := &b.a.Authentication
	var errs []error
	for _, f := range []struct {
		flag  string
		basic bool
		users **StaticUsers
	}{
		{"token-auth-file", false, &an.TokenFile}, {"basic-auth-file", true, &an.BasicAuth},
	} {
		name := b.f.text(f.flag)
		if name == "" {
			continue
		}
		*f.users = &StaticUsers{File: name}
		data, where, ok, err := b.file(f.flag, "its users cannot be distinguished from users that do not exist, so no identity can be "+
			"called unexplained")
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case !ok:
			(*f.users).Unknown = b.notGiven(f.flag)
			continue
		}
		users, warnings, err := staticUsers(data, f.basic)
		clear(data)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
			continue
		}
		(*f.users).Users = users
		b.r.understood(where, "--%s: %d users; the credentials were dropped", f.flag, len(users))
		for _, w := range warnings {
			b.r.warn("%s: %s", where, w)
		}
	}
	return errors.Join(errs...)
}

// outside reads the authenticators that ask another server, or none.
func (b *builder) outside() error {
	an := &b.a.Authentication
	if an.Keystone = b.f.text("experimental-keystone-url"); an.Keystone != "" && !strings.HasPrefix(an.Keystone, "https") {
		return fmt.Errorf("%s: the URL must begin with https", b.f.at("experimental-keystone-url"))
	}
	if b.f.text("authentication-token-webhook-config-file") != "" {
		ttl, err := b.f.duration("authentication-token-webhook-cache-ttl", 2*time.Minute)
		if err != nil {
			return err
		}
		an.Webhook = &TokenWebhook{CacheTTL: ttl, Version: cmp.Or(b.f.text("authentication-token-webhook-version"), "v1beta1")}
	}
	var err error
	if an.AnyToken, err = b.f.bool("insecure-allow-any-token", false); an.AnyToken {
		b.r.warn("--insecure-allow-any-token: every identity is whatever its token says")
	}
	return err
}

// jwt reads the issuers: from the file of --authentication-config, or from the OIDC flags,
// never from both. An error in the file is left in authnErr.
func (b *builder) jwt() error {
	const name = "authentication-config"
	oidc := ""
	for _, fl := range b.f.list {
		if strings.HasPrefix(fl.name, "oidc-") {
			oidc = fl.where + ": --" + fl.name
		}
	}
	switch {
	case !b.f.set(name) && oidc == "":
		b.a.Authentication.JWTUnknown = b.partial
		return nil
	case !b.f.set(name):
		return b.oidc(oidc)
	case oidc != "":
		return fmt.Errorf("%s: it excludes --%s (%s): the apiserver does not start with both", oidc, name, b.f.at(name))
	case !b.a.Enabled("StructuredAuthenticationConfiguration"):
		return fmt.Errorf("%s: in 1.%d it needs --feature-gates=StructuredAuthenticationConfiguration=true", b.f.at(name), b.a.Minor)
	}
	data, where, ok, err := b.file(name, "which issuers' tokens are accepted, and who is anonymous, is not known")
	if err != nil {
		return err
	}
	b.authnFile = true
	if !ok {
		b.a.Authentication.JWTUnknown = b.notGiven(name)
		if !b.f.set("anonymous-auth") { // with the flag the file cannot configure it
			b.a.Authentication.Anonymous.Unknown = b.notGiven(name)
		}
		return nil
	}
	c, err := authenticationConfiguration(data, b.a.Authentication.ServiceAccount.Issuers)
	if c != nil && c.Anonymous != nil {
		b.anonymousFile = true
		if b.f.set("anonymous-auth") {
			return fmt.Errorf("%s: %s also configures anonymous requests: the apiserver does not start with both", b.f.at("anonymous-auth"),
				where)
		}
		b.a.Authentication.Anonymous = anonymousOf(c.Anonymous)
	}
	if err == nil {
		err = b.readable(data)
	}
	if err == nil && c.Anonymous != nil && !b.a.Enabled("AnonymousAuthConfigurableEndpoints") {
		err = fmt.Errorf("anonymous: Kubernetes %v accepts it, if at all, with --feature-gates=AnonymousAuthConfigurableEndpoints=true",
			release.Of(b.a.Minor))
	}
	if err != nil {
		b.authnErr = fmt.Errorf("%s: %w", where, err)
		return nil
	}
	b.a.Authentication.JWT = jwtOf(c.JWT)
	b.r.understood(where, "--%s: %d issuers", name, len(c.JWT))
	return nil
}

func anonymousOf(c *apiserver.AnonymousAuthConfig) Anonymous {
	a := Anonymous{Enabled: c.Enabled}
	for _, condition := range c.Conditions {
		a.Paths = append(a.Paths, condition.Path)
	}
	return a
}

// oidc reads the one issuer of the flags.
func (b *builder) oidc(where string) error {
	issuer, client := b.f.text("oidc-issuer-url"), b.f.text("oidc-client-id")
	if issuer == "" || client == "" {
		if b.partial != "" {
			b.a.Authentication.JWTUnknown = b.partial
			return nil
		}
		return fmt.Errorf("%s: --oidc-issuer-url and --oidc-client-id must both be set if any --oidc-* flag is", where)
	}
	claim, prefix := cmp.Or(b.f.text("oidc-username-claim"), "sub"), b.f.text("oidc-username-prefix")
	switch {
	case prefix == "" && claim != "email":
		prefix = issuer + "#"
	case prefix == "-":
		prefix = ""
	}
	a := apiserver.JWTAuthenticator{
		Issuer:        apiserver.Issuer{URL: issuer, Audiences: []string{client}},
		ClaimMappings: apiserver.ClaimMappings{Username: apiserver.PrefixedClaimOrExpression{Claim: claim, Prefix: &prefix}},
	}
	if groups := b.f.text("oidc-groups-claim"); groups != "" {
		groupsPrefix := b.f.text("oidc-groups-prefix")
		a.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: groups, Prefix: &groupsPrefix}
	}
	for _, rc := range b.f.all("oidc-required-claim") {
		name, value, ok := strings.Cut(rc, "=")
		if !ok {
			return fmt.Errorf("%s: invalid claim %q: want CLAIM=VALUE", b.f.at("oidc-required-claim"), rc)
		}
		a.ClaimValidationRules = append(a.ClaimValidationRules, apiserver.ClaimValidationRule{Claim: name, RequiredValue: value})
	}
	list := []apiserver.JWTAuthenticator{a}
	if err := validJWT(&apiserver.AuthenticationConfiguration{JWT: list}, b.a.Authentication.ServiceAccount.Issuers); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	b.a.Authentication.JWT = jwtOf(list)
	b.r.understood("--oidc-*", "issuer %s, users by %s with prefix %q", issuer, claim, prefix)
	return nil
}

// anonymous determines who is admitted without credentials if no file configures it.
func (b *builder) anonymous() error {
	if b.anonymousFile || b.a.Authentication.Anonymous.Unknown != "" {
		return nil
	}
	an := &b.a.Authentication.Anonymous
	on, err := b.f.bool("anonymous-auth", b.a.Minor == 0 || b.a.Minor >= 5)
	if err != nil {
		return err
	}
	if b.partial != "" && !b.f.set("anonymous-auth") {
		an.Unknown = b.partial
		return nil
	}
	an.Enabled = on
	// Only the mode flags do this, not an AuthorizationConfiguration.
	for _, z := range b.a.Authorization.Authorizers {
		if on && !b.authzFile && z.Type == AlwaysAllow {
			an.Enabled = false
			b.r.understood("--anonymous-auth", "off: authorizer AlwaysAllow forces it")
		}
	}
	return nil
}

// insecure determines whether there is a port without authentication: up to 1.19 there is one
// unless it was set to 0.
func (b *builder) insecure() {
	if b.a.Minor > 0 && b.a.Minor <= 19 && b.f.text("insecure-port") != "0" {
		b.a.Authentication.Insecure = true
		b.r.warn("the insecure port is open: clients that reach it are not authenticated and may do everything")
	}
}

// bindAddress reads the address that the apiserver's own requests come from.
func (b *builder) bindAddress() error {
	text := b.f.text("bind-address")
	if text == "" {
		return nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("%s: invalid address %q", b.f.at("bind-address"), text)
	}
	if !address.IsUnspecified() {
		b.a.Authentication.BindAddress = address.String()
	}
	return nil
}
