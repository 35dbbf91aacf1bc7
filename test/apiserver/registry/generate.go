package registry

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Accounts that make requests. The shipped policy logs some with bodies.
var users = []string{
	"alice", "alice", "alice", "system:node:m1",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:job-controller",
	"system:serviceaccount:kube-system:namespace-controller",
	"system:kube-controller-manager",
}

// generator makes sequences.
type generator struct {
	*rand.Rand
	theme   []*kind
	overlap int // how many requests of a hundred begin while the one before is under way
}

// usualOverlap is the overlap of most sequences.
const usualOverlap = 15

// generate returns the sequence of a seed.
func generate(seed uint64, overlap int) sequence {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), overlap: overlap}
	for range 1 + g.IntN(2) {
		g.theme = append(g.theme, g.kind())
	}
	s := sequence{Level: levelShipped, Born: g.chance(55)}
	if g.chance(45) {
		s.Level = []level{levelMetadata, levelRequest, levelRequestResponse}[g.IntN(3)]
	}
	before := 0
	if !s.Born && g.chance(70) {
		before = 1 + g.IntN(4)
	}
	for i := range before + 2 + g.IntN(12) {
		if i == before && before > 0 {
			s.Steps = append(s.Steps, step{Action: logBegin, Wait: g.wait()})
		}
		if (i == before && !s.Born && g.chance(70)) || g.chance(4) {
			s.Steps = append(s.Steps, step{Action: listing, Wait: g.wait(), Since: g.chance(50), Span: max(0, g.IntN(6)-2)})
		}
		s.Steps = append(s.Steps, g.request())
	}
	return s
}

// kind picks the kind a sequence is about.
func (g *generator) kind() *kind {
	if g.chance(30) {
		return kinds[0]
	}
	return kinds[g.IntN(len(kinds))]
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// one returns one of some texts.
func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) wait() time.Duration {
	switch g.IntN(8) {
	case 0:
		return time.Microsecond
	case 1, 2, 3:
		return time.Duration(1+g.IntN(400_000)) * time.Microsecond
	case 4:
		return time.Duration(20+g.IntN(30)) * time.Second
	}
	return time.Duration(1+g.IntN(3_000_000)) * time.Microsecond
}

// request makes a request.
func (g *generator) request() step {
	k := g.theme[g.IntN(len(g.theme))]
	s := step{User: users[g.IntN(len(users))], Wait: g.wait()}
	switch g.IntN(4) {
	case 0:
		s.Pace = pace{time.Duration(g.IntN(3000)) * time.Microsecond, time.Duration(g.IntN(3000)) * time.Microsecond}
	case 1:
		s.Pace = pace{time.Duration(g.IntN(200_000)) * time.Microsecond, time.Duration(g.IntN(200_000)) * time.Microsecond}
	}
	if g.chance(g.overlap) {
		s.Overlap, s.Wait = true, time.Duration(1+g.IntN(300_000))*time.Microsecond
	}
	if g.chance(10) {
		s.Late = 1 + g.IntN(3)
	}
	s.Twice, s.Cut = g.chance(3), g.chance(2)
	switch {
	case g.chance(12):
		s.Accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	case g.chance(8):
		s.Accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
	case g.chance(2):
		s.Accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	case g.chance(3):
		s.Accept = "application/vnd.kubernetes.protobuf"
	}
	query := url.Values{}
	if strings.Contains(s.Accept, "Table") && g.chance(50) {
		query.Set("includeObject", g.one("Object", "None", "Metadata"))
	}
	g.fill(&s, k, query)
	if len(query) > 0 {
		s.Path += "?" + query.Encode()
	}
	return s
}

// fill makes the request one about an object of a kind.
func (g *generator) fill(s *step, k *kind, query url.Values) {
	namespace := ""
	if k.namespaced {
		namespace = g.one("n1", "n1", "n1", "n2")
		if k.namespaces != nil {
			namespace = g.one(k.namespaces...)
		}
	}
	name := g.one(k.names...)
	s.Object = k.resource + "/" + namespace + "/" + name
	collection, object := k.path(namespace, ""), k.path(namespace, name)
	if g.chance(25) && len(k.special) > 0 {
		k.special[g.IntN(len(k.special))](g, s, object)
		if s.Method != "" {
			if s.Type == "" {
				s.Type = "application/json"
			}
			g.dryRun(query)
			return
		}
	}
	switch n := g.IntN(100); {
	case n < 30:
		s.Method, s.Path, s.Type, s.Body = "POST", collection, "application/json", k.object(g, namespace, name)
		g.dryRun(query)
	case n < 40:
		s.Method, s.Path, s.Type, s.Edit, s.Body = "PUT", object, "application/json", true, g.edit(k)
		g.dryRun(query)
	case n < 65:
		s.Method, s.Path = "PATCH", object
		s.Type, s.Body = g.patch(k, namespace, name)
		if s.Type == "application/apply-patch+yaml" {
			query.Set("fieldManager", g.one("f1", "f2"))
			query.Set("force", "true")
		}
		g.dryRun(query)
	case n < 88:
		s.Method, s.Path = "DELETE", object
		g.deletion(s, query)
	case n < 93:
		s.Method, s.Path = "DELETE", collection
		if g.chance(20) {
			query.Set("labelSelector", "l=1")
		}
		g.deletion(s, query)
	default:
		s.Method, s.Path = "GET", object
		if g.chance(20) {
			query.Set("resourceVersion", "0")
		}
	}
}

func (g *generator) dryRun(query url.Values) {
	if g.chance(3) {
		query.Set("dryRun", "All")
	}
}

// deletion chooses the options of a deletion, in the body or in the query.
func (g *generator) deletion(s *step, query url.Values) {
	body := map[string]string{}
	set := func(name, value string, quoted bool) {
		query.Set(name, value)
		if quoted {
			value = strconv.Quote(value)
		}
		body[name] = value
	}
	if g.chance(35) {
		set("gracePeriodSeconds", g.one("0", "0", "1", "5", "60", "-1"), false)
	}
	if g.chance(45) {
		set("propagationPolicy", g.one("Foreground", "Foreground", "Orphan", "Background"), true)
	} else if g.chance(5) {
		set("orphanDependents", g.one("true", "false"), false)
	}
	if g.chance(3) {
		query.Set("dryRun", "All")
		body["dryRun"] = `["All"]`
	}
	if g.chance(30) {
		return // in the query
	}
	for name := range body {
		query.Del(name)
	}
	if len(body) == 0 && g.chance(50) {
		return
	}
	switch {
	case g.chance(8):
		body["preconditions"] = `{"uid":"{uid}"}`
	case g.chance(3):
		body["preconditions"] = `{"uid":"other"}`
	case g.chance(4):
		body["preconditions"] = `{"resourceVersion":"{rv}"}`
	}
	s.Type, s.Body = "application/json", `{"kind":"DeleteOptions","apiVersion":"v1"`
	for _, name := range []string{"gracePeriodSeconds", "propagationPolicy", "orphanDependents", "dryRun", "preconditions"} {
		if v := body[name]; v != "" {
			s.Body += fmt.Sprintf(",%q:%s", name, v)
		}
	}
	s.Body += "}"
}

// metadata returns members of an object's metadata, beginning with a comma.
func (g *generator) metadata() string {
	out := ""
	if g.chance(25) {
		out += `,"finalizers":` + g.finalizers()
	}
	if g.chance(25) {
		out += `,"labels":{"l":"` + g.one("1", "2") + `"}`
	}
	return out
}

// finalizers returns a list of finalizers.
func (g *generator) finalizers() string {
	return g.one(`["e.io/x"]`, `["e.io/x"]`, `["e.io/y"]`, `["e.io/x","e.io/y"]`, `["foregroundDeletion"]`, `["orphan"]`)
}

// change returns what a patch of nothing but metadata changes of it: the members, without braces.
func (g *generator) change() string {
	switch g.IntN(10) {
	case 0, 1, 2:
		return `"finalizers":` + g.one("null", "[]", g.finalizers())
	case 3:
		return `"labels":{"l":"` + g.one("1", "2") + `"}`
	case 4:
		return `"ownerReferences":` + g.one("null", `[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"o"}]`)
	case 5:
		return `"uid":"{uid}","resourceVersion":"{rv}","finalizers":` + g.one("null", "[]", g.finalizers())
	case 6:
		return `"uid":"{uid}","annotations":{"a":"` + g.one("1", "2") + `"}`
	case 7:
		return `"resourceVersion":"` + g.one("{rv}", "1") + `","labels":null`
	case 8:
		return `"deletionGracePeriodSeconds":0,"finalizers":null`
	}
	return `"annotations":{"a":"` + g.one("1", "2") + `"}`
}

// edit returns what is merged into an object that is updated.
func (g *generator) edit(k *kind) string {
	meta := g.change()
	if g.chance(40) {
		meta += `,"resourceVersion":null`
	}
	if content := k.change(g); content != "" && g.chance(60) {
		return `{"metadata":{` + meta + `},` + content + `}`
	}
	return `{"metadata":{` + meta + `}}`
}

// patch returns a patch and its content type.
func (g *generator) patch(k *kind, namespace, name string) (string, string) {
	content := k.change(g)
	switch n := g.IntN(100); {
	case n < 15:
		ops := []string{}
		for range 1 + g.IntN(2) {
			ops = append(ops, g.one(
				`{"op":"remove","path":"/metadata/finalizers"}`,
				`{"op":"remove","path":"/metadata/finalizers/0"}`,
				`{"op":"add","path":"/metadata/finalizers","value":["e.io/x"]}`,
				`{"op":"add","path":"/metadata/labels","value":{"l":"1"}}`,
				`{"op":"replace","path":"/metadata/annotations","value":{"a":"1"}}`,
				`{"op":"test","path":"/metadata/name","value":"`+name+`"}`,
				k.operation,
			))
		}
		return "application/json-patch+json", "[" + strings.Join(ops, ",") + "]"
	case n < 30:
		// An apply patch takes away what its manager had applied before and does not name.
		return "application/apply-patch+yaml", k.object(g, namespace, name)
	}
	kind := g.one("application/merge-patch+json", "application/strategic-merge-patch+json")
	switch {
	case content != "" && g.chance(30):
		return kind, `{` + content + `}`
	case content != "" && g.chance(20):
		return kind, `{"metadata":{` + g.change() + `},` + content + `}`
	}
	return kind, `{"metadata":{` + g.change() + `}}`
}
