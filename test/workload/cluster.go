package workload

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// cluster is who and what there is.
type cluster struct {
	nodes       []*actor
	controllers []*actor
	workloads   []*workload
	people      []*actor
	deployers   []*actor
	prober      *actor
	stranger    *actor
	namespaces  []string
	in          map[string][]*workload // by namespace
}

// actor is somebody who makes requests.
type actor struct {
	user      event.User
	agent     string
	ips       []string
	reason    string // what the apiserver notes when it lets a request through
	uid       string // of the object the actor keeps writing: its lease
	name      string
	namespace string
	node      string
	renews    time.Time // when the token is replaced
	home      []string  // namespaces, most used first
}

// workload is a deployment and its pods.
type workload struct {
	namespace, name, image string
	hash                   string // of the pod template
	pods                   []*actor
	leader                 bool
	kind                   int // what it does, see operations
	objects                []object
	denied                 bool // asks for what it may not
}

// object is something that is read and written.
type object struct{ name, uid string }

const (
	serviceAccountGroup = "system:serviceaccounts"
	credentialID        = "authentication.kubernetes.io/credential-id"
)

//nolint:gochecknoglobals // constant table
var areas = []string{"payments", "catalog", "search", "identity", "billing", "media", "orders", "risk", "mail", "geo", "ads", "ml", "data",
	"web", "edge"}

//nolint:gochecknoglobals // constant table
var trades = []string{"api", "worker", "gateway", "operator", "sync", "scheduler", "indexer", "exporter", "cache", "proxy", "cleaner",
	"events"}

//nolint:gochecknoglobals // constant table
var givenNames = []string{"anna", "bert", "carla", "dario", "elif", "femi", "greta", "hugo", "ines", "jonas", "kaito", "lena", "marek",
	"nadia", "omar", "paula", "rafael", "sofia", "tomas", "yara"}

var surnames = []string{"almeida", "berg", "costa", "dubois"} //nolint:gochecknoglobals // constant table

var controlLoops = []string{ //nolint:gochecknoglobals // constant table
	"deployment-controller", "replicaset-controller", "endpointslice-controller", "endpoint-controller", "generic-garbage-collector",
	"job-controller", "cronjob-controller", "namespace-controller", "resourcequota-controller", "statefulset-controller",
	"daemon-set-controller", "disruption-controller", "horizontal-pod-autoscaler", "node-controller", "persistent-volume-binder",
	"pod-garbage-collector", "root-ca-cert-publisher", "service-account-controller", "ttl-after-finished-controller",
	"attachdetach-controller",
}

func (g *Generator) populate() {
	for _, a := range areas {
		for _, env := range []string{"prod", "staging", "dev", "load"} {
			g.namespaces = append(g.namespaces, a+"-"+env)
		}
	}
	for i := range 120 {
		name := fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", 20+i%3, g.rng.IntN(250), 10+i)
		g.nodes = append(g.nodes, &actor{
			user: event.User{Username: "system:node:" + name, Groups: []string{"system:nodes", "system:authenticated"},
				Extra: event.Extra{{Key: credentialID, Values: []string{"X509SHA256=" + g.hex(64)}}}},
			agent: "kubelet/v1.36.3 (linux/amd64) kubernetes/0c1f9ab", ips: []string{fmt.Sprintf("10.%d.%d.%d", 20+i%3, g.rng.IntN(250),
				10+i)},
			name: name, uid: g.uuid(), node: g.uuid(),
		})
	}
	for _, c := range controlLoops {
		binding := "system:controller:" + c
		a := g.serviceAccount("kube-system", c, "", grantReason("ClusterRoleBinding", binding, "ClusterRole", binding, "ServiceAccount",
			c+"/kube-system"))
		a.agent = "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/0c1f9ab/system:serviceaccount:kube-system:" + c
		a.ips = []string{"10.20.0.10"}
		g.controllers = append(g.controllers, a)
	}
	for _, c := range []string{"kube-controller-manager", "kube-scheduler"} {
		g.controllers = append(g.controllers, &actor{
			user: event.User{Username: "system:" + c, Groups: []string{"system:authenticated"},
				Extra: event.Extra{{Key: credentialID, Values: []string{"X509SHA256=" + g.hex(64)}}}},
			agent: c + "/v1.36.3 (linux/amd64) kubernetes/0c1f9ab/leader-election", ips: []string{"10.20.0.10"}, name: c,
			namespace: "kube-system", uid: g.uuid(),
			reason: grantReason("ClusterRoleBinding", "system:"+c, "ClusterRole", "system:"+c, "User", "system:"+c),
		})
	}
	g.in = map[string][]*workload{}
	for i := range 240 {
		w := g.newWorkload(i)
		g.workloads = append(g.workloads, w)
		g.in[w.namespace] = append(g.in[w.namespace], w)
	}
	for i := range 80 {
		g.people = append(g.people, g.person(i))
	}
	for i := range 12 {
		name := "deployer-" + areas[i]
		a := g.serviceAccount("ci", name, "", grantReason("ClusterRoleBinding", "ci:deployers", "ClusterRole", "ci:deployer", "Group",
			"system:serviceaccounts:ci"))
		a.agent = []string{"helm/v3.18.4 (linux/amd64)", "argocd-application-controller/v3.1.0",
			"kubectl/v1.36.1 (linux/amd64) kubernetes/0c1f9ab"}[i%3]
		a.home = []string{areas[i] + "-prod", areas[i] + "-staging", areas[i] + "-dev"}
		g.deployers = append(g.deployers, a)
	}
	g.prober = &actor{user: event.User{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}, agent: "kube-probe/1.36",
		ips: []string{"10.20.0.10"},
		reason: grantReason("ClusterRoleBinding", "system:public-info-viewer", "ClusterRole", "system:public-info-viewer", "Group",
			"system:unauthenticated")}
	g.stranger = &actor{user: g.prober.user, agent: "python-requests/2.32.3", ips: []string{"185.220.101.34"}}
}

// serviceAccount makes an actor with a token, bound to a pod when one is named.
func (g *Generator) serviceAccount(namespace, name, pod, reason string) *actor {
	a := &actor{
		user: event.User{Username: "system:serviceaccount:" + namespace + ":" + name, UID: g.uuid(),
			Groups: []string{serviceAccountGroup, serviceAccountGroup + ":" + namespace, "system:authenticated"}},
		reason: reason, name: name, namespace: namespace, uid: g.uuid(), ips: []string{fmt.Sprintf("10.%d.%d.%d", 64+g.rng.IntN(16),
			g.rng.IntN(256), 1+g.rng.IntN(254))},
	}
	if pod != "" {
		node := g.nodes[g.rng.IntN(len(g.nodes))]
		a.user.Extra = event.Extra{
			{Key: credentialID, Values: []string{""}},
			{Key: "authentication.kubernetes.io/node-name", Values: []string{node.name}},
			{Key: "authentication.kubernetes.io/node-uid", Values: []string{node.node}},
			{Key: "authentication.kubernetes.io/pod-name", Values: []string{pod}},
			{Key: "authentication.kubernetes.io/pod-uid", Values: []string{g.uuid()}},
		}
	} else {
		a.user.Extra = event.Extra{{Key: credentialID, Values: []string{""}}}
	}
	return a
}

// fresh gives a service account a new token when its time has come. Events that have the old
// one keep it: the list is replaced, not written to.
func (g *Generator) fresh(a *actor) {
	if len(a.user.Extra) == 0 || g.now.Before(a.renews) || strings.HasPrefix(a.user.Extra[0].Values[0], "X509") {
		return
	}
	extra := append(event.Extra(nil), a.user.Extra...)
	extra[0].Values = []string{"JTI=" + g.uuid()}
	a.user.Extra = extra
	a.renews = g.now.Add(time.Duration(2700+g.rng.IntN(600)) * time.Second)
}

func (g *Generator) newWorkload(i int) *workload {
	w := &workload{
		namespace: g.namespaces[i*7%len(g.namespaces)], name: trades[i%len(trades)], hash: g.suffix(9),
		leader: i%3 == 0, kind: i % 4, denied: i%9 == 0,
	}
	if round := i / len(g.namespaces); round > 0 {
		w.name += "-" + areas[(i+round)%len(areas)]
	}
	w.image = fmt.Sprintf("registry.example.com/%s/%s:v1.%d.%d", w.namespace, w.name, g.rng.IntN(40), g.rng.IntN(10))
	reason := grantReason("RoleBinding", w.name+"/"+w.namespace, "Role", w.name, "ServiceAccount", w.name+"/"+w.namespace)
	if w.kind == 3 {
		reason = grantReason("ClusterRoleBinding", w.namespace+":"+w.name, "ClusterRole", "operator:"+w.name, "ServiceAccount",
			w.name+"/"+w.namespace)
	}
	var uid string
	for range 1 + g.zipf(1.5, 12) {
		a := g.serviceAccount(w.namespace, w.name, w.name+"-"+w.hash+"-"+g.suffix(5), reason)
		if uid == "" {
			uid = a.user.UID
		}
		a.user.UID = uid
		a.agent = fmt.Sprintf("%s/v1.%d.0 (linux/amd64) kubernetes/%s", w.name, i%17, g.hex(7))
		if len(w.pods) > 0 {
			a.agent = w.pods[0].agent
		}
		w.pods = append(w.pods, a)
	}
	for n := range 40 {
		name := fmt.Sprintf("%s-%s-%d", w.name, []string{"config", "shard", "tenant", "feature"}[n%4], n)
		if n%5 == 4 {
			name = w.name + "-" + g.suffix(5)
		}
		w.objects = append(w.objects, object{name, g.uuid()})
	}
	return w
}

func (g *Generator) person(i int) *actor {
	name := givenNames[i%len(givenNames)] + "." + surnames[i/len(givenNames)]
	team := areas[i%len(areas)]
	a := &actor{
		user: event.User{Username: name + "@example.com", Groups: []string{"oidc:team-" + team, "oidc:engineers", "system:authenticated"}},
		name: name, ips: []string{fmt.Sprintf("10.128.%d.%d", i, 2+g.rng.IntN(200))},
		agent: fmt.Sprintf("kubectl/v1.%d.%d (%s) kubernetes/%s", 33+i%4, g.rng.IntN(6),
			[]string{"darwin/arm64", "linux/amd64", "windows/amd64"}[i%3], g.hex(7)),
		reason: grantReason("ClusterRoleBinding", "oidc:engineers:view", "ClusterRole", "engineer", "Group", "oidc:engineers"),
	}
	for _, env := range []string{"dev", "staging", "prod", "load"} {
		a.home = append(a.home, team+"-"+env)
	}
	return a
}

// grantReason returns what the apiserver's RBAC authorizer notes.
func grantReason(bindingKind, binding, roleKind, role, subjectKind, subject string) string {
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", bindingKind, binding, roleKind, role, subjectKind, subject)
}
