package storage_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/verdict"
)

// policyLoadDir names the environment variable that makes TestPolicyLoadChild the child: a
// process that opens what is stored there and builds the state, as a server that starts does.
const policyLoadDir = "RETRIAL_TEST_POLICY_LOAD"

// policyHistory makes versions of RoleBindings, round by round as a log has them.
func policyHistory(objects, versions, from, to int) []verdict.PolicyVersion {
	out := make([]verdict.PolicyVersion, 0, to-from)
	start := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for i := from; i < to; i++ {
		n, round := i%objects, i/objects
		at := start.Add(time.Duration(i) * 20 * time.Millisecond)
		o := observe.Observation{
			Source: observe.SourceAudit, Resource: kept.RoleBindings, Namespace: fmt.Sprint("ns-", n%5000), Name: fmt.Sprint("binding-", n),
			UID: fmt.Sprintf("6c31089b-aea6-4adc-97c8-%012d", n), ResourceVersion: strconv.Itoa(1000 + i),
			NotBefore: at, NotAfter: at.Add(5 * time.Millisecond),
		}
		o.Object = fmt.Appendf(nil,
			`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"namespace":%q,"uid":%q,`+
				`"resourceVersion":%q,"creationTimestamp":%q,"labels":{"app":"shop","round":"%d"},"managedFields":[{"manager":"helm",`+
				`"operation":"Update","apiVersion":"rbac.authorization.k8s.io/v1","time":"2026-01-02T00:00:00Z","fieldsType":"FieldsV1",`+
				`"fieldsV1":{"f:roleRef":{},"f:subjects":{}}}]},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io",`+
				`"name":"user-%d"},{"kind":"ServiceAccount","name":"robot-%d","namespace":%q}],`+
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"role-%d"}}`,
			o.Name, o.Namespace, o.UID, o.ResourceVersion, start.Add(time.Duration(n)*20*time.Millisecond).Format(time.RFC3339), round, n,
			round%2, o.Namespace, n%500)
		out = append(out, verdict.PolicyVersion{
			Cluster: "c", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
			Observation: o.Append(nil), Position: event.Position{Epoch: 1, Partition: 0, Offset: int64(i)}, Observed: at,
		})
	}
	return out
}

// TestPolicyLoadChild is the child of BenchmarkPolicyLoad and TestPolicyLoadWhole.
func TestPolicyLoadChild(t *testing.T) {
	dir := os.Getenv(policyLoadDir)
	if dir == "" {
		t.Skip("the child process of the tests of loading policy; nothing to do by itself")
	}
	s, closeStore := storagetest.Start(t, dir)
	defer closeStore()
	began, burnt := time.Now(), perevent.CPU()
	st := state.New("c")
	rows := 0
	err := s.LoadPolicy(context.Background(), []string{"c"}, func(v verdict.PolicyVersion) error {
		o, err := observe.Decode(v.Observation)
		if err != nil {
			return err
		}
		rows++
		st.Apply(o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded := time.Since(began)
	view := st.RBAC(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	_, _, bindings, _ := view.RBAC.Len()
	fmt.Printf("rows=%d versions=%d bindings=%d load_ms=%d first_view_ms=%d cpu_ms=%d\n", rows, st.Stats().Versions,
		bindings,
		loaded.Milliseconds(), (time.Since(began) - loaded).Milliseconds(), (perevent.CPU() - burnt).Milliseconds())
}

// loadPolicyInChild returns what the child said, by name.
func loadPolicyInChild(tb testing.TB, dir string) map[string]int {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPolicyLoadChild$", "-test.v")
	cmd.Env = append(os.Environ(), policyLoadDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("child: %v\n%s", err, out)
	}
	said := map[string]int{}
	for _, m := range regexp.MustCompile(`(\w+)=(\d+)`).FindAllStringSubmatch(string(out), -1) {
		said[m[1]], _ = strconv.Atoi(m[2])
	}
	return said
}

func savePolicyHistory(tb testing.TB, dir string, objects, versions int) {
	tb.Helper()
	s, closeStore := storagetest.Start(tb, dir)
	defer closeStore()
	const block = 20_000
	for from := 0; from < objects*versions; from += block {
		if err := s.SavePolicy(context.Background(),
			policyHistory(objects, versions, from, min(from+block, objects*versions))); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestPolicyLoadWhole stores a history in one process and builds the state in another.
func TestPolicyLoadWhole(t *testing.T) {
	const objects, versions = 700, 3
	dir := t.TempDir()
	savePolicyHistory(t, dir, objects, versions)
	said := loadPolicyInChild(t, dir)
	for name, want := range map[string]int{"rows": objects * versions, "versions": objects * versions,
		"bindings": objects} {
		if said[name] != want {
			t.Errorf("%s=%d, want %d: %v", name, said[name], want, said)
		}
	}
}

// TestPolicyLoadStops ends a load from its visitor; goleak sees to it that nothing is left.
func TestPolicyLoadStops(t *testing.T) {
	s, closeStore := storagetest.Start(t, t.TempDir())
	defer closeStore()
	if err := s.SavePolicy(context.Background(), policyHistory(3000, 1, 0, 3000)); err != nil {
		t.Fatal(err)
	}
	stop := fmt.Errorf("enough")
	seen := 0
	if err := s.LoadPolicy(context.Background(), []string{"c"}, func(verdict.PolicyVersion) error {
		if seen++; seen == 700 {
			return stop
		}
		return nil
	}); err == nil || seen != 700 {
		t.Fatalf("%d visited, error %v", seen, err)
	}
}

// BenchmarkPolicyLoad starts on 50,000 objects of ten versions each: the time from the open
// store to the state, and to its first view. The process that loads is another one than the
// one that stored.
func BenchmarkPolicyLoad(b *testing.B) {
	dir := b.TempDir()
	savePolicyHistory(b, dir, 50_000, 10)
	for b.Loop() {
		said := loadPolicyInChild(b, dir)
		if said["rows"] != 500_000 {
			b.Fatal(said)
		}
		b.ReportMetric(float64(said["load_ms"])/1000, "load-s")
		b.ReportMetric(float64(said["first_view_ms"])/1000, "first-view-s")
		b.ReportMetric(float64(said["cpu_ms"])/1000, "cpu-s")
	}
}
