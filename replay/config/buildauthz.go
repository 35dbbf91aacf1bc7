package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// webhookName is the name of the webhook authorizer that comes from flags.
const webhookName = "webhook"

// authorization reads the chain of authorizers: from the file of --authorization-config, or
// from the mode flags, never from both.
func (b *builder) authorization() error {
	az := &b.a.Authorization
	modes := b.f.all("authorization-mode")
	if b.f.set("authorization-config") {
		for _, name := range []string{"authorization-mode", "authorization-webhook-config-file", "authorization-webhook-version",
			"authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"} {
			if b.f.set(name) {
				return fmt.Errorf("%s: it excludes --authorization-config (%s): the apiserver does not start with both",
					b.f.at(name), b.f.at("authorization-config"))
			}
		}
		return b.authorizationFile()
	}
	if len(modes) == 0 {
		if b.partial != "" {
			az.Unknown = b.partial
			return nil
		}
		modes = []string{string(AlwaysAllow)}
		b.r.warn("no --authorization-mode is set: every authenticated user may do everything")
	}
	for i, mode := range modes {
		if slices.Contains(modes[:i], mode) {
			return fmt.Errorf("%s: %s is named twice", b.f.at("authorization-mode"), mode)
		}
	}
	if b.f.set("authorization-policy-file") && !slices.Contains(modes, string(ABAC)) {
		return fmt.Errorf("%s: a policy file without mode ABAC: the apiserver does not start with it", b.f.at("authorization-policy-file"))
	}
	if b.f.set("authorization-webhook-config-file") && !slices.Contains(modes, string(Webhook)) {
		return fmt.Errorf("%s: a webhook's file without mode Webhook: the apiserver does not start with it",
			b.f.at("authorization-webhook-config-file"))
	}
	for _, mode := range modes {
		z, err := b.authorizer(AuthorizerType(mode))
		if err != nil {
			return err
		}
		az.Authorizers = append(az.Authorizers, z)
	}
	b.r.understood("--authorization-mode", "%s", strings.Join(modes, ", then "))
	return nil
}

// modeFlags is what reads the flags of an authorizer that --authorization-mode names, of the types
// that have any.
var modeFlags = map[AuthorizerType]func(*builder, *Authorizer) error{ //nolint:gochecknoglobals // constant table
	ABAC: (*builder).abacFlags, Webhook: (*builder).webhookMode, RBAC: (*builder).superUser,
}

// authorizer returns the authorizer of a mode.
func (b *builder) authorizer(t AuthorizerType) (Authorizer, error) {
	z := Authorizer{Type: t, Name: nameOf(t)}
	if !slices.Contains(types, t) {
		z.Unknown = fmt.Sprintf("an authorizer of the unknown type %q", string(t))
		b.r.missing(b.f.at("authorization-mode"), "unknown mode %q (Kubernetes has %s): "+
			"its answers are not known, nor what the authorizers after it are asked", string(t), typeList())
		return z, nil
	}
	if flags := modeFlags[t]; flags != nil {
		return z, flags(b, &z)
	}
	return z, nil
}

// superUser reads the user whom RBAC allowed everything in the versions that had one; later ones
// accept the flag and ignore it.
func (b *builder) superUser(z *Authorizer) error {
	name := b.f.text("authorization-rbac-super-user")
	switch {
	case name == "":
	case b.a.Minor > 0 && b.a.Minor <= 5:
		z.SuperUser = name
		b.r.understood("--authorization-rbac-super-user", "RBAC allows %s everything", name)
	default:
		b.r.Ignored = append(b.r.Ignored, Note{"--authorization-rbac-super-user", "has had no effect since 1.6"})
	}
	return nil
}

// abacFlags reads what ABAC allows.
func (b *builder) abacFlags(z *Authorizer) error {
	if err := b.abac(); err != nil {
		return err
	}
	z.Policy, z.Unknown = b.policy, b.policyUnknown
	return nil
}

// webhookMode reads how the webhook of mode Webhook is asked.
func (b *builder) webhookMode(z *Authorizer) (err error) {
	z.Name = webhookName
	z.Webhook, err = b.webhookFlags()
	return err
}

// abac reads the policy file.
func (b *builder) abac() error {
	const name = "authorization-policy-file"
	if b.f.text(name) == "" {
		if b.partial != "" {
			b.policyUnknown = b.partial
			return nil
		}
		return fmt.Errorf("%s: authorizer ABAC needs --%s: the apiserver does not start without it", b.f.file, name)
	}
	data, where, ok, err := b.file(name, "what ABAC allows is not known; the other authorizers are still evaluated")
	if err != nil {
		return err
	}
	if !ok {
		b.policyUnknown = b.notGiven(name)
		return nil
	}
	lines, err := abacPolicy(data, b.a.Minor)
	if err != nil {
		return fmt.Errorf("%s: %w: an apiserver does not start with such a file", where, err)
	}
	b.policy = &Policy{File: b.f.text(name), Lines: lines}
	b.r.understood(where, "--%s: %d policies", name, len(lines))
	return nil
}

func (b *builder) webhookFlags() (*WebhookOptions, error) {
	const name = "authorization-webhook-config-file"
	if b.f.text(name) == "" && b.partial == "" {
		return nil, fmt.Errorf("%s: mode Webhook needs --%s: the apiserver does not start without it", b.f.at("authorization-mode"), name)
	}
	allowed, err1 := b.f.duration("authorization-webhook-cache-authorized-ttl", 5*time.Minute)
	denied, err2 := b.f.duration("authorization-webhook-cache-unauthorized-ttl", 30*time.Second)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return &WebhookOptions{
		AuthorizedTTL: allowed, UnauthorizedTTL: denied, CacheAuthorized: allowed != 0, CacheDenied: denied != 0,
		FailurePolicy: "NoOpinion",
	}, nil
}

// authorizationFile reads the file of --authorization-config. An error in it is left in
// authzErr.
func (b *builder) authorizationFile() error {
	const name = "authorization-config"
	if !b.a.Enabled("StructuredAuthorizationConfiguration") {
		return fmt.Errorf("%s: in 1.%d it needs --feature-gates=StructuredAuthorizationConfiguration=true", b.f.at(name), b.a.Minor)
	}
	data, where, ok, err := b.file(name, "which authorizers there are, and in which order, is not known: no decision can be judged")
	if err != nil {
		return err
	}
	b.authzFile = true
	if !ok {
		b.a.Authorization.Unknown = b.notGiven(name)
		return nil
	}
	list, err := authorizationConfiguration(data)
	if err == nil {
		err = b.readable(data)
	}
	if err != nil {
		b.authzErr = fmt.Errorf("%s: %w", where, err)
		return nil
	}
	for i := range list {
		z := &list[i]
		switch {
		case z.Type == ABAC:
			if err := b.abacFlags(z); err != nil {
				return err
			}
		case z.Type == RBAC:
			b.superUser(z)
		case z.Unknown != "":
			b.r.missing(where, "unknown authorizer type %q (Kubernetes has %s): "+
				"its answers are not known, nor what the authorizers after it are asked", string(z.Type), typeList())
		}
	}
	if b.f.set("authorization-policy-file") && b.policy == nil && b.policyUnknown == "" {
		b.r.Ignored = append(b.r.Ignored, Note{"--authorization-policy-file", "no authorizer of type ABAC is configured"})
	}
	b.a.Authorization.Authorizers = list
	b.r.understood(where, "--%s: %d authorizers", name, len(list))
	return nil
}

// required returns the authorizer types that must stay until the apiserver is restarted.
func required(list []Authorizer) []AuthorizerType {
	var out []AuthorizerType
	for _, z := range list {
		if z.Type != Webhook && !slices.Contains(out, z.Type) {
			out = append(out, z.Type)
		}
	}
	return out
}

// delegatedPaths are allowed by an aggregated API server before any authorizer is asked, unless
// configured otherwise.
var delegatedPaths = []string{"/healthz", "/readyz", "/livez"}

// delegated reads the flags of an aggregated API server: it authenticates by certificates
// and by asking the kube-apiserver (TokenReview), looks up there what it was not given, and
// authorizes by asking it (SubjectAccessReview).
func (b *builder) delegated() error {
	an, az := &b.a.Authentication, &b.a.Authorization
	az.Delegated, az.AlwaysAllowPaths = true, delegatedPaths
	if b.f.set("authorization-always-allow-paths") {
		az.AlwaysAllowPaths = b.f.all("authorization-always-allow-paths")
		b.r.understood("--authorization-always-allow-paths", "%s", strings.Join(az.AlwaysAllowPaths, ", "))
	}
	ttl, err1 := b.f.duration("authentication-token-webhook-cache-ttl", 10*time.Second)
	skip, err2 := b.f.bool("authentication-skip-lookup", false)
	an.ClientCA = b.f.text("client-ca-file") != ""
	if err := errors.Join(err1, err2, b.requestHeader()); err != nil {
		return err
	}
	an.Webhook = &TokenWebhook{CacheTTL: ttl, Version: "v1"}
	an.Anonymous.Enabled = true
	if h := an.RequestHeader; h != nil {
		h.UsernameHeaders = orDefault(h.UsernameHeaders, "x-remote-user")
		h.GroupHeaders = orDefault(h.GroupHeaders, "x-remote-group")
		h.ExtraPrefixes = orDefault(h.ExtraPrefixes, "x-remote-extra-")
	}
	b.r.understood("delegation", "tokens and accesses are checked at the kube-apiserver by TokenReview and SubjectAccessReview")
	if skip || an.RequestHeader != nil && an.ClientCA {
		return nil
	}
	if b.parent == nil {
		an.Unknown = "the kube-apiserver's flags, which an aggregated API server looks up"
		b.r.missing("--client-ca-file, --requestheader-*", "they are looked up in the cluster, and the kube-apiserver's configuration "+
			"is not in the folder")
		return nil
	}
	if p := &b.parent.Authentication; p.Unknown != "" {
		an.Unknown = p.Unknown
		b.r.missing("--client-ca-file, --requestheader-*", "they are looked up in the cluster, and the kube-apiserver's are not known: %s",
			p.Unknown)
	} else {
		an.ClientCA = an.ClientCA || p.ClientCA
		if an.RequestHeader == nil {
			an.RequestHeader = p.RequestHeader
		}
		b.r.understood("--client-ca-file, --requestheader-*", "as the kube-apiserver has them, where not set")
	}
	return nil
}

func orDefault(values []string, def string) []string {
	if len(values) == 0 {
		return []string{def}
	}
	return values
}
