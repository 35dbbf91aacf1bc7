package config

import (
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// summary adds to the report what runs, in the order in which it is asked, and what no log can
// show of it.
func (b *builder) summary() {
	r := b.r
	r.Digest = b.a.Digest
	b.summarizeAuthentication()
	b.summarizeAuthorization()
	if b.a.Authentication.Insecure {
		r.open("the insecure port", "its clients are not known: nobody is authenticated there")
	}
}

// summarizeAuthentication follows the order of the union of authenticators.
func (b *builder) summarizeAuthentication() {
	an, r := &b.a.Authentication, b.r
	add := func(name, format string, args ...any) {
		r.Authenticators = append(r.Authenticators, Note{name, fmt.Sprintf(format, args...)})
	}
	if h := an.RequestHeader; h != nil {
		names := "any certificate of its CA"
		if len(h.AllowedNames) > 0 {
			names = "certificates named " + strings.Join(h.AllowedNames, ", ")
		}
		add("request header", "the front proxy names the user; %s", names)
		r.open("request header", "the headers and the proxy's certificate are in no event: an identity that may come through the proxy "+
			"is never ruled out")
	}
	if users := an.BasicAuth; users != nil {
		add("basic-auth file", "%s", rows(users))
	}
	if an.Keystone != "" {
		add("Keystone", "%s", an.Keystone)
		r.open("Keystone", "only Keystone knows whether a user exists: only the shape of an identity is checked")
	}
	if an.ClientCA {
		add("x509", "client certificates: the common name is the user, organizations are groups")
		r.open("x509", "the certificate is in no event: its fingerprint is compared with issued certificates and earlier uses")
	}
	if users := an.TokenFile; users != nil {
		add("token file", "%s", rows(users))
	}
	if an.ServiceAccount.Enabled {
		lookup := "accounts, pods and secrets behind tokens are looked up"
		if !an.ServiceAccount.Lookup {
			lookup = "--service-account-lookup=false: secrets behind legacy tokens are not looked up"
		}
		add("service account tokens", "%s", lookup)
		if !an.ServiceAccount.Lookup {
			r.open("service account tokens", "legacy tokens of deleted accounts and secrets keep working")
		}
	}
	if an.Bootstrap {
		add("bootstrap tokens", "secrets kube-system/bootstrap-token-*")
		r.open("bootstrap tokens", "needs the metadata of these secrets (list/watch or audit of secrets); without it only shapes are "+
			"checked")
	}
	for _, j := range an.JWT {
		add("JWT", "issuer %s: %s", j.Issuer, claims(&j))
		why := "claims are in no event: prefixes, and rules about the user alone, are checked"
		if len(j.ClaimRules) > 0 || j.Username.Expression != "" || j.Groups.Expression != "" {
			why = "claims are in no event, so rules and expressions over them cannot be run; prefixes, and rules about the user alone, " +
				"are checked"
		}
		r.open("JWT "+j.Issuer, "%s", why)
	}
	if an.JWTUnknown != "" {
		add("JWT", "not known: %s", an.JWTUnknown)
	}
	if an.Webhook != nil && b.a.Authorization.Delegated {
		add("TokenReview", "sent to the kube-apiserver; answers are cached for %s", an.Webhook.CacheTTL)
	} else if an.Webhook != nil {
		add("token webhook", "answers are cached for %s", an.Webhook.CacheTTL)
		r.open("token webhook", "its answers are not recorded: an identity that nothing else explains is attributed to it")
	}
	if an.AnyToken {
		add("any token", "every identity is whatever its token says")
	}
	switch a := &an.Anonymous; {
	case a.Unknown != "":
		add("anonymous", "not known: %s", a.Unknown)
	case a.Enabled && len(a.Paths) > 0:
		add("anonymous", "for %s", strings.Join(a.Paths, ", "))
	case a.Enabled:
		add("anonymous", "every request without credentials is system:anonymous")
	}
	if an.Unknown != "" {
		add("others", "not known: %s", an.Unknown)
	}
}

func rows(u *StaticUsers) string {
	if u.Unknown != "" {
		return "not known: " + u.Unknown
	}
	return fmt.Sprintf("%d users of %s, as read at start", len(u.Users), u.File)
}

func claims(j *JWT) string {
	one := func(what string, c Claim) string {
		switch {
		case c.Expression != "":
			return what + " by an expression"
		case c.Claim != "":
			return fmt.Sprintf("%s by %s with prefix %q", what, c.Claim, c.Prefix)
		}
		return "no " + what
	}
	return one("users", j.Username) + ", " + one("groups", j.Groups)
}

func (b *builder) summarizeAuthorization() {
	az, r := &b.a.Authorization, b.r
	add := func(name, format string, args ...any) {
		r.Authorizers = append(r.Authorizers, Note{name, fmt.Sprintf(format, args...)})
	}
	add(kubenames.Masters, "members of the group may do everything")
	if az.Delegated {
		if len(az.AlwaysAllowPaths) > 0 {
			add("paths", "%s are open to all", strings.Join(az.AlwaysAllowPaths, ", "))
		}
		add("SubjectAccessReview", "sent to the kube-apiserver")
		r.open("SubjectAccessReview", "compared with the review's own event, if the kube-apiserver's log has it; answers are cached for "+
			"some seconds, "+
			"in which no review is sent")
	}
	if az.Unknown != "" {
		add("others", "not known: %s", az.Unknown)
	}
	for i := range az.Authorizers {
		z := &az.Authorizers[i]
		switch {
		case z.Unknown != "":
			add(z.Name, "%s: not known: %s", z.Type, z.Unknown)
		case z.Policy != nil:
			add(z.Name, "%d policies of %s, as read at start", len(z.Policy.Lines), z.Policy.File)
		case z.Webhook != nil:
			asked := "asked about every request that reaches it"
			if n := len(z.Webhook.MatchConditions); n > 0 {
				asked = fmt.Sprintf("asked if its %d match conditions hold", n)
			}
			add(z.Name, "webhook, %s; on failure %s", asked, z.Webhook.FailurePolicy)
			r.open(z.Name, "the webhook's answer is known from the record alone: whether it is asked is evaluated, its answer is not")
		case z.Type == Node:
			add(z.Name, "Node")
			r.open(z.Name, "needs pods, volumes and their nodes (list/watch, state files or the log from the cluster's start); without "+
				"them relations stay open")
		default:
			add(z.Name, "%s", z.Type)
		}
	}
}
