package registry

import "strings"

// podKind is the kind of pods.
var podKind = &kind{
	resource: "pods", kind: "Pod", namespaced: true, names: []string{"a", "a", "b"}, content: podContent, change: podChange,
	operation: `{"op":"replace","path":"/spec/activeDeadlineSeconds","value":7}`,
	special:   []func(*generator, *step, string){bind, bind, evict, podStatus, podStatus, ephemeral, kubelet, kubelet},
}

// podContent returns a pod's spec.
func podContent(g *generator) string {
	spec := `"serviceAccountName":"` + g.one("s1", "s2") + `"`
	container := `{"name":"c","image":"i"`
	if g.chance(40) {
		container += `,"envFrom":[{"` + g.one(`secretRef":{"name":"x"}`, `configMapRef":{"name":"x"}`) + `}]`
	}
	spec += `,"containers":[` + container + `}]`
	if g.chance(30) {
		spec += `,"nodeName":"` + g.one("m1", "m2") + `"`
	}
	if g.chance(40) {
		spec += `,"terminationGracePeriodSeconds":` + g.one("0", "1", "5", "30")
	}
	if g.chance(40) {
		spec += `,"volumes":[{"name":"v",` + g.one(`"secret":{"secretName":"y"}`, `"configMap":{"name":"y"}`,
			`"persistentVolumeClaim":{"claimName":"p"}`) + `}]`
	}
	return `,"spec":{` + spec + `}`
}

// podChange returns what little of a pod's spec can be changed.
func podChange(g *generator) string {
	return `"spec":{"activeDeadlineSeconds":` + g.one("5", "6") + `}`
}

// bind binds a pod to a node.
func bind(g *generator, s *step, object string) {
	meta := `"name":"` + object[strings.LastIndexByte(object, '/')+1:] + `"`
	if g.chance(40) {
		meta += `,"uid":"{uid}"`
	}
	s.Method, s.Path = "POST", object+"/binding"
	if g.chance(10) {
		s.Path = object[:strings.LastIndex(object, "/pods/")] + "/bindings"
	}
	s.Body = `{"kind":"Binding","apiVersion":"v1","metadata":{` + meta + `},"target":{"kind":"Node","name":"` + g.one("m1", "m2") + `"}}`
}

// evict evicts a pod.
func evict(g *generator, s *step, object string) {
	name := object[strings.LastIndexByte(object, '/')+1:]
	options := ""
	switch g.IntN(6) {
	case 0:
		options = `,"deleteOptions":{"gracePeriodSeconds":` + g.one("0", "1", "60") + `}`
	case 1:
		options = `,"deleteOptions":{"preconditions":{"uid":"` + g.one("{uid}", "other") + `"}}`
	case 2:
		options = `,"deleteOptions":{"propagationPolicy":"` + g.one("Foreground", "Orphan") + `"}`
	case 3:
		options = g.one(`,"deleteOptions":{"dryRun":["All"]}`, `,"deleteOptions":{}`)
	}
	s.Method, s.Path, s.Body = "POST", object+"/eviction", `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"`+name+`"}`+
		options+`}`
}

// podStatus writes a pod's status, as its kubelet does. Who is neither a node nor a component of
// Kubernetes writes finalizers with it.
func podStatus(g *generator, s *step, object string) {
	phase := `"status":{"phase":"` + g.one("Running", "Succeeded", "Failed") + `"}`
	s.Path = object + "/status"
	switch g.IntN(3) {
	case 0:
		s.Method, s.Edit, s.Body = "PUT", true, `{`+phase+`}`
	case 1:
		s.Method, s.Type, s.Body = "PATCH", "application/strategic-merge-patch+json", `{"metadata":{"uid":"{uid}"},`+phase+`}`
	default:
		change := g.change()
		if strings.HasPrefix(s.User, "system:") && strings.Contains(change, "finalizers") {
			change = `"annotations":{"a":"3"}`
		}
		s.Method, s.Type, s.Body = "PATCH", "application/merge-patch+json", `{"metadata":{`+change+`},`+phase+`}`
	}
}

// ephemeral gives a pod an ephemeral container.
func ephemeral(g *generator, s *step, object string) {
	container := `"ephemeralContainers":[{"name":"` + g.one("e1", "e2") + `","image":"i","envFrom":[{"secretRef":{"name":"` +
		g.one("x", "z") + `"}}]}]`
	s.Method, s.Path, s.Type, s.Body = "PATCH", object+"/ephemeralcontainers", "application/strategic-merge-patch+json",
		`{"spec":{`+container+`}}`
	if g.chance(30) {
		s.Method, s.Type, s.Edit = "PUT", "application/json", true
	}
}

// kubelet ends a pod.
func kubelet(g *generator, s *step, object string) {
	s.User, s.Method, s.Path, s.Type = "system:node:m1", "DELETE", object, "application/json"
	s.Body = `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"{uid}"}}`
}
