package evaluate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/policyshape"
	"github.com/retrial-io/retrial/verdict"
)

// shaped is a cluster with a generated policy, and what judging costs there.
type shaped struct {
	*policyshape.Policy
	eng *replay.Engine
	st  *state.State
	at  time.Time
	n   int

	slowest      time.Duration // CPU
	slowestWhat  string
	load         time.Duration // CPU to index the listing
	slowestWrite time.Duration // CPU to apply a write and index it
	most         uint64        // bytes allocated by one event
	mostWhat     string
	events       int
	costly       int
	held         uint64 // bytes alive at the end
}

// TestPolicyShapes judges writes and reads under generated policies: whatever somebody writes, an
// event takes a bounded number of steps, allocates in proportion to the policy at the most, and
// what stays is in proportion, too. SHAPES sets how many policies, SHAPES_SEED the first seed,
// SHAPES_BYTES how large they may be.
func TestPolicyShapes(t *testing.T) {
	shapes, most := number(t, "SHAPES", 25), number(t, "SHAPES_BYTES", 1<<20)
	first := number(t, "SHAPES_SEED", 1)
	if testing.Short() {
		shapes = min(shapes, 2)
	}
	var slowest, allocated, ratio, loaded, written shaped
	var share float64
	events, costly := 0, 0
	for seed := first; seed < first+shapes; seed++ {
		c := judgeShape(t, uint64(seed), most)
		events, costly = events+c.events, costly+c.costly
		if c.slowest > slowest.slowest {
			slowest = *c
		}
		if c.load > loaded.load {
			loaded = *c
		}
		if c.slowestWrite > written.slowestWrite {
			written = *c
		}
		if c.most > allocated.most {
			allocated = *c
		}
		if s := float64(c.held) / float64(c.Bytes); c.Bytes > most/4 && s > share {
			share, ratio = s, *c
		}
		c.bounded(t)
	}
	t.Logf("%d policies, %d events, %d of them too costly", shapes, events, costly)
	tell := func(what string, value any, c *shaped) {
		if c.Policy != nil {
			t.Logf("%s: %v; %d bytes of %s", what, value, c.Bytes, c.Shape)
		}
	}
	tell("slowest event", fmt.Sprint(slowest.slowest, " ", slowest.slowestWhat), &slowest)
	tell("slowest listing to index", loaded.load, &loaded)
	tell("slowest write", written.slowestWrite, &written)
	tell("most allocated", fmt.Sprint(allocated.most, " ", allocated.mostWhat), &allocated)
	tell("most held, times the policy", share, &ratio)
}

// bounded holds what an event allocated and what is held against the size of the policy.
func (c *shaped) bounded(t *testing.T) {
	t.Helper()
	if limit := uint64(4*c.Bytes + 32<<20); c.most > limit {
		t.Errorf("%d bytes allocated by %s, want at most %d; %d bytes of %s", c.most, c.mostWhat, limit, c.Bytes, c.Shape)
	}
	if limit := uint64(4*c.Bytes + roomBytes); c.held > limit {
		t.Errorf("%d bytes are held, want at most %d; %d bytes of %s", c.held, limit, c.Bytes, c.Shape)
	}
}

// needWhole leaves a test out of short runs, which the race detector runs: one goroutine judges.
func needWhole(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine judges; runs without -short")
	}
}

// TestPolicyOfProducts judges under a policy whose rules stand for six million pieces each.
func TestPolicyOfProducts(t *testing.T) {
	needWhole(t)
	c := judgePolicy(t, policyshape.Products)
	c.bounded(t)
	t.Logf("%d bytes; slowest event %s, %d bytes allocated by one at the most, %d held", c.Bytes, c.slowest, c.most, c.held)
}

// TestPolicyOfManyRoles judges under policies in which one user holds some two thousand roles, whose tables are made for one
// event: among ten thousand that were generated these took most.
func TestPolicyOfManyRoles(t *testing.T) {
	needWhole(t)
	for _, seed := range []uint64{1009510, 1005357} {
		judgeShape(t, seed, 8<<20).bounded(t)
	}
}

// FuzzPolicyShape looks for a policy whose cost is out of proportion to its bytes.
func FuzzPolicyShape(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint32(1<<16))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint32) {
		judgeShape(t, seed, 20_000+int(size%(4<<20))).bounded(t)
	})
}

// roomBytes is what tables and memories may take beside the policy, of any size: a process that
// is idle has as much.
const roomBytes = 160 << 20

func number(t *testing.T, variable string, usual int) int {
	if text := os.Getenv(variable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

func heapAlive() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what cleanups let go
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func judgeShape(t *testing.T, seed uint64, most int) *shaped {
	t.Helper()
	return judgePolicy(t, func() *policyshape.Policy { return policyshape.Generate(seed, most) })
}

func judgePolicy(t *testing.T, made func() *policyshape.Policy) *shaped {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	idle := heapAlive()
	p := made()
	c := &shaped{Policy: p, eng: replay.New(replay.Config{}), st: state.New("shapes"), at: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]string{"resourceVersion": "5000"},
		"items": p.Objects})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := readSnapshot(memoryInput("state.json", list))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	began := threadTime(t)
	c.st.RBAC(c.at)
	c.load = time.Duration(threadTime(t) - began)
	objects := p.Objects
	p.Objects, list, snap = nil, nil, observe.Snapshot{}
	for range 6 {
		c.write(t, objects)
		for range 8 {
			c.read(t)
		}
	}
	objects = nil
	if after := heapAlive(); after > idle {
		c.held = after - idle
	}
	runtime.KeepAlive(c.st)
	runtime.KeepAlive(c.eng)
	return c
}

// write lets somebody bind a role, or write one again with a rule more.
func (c *shaped) write(t *testing.T, objects []any) {
	c.n++
	var body any
	verb, uri, code := "create", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", 201
	role, isRole := objects[c.IntN(len(objects))].(*rbacv1.ClusterRole)
	if isRole && c.IntN(2) == 0 {
		next := *role
		next.ResourceVersion = fmt.Sprint(6000 + c.n)
		next.Rules = append(role.Rules[:len(role.Rules):len(role.Rules)], rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""},
			Resources: []string{fmt.Sprint("more-", c.n)}})
		body, verb, uri, code = &next, "update", "/apis/rbac.authorization.k8s.io/v1/clusterroles/"+role.Name, 200
	} else {
		name := "role-0"
		if isRole {
			name = role.Name
		}
		body = &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("new-", c.n), UID: "new", ResourceVersion: fmt.Sprint(6000 + c.n)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: fmt.Sprint("user-", c.IntN(c.Users))}}}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	e := c.event(t, verb, uri, code, raw)
	obs, err := observe.FromEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	began := threadTime(t)
	c.st.Apply(obs...)
	c.st.RBAC(c.at.Add(time.Second)) // whoever asks first indexes what was written
	c.slowestWrite = max(c.slowestWrite, time.Duration(threadTime(t)-began))
	c.judge(t, e)
}

func (c *shaped) read(t *testing.T) {
	uri := "/apis/" + c.Pick(c.Groups, "apps") + "/v1/namespaces/ns-0/" + c.Pick(c.Resources, "pods") + "/" + c.Pick(c.Names, "x")
	if c.IntN(5) == 0 {
		uri = c.Pick(c.Paths, "/healthz")
	}
	c.judge(t, c.event(t, c.Pick(c.Verbs, "get"), uri, 200, nil))
}

func (c *shaped) event(t *testing.T, verb, uri string, code int, body []byte) *event.Event {
	t.Helper()
	c.at = c.at.Add(time.Duration(c.IntN(200)) * time.Millisecond)
	at := c.at.Format("2006-01-02T15:04:05.000000Z")
	groups := []string{"system:authenticated", fmt.Sprint("group-", c.IntN(c.Users))}
	if c.IntN(8) == 0 {
		for i := range 200 {
			groups = append(groups, fmt.Sprint("group-", i))
		}
	}
	c.n++
	e := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": fmt.Sprint("id-", c.n),
		"stage":      "ResponseComplete",
		"requestURI": uri, "verb": verb, "user": map[string]any{"username": fmt.Sprint("user-", c.IntN(c.Users)), "groups": groups},
		"responseStatus": map[string]any{"code": code}, "requestReceivedTimestamp": at, "stageTimestamp": at,
		"annotations": map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "RBAC: allowed by " +
			"ClusterRoleBinding \"binding-0\" of ClusterRole \"role-0\" to User \"user-0\""},
	}
	if body != nil {
		e["requestObject"], e["responseObject"] = json.RawMessage(body), json.RawMessage(body)
	}
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	out, err := event.Decode(bytes.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *shaped) judge(t *testing.T, e *event.Event) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := threadTime(t)
	v := c.eng.Replay(e, c.st)
	took := time.Duration(threadTime(t) - began)
	runtime.ReadMemStats(&after)
	c.events++
	if v.Class == verdict.ClassCostly {
		c.costly++
	}
	what := e.Verb + " " + e.RequestURI[:min(80, len(e.RequestURI))] + " by " + e.User.Username
	if took > c.slowest {
		c.slowest, c.slowestWhat = took, what
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > c.most {
		c.most, c.mostWhat = n, what
	}
}
