package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// fakeAccess is the part of a fakeStore that knows groups.
type fakeAccess struct {
	groups map[string][]string // by subject
	seen   time.Time
	until  time.Time // of the last question
}

func (f *fakeAccess) LastGroups(_ context.Context, _, subject string, until time.Time) ([]string, time.Time, bool, error) {
	f.until = until
	groups, ok := f.groups[subject]
	if !ok || subject == "late" && !until.IsZero() {
		return nil, time.Time{}, true, nil
	}
	return slices.Clone(groups), f.seen, subject != "untold", nil
}

const (
	mastersAll = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"cluster-admin"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:masters"}]}`
	adminRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"cluster-admin"},` +
		`"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},{"verbs":["*"],"nonResourceURLs":["*"]}]}`
	deployRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"namespace":"shop","name":"deployer"},` +
		`"rules":[{"verbs":["get","update"],"apiGroups":["apps","extensions"],"resources":["deployments","deployments/scale"]},` +
		`{"verbs":["rollout"],"apiGroups":["example.com"],"resources":["widgets"],"resourceNames":["blue"]}]}`
	botDeploys = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop",` +
		`"name":"bot-deploys"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"deployer"},` +
		`"subjects":[{"kind":"ServiceAccount","name":"bot"}]}`
	everybody = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"discovery"},` +
		`"rules":[{"verbs":["get"],"nonResourceURLs":["/healthz","/api/*"]}]}`
	everybodyIs = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"discovery"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"discovery"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"}]}`
	danglingRB = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop","name":"dangling"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"gone"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}`
)

// accessState knows its cluster from 10:00 on. devs-read is deleted at 11:30, and what became
// of ann-reads at 11:40 is not known.
func accessState(t *testing.T) *state.State {
	t.Helper()
	st := policyOf(t, readerRole, annReads, devsRead, botReads, adminRole, mastersAll, deployRole, botDeploys, everybody, everybodyIs,
		danglingRB)
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 11, minute, 0, 0, time.UTC) }
	st.Apply(
		observe.Observation{Source: observe.SourceWatch, Resource: kept.RoleBindings, Namespace: "shop", Name: "devs-read", UID: "u2",
			ResourceVersion: "100", Deleted: true, NotBefore: at(30), NotAfter: at(30)},
		observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: "ann-reads", Unknown: true,
			NotBefore: at(40), NotAfter: at(40)},
	)
	return st
}

// who writes an answer's subjects in one line each.
func who(a query.WhoCanAnswer) string {
	var b strings.Builder
	for _, s := range a.Subjects {
		b.WriteString(s.Kind + " " + s.Namespace + "/" + s.Name + " " + s.Scope)
		for _, g := range s.Grants {
			if g.Kind == query.KindSuperuser {
				b.WriteString(" superuser " + g.Subject)
				continue
			}
			b.WriteString(" " + g.Binding + ">" + g.Role + "#" + string(rune('0'+g.Rule)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

const masters = "Group /system:masters cluster superuser Group/system:masters " +
	"ClusterRoleBinding/cluster-admin>ClusterRole/cluster-admin#0\n"

func TestAPIWhoCan(t *testing.T) {
	f := &fakeStore{known: accessState(t)}
	ann := "User /ann cluster ClusterRoleBinding/ann-reads>ClusterRole/reader#1\n"
	devs := "Group /devs namespace:shop RoleBinding/shop/devs-read>ClusterRole/reader#1\n"
	bot := "ServiceAccount shop/bot namespace:shop RoleBinding/shop/bot-reads>ClusterRole/reader#1\n"
	deploys := "ServiceAccount shop/bot namespace:shop RoleBinding/shop/bot-deploys>Role/shop/deployer#0\n"
	for _, c := range []struct {
		name, query  string
		want         string
		group, sub   string
		inNamespaces int
		missing      string
		hint         string
	}{
		{name: "in a namespace, before a binding goes", query: "verb=list&resource=secrets&namespace=shop&at=2026-11-20T11:29:00Z",
			want: devs + masters + ann + bot},
		{name: "and after", query: "verb=list&resource=secrets&namespace=shop&at=2026-11-20T11:31:00Z", want: masters + ann + bot},
		{name: "cluster-wide", query: "verb=list&resource=secrets&at=2026-11-20T11:29:00Z", want: masters + ann, inNamespaces: 2},
		{name: "in any namespace", query: "verb=list&resource=secrets&allNamespaces=true&at=2026-11-20T11:29:00Z",
			want: devs + masters + ann + bot},
		{name: "the newest, with a binding unknown", query: "verb=list&resource=secrets&namespace=shop", want: masters + bot,
			missing: "ClusterRoleBinding/ann-reads"},
		{name: "group found in the rules", query: "verb=update&resource=deployments&namespace=shop&at=2026-11-20T11:00:00Z",
			want: masters + deploys, group: "apps"},
		{name: "subresource and group", query: "verb=update&resource=deployments.apps/scale&namespace=shop&at=2026-11-20T11:00:00Z",
			want: masters + deploys, group: "apps", sub: "scale"},
		{name: "the other order", query: "verb=update&resource=deployments/scale.apps&namespace=shop&at=2026-11-20T11:00:00Z",
			want: masters + deploys, group: "apps", sub: "scale"},
		{name: "another group", query: "verb=update&resource=deployments.extensions&namespace=shop&at=2026-11-20T11:00:00Z",
			want: masters + deploys, group: "extensions"},
		{name: "the core group by a dot", query: "verb=update&resource=deployments.&namespace=shop&at=2026-11-20T11:00:00Z", want: masters,
			hint: "did you mean deployments.apps?"},
		{name: "a name that is granted", query: "verb=rollout&resource=widgets&namespace=shop&name=blue&at=2026-11-20T11:00:00Z",
			group: "example.com",
			want:  masters + "ServiceAccount shop/bot namespace:shop RoleBinding/shop/bot-deploys>Role/shop/deployer#1\n"},
		{name: "without a name", query: "verb=rollout&resource=widgets&namespace=shop&at=2026-11-20T11:00:00Z", group: "example.com",
			want: masters},
		{name: "a path", query: "verb=get&path=/healthz&at=2026-11-20T11:00:00Z",
			want: "Group /system:authenticated cluster ClusterRoleBinding/discovery>ClusterRole/discovery#0\n" +
				strings.Replace(masters, "#0", "#1", 1)},
		{name: "everything", query: "verb=*&resource=*.*&at=2026-11-20T11:00:00Z", group: "*", want: masters},
		{name: "a singular", query: "verb=list&resource=secret&namespace=shop&at=2026-11-20T11:29:00Z", want: devs + masters + ann + bot,
			hint: "secret was read as secrets"},
		{name: "a kind", query: "verb=list&resource=Secret&namespace=shop&at=2026-11-20T11:29:00Z", want: devs + masters + ann + bot,
			hint: "Secret was read as secrets"},
		{name: "a short name", query: "verb=get&resource=deploy&namespace=shop&at=2026-11-20T11:00:00Z", group: "apps",
			want: masters + deploys, hint: "deploy was read as deployments"},
		{name: "a short name and a subresource", query: "verb=update&resource=deploy/scale&namespace=shop&at=2026-11-20T11:00:00Z",
			group: "apps", sub: "scale", want: masters + deploys, hint: "deploy/scale was read as deployments/scale"},
		{name: "the singular of a custom resource", query: "verb=rollout&resource=widget&namespace=shop&at=2026-11-20T11:00:00Z",
			group: "example.com", want: masters, hint: "widget was read as widgets"},
		{name: "a resource that no rule names", query: "verb=list&resource=leases&namespace=shop&at=2026-11-20T11:00:00Z",
			group: "coordination.k8s.io", want: masters,
			hint: "no rule names the resource leases.coordination.k8s.io: only wildcards grant it"},
		{name: "a custom resource that no rule names, with its group",
			query: "verb=list&resource=gadgets.example.com&namespace=shop&at=2026-11-20T11:00:00Z", group: "example.com", want: masters,
			hint: "only wildcards grant it"},
		{name: "a verb of its own", query: "verb=teleport&resource=secrets&namespace=shop&at=2026-11-20T11:00:00Z", want: masters,
			hint: `no rule names the verb "teleport"`},
		{name: "before anything is known", query: "verb=list&resource=secrets&namespace=shop&at=2026-11-20T09:00:00Z",
			want: "Group /system:masters cluster superuser Group/system:masters\n", missing: "all RoleBindings,all ClusterRoleBindings",
			hint: "no rule names"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := decodeAnswer[query.WhoCanAnswer](t, askFake(t, f, http.MethodGet, "who-can?cluster=c&"+c.query))
			if got := who(a); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if a.Group != c.group || a.Subresource != c.sub || a.InNamespaces != c.inNamespaces ||
				strings.Join(a.Missing, ",") != c.missing || a.Known != !strings.HasPrefix(c.missing, "all") {
				t.Errorf("group %q, subresource %q, %d in namespaces, missing %q, known %t", a.Group, a.Subresource, a.InNamespaces,
					a.Missing, a.Known)
			}
			if hints := strings.Join(a.Hints, " | "); (c.hint == "") != (hints == "") || !strings.Contains(hints, c.hint) {
				t.Errorf("hints %q", hints)
			}
		})
	}
	for query, want := range map[string]string{
		"verb=list&resource=sercets": "resource: no rule names the resource sercets, and Kubernetes has none of that name; did you mean " +
			"secrets?",
		"verb=list&resource=gadgets": "resource: no rule names the resource gadgets, and Kubernetes has none of that name",
		"verb=list&resource=zzz":     "write it with its group, as widgets.example.com",
		"verb=lst&resource=secrets":  `verb: no rule names the verb "lst", and requests do not have it; did you mean list?`,
		"verb=gett&path=/healthz":    `did you mean get?`,
	} {
		if r := askFake(t, f, http.MethodGet, "who-can?cluster=c&at=2026-11-20T11:00:00Z&"+query); r.Code != http.StatusBadRequest ||
			!strings.Contains(r.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", query, r.Code, r.Body, want)
		}
	}
	t.Run("of one namespace by its name", func(t *testing.T) {
		a := decodeAnswer[query.WhoCanAnswer](t, askFake(t, f, http.MethodGet, "who-can?cluster=c&verb=get&resource=namespaces&name=shop"))
		if a.Namespace != "shop" {
			t.Errorf("namespace %q: the apiserver looks at the RoleBindings there", a.Namespace)
		}
	})
	t.Run("which moment", func(t *testing.T) {
		a := decodeAnswer[query.WhoCanAnswer](t, askFake(t, f, http.MethodGet, "who-can?cluster=c&verb=get&resource=pods"))
		if a.At == nil || !a.At.Equal(time.Date(2026, 11, 20, 11, 40, 0, 0, time.UTC)) {
			t.Errorf("at %v, want when the newest change was done", a.At)
		}
	})
}

// may writes the rules of an answer.
func may(a query.CanAnswer) string {
	var b strings.Builder
	for _, s := range a.Scopes {
		b.WriteString("in " + s.Namespace + "\n")
		for _, r := range s.Rules {
			b.WriteString("  " + strings.Join(r.Verbs, ",") + " " + strings.Join(append(slices.Clone(r.Resources), r.NonResourceURLs...),
				",") + "." + strings.Join(r.APIGroups, ",") + "/" + strings.Join(r.ResourceNames, ","))
			for _, g := range r.By {
				b.WriteString(" " + g.Binding + ">" + g.Role + "#" + string(rune('0'+g.Rule)) + "@" + g.Subject)
			}
			b.WriteString("\n")
		}
		for _, m := range s.MissingRoles {
			b.WriteString("  gone " + m + "\n")
		}
	}
	return b.String()
}

func TestAPICan(t *testing.T) {
	f := &fakeStore{known: accessState(t), fakeAccess: fakeAccess{
		groups: map[string][]string{"ann": {"devs", "system:authenticated"}, "root": {"system:masters"}, "late": {"devs"}, "untold": nil},
		seen:   time.Date(2026, 11, 20, 11, 20, 0, 0, time.UTC)}}
	discovery := "  get /api/*,/healthz./ ClusterRoleBinding/discovery>ClusterRole/discovery#0@Group/system:authenticated\n"
	ann := "in \n  get pods./ ClusterRoleBinding/ann-reads>ClusterRole/reader#0@User/ann\n  list secrets./ " +
		"ClusterRoleBinding/ann-reads>ClusterRole/reader#1@User/ann\n" + discovery
	devs := "in shop\n  get pods./ RoleBinding/shop/devs-read>ClusterRole/reader#0@Group/devs\n  list secrets./ " +
		"RoleBinding/shop/devs-read>ClusterRole/reader#1@Group/devs\n"
	for _, c := range []struct {
		name, query string
		want        string
		groups      string
		from        string
		missing     string
		hint        string
		super       bool
	}{
		{name: "groups as last seen", query: "subject=ann&at=2026-11-20T11:29:00Z", want: ann + devs + "  gone Role/shop/gone\n",
			groups: "devs,system:authenticated", from: "requests"},
		{name: "after the binding went", query: "subject=ann&at=2026-11-20T11:31:00Z", want: ann + "in shop\n  gone Role/shop/gone\n",
			groups: "devs,system:authenticated", from: "requests"},
		{name: "groups that are named", query: "subject=ann&group=" + url.QueryEscape(`ops, "CN=a,OU=b"`) + "&at=2026-11-20T11:29:00Z",
			want: ann + "in shop\n  gone Role/shop/gone\n", groups: "CN=a,OU=b,ops,system:authenticated", from: "asked",
			hint: `no binding names the group "ops" | no binding names the group "CN=a,OU=b"`},
		{name: "one namespace", query: "subject=ann&namespace=other&at=2026-11-20T11:29:00Z", want: ann,
			groups: "devs,system:authenticated", from: "requests", hint: "namespace other does not exist"},
		{name: "a group by itself", query: "subject=group:devs&at=2026-11-20T11:29:00Z", want: devs, groups: "devs", from: "asked"},
		{name: "groups and no user", query: "group=devs,system:authenticated&at=2026-11-20T11:29:00Z", want: "in \n" + discovery + devs,
			groups: "devs,system:authenticated", from: "asked"},
		{name: "a service account", query: "subject=system:serviceaccount:shop:bot&at=2026-11-20T11:29:00Z",
			groups: "system:authenticated,system:serviceaccounts,system:serviceaccounts:shop", from: "name",
			want: "in \n" + discovery + "in shop\n  get pods./ RoleBinding/shop/bot-reads>ClusterRole/reader#0@ServiceAccount/shop/bot\n " +
				" list secrets./ RoleBinding/shop/bot-reads>ClusterRole/reader#1@ServiceAccount/shop/bot\n" +
				"  get,update deployments,deployments/scale.apps,extensions/ " +
				"RoleBinding/shop/bot-deploys>Role/shop/deployer#0@ServiceAccount/shop/bot\n" +
				"  rollout widgets.example.com/blue RoleBinding/shop/bot-deploys>Role/shop/deployer#1@ServiceAccount/shop/bot\n"},
		{name: "somebody who may do everything", query: "subject=root&at=2026-11-20T11:29:00Z",
			groups: "system:authenticated,system:masters", from: "requests", super: true,
			want: "in \n  * *.*/ ClusterRoleBinding/cluster-admin>ClusterRole/cluster-admin#0@Group/system:masters\n" +
				"  * *./ ClusterRoleBinding/cluster-admin>ClusterRole/cluster-admin#1@Group/system:masters\n" + discovery},
		{name: "nobody that is known, with groups", query: "subject=user:an&group=system:authenticated&at=2026-11-20T11:29:00Z",
			want: "in \n" + discovery, groups: "system:authenticated", from: "asked"},
		{name: "groups nobody can tell", query: "subject=untold&at=2026-11-20T11:29:00Z", want: "in \n" + discovery,
			groups: "system:authenticated", from: "unknown"},
		{name: "who was seen later", query: "subject=late&at=2026-11-20T11:29:00Z", want: "in \n" + discovery,
			groups: "system:authenticated", from: "name"},
		{name: "with a binding unknown", query: "subject=bob", want: "in \n" + discovery, groups: "system:authenticated", from: "name",
			missing: "ClusterRoleBinding/ann-reads", hint: "no binding names it"},
		{name: "before anything is known", query: "subject=ann&at=2026-11-20T09:00:00Z", groups: "devs,system:authenticated",
			from: "requests", missing: "all RoleBindings,all ClusterRoleBindings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := decodeAnswer[query.CanAnswer](t, askFake(t, f, http.MethodGet, "can?cluster=c&"+c.query))
			if got := may(a); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if got := strings.Join(a.Groups, ","); got != c.groups || a.GroupsFrom != c.from || a.Superuser != c.super ||
				(a.GroupsSeen != nil) != (c.from == "requests") {
				t.Errorf("groups %q from %q, seen %v, superuser %t", got, a.GroupsFrom, a.GroupsSeen, a.Superuser)
			}
			if strings.Join(a.Missing, ",") != c.missing || a.Known != !strings.HasPrefix(c.missing, "all") {
				t.Errorf("missing %q, known %t", a.Missing, a.Known)
			}
			if hints := strings.Join(a.Hints, " | "); (c.hint == "") != (hints == "") || !strings.Contains(hints, c.hint) {
				t.Errorf("hints %q", hints)
			}
		})
	}
	if r := askFake(t, f, http.MethodGet, "can?cluster=c&subject=user:an&at=2026-11-20T11:29:00Z"); r.Code != http.StatusNotFound ||
		!strings.Contains(r.Body.String(), `no request of "an" is stored and no binding names it; did you mean "ann"?`) {
		t.Errorf("nobody that is known: %d %s", r.Code, r.Body)
	}
	for route, want := range map[string]string{
		"can?subject=nan&at=2026-11-20T11:29:00Z":                            `did you mean "ann"?`, // swapped letters
		"can?subject=system:serviceaccount:shop:bto&at=2026-11-20T11:29:00Z": `did you mean "system:serviceaccount:shop:bot"?`,
		"can?subject=nan&verb=list&resource=secrets&at=2026-11-20T11:29:00Z": `did you mean "ann"?`,
		"escalations?subject=nan&at=2026-11-20T11:29:00Z":                    `did you mean "ann"?`,
		"subject?subject=nan": `did you mean "ann"?`,
	} {
		path, args, _ := strings.Cut(route, "?")
		r := askFake(t, f, http.MethodGet, path+"?cluster=c&"+args)
		if r.Code != http.StatusNotFound || !strings.Contains(r.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", route, r.Code, r.Body, want)
		}
	}
	if a := decodeAnswer[query.CanAnswer](t, askFake(t, f, http.MethodGet, "can?cluster=c&subject=nan")); !a.Stranger ||
		!slices.Equal(a.Near, []string{"ann"}) ||
		!strings.Contains(strings.Join(a.Hints, "\n"), `did you mean "ann"?`) {
		t.Errorf("a name that a binding nobody knows may have: %+v", a)
	}
	askFake(t, f, http.MethodGet, "can?cluster=c&subject=ann&at=2026-11-20T09:00:00Z")
	if want := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC); !f.until.Equal(want) {
		t.Errorf("groups as of %s, want %s", f.until, want)
	}
}

func TestAPICanRequest(t *testing.T) {
	f := &fakeStore{known: accessState(t), fakeAccess: fakeAccess{seen: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		groups: map[string][]string{"root": {"system:masters"}}}}
	for _, c := range []struct {
		name, query string
		allowed     string
		grants      string
		roles       string
		bindings    string
		almost      string
		rule        string
		missing     string
	}{
		{name: "by a grant", query: "subject=ann&verb=list&resource=secrets&namespace=shop&at=2026-11-20T11:00:00Z", allowed: "yes",
			grants: "ClusterRoleBinding/ann-reads"},
		{name: "needs none", query: "subject=root&verb=escalate&resource=roles&at=2026-11-20T11:00:00Z", allowed: "yes",
			grants: "superuser ClusterRoleBinding/cluster-admin"},
		{name: "a path", query: "subject=bob&group=system:authenticated&verb=get&path=/api/v1&at=2026-11-20T11:00:00Z", allowed: "yes",
			grants: "ClusterRoleBinding/discovery"},
		{name: "no, but for the verb", query: "subject=ann&verb=delete&resource=secrets&name=x&namespace=shop&at=2026-11-20T11:00:00Z",
			allowed: "no",
			roles:   "ClusterRole/cluster-admin", bindings: "ClusterRoleBinding/cluster-admin", almost: "ClusterRole/reader#1 verb",
			rule: "[delete] [secrets] [x]"},
		{name: "no, but elsewhere",
			query: "subject=system:serviceaccount:shop:bot&verb=get&resource=pods&namespace=other&at=2026-11-20T11:00:00Z", allowed: "no",
			roles: "ClusterRole/reader ClusterRole/cluster-admin", bindings: "ClusterRoleBinding/ann-reads " +
				"ClusterRoleBinding/cluster-admin", almost: "ClusterRole/reader#0 namespace", rule: "[get] [pods] []"},
		{name: "not known", query: "subject=ann&verb=list&resource=secrets&namespace=shop", allowed: "unknown",
			missing: "ClusterRoleBinding/ann-reads",
			roles:   "ClusterRole/reader ClusterRole/cluster-admin", bindings: "RoleBinding/shop/bot-reads ClusterRoleBinding/ann-reads " +
				"ClusterRoleBinding/cluster-admin", rule: "[list] [secrets] []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := decodeAnswer[query.CanAnswer](t, askFake(t, f, http.MethodGet, "can?cluster=c&"+c.query))
			d := a.Request
			if d == nil || d.Allowed != c.allowed || len(a.Scopes) != 0 || strings.Join(a.Missing, " ") != c.missing ||
				(d.Nearest == nil) != (c.allowed == "yes") {
				t.Fatalf("got %+v, missing %q", d, a.Missing)
			}
			var grants, roles, bindings, almost []string
			for _, g := range d.Grants {
				grants = append(grants, g.Kind+g.Binding)
			}
			rule := ""
			if n := d.Nearest; n != nil {
				for _, o := range n.Roles {
					roles = append(roles, o.Role)
				}
				for _, o := range n.Bindings {
					bindings = append(bindings, o.Binding)
				}
				for _, x := range n.Almost {
					almost = append(almost, x.Role+"#"+string(rune('0'+x.Rule))+" "+x.Lacks)
				}
				rule = fmt.Sprint(n.Rule.Verbs, " ", n.Rule.Resources, " ", n.Rule.ResourceNames)
			}
			for i, got := range [][]string{grants, roles, bindings, almost, {rule}} {
				if want := []string{c.grants, c.roles, c.bindings, c.almost, c.rule}[i]; strings.Join(got, " ") != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// TestAPICanBind: a role may be bound by the verb, or by who holds all of its rules.
func TestAPICanBind(t *testing.T) {
	f := &fakeStore{known: accessState(t), fakeAccess: fakeAccess{seen: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		groups: map[string][]string{"root": {"system:masters"}}}}
	const roles = "&verb=bind&resource=clusterroles.rbac.authorization.k8s.io"
	for _, c := range []struct{ name, query, allowed, text string }{
		{"covered", "subject=ann&name=reader&at=2026-11-20T11:00:00Z" + roles, "yes", "yes: it holds every rule of the role"},
		{"superuser", "subject=root&name=cluster-admin&at=2026-11-20T11:00:00Z" + roles, "yes", "yes"},
		{"rules it lacks", "subject=ann&name=cluster-admin&at=2026-11-20T11:00:00Z" + roles, "no",
			"no: it holds neither the verb bind on the role nor all of its rules"},
		{"no such role", "subject=ann&name=none&at=2026-11-20T11:00:00Z" + roles, "no",
			"no: the role does not exist, and the verb bind is not granted"},
		{"not known", "subject=ann&name=reader" + roles, "unknown",
			"unknown: it holds neither the verb bind on the role nor all of its rules"},
		{"a role of a namespace",
			"subject=system:serviceaccount:shop:bot&namespace=shop&name=deployer" + "&verb=bind&resource=roles.rbac.authorization.k8s.io" +
				"&at=2026-11-20T11:00:00Z", "yes", "yes: it holds every rule of the role"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decodeAnswer[query.CanAnswer](t, askFake(t, f, http.MethodGet, "can?cluster=c&"+c.query)).Request
			if d == nil || d.Bind == nil || d.Bind.Allowed != c.allowed || d.Bind.Text() != c.text || d.Yes() != (c.allowed == "yes") {
				t.Fatalf("got %+v, %+v", d, d.Bind)
			}
			if lacks := len(d.Bind.RulesMissing) > 0; lacks != strings.Contains(c.text, "neither") {
				t.Errorf("rules missing: %+v", d.Bind.RulesMissing)
			}
		})
	}
	if d := decodeAnswer[query.CanAnswer](t,
		askFake(t, f, http.MethodGet, "can?cluster=c&subject=ann&verb=bind&resource=pods&name=x")).Request; d.Bind != nil {
		t.Errorf("pods are not roles: %+v", d.Bind)
	}
}

func TestAPIAccessRefuses(t *testing.T) {
	known := accessState(t)
	for _, c := range []struct {
		name, path, says string
		known            *state.State
		status           int
	}{
		{"no cluster", "who-can?verb=get&resource=pods", "cluster is missing", known, 400},
		{"no verb", "who-can?cluster=c&resource=pods", "verb is missing", known, 400},
		{"nothing asked for", "who-can?cluster=c&verb=get", "a resource or a path", known, 400},
		{"both", "who-can?cluster=c&verb=get&resource=pods&path=/x", "either a resource or a path", known, 400},
		{"no path", "who-can?cluster=c&verb=get&path=healthz", "must begin with a slash", known, 400},
		{"a path in a namespace", "who-can?cluster=c&verb=get&path=/x&namespace=n", "neither namespace nor name", known, 400},
		{"one namespace and all", "who-can?cluster=c&verb=get&resource=pods&namespace=n&allNamespaces=true",
			"either one namespace or all", known, 400},
		{"no truth", "who-can?cluster=c&verb=get&resource=pods&allNamespaces=yes", "want true or false", known, 400},
		{"no resource", "who-can?cluster=c&verb=get&resource=/exec", "the resource before the group is missing", known, 400},
		{"no subresource", "who-can?cluster=c&verb=get&resource=pods/", "is not RESOURCE", known, 400},
		{"two subresources", "who-can?cluster=c&verb=get&resource=pods/a/b", "is not RESOURCE", known, 400},
		{"no time", "who-can?cluster=c&verb=get&resource=pods&at=noon", "want RFC 3339", known, 400},
		{"no state", "who-can?cluster=it's&verb=get&resource=pods", `retrial import --cluster 'it'\''s' --state FILE`, nil, 404},
		{"an empty state", "can?cluster=c&subject=ann", "retrial import --cluster c --state FILE", state.New("c"), 404},
		{"no subject", "can?cluster=c", "subject is missing", known, 400},
		{"a verb for nothing", "can?cluster=c&subject=ann&verb=get", "a resource or a path", known, 400},
		{"a resource without a verb", "can?cluster=c&subject=ann&resource=pods", "verb is missing", known, 400},
		{"one request of no resource", "can?cluster=c&subject=ann&verb=get&resource=a/b/c", "is not RESOURCE", known, 400},
		{"no group", "can?cluster=c&subject=group:", "the name is missing", known, 400},
		{"an empty group", "can?cluster=c&subject=a&group=b,,c", "empty name", known, 400},
		{"groups of two lines", "can?cluster=c&subject=a&group=b%0Ac", "more than one line", known, 400},
		{"an odd moment", "can?cluster=c&subject=a&at=1969-12-31T00:00:00Z", "between 1970 and 2106", known, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := askFake(t, &fakeStore{known: c.known}, http.MethodGet, c.path)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
	t.Run("a store that fails", func(t *testing.T) {
		f := &failingGroups{fakeStore{known: known}}
		a := query.Service{Store: f, Replay: f.replay()}
		if _, err := a.Can(t.Context(), query.CanRequest{Cluster: "c", Subject: "ann"}); !errors.Is(err, errNoGroups) {
			t.Errorf("error %v", err)
		}
	})
}

var errNoGroups = errors.New("no groups")

type failingGroups struct{ fakeStore }

func (*failingGroups) LastGroups(context.Context, string, string, time.Time) ([]string, time.Time, bool, error) {
	return nil, time.Time{}, false, errNoGroups
}
