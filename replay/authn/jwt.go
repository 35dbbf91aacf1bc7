package authn

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
)

// issuer is one issuer of tokens, with the rules that need nothing but the user.
type issuer struct {
	jwt    *config.JWT
	extras map[string]bool
	rules  authenticationcel.UserMapper // nil without rules
	texts  []config.Rule
	broken string // why the rules cannot be evaluated
}

func compileIssuer(j *config.JWT) issuer {
	i := issuer{jwt: j, texts: j.UserRules, extras: make(map[string]bool, len(j.Extra))}
	for _, x := range j.Extra {
		i.extras[x.Key] = true
	}
	if len(j.UserRules) == 0 {
		return i
	}
	compiler := authenticationcel.NewDefaultCompiler()
	results := make([]authenticationcel.CompilationResult, 0, len(j.UserRules))
	for _, r := range j.UserRules {
		if strings.Contains(r.Expression, "__") {
			i.broken = "not-evaluable: a user validation rule names escaped fields"
			return i
		}
		one, err := compiler.CompileUserExpression(&authenticationcel.UserValidationCondition{Expression: r.Expression, Message: r.Message})
		if err != nil {
			i.broken = "not-evaluable: a user validation rule does not compile"
			return i
		}
		results = append(results, one)
	}
	i.rules = authenticationcel.NewUserMapper(results)
	return i
}

// refusal of an issuer: what kind of contradiction it is.
type refusal uint8

const (
	possible refusal = iota
	refusedPrefix
	refusedRule
	refusedShape
)

// why says in words why an issuer cannot have produced a user.
func (r refusal) why() string {
	switch r {
	case refusedPrefix:
		return "the prefix of no configured issuer"
	case refusedRule:
		return "the issuer's user validation rules refuse this user"
	case refusedShape:
		return "carries what the issuer's claim mappings do not give"
	}
	return ""
}

// produces reports whether a token of the issuer can have led to the user, and if a rule says
// no, which.
func (i *issuer) produces(x *subject) (refusal, string) {
	j, u := i.jwt, x.u
	if j.Username.Expression == "" && (!strings.HasPrefix(u.Username, j.Username.Prefix) || len(u.Username) == len(j.Username.Prefix)) {
		return refusedPrefix, ""
	}
	if j.Groups.Expression == "" {
		for _, g := range u.Groups {
			if g == GroupAuthenticated && x.authenticated == 1 {
				continue // the apiserver's own
			}
			if j.Groups.Claim == "" || !strings.HasPrefix(g, j.Groups.Prefix) {
				return refusedPrefix, ""
			}
		}
	}
	if u.UID != "" && j.UID == (config.Claim{}) {
		return refusedShape, ""
	}
	for k := range u.Extra {
		if key := u.Extra[k].Key; key != event.ExtraCredentialID && !i.extras[key] {
			return refusedShape, ""
		}
	}
	return i.judge(x)
}

// judge runs the validation rules over the user as it was before the apiserver added its
// group. Where the issuer can have given that group itself, either reading makes the user
// possible.
func (i *issuer) judge(x *subject) (refusal, string) {
	if i.rules == nil {
		return possible, ""
	}
	groups := x.u.Groups
	given := groups
	if n := len(groups); n > 0 && groups[n-1] == GroupAuthenticated {
		given = groups[:n-1]
	}
	rule := i.refuses(x.u, given)
	if rule != "" && len(given) < len(groups) && (i.jwt.Groups.Expression != "" || i.jwt.Groups.Claim != "" && i.jwt.Groups.Prefix == "") {
		rule = i.refuses(x.u, groups)
	}
	if rule != "" {
		return refusedRule, rule
	}
	return possible, ""
}

// refuses returns the first rule that a user with these groups does not meet, "" if all are
// met.
func (i *issuer) refuses(u *event.User, groups []string) string {
	results, err := i.rules.EvalUser(context.Background(), userValue(u, groups))
	if err != nil {
		return "a rule fails on this user: " + err.Error()
	}
	for k := range results {
		if ok, is := results[k].EvalResult.Value().(bool); !is || !ok {
			return fmt.Sprintf("rule %q", i.texts[k].Expression)
		}
	}
	return ""
}

// userValue returns the user as the rules see it, converted as far as a rule looks at it.
func userValue(u *event.User, groups []string) *lazy.MapValue {
	native := types.DefaultTypeAdapter.NativeToValue
	v := lazy.NewMapValue(types.NewObjectType("kubernetes.UserInfo"))
	v.Append("username", func(*lazy.MapValue) ref.Val { return types.String(u.Username) })
	v.Append("uid", func(*lazy.MapValue) ref.Val { return types.String(u.UID) })
	v.Append("groups", func(*lazy.MapValue) ref.Val { return native(groups) })
	v.Append("extra", func(*lazy.MapValue) ref.Val {
		extra := make(map[string][]string, len(u.Extra))
		for i := range u.Extra {
			extra[u.Extra[i].Key] = u.Extra[i].Values
		}
		return native(extra)
	})
	return v
}
