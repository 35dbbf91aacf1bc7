package authorizertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	realrbac "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// tally counts what was compared.
type tally struct {
	requests, decisions, allowed, refused, withErrors, rules, impersonations int
}

// ask sends a call to both apiservers and says how the answers disagree, "" if they do not.
func (w *world) ask(c *call, n *tally) string {
	w.t.Helper()
	w.sent++
	id := fmt.Sprint("request-", w.sent)
	real, ours := w.real.send(w.t, c, id), w.ours.send(w.t, c, id)
	n.requests++
	if real.code != ours.code {
		return fmt.Sprintf("status %d, ours %d\n%s\n%s", real.code, ours.code, real.body, ours.body)
	}
	if len(real.made) != len(ours.made) {
		return fmt.Sprintf("%d decisions, ours %d", len(real.made), len(ours.made))
	}
	if c.asUser != "" {
		n.impersonations++
	}
	for i := range real.made {
		if text := w.decisionsAgree(&real.made[i], &ours.made[i], n); text != "" {
			return text
		}
	}
	if c.uri == rulesReview && real.code == http.StatusOK {
		n.rules++
	}
	if status, ok := real.document().(map[string]any); real.code == http.StatusForbidden && c.method != "HEAD" &&
		(!ok || status["message"] == nil) {
		return fmt.Sprintf("a refusal without a message: %s", real.body)
	}
	if a, b := real.normal(real.document()), ours.normal(ours.document()); !reflect.DeepEqual(a, b) {
		return fmt.Sprintf("body\n%v\nours\n%v", a, b)
	}
	for key, value := range real.annotations {
		if mine, ok := ours.annotations[key]; !ok || real.normal(value) != ours.normal(mine) {
			return fmt.Sprintf("annotation %s is %q, ours %q", key, value, mine)
		}
	}
	if len(real.annotations) != len(ours.annotations) {
		return fmt.Sprintf("annotations %q, ours %q", real.annotations, ours.annotations)
	}
	return ""
}

func (w *world) decisionsAgree(real, ours *decision, n *tally) string {
	n.decisions++
	if !reflect.DeepEqual(real.attributes, ours.attributes) {
		return fmt.Sprintf("asked about %+v, ours %+v", real.attributes, ours.attributes)
	}
	if real.decision != ours.decision || real.err != nil || ours.err != nil {
		return fmt.Sprintf("%v %q (error %v), ours %v %q (error %v)", real.decision, real.reason, real.err, ours.decision, ours.reason,
			ours.err)
	}
	if real.decision != authorizer.DecisionAllow {
		n.refused++
		if real.reason != "" {
			n.withErrors++
		}
		if !sameErrors(real.reason, ours.reason) {
			return fmt.Sprintf("refused with %q, ours %q", real.reason, ours.reason)
		}
		return ""
	}
	n.allowed++
	for _, reason := range []string{real.reason, ours.reason} {
		if could := w.reasons(real.attributes); !slices.Contains(could, reason) {
			return fmt.Sprintf("reason %q is not among %q", reason, could)
		}
	}
	return ""
}

// reasons returns all reasons the real authorizer could give: it names the grant it meets first,
// in the order its lister happens to have, ClusterRoleBindings before RoleBindings.
func (w *world) reasons(a authorizer.Attributes) []string {
	var cluster, namespaced []string
	w.resolver.VisitRulesFor(w.t.Context(), a.GetUser(), a.GetNamespace(), func(from fmt.Stringer, rule *rbacv1.PolicyRule, _ error) bool {
		if rule != nil && realrbac.RuleAllows(a, rule) {
			text := from.String()
			if strings.HasPrefix(text, "ClusterRoleBinding ") {
				cluster = append(cluster, "RBAC: allowed by "+text)
			} else {
				namespaced = append(namespaced, "RBAC: allowed by "+text)
			}
		}
		return true
	})
	if len(cluster) > 0 {
		return cluster
	}
	return namespaced
}

var oneError = regexp.MustCompile(`(cluster)?role\.rbac\.authorization\.k8s\.io "(\\.|[^"\\])*" not found|unsupported role reference ` +
	`kind: "(\\.|[^"\\])*"`)

// sameErrors reports whether two refusals are equal but for the order the errors were met in.
func sameErrors(a, b string) bool {
	of := func(text string) ([]string, string) {
		list := oneError.FindAllString(text, -1)
		slices.Sort(list)
		return list, oneError.ReplaceAllString(text, "")
	}
	listA, restA := of(a)
	listB, restB := of(b)
	return slices.Equal(listA, listB) && restA == restB
}

// document returns the body, decoded if it is JSON.
func (a *answer) document() any {
	var v any
	if json.Unmarshal([]byte(a.body), &v) != nil {
		return a.body
	}
	return v
}

// normal replaces the reasons, which were compared before, by their place, and what has no
// order by its order.
func (a *answer) normal(v any) any {
	switch v := v.(type) {
	case string:
		for i, d := range a.made {
			if d.reason != "" {
				v = strings.ReplaceAll(v, d.reason, fmt.Sprint("(reason ", i, ")"))
			}
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = a.normal(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, member := range v {
			switch list, isList := member.([]any); {
			case isList && strings.HasSuffix(k, "esourceRules"):
				lines := make([]string, len(list))
				for i := range list {
					lines[i] = fmt.Sprint(list[i])
				}
				slices.Sort(lines)
				out[k] = lines
			case k == "evaluationError":
				errs := oneError.FindAllString(fmt.Sprint(member), -1)
				slices.Sort(errs)
				out[k] = errs
			default:
				out[k] = a.normal(member)
			}
		}
		return out
	}
	return v
}
