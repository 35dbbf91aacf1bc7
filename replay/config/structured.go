package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// authenticationConfiguration decodes and validates the file of --authentication-config with
// the apiserver's own code, all of its versions. disallowed are the issuers of service
// account tokens.
func authenticationConfiguration(data []byte, disallowed []string) (*apiserver.AuthenticationConfiguration, error) {
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), data)
	if err != nil {
		return nil, err
	}
	c, ok := obj.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is a %s, not an AuthenticationConfiguration", obj.GetObjectKind().GroupVersionKind().Kind)
	}
	// Certificates decide nothing here, and may have been removed from the copy.
	for i := range c.JWT {
		c.JWT[i].Issuer.CertificateAuthority = ""
	}
	return c, validJWT(c, disallowed)
}

func validJWT(c *apiserver.AuthenticationConfiguration, disallowed []string) error {
	return validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), c, disallowed).ToAggregate()
}

// jwtOf converts issuers to the types of this package.
func jwtOf(list []apiserver.JWTAuthenticator) []JWT {
	var out []JWT
	prefixed := func(c apiserver.PrefixedClaimOrExpression) Claim {
		m := Claim{Claim: c.Claim, Expression: c.Expression}
		if c.Prefix != nil {
			m.Prefix = *c.Prefix
		}
		return m
	}
	for i := range list {
		a := &list[i]
		j := JWT{
			Issuer: a.Issuer.URL, Audiences: a.Issuer.Audiences,
			Username: prefixed(a.ClaimMappings.Username), Groups: prefixed(a.ClaimMappings.Groups),
			UID: Claim{Claim: a.ClaimMappings.UID.Claim, Expression: a.ClaimMappings.UID.Expression},
		}
		for _, e := range a.ClaimMappings.Extra {
			j.Extra = append(j.Extra, Extra{Key: e.Key, Expression: e.ValueExpression})
		}
		for _, r := range a.ClaimValidationRules {
			rule := Rule{Expression: r.Expression, Message: r.Message}
			if r.Claim != "" {
				rule.Expression = fmt.Sprintf("claims[%q] == %q", r.Claim, r.RequiredValue)
			}
			j.ClaimRules = append(j.ClaimRules, rule)
		}
		for _, r := range a.UserValidationRules {
			j.UserRules = append(j.UserRules, Rule{Expression: r.Expression, Message: r.Message})
		}
		out = append(out, j)
	}
	return out
}

// authorizationConfiguration decodes and validates the file of --authorization-config with
// the apiserver's own code, all of its versions. A type it does not know is not an error: it
// comes back as an authorizer that is Unknown.
func authorizationConfiguration(data []byte) ([]Authorizer, error) {
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	c, err := load.LoadFromData(data)
	if err != nil {
		return nil, err
	}
	known := sets.New[string]()
	for _, t := range types {
		known.Insert(string(t))
	}
	for _, a := range c.Authorizers {
		if a.Type != "" {
			known.Insert(string(a.Type))
		}
	}
	var errs []error
	for _, e := range validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, c, known,
		sets.New(string(Webhook))) {
		if !kubeconfigElsewhere(e) {
			errs = append(errs, e)
		}
	}
	out := authorizersOf(c.Authorizers)
	for _, a := range out {
		if slices.Contains(types, a.Type) && a.Type != Webhook && a.Name != nameOf(a.Type) {
			errs = append(errs, fmt.Errorf("the authorizer of type %s must have the name %s, not %s", a.Type, nameOf(a.Type), a.Name))
		}
	}
	return out, errors.Join(errs...)
}

// kubeconfigElsewhere reports whether an error is about the one thing that cannot be checked here:
// the webhook's kubeconfig is on the apiserver's machine.
func kubeconfigElsewhere(e *field.Error) bool {
	return e.Type == field.ErrorTypeInvalid && strings.HasSuffix(e.Field, "connectionInfo.kubeConfigFile") &&
		(strings.HasPrefix(e.Detail, "error loading file") || strings.HasPrefix(e.Detail, "must be a regular file"))
}

func authorizersOf(list []apiserver.AuthorizerConfiguration) []Authorizer {
	var out []Authorizer
	for _, a := range list {
		t := AuthorizerType(a.Type)
		z := Authorizer{Type: t, Name: a.Name}
		if !slices.Contains(types, t) {
			z.Unknown = fmt.Sprintf("an authorizer of the unknown type %q", string(t))
		}
		if w := a.Webhook; w != nil {
			z.Webhook = &WebhookOptions{
				AuthorizedTTL: w.AuthorizedTTL.Duration, UnauthorizedTTL: w.UnauthorizedTTL.Duration,
				CacheAuthorized: w.CacheAuthorizedRequests, CacheDenied: w.CacheUnauthorizedRequests,
				FailurePolicy: w.FailurePolicy,
			}
			for _, m := range w.MatchConditions {
				z.Webhook.MatchConditions = append(z.Webhook.MatchConditions, m.Expression)
			}
		}
		out = append(out, z)
	}
	return out
}
