package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/verdict"
)

// forbiddenText words a refusal as an apiserver does: what the client chose is made safe for
// HTML, but for the object's name.
func forbiddenText(user string, a *verdict.Attributes, reason string) string {
	what := fmt.Sprintf("path %q", a.Path)
	head := ""
	if a.ResourceRequest {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		what = fmt.Sprintf("resource %q in API group %q at the cluster scope", resource, a.APIGroup)
		if a.Namespace != "" {
			what = fmt.Sprintf("resource %q in API group %q in the namespace %q", resource, a.APIGroup, a.Namespace)
		}
		head = a.Resource
		if a.APIGroup != "" {
			head += "." + a.APIGroup
		}
		if a.Name != "" {
			head += fmt.Sprintf(" %q", a.Name)
		}
		head += " is "
	}
	text := head + "forbidden: " + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(fmt.Sprintf("User %q cannot %s %s",
		user, a.Verb, what))
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// TestParseForbidden reads refusals of odd parts too.
func TestParseForbidden(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	odd := []string{"", "a", "pods", "system:node:n", `q"uo"te`, "a b", "<b>&amp;", "日本", `x is forbidden: User "u" cannot get`,
		"line\nbreak", `back\slash`, ": reason"}
	for range 20000 {
		who := pick(odd...)
		want := verdict.Attributes{Verb: pick("impersonate", "impersonate:user-info", "impersonate-on:user-info:list"),
			ResourceRequest: r.IntN(6) > 0}
		if want.ResourceRequest {
			want.Resource, want.Subresource = pick("users", "groups", "userextras", "pods"), pick("", "", "acme.com/project", "log")
			want.APIGroup, want.Namespace, want.Name = pick("", "authentication.k8s.io"), pick("", "d"), pick(odd...)
		} else {
			want.Path = "/" + pick(odd...)
		}
		reason := pick("", `RBAC: clusterrole.rbac.authorization.k8s.io "x" not found`,
			"impersonating the system:masters group is not allowed")
		message := forbiddenText(who, &want, reason)
		f, ok := parseForbidden(message)
		if !ok {
			t.Fatalf("not read: %s", message)
		}
		if f.attributes != want || f.user != who || f.reason != reason {
			t.Fatalf("%s\ngot  %+v\nwant %+v of %q for %q", message, f, want, who, reason)
		}
	}
	for _, message := range []string{"", "Forbidden", "forbidden: ", "pods is forbidden: exceeded quota",
		`pods "p is forbidden: User "u" cannot get`, `pods is forbidden: User "u" cannot get resource "pods" in API group ""`} {
		if f, ok := parseForbidden(message); ok {
			t.Errorf("%q is read as %+v", message, f)
		}
	}
}
