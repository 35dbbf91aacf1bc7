package configurations

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

const authorizersBefore = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: guard
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: DIR/guard.kubeconfig}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: request.resourceAttributes.namespace == 'team-a' && !(request.resourceAttributes.verb in ['get', 'list', 'watch'])
    - expression: "!('system:nodes' in request.groups)"
    - expression: request.user != 'erin' || request.extra['ticket'][0] != ''
- type: Node
  name: node
- type: RBAC
  name: rbac
`

const authorizersAfter = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Node
  name: node
- type: Webhook
  name: night-watch
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    cacheUnauthorizedRequests: false
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: DIR/night-watch.kubeconfig}
    matchConditions:
    - expression: request.user in ['alice', 'bob', 'carol']
- type: RBAC
  name: rbac
`

// TestReload: the file of authorizers changes while the apiserver runs: a webhook behind
// conditions goes, another one comes before RBAC; a file that says nothing sensible changes
// nothing.
func TestReload(t *testing.T) {
	ca := controlplane.NewAuthority(t)
	var guards, watchers atomic.Int64
	guard := authorizes(t, ca, &guards, func(s spec) (status, bool) {
		switch {
		case s.User == "broken":
			return status{}, false
		case s.ResourceAttributes != nil && s.ResourceAttributes.Resource == "secrets":
			return status{Denied: true, Reason: "guard: secrets of team-a are made elsewhere"}, true
		case s.User == "carol":
			return status{Allowed: true, Reason: "guard: carol is trusted"}, true
		}
		return status{Reason: "guard: no opinion"}, true
	})
	watch := authorizes(t, ca, &watchers, func(s spec) (status, bool) {
		switch s.User {
		case "bob":
			return status{Denied: true, Reason: "night-watch: bob is asleep"}, true
		case "carol":
			return status{}, false
		}
		return status{}, true
	})
	r := recorder.Start(t, recorder.Config{
		Name:  "reload",
		Flags: []string{"--authorization-config=DIR/authorization.yaml"},
		Files: map[string][]byte{"authorization.yaml": []byte(authorizersBefore),
			"guard.kubeconfig": kubeconfig(ca, guard), "night-watch.kubeconfig": kubeconfig(ca, watch)},
	})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, roles+`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{kind: User, name: alice}, {kind: User, name: broken}, {kind: User, name: erin}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: alice}, {kind: User, name: bob}, {kind: User, name: broken}, {kind: User, name: erin}, {kind: User, name: carol}]
`)
	r.Decided(t, true, "alice", nil, authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: "team-b"})
	r.Decided(t, true, "carol", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "team-b"})
	actor := func(name string) *recorder.Actor { return r.Actor(t, name, "x509", r.User(t, name)) }
	alice, bob, carol, broken, erin := actor("alice"), actor("bob"), actor("carol"), actor("broken"), actor("erin")
	const (
		write  = "POST /api/v1/namespaces/team-a/configmaps {}"
		other  = "POST /api/v1/namespaces/team-b/configmaps {}"
		secret = "POST /api/v1/namespaces/team-a/secrets {}"
		read   = "GET /api/v1/namespaces/team-a/pods"
	)
	r.Scenario("before")
	alice.By("rbac").May(t, write, other, read, "GET /version", "GET /metrics")
	alice.By("guard").MayNot(t, secret)
	alice.MayNot(t, "POST /api/v1/namespaces/team-b/secrets {}")
	alice.Sweep(t, "team-a", "team-b")
	alice.Try(t, hostile...)
	bob.By("rbac").May(t, read)
	bob.MayNot(t, write, other)
	carol.By("guard").May(t, write, "DELETE /api/v1/namespaces/team-a/pods/absent")
	carol.MayNot(t, other)
	carol.Sweep(t, "team-a")
	broken.By("rbac").May(t, read, other)
	broken.Nobody(t, 500, write) // the call fails, and the policy is to deny then
	erin.By("rbac").May(t, read, other, "GET /metrics")
	erin.Nobody(t, 500, write) // a condition fails
	r.Admin.As("Impersonate-User", "carol").By("guard").May(t, write)
	credentials(t, r, "node-unknown")

	r.Scenario("a file of no use")
	r.Replace(t, "authorization", "authorization.yaml", []byte("kind: Nothing\n"), "failure")
	alice.By("guard").MayNot(t, secret)
	carol.By("guard").May(t, write)

	r.Scenario("reload")
	r.Replace(t, "authorization", "authorization.yaml", []byte(authorizersAfter), "success")
	r.Scenario("after")
	alice.By("rbac").May(t, write, other, read, "GET /version")
	alice.MayNot(t, secret, "GET /api/v1/nodes")
	alice.Sweep(t, "team-a", "team-b")
	bob.By("night-watch").MayNot(t, read, write, other, "GET /version")
	carol.By("rbac").May(t, read) // the call fails, and the policy is to go on then
	carol.Nobody(t, 500, write)   // until the end, where an error is left
	broken.By("rbac").May(t, write, read)
	erin.By("rbac").May(t, write, read)
	r.Admin.As("Impersonate-User", "bob").By("night-watch").MayNot(t, read)
	credentials(t, r, "node-unknown")
	t.Logf("the webhooks were asked %d and %d times", guards.Load(), watchers.Load())
	dir := r.Finish(t)
	served(t, dir, judge(t, dir))
}

const authenticatorsBefore = `apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %[1]s
    audiences: [retrial]
    certificateAuthority: |
%[2]s
  claimMappings:
    username: {claim: sub, prefix: "old:"}
    groups: {claim: groups, prefix: "old:"}
`

const authenticatorsAfter = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %[1]s
    audiences: [retrial]
    certificateAuthority: |
%[2]s
  claimMappings:
    username: {expression: "'new:' + claims.sub"}
    groups: {claim: groups, prefix: "new:"}
  userValidationRules:
  - {expression: "user.username != 'new:mallory'", message: mallory has left}
`

// TestAuthenticationReload: the same people have other names from one moment to the next, and
// one of them is not let in any more.
func TestAuthenticationReload(t *testing.T) {
	ca := controlplane.NewAuthority(t)
	i := issuers(t, ca, "main")["main"]
	file := func(text string) []byte { return fmt.Appendf(nil, text, i.url, indented(ca)) }
	r := recorder.Start(t, recorder.Config{Name: "authentication-reload",
		Flags: []string{"--authentication-config=DIR/authentication.yaml"},
		Files: map[string][]byte{"authentication.yaml": file(authenticatorsBefore)}})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, roles+`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: "old:alice"}, {kind: Group, name: "new:staff"}]
`)
	r.Decided(t, true, "old:alice", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
	token := func(sub string) *recorder.Actor {
		return r.Actor(t, sub, "jwt", r.Bearer(i.token(t, map[string]any{"sub": sub, "groups": []string{"staff"}})))
	}
	const read = "GET /api/v1/pods"
	alice, mallory := token("alice"), token("mallory")
	ready(t, alice, mallory)
	r.Scenario("before")
	alice.May(t, read, "GET /version")
	alice.Sweep(t, "team-a")
	mallory.MayNot(t, read)
	token("bob").MayNot(t, read)
	r.Scenario("reload")
	r.Replace(t, "authentication", "authentication.yaml", file(authenticatorsAfter), "success")
	r.Scenario("after")
	token("alice").May(t, read)
	token("bob").May(t, read)
	token("mallory").Nobody(t, 401, read)
	mallory.Nobody(t, 401, read) // although the token had been taken a moment ago
	token("alice").Sweep(t, "team-a")
	credentials(t, r, "node-unknown")
	judge(t, r.Finish(t))
}

// indented returns an authority's certificate as it stands in a file of authenticators.
func indented(ca *controlplane.Authority) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(string(ca.PEM())), "\n", "\n      ")
}
