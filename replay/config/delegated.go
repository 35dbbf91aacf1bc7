package config

import (
	"errors"
	"strings"
	"time"
)

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
	if err := errors.Join(err1, err2, b.requestHeader(), b.clientCA()); err != nil {
		return err
	}
	an.Webhook = &TokenWebhook{CacheTTL: ttl, Version: "v1"}
	an.Anonymous.Enabled = true
	if an.RequestHeader != nil {
		h := an.RequestHeader
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
