package configurations

import (
	"context"
	"fmt"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

// authenticationConfig has two issuers: one whose identities come out of CEL, one with claims
// and prefixes.
const authenticationConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %[1]s
    audiences: [retrial, second]
    audienceMatchPolicy: MatchAny
    certificateAuthority: |
%[3]s
  claimValidationRules:
  - expression: "!has(claims.tenant) || claims.tenant != 'banned'"
    message: tenant is banned
  claimMappings:
    username: {expression: "'dev:' + claims.sub"}
    groups: {expression: "has(claims.teams) ? dyn(claims.teams).map(t, 'dev:' + string(t)) : []"}
    uid: {expression: "has(claims.oid) ? claims.oid : ''"}
    extra:
    - {key: example.org/tenant, valueExpression: "has(claims.tenant) ? claims.tenant : ''"}
  userValidationRules:
  - {expression: "!user.username.endsWith('.bot')", message: bots have service accounts}
  - {expression: "user.groups.all(g, !g.contains('system:'))", message: no group of the system}
- issuer:
    url: %[2]s
    audiences: [retrial]
    certificateAuthority: |
%[3]s
  claimMappings:
    username: {claim: email, prefix: "corp:"}
    groups: {claim: groups, prefix: "corp:"}
    uid: {claim: sub}
anonymous:
  enabled: true
  conditions:
  - {path: /livez}
  - {path: /version}
`

const oidcRoles = roles + `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: devs, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{kind: Group, name: "dev:payments"}, {kind: User, name: "dev:alice"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: Group, name: "dev:payments"}, {kind: Group, name: "corp:staff"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: corp-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: "corp:bob@example.org"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acts-as}
rules:
- {apiGroups: [""], resources: [users], resourceNames: ["dev:alice"], verbs: [impersonate]}
- {apiGroups: [""], resources: [groups], resourceNames: ["dev:payments"], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [users], resourceNames: ["dev:carol"], verbs: ["impersonate:user-info"]}
- {apiGroups: [""], resources: [pods], verbs: ["impersonate-on:user-info:list"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: acts-as}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acts-as}
subjects: [{kind: User, name: "corp:bob@example.org"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: carol, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: "dev:carol"}]
`

// TestOIDC: an AuthenticationConfiguration with two issuers, CEL and anonymous paths.
func TestOIDC(t *testing.T) {
	ca := controlplane.NewAuthority(t)
	all := issuers(t, ca, "dev", "corp", "unknown")
	dev, corp := all["dev"], all["corp"]
	r := recorder.Start(t, recorder.Config{
		Name:     "oidc",
		Flags:    []string{"--authentication-config=DIR/authentication.yaml", "--authentication-token-webhook-cache-ttl=2m"},
		Files:    map[string][]byte{"authentication.yaml": fmt.Appendf(nil, authenticationConfig, dev.url, corp.url, indented(ca))},
		Manifest: true,
	})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, oidcRoles)
	r.Decided(t, true, "dev:alice", []string{"dev:payments"}, authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps",
		Namespace: "team-a"})
	r.Decided(t, true, "dev:carol", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "team-b"})
	r.Decided(t, true, "corp:bob@example.org", nil, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users",
		Name: "dev:alice"})

	tokenOf := func(i *issuer, claims map[string]any) *recorder.Actor {
		t.Helper()
		name, _ := claims["sub"].(string)
		return r.Actor(t, name, "jwt", r.Bearer(i.token(t, claims)))
	}
	r.Scenario("waiting for the issuers")
	ready(t, tokenOf(dev, map[string]any{"sub": "first", "oid": "u"}),
		tokenOf(corp, map[string]any{"sub": "first", "email": "first@example.org"}))

	r.Scenario("cel")
	alice := tokenOf(dev, map[string]any{"sub": "alice", "teams": []string{"payments", "oncall"}, "oid": "0-1", "tenant": "blue"})
	alice.May(t, "GET /api/v1/namespaces/team-a/pods", "POST /api/v1/namespaces/team-a/configmaps {}", "GET /version", "GET /healthz")
	alice.MayNot(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/nodes", "GET /api/v1/namespaces/team-a/secrets", "GET /metrics")
	alice.Sweep(t, "team-a", "team-b")
	alice.Try(t, hostile...)
	again := tokenOf(dev, map[string]any{"sub": "alice", "teams": []string{"payments"}, "aud": []string{"second", "third"}, "jti": nil})
	again.May(t, "GET /api/v1/namespaces/team-a/pods")
	carol := tokenOf(dev, map[string]any{"sub": "carol"})
	carol.May(t, "GET /api/v1/namespaces/team-b/pods", "GET /api")
	carol.MayNot(t, "GET /api/v1/namespaces/team-a/pods")
	// Names that look like others', behind the prefix.
	tokenOf(dev, map[string]any{"sub": "system:node:node-1", "teams": []string{"admins"}}).MayNot(t, "GET /api/v1/nodes/node-1",
		"GET /api/v1/secrets")
	tokenOf(dev, map[string]any{"sub": "x509SHA256=1"}).May(t, "GET /version")

	r.Scenario("refused tokens")
	for _, claims := range []map[string]any{
		{"sub": "dave", "tenant": "banned"},
		{"sub": "cleaning.bot"},
		{"sub": "eve", "teams": []string{"system:masters"}},
		{"sub": "late", "exp": time.Now().Add(-time.Minute).Unix()},
		{"sub": "elsewhere", "aud": "other"},
		{"sub": "early", "nbf": time.Now().Add(time.Hour).Unix()},
	} {
		tokenOf(dev, claims).Nobody(t, 401, "GET /api/v1/namespaces/team-a/pods", "GET /livez")
	}
	tokenOf(all["unknown"], map[string]any{"sub": "alice"}).Nobody(t, 401, "GET /api/v1/namespaces/team-a/pods")
	forged := &issuer{url: dev.url, key: corp.key}
	tokenOf(forged, map[string]any{"sub": "alice"}).Nobody(t, 401, "GET /api/v1/namespaces/team-a/pods")

	r.Scenario("claims")
	bob := tokenOf(corp, map[string]any{"sub": "c-2", "email": "bob@example.org", "email_verified": true, "groups": []string{"staff"}})
	bob.May(t, "GET /api/v1/pods", "GET /metrics", "GET /apis/apps/v1/deployments")
	bob.MayNot(t, "POST /api/v1/namespaces/team-a/configmaps {}", "GET /api/v1/secrets")
	bob.Sweep(t, "team-a")
	staff := tokenOf(corp, map[string]any{"sub": "c-3", "email": "olga@example.org", "groups": "staff"})
	staff.May(t, "GET /api/v1/namespaces/team-a/configmaps")
	staff.MayNot(t, "GET /api/v1/namespaces/team-b/configmaps")
	tokenOf(corp, map[string]any{"sub": "c-4"}).Nobody(t, 401, "GET /version") // no email
	tokenOf(corp, map[string]any{"sub": "c-5", "email": "m@example.org", "email_verified": false}).Nobody(t, 401, "GET /version")

	r.Scenario("impersonation")
	as := bob.As("Impersonate-User", "dev:alice", "Impersonate-Group", "dev:payments")
	as.May(t, "POST /api/v1/namespaces/team-a/configmaps {}", "GET /api/v1/namespaces/team-a/pods")
	as.MayNot(t, "GET /api/v1/namespaces/team-b/pods")
	bob.As("Impersonate-User", "dev:carol").May(t, "GET /api/v1/namespaces/team-b/pods")
	bob.As("Impersonate-User", "dev:carol").Nobody(t, 403, "GET /api/v1/namespaces/team-b/pods/p0")
	bob.As("Impersonate-User", "dev:dave").Nobody(t, 403, "GET /api/v1/namespaces/team-b/pods")
	bob.As("Impersonate-User", "dev:alice", "Impersonate-Group", "system:masters").Nobody(t, 403, "GET /api/v1/secrets")
	bob.As("Impersonate-Group", "dev:payments").Nobody(t, 400, "GET /api/v1/secrets")

	r.Scenario("escalation")
	const role = `{"metadata":{"name":%q},"rules":[{"apiGroups":[""],"resources":[%q],"verbs":["get"]}]}`
	const create = "POST /apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles "
	alice.May(t, create+fmt.Sprintf(role, "held", "pods"))
	alice.Refused(t, create+fmt.Sprintf(role, "not-held", "secrets"))

	credentials(t, r, "node-unknown")
	r.Scenario("certificates beside")
	// A certificate may say what a token may not.
	r.Actor(t, "dev:alice by certificate", "x509", r.User(t, "dev:alice", "dev:payments")).May(t, "GET /api/v1/namespaces/team-a/pods")
	r.Scenario("anonymous")
	anybody := r.Actor(t, "anonymous", "anonymous", r.Anonymous())
	anybody.May(t, "GET /livez", "GET /version", "GET /livez?verbose=1")
	anybody.Nobody(t, 401, "GET /livez/", "GET /healthz", "GET /api", "GET /api/v1/pods", "GET /livez/ping")
	dir := r.Finish(t)
	served(t, dir, judge(t, dir))
}

// ready waits until tokens of all issuers are taken: the apiserver asks for their keys in the
// background.
func ready(t *testing.T, actors ...*recorder.Actor) {
	t.Helper()
	for _, a := range actors {
		controlplane.Poll(t, "a token to be taken", func(context.Context) (bool, string) {
			code, text := a.Do(t, "GET /version", &recorder.Scenario{})
			return code == 200, text
		})
	}
}

// TestOIDCFlags: one issuer by flags. What nobody gave, the prefix of names, is the issuer.
func TestOIDCFlags(t *testing.T) {
	ca := controlplane.NewAuthority(t)
	i := issuers(t, ca, "main")["main"]
	r := recorder.Start(t, recorder.Config{
		Name: "oidc-flags",
		Flags: []string{"--oidc-issuer-url=" + i.url, "--oidc-client-id=retrial", "--oidc-ca-file=DIR/oidc-ca.crt",
			"--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:",
			"--oidc-required-claim=tenant=blue", "--oidc-signing-algs=ES256", "--anonymous-auth=false"},
		Files: map[string][]byte{"oidc-ca.crt": ca.PEM()},
		Late:  true,
	})
	r.Apply(t, teams)
	r.Apply(t, roles+fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: Group, name: "oidc:staff"}, {kind: User, name: %q}]
`, i.url+"#alice"))
	r.Decided(t, true, i.url+"#alice", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "team-a"})
	tokenOf := func(claims map[string]any) *recorder.Actor {
		name, _ := claims["sub"].(string)
		return r.Actor(t, name, "jwt", r.Bearer(i.token(t, claims)))
	}
	ready(t, tokenOf(map[string]any{"sub": "first", "tenant": "blue"}))
	r.State(t)
	r.Scenario("flags")
	alice := tokenOf(map[string]any{"sub": "alice", "tenant": "blue"})
	alice.May(t, "GET /api/v1/namespaces/team-a/pods", "GET /version")
	alice.MayNot(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/secrets")
	alice.Sweep(t, "team-a", "team-b")
	tokenOf(map[string]any{"sub": "bob", "tenant": "blue", "groups": []string{"staff", "other"}}).May(t,
		"GET /api/v1/namespaces/team-a/pods")
	tokenOf(map[string]any{"sub": "bob", "tenant": "blue"}).MayNot(t, "GET /api/v1/namespaces/team-a/pods")
	tokenOf(map[string]any{"sub": "alice", "tenant": "red"}).Nobody(t, 401, "GET /api/v1/namespaces/team-a/pods")
	tokenOf(map[string]any{"sub": "alice"}).Nobody(t, 401, "GET /api/v1/namespaces/team-a/pods")
	credentials(t, r)
	r.Actor(t, "nobody", "", r.Anonymous()).Nobody(t, 401, "GET /version", "GET /livez")
	judge(t, r.Finish(t))
}
