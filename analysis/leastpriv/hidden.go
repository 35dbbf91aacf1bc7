package leastpriv

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
)

// Checks the apiserver makes behind the authorization filter leave no event of their own.
// Those that the recorded request shows are derived here: some follow from the event alone
// and become usage at once, others depend on what the subject held at that moment and wait
// as candidates until the state is complete.

const (
	groupRBAC         = "rbac.authorization.k8s.io"
	groupCertificates = "certificates.k8s.io"
	groupAuthn        = "authentication.k8s.io"
)

// candidate is a hidden check that may have been made.
type candidate struct {
	key     accessKey // the check
	why     string
	count   int64
	at      time.Time // of the latest request
	refused bool
	// rules are what the check on a role's write accepts instead: that the writer holds them.
	rules []rbacv1.PolicyRule
	// roleRef names the role whose rules the check on a binding's write accepts instead.
	roleRef *rbacv1.RoleRef
	// ifHeld: whether the apiserver asks depends on its version, so it counts only when the
	// subject could pass it.
	ifHeld bool
}

// hiddenChecks derives what an allowed request implies.
func (c *Collector) hiddenChecks(u *usage, groups int, e *event.Event, v *replay.Verdict, n Count) {
	a := &v.Attributes
	if !a.ResourceRequest {
		return
	}
	code := e.Code()
	done := code == 0 || code < 300
	if a.APIGroup == "" && a.Resource == "pods" && a.Verb == "get" && slices.Contains([]string{"exec", "attach", "portforward"}, a.Subresource) {
		k := keyOf(groups, a)
		k.verb = "create"
		c.wait(u, candidate{key: k, why: "a websocket to pods/" + a.Subresource + " needs create", at: n.Last,
			ifHeld: true, refused: code == 403}, n)
		return
	}
	if code == 201 && (a.Verb == "patch" || a.Verb == "update") && a.Name != "" {
		k := keyOf(groups, a)
		k.verb = "create"
		c.add(u.allowed, k, "a "+a.Verb+" that created the object needs create", n)
	}
	write := a.Verb == "create" || a.Verb == "update" || a.Verb == "patch"
	switch {
	case !write:
	case a.APIGroup == groupRBAC && a.Subresource == "":
		escalation := code == 403 && e.ResponseStatus != nil && strings.Contains(e.ResponseStatus.Message, "RBAC permissions not currently held")
		if done || escalation {
			c.policyWrite(u, groups, e, a, escalation, n)
		}
	case a.APIGroup == groupCertificates && done:
		c.signer(u, groups, e, a, n)
	}
}

// policyWrite derives escalate and bind.
func (c *Collector) policyWrite(u *usage, groups int, e *event.Event, a *replay.Attributes, refused bool, n Count) {
	body := e.RequestObject
	if a.Verb == "patch" {
		body = e.ResponseObject
	}
	var o struct {
		Rules           []rbacv1.PolicyRule     `json:"rules"`
		AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
		RoleRef         rbacv1.RoleRef          `json:"roleRef"`
	}
	readable := len(body) > 0 && json.Unmarshal(body, &o) == nil
	cand := candidate{at: n.Last, refused: refused}
	switch a.Resource {
	case "roles", "clusterroles":
		cand.key = keyOf(groups, a)
		cand.key.verb = "escalate"
		cand.why = "writing a role needs its rules, or escalate"
		cand.rules = o.Rules
		if o.AggregationRule != nil {
			cand.rules = []rbacv1.PolicyRule{
				{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
				{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
			}
		}
	case "rolebindings", "clusterrolebindings":
		if readable && o.RoleRef.Name == "" {
			readable = false
		}
		resource := "clusterroles"
		if o.RoleRef.Kind == "Role" {
			resource = "roles"
		}
		cand.key = accessKey{groups: groups, resource: true, verb: "bind", namespace: a.Namespace, group: groupRBAC, res: resource, name: o.RoleRef.Name}
		cand.why = "writing a binding needs bind on its role, or the role's rules"
		cand.roleRef = &o.RoleRef
	default:
		return
	}
	if !readable {
		if !refused {
			u.unreadable += n.Requests
		}
		return
	}
	c.wait(u, cand, n)
}

// signer derives approve, sign and attest.
func (c *Collector) signer(u *usage, groups int, e *event.Event, a *replay.Attributes, n Count) {
	verb := ""
	switch {
	case a.Resource == "certificatesigningrequests" && a.Subresource == "approval":
		verb = "approve"
	case a.Resource == "certificatesigningrequests" && a.Subresource == "status",
		a.Resource == "podcertificaterequests" && a.Subresource == "status":
		verb = "sign"
	case a.Resource == "clustertrustbundles" && a.Subresource == "":
		verb = "attest"
	default:
		return
	}
	var o struct {
		Spec struct {
			SignerName string `json:"signerName"`
		} `json:"spec"`
	}
	for _, body := range [][]byte{e.ResponseObject, e.RequestObject} {
		if o.Spec.SignerName == "" && len(body) > 0 {
			_ = json.Unmarshal(body, &o) // a body of another shape names no signer
		}
	}
	if o.Spec.SignerName == "" {
		if verb != "attest" { // a bundle without a signer needs nothing
			u.unreadable += n.Requests
		}
		return
	}
	c.wait(u, candidate{key: accessKey{groups: groups, resource: true, verb: verb, group: groupCertificates, res: "signers", name: o.Spec.SignerName},
		why: verb + " on the signer", at: n.Last, ifHeld: true}, n)
}

// wait keeps a candidate, once for the same check on the same content.
func (c *Collector) wait(u *usage, cand candidate, n Count) {
	rules, err := json.Marshal(cand.rules)
	if err != nil {
		u.unreadable += n.Requests // strings alone: cannot happen, and would be named as a gap
		return
	}
	k := cand.key
	id := strings.Join([]string{k.verb, k.namespace, k.group, k.res, k.subresource, k.name, string(rules),
		map[bool]string{true: "refused"}[cand.refused], strings.Join(u.groups[k.groups], "\x01")}, "\x00")
	have, ok := u.hidden[id]
	if !ok {
		for _, s := range []*string{&cand.key.verb, &cand.key.namespace, &cand.key.group, &cand.key.res, &cand.key.subresource, &cand.key.name} {
			*s = c.str(*s)
		}
		have = &cand
		u.hidden[id] = have
	}
	have.count += n.Requests
	if cand.at.After(have.at) {
		have.at = cand.at
	}
}

// impersonation derives what the requestor had to be allowed. Groups the apiserver adds by
// itself cannot be told from requested ones and need nothing.
func (c *Collector) impersonation(e *event.Event, v *replay.Verdict, n Count) {
	if slices.Contains(e.User.Groups, "system:masters") || len(v.Impersonation.Grants) == 0 {
		return
	}
	u := c.subject(e.User.Username)
	u.requests += n.Requests
	u.judged += n.Requests
	set := u.groupSet(c, e.User.Groups)
	who := e.ImpersonatedUser
	constraint := ""
	if e.AuthenticationMetadata != nil {
		constraint = e.AuthenticationMetadata.ImpersonationConstraint
	}
	add := func(verb, group, resource, sub, namespace, name string) {
		c.add(u.allowed, accessKey{groups: set, resource: true, verb: verb, namespace: namespace, group: group, res: resource,
			subresource: sub, name: name}, "impersonation of "+c.str(who.Username), n)
	}
	saNamespace, saName, isSA := serviceAccount(who.Username)
	if constraint == "" {
		if isSA {
			add("impersonate", "", "serviceaccounts", "", saNamespace, saName)
		} else {
			add("impersonate", "", "users", "", "", who.Username)
		}
		c.pieces(who, isSA, func(resource, sub, name string) {
			group := groupAuthn
			if resource == "groups" {
				group = ""
			}
			add("impersonate", group, resource, sub, "", name)
		})
		return
	}
	mode := strings.TrimPrefix(constraint, "impersonate:")
	on := keyOf(set, &v.Attributes)
	on.verb = "impersonate-on:" + mode + ":" + v.Attributes.Verb
	c.add(u.allowed, on, "impersonation of "+c.str(who.Username), n)
	switch mode {
	case "associated-node":
		add(constraint, groupAuthn, "nodes", "", "", "*") // the name itself, no wildcard
	case "arbitrary-node":
		add(constraint, groupAuthn, "nodes", "", "", strings.TrimPrefix(who.Username, "system:node:"))
	case "serviceaccount":
		add(constraint, groupAuthn, "serviceaccounts", "", saNamespace, saName)
	case "user-info":
		add(constraint, groupAuthn, "users", "", "", who.Username)
		c.pieces(who, false, func(resource, sub, name string) { add(constraint, groupAuthn, resource, sub, "", name) })
	}
}

// pieces visits groups, extra values and uid that must have been asked for.
func (c *Collector) pieces(who *event.User, isSA bool, visit func(resource, sub, name string)) {
	namespace, _, _ := serviceAccount(who.Username)
	own := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	filled := isSA && len(who.Groups) == len(own) && !slices.ContainsFunc(own, func(g string) bool { return !slices.Contains(who.Groups, g) })
	added := "system:authenticated"
	if who.Username == "system:anonymous" {
		added = "system:unauthenticated"
	}
	for _, g := range who.Groups {
		if !filled && g != added {
			visit("groups", "", g)
		}
	}
	for _, x := range who.Extra {
		for _, value := range x.Values {
			visit("userextras", x.Key, value)
		}
	}
	if who.UID != "" {
		visit("uids", "", who.UID)
	}
}

// serviceAccount takes the user name of a service account apart; a name whose parts no
// object could have is a plain user.
func serviceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || len(validation.NameIsDNSLabel(namespace, false)) > 0 || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}
