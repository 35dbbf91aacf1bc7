package workload

import (
	"fmt"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

const (
	coordination = "coordination.k8s.io"
	rbacGroup    = "rbac.authorization.k8s.io"
	ownGroup     = "ops.example.com"
)

// request makes the events of one more request.
func (g *Generator) request() {
	switch g.pick([]float64{31, 20, 36, 4, 3, 6}) {
	case 0:
		g.kubelet(g.nodes[g.rng.IntN(len(g.nodes))])
	case 1:
		g.controlPlane()
	case 2:
		w := g.workloads[g.zipf(1.1, len(g.workloads))]
		g.work(w, w.pods[g.rng.IntN(len(w.pods))])
	case 3:
		g.kubectl(g.people[g.zipf(1.2, len(g.people))])
	case 4:
		g.deploy(g.deployers[g.zipf(1.1, len(g.deployers))])
	case 5:
		g.probe()
	}
}

// lease renews a lease, now and then after looking at it.
func (g *Generator) lease(a *actor, namespace, name, query string) {
	c := &call{verb: "update", group: coordination, version: "v1", resource: "leases", namespace: namespace, name: name, uid: a.uid,
		query: query, median: 4 * time.Millisecond}
	if g.rng.IntN(200) == 0 {
		c.code = 409
	}
	g.do(a, c)
}

// watch watches for 5 to 10 minutes.
func (g *Generator) watch(a *actor, c *call, selector string) {
	c.verb, c.median = "watch", time.Millisecond
	seconds := 300 + g.rng.IntN(300)
	c.query = fmt.Sprintf("allowWatchBookmarks=true%s&resourceVersion=%d&timeout=%dm%ds&timeoutSeconds=%d&watch=true", selector,
		g.revision-uint64(g.rng.IntN(5000)), seconds/60, seconds%60, seconds)
	c.long = time.Duration(seconds)*time.Second - g.takes(300*time.Microsecond)
	g.do(a, c)
}

func (g *Generator) kubelet(n *actor) {
	w := g.workloads[g.zipf(1.1, len(g.workloads))]
	pod := w.pods[g.rng.IntN(len(w.pods))].user.Extra[3].Values[0]
	switch g.pick([]float64{45, 14, 8, 6, 8, 5, 9, 3, 2}) {
	case 0:
		g.lease(n, "kube-node-lease", n.name, "timeout=10s")
	case 1:
		g.do(n, &call{verb: "patch", version: "v1", resource: "pods", sub: "status", namespace: w.namespace, name: pod,
			median: 6 * time.Millisecond})
	case 2:
		g.do(n, &call{verb: "patch", version: "v1", resource: "nodes", sub: "status", name: n.name, query: "timeout=10s",
			median: 7 * time.Millisecond})
	case 3:
		g.do(n, &call{verb: "get", version: "v1", resource: "nodes", name: n.name, query: "resourceVersion=0&timeout=10s",
			median: time.Millisecond})
	case 4:
		g.do(n, &call{verb: "create", version: "v1", resource: "events", namespace: w.namespace, created: pod + "." + g.hex(16), code: 201,
			median: 5 * time.Millisecond})
	case 5:
		g.do(n, &call{verb: "create", version: "v1", resource: "serviceaccounts", sub: "token", namespace: w.namespace, name: w.name,
			code: 201, median: 5 * time.Millisecond})
	case 6:
		o := w.objects[g.zipf(1.3, len(w.objects))]
		g.watch(n, &call{version: "v1", resource: []string{"configmaps", "secrets"}[g.rng.IntN(2)], namespace: w.namespace, name: o.name},
			"&fieldSelector=metadata.name%3D"+o.name)
	case 7:
		g.do(n, &call{verb: "create", group: "authentication.k8s.io", version: "v1", resource: "tokenreviews", code: 201})
	case 8:
		g.do(n, &call{verb: "create", group: "authorization.k8s.io", version: "v1", resource: "subjectaccessreviews", code: 201})
	}
}

func (g *Generator) controlPlane() {
	a := g.controllers[len(g.controllers)-1-g.rng.IntN(2)]
	if g.rng.IntN(4) == 0 {
		g.do(a, &call{verb: "get", group: coordination, version: "v1", resource: "leases", namespace: "kube-system", name: a.name,
			query: "timeout=5s", median: time.Millisecond})
		g.advance()
		g.lease(a, "kube-system", a.name, "timeout=5s")
		return
	}
	w := g.workloads[g.zipf(1.1, len(g.workloads))]
	switch g.pick([]float64{16, 22, 16, 12, 10, 6, 5, 6, 7}) {
	case 0: // deployment
		g.do(g.controllers[0], &call{verb: "update", group: "apps", version: "v1", resource: "deployments", sub: "status",
			namespace: w.namespace, name: w.name, uid: w.objects[0].uid, code: g.conflict(40), median: 5 * time.Millisecond})
	case 1: // replica set: a pod goes, another comes
		i := g.rng.IntN(len(w.pods))
		was := w.pods[i]
		g.do(g.controllers[1], &call{verb: "update", group: "apps", version: "v1", resource: "replicasets", sub: "status",
			namespace: w.namespace, name: w.name + "-" + w.hash, uid: w.objects[1].uid, median: 5 * time.Millisecond})
		if g.rng.IntN(8) != 0 {
			return
		}
		name := w.name + "-" + w.hash + "-" + g.suffix(5)
		next := g.serviceAccount(w.namespace, w.name, name, was.reason)
		next.user.UID, next.agent, next.uid = was.user.UID, was.agent, was.uid
		w.pods[i] = next
		g.advance()
		g.do(g.controllers[1], &call{verb: "create", version: "v1", resource: "pods", namespace: w.namespace, created: name, code: 201,
			level: event.LevelRequest, body: g.podBody(w), median: 9 * time.Millisecond})
	case 2: // endpoint slices
		g.do(g.controllers[2], &call{verb: "update", group: "discovery.k8s.io", version: "v1", resource: "endpointslices",
			namespace: w.namespace, name: w.name + "-" + w.hash[:5], uid: w.objects[2].uid, median: 5 * time.Millisecond})
	case 3:
		g.do(g.controllers[3], &call{verb: "update", version: "v1", resource: "endpoints", namespace: w.namespace, name: w.name,
			uid: w.objects[3].uid, median: 5 * time.Millisecond})
	case 4: // garbage
		c := &call{verb: []string{"get", "delete", "patch"}[g.rng.IntN(3)], group: "apps", version: "v1", resource: "replicasets",
			namespace: w.namespace, name: w.name + "-" + g.suffix(9), median: 4 * time.Millisecond}
		if g.rng.IntN(6) == 0 {
			c.code = 404
		}
		g.do(g.controllers[4], c)
	case 5:
		g.do(g.controllers[5], &call{verb: "update", group: "batch", version: "v1", resource: "jobs", sub: "status", namespace: w.namespace,
			name: w.name + "-" + fmt.Sprint(29_000_000+g.now.Unix()/600%1000), uid: w.objects[4].uid, median: 5 * time.Millisecond})
	case 6:
		g.do(g.controllers[8], &call{verb: "update", version: "v1", resource: "resourcequotas", sub: "status", namespace: w.namespace,
			name: "quota", uid: w.objects[5].uid, code: g.conflict(30), median: 5 * time.Millisecond})
	case 7: // informers
		resource := []string{"pods", "services", "nodes", "persistentvolumes"}[g.rng.IntN(4)]
		g.watch(g.controllers[len(g.controllers)-1], &call{version: "v1", resource: resource}, "")
	case 8: // binding
		g.do(g.controllers[len(g.controllers)-1], &call{verb: "create", version: "v1", resource: "pods", sub: "binding",
			namespace: w.namespace, name: w.pods[0].user.Extra[3].Values[0], code: 201, median: 7 * time.Millisecond})
	}
}

// conflict returns 409 once in n times, else 0.
func (g *Generator) conflict(n int) int32 {
	if g.rng.IntN(n) == 0 {
		return 409
	}
	return 0
}

func (g *Generator) work(w *workload, p *actor) {
	if w.leader && g.rng.IntN(100) < 45 {
		p = w.pods[0]
		g.do(p, &call{verb: "get", group: coordination, version: "v1", resource: "leases", namespace: w.namespace, name: w.name,
			median: time.Millisecond})
		g.advance()
		g.lease(p, w.namespace, w.name, "")
		return
	}
	if w.denied && g.rng.IntN(100) < 8 {
		c := &call{verb: "list", version: "v1", resource: "secrets", query: "limit=500", refused: true, median: 400 * time.Microsecond}
		if g.rng.IntN(3) == 0 {
			c = &call{verb: "get", version: "v1", resource: "nodes", name: p.user.Extra[1].Values[0], refused: true,
				median: 400 * time.Microsecond}
		}
		g.do(p, c)
		return
	}
	o := w.objects[g.zipf(1.3, len(w.objects))]
	switch w.kind {
	case 0: // reads its configuration
		switch g.pick([]float64{60, 15, 15, 10}) {
		case 0:
			g.do(p, &call{verb: "get", version: "v1", resource: "configmaps", namespace: w.namespace, name: o.name, code: g.missing(50),
				median: time.Millisecond})
		case 1:
			g.do(p, &call{verb: "get", version: "v1", resource: "secrets", namespace: w.namespace, name: o.name, median: time.Millisecond})
		case 2:
			g.watch(p, &call{version: "v1", resource: "configmaps", namespace: w.namespace}, "")
		case 3:
			g.do(p, &call{verb: "list", version: "v1", resource: "configmaps", namespace: w.namespace, query: "limit=500&resourceVersion=0",
				median: 3 * time.Millisecond})
		}
	case 1: // looks for its peers
		switch g.pick([]float64{40, 30, 20, 10}) {
		case 0:
			g.do(p, &call{verb: "list", version: "v1", resource: "pods", namespace: w.namespace, query: "labelSelector=app%3D" + w.name,
				median: 4 * time.Millisecond})
		case 1:
			g.do(p, &call{verb: "get", version: "v1", resource: "endpoints", namespace: w.namespace, name: w.name,
				median: time.Millisecond})
		case 2:
			g.watch(p, &call{version: "v1", resource: "services", namespace: w.namespace}, "")
		case 3:
			g.do(p, &call{verb: "get", version: "v1", resource: "pods", namespace: w.namespace, name: p.user.Extra[3].Values[0],
				median: time.Millisecond})
		}
	case 2: // works
		switch g.pick([]float64{35, 30, 20, 15}) {
		case 0:
			g.do(p, &call{verb: "patch", version: "v1", resource: "configmaps", namespace: w.namespace, name: o.name,
				query: "fieldManager=" + w.name, code: g.conflict(60), median: 6 * time.Millisecond})
		case 1:
			g.do(p, &call{verb: "create", version: "v1", resource: "events", namespace: w.namespace, created: w.name + "." + g.hex(16),
				code: 201, median: 5 * time.Millisecond})
		case 2:
			g.do(p, &call{verb: "get", version: "v1", resource: "configmaps", namespace: w.namespace, name: o.name,
				median: time.Millisecond})
		case 3:
			g.do(p, &call{verb: "create", group: "batch", version: "v1", resource: "jobs", namespace: w.namespace, created: w.name + "-" +
				g.suffix(5), code: 201, level: event.LevelRequest, body: g.jobBody(w), median: 8 * time.Millisecond})
		}
	case 3: // an operator, everywhere
		other := g.workloads[g.zipf(1.1, len(g.workloads))]
		kind := w.name + "s"
		switch g.pick([]float64{35, 25, 15, 15, 10}) {
		case 0:
			g.do(p, &call{verb: "update", group: ownGroup, version: "v1beta1", resource: kind, sub: "status", namespace: other.namespace,
				name: o.name, uid: o.uid, code: g.conflict(30), median: 6 * time.Millisecond})
		case 1:
			g.do(p, &call{verb: "get", group: ownGroup, version: "v1beta1", resource: kind, namespace: other.namespace, name: o.name,
				code: g.missing(40), median: time.Millisecond})
		case 2:
			g.watch(p, &call{group: ownGroup, version: "v1beta1", resource: kind}, "")
		case 3:
			g.do(p, &call{verb: "get", version: "v1", resource: "secrets", namespace: other.namespace, name: other.objects[0].name,
				median: time.Millisecond})
		case 4:
			g.do(p, &call{verb: "patch", group: "apps", version: "v1", resource: "deployments", namespace: other.namespace,
				name: other.name, query: "fieldManager=" + w.name + "&force=true",
				level: event.LevelRequest, body: g.deploymentBody(other), median: 9 * time.Millisecond})
		}
	}
}

// missing returns 404 once in n times, else 0.
func (g *Generator) missing(n int) int32 {
	if g.rng.IntN(n) == 0 {
		return 404
	}
	return 0
}

func (g *Generator) kubectl(p *actor) {
	namespace := p.home[g.zipf(1.3, len(p.home))]
	w := g.workloadIn(namespace)
	pod := w.pods[g.rng.IntN(len(w.pods))].user.Extra[3].Values[0]
	if g.rng.IntN(100) < 6 {
		g.do(p, &call{verb: "get", version: "v1", resource: "secrets", namespace: namespace, name: w.objects[g.rng.IntN(5)].name,
			refused: true, median: 400 * time.Microsecond})
		return
	}
	switch g.pick([]float64{30, 18, 12, 10, 8, 3, 4, 3, 12}) {
	case 0:
		g.do(p, &call{verb: "list", version: "v1", resource: "pods", namespace: namespace, query: "limit=500",
			median: 8 * time.Millisecond})
	case 1:
		g.do(p, &call{verb: "get", version: "v1", resource: "pods", namespace: namespace, name: pod, median: time.Millisecond})
	case 2:
		g.do(p, &call{verb: "list", version: "v1", resource: "events", namespace: namespace, query: "fieldSelector=involvedObject.name%3D" +
			pod + "%2CinvolvedObject.namespace%3D" + namespace + "&limit=500", median: 8 * time.Millisecond})
	case 3:
		g.do(p, &call{verb: "get", group: "apps", version: "v1", resource: "deployments", namespace: namespace, name: w.name,
			median: time.Millisecond})
	case 4:
		g.do(p, &call{verb: "get", version: "v1", resource: "pods", sub: "log", namespace: namespace, name: pod,
			query: "container=main&follow=true&tailLines=100", median: 12 * time.Millisecond, long: time.Duration(1+g.rng.IntN(120)) *
				time.Second})
	case 5:
		g.do(p, &call{verb: "create", version: "v1", resource: "pods", sub: "exec", namespace: namespace, name: pod,
			query: "command=sh&container=main&stdin=true&stdout=true&tty=true", code: 101, level: event.LevelRequest,
			median: 12 * time.Millisecond, long: time.Duration(5+g.rng.IntN(600)) * time.Second})
	case 6:
		g.do(p, &call{verb: "patch", group: "apps", version: "v1", resource: "deployments", namespace: namespace, name: w.name,
			query: "fieldManager=kubectl-client-side-apply&fieldValidation=Strict", level: event.LevelRequest, body: g.deploymentBody(w),
			median: 9 * time.Millisecond})
	case 7:
		g.do(p, &call{verb: "delete", version: "v1", resource: "pods", namespace: namespace, name: pod, level: event.LevelRequest,
			body: []byte(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`), median: 8 * time.Millisecond})
	case 8:
		path := []string{"/api?timeout=32s", "/apis?timeout=32s", "/openapi/v3?timeout=32s", "/version?timeout=32s"}[g.rng.IntN(4)]
		g.do(p, &call{verb: "get", path: path, median: time.Millisecond, reason: grantReason("ClusterRoleBinding", "system:discovery",
			"ClusterRole", "system:discovery", "Group", "system:authenticated")})
	}
}

// workloadIn draws one of a namespace's workloads; all namespaces have some.
func (g *Generator) workloadIn(namespace string) *workload {
	list := g.in[namespace]
	return list[g.zipf(1.3, len(list))]
}

func (g *Generator) deploy(d *actor) {
	namespace := d.home[g.zipf(1.3, len(d.home))]
	w := g.workloadIn(namespace)
	switch g.pick([]float64{30, 12, 20, 15, 10, 8, 5}) {
	case 0:
		g.do(d, &call{verb: "patch", group: "apps", version: "v1", resource: "deployments", namespace: namespace, name: w.name,
			query: "fieldManager=helm&force=true", level: event.LevelRequest, body: g.deploymentBody(w), median: 9 * time.Millisecond})
	case 1:
		g.do(d, &call{verb: "create", version: "v1", resource: "secrets", namespace: namespace,
			created: fmt.Sprintf("sh.helm.release.v1.%s.v%d", w.name, 1+g.rng.IntN(400)), code: 201, median: 8 * time.Millisecond})
	case 2:
		g.do(d, &call{verb: "list", version: "v1", resource: "secrets", namespace: namespace, query: "labelSelector=name%3D" + w.name +
			"%2Cowner%3Dhelm", median: 6 * time.Millisecond})
	case 3:
		g.do(d, &call{verb: "get", group: "apps", version: "v1", resource: "deployments", namespace: namespace, name: w.name,
			median: time.Millisecond})
	case 4:
		g.do(d, &call{verb: "update", version: "v1", resource: "configmaps", namespace: namespace, name: w.objects[0].name,
			uid: w.objects[0].uid, median: 6 * time.Millisecond})
	case 5:
		g.do(d, &call{verb: "patch", version: "v1", resource: "services", namespace: namespace, name: w.name, level: event.LevelRequest,
			body: serviceBody(w), query: "fieldManager=helm", median: 7 * time.Millisecond})
	case 6:
		c := &call{verb: "get", group: rbacGroup, version: "v1", resource: "roles", namespace: w.namespace, name: "app-" + w.name,
			level: event.LevelRequestResponse, answer: g.roleBody(w), median: time.Millisecond}
		if g.rng.IntN(3) == 0 {
			c.verb, c.uid, c.query, c.body = "update", w.objects[0].uid, "fieldManager=helm", c.answer
		}
		g.do(d, c)
	}
}

func (g *Generator) probe() {
	if g.rng.IntN(20) == 0 { // somebody without a name looks around
		path := []string{"/api/v1/secrets", "/.env", "/api/v1/namespaces/kube-system/pods", "/apis/apps/v1/deployments"}[g.rng.IntN(4)]
		if path == "/.env" {
			g.do(g.stranger, &call{verb: "get", path: path, refused: true, median: 300 * time.Microsecond})
			return
		}
		g.do(g.stranger, &call{verb: "list", version: "v1", resource: "secrets", refused: true, median: 300 * time.Microsecond})
		return
	}
	path := []string{"/livez", "/readyz", "/healthz"}[g.rng.IntN(3)]
	g.do(g.prober, &call{verb: "get", path: path, median: 300 * time.Microsecond})
}
