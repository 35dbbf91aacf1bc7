package evaluate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/test/perevent"
)

// BenchmarkReplay judges the events of the bundled recording, decoded beforehand: who it was,
// impersonation, every authorizer, the checks behind them and admission. state=large has
// 50,000 bindings and 100,000 pods more; the engine has the configuration of the apiserver.
// policy=racing is the recording as it was: 1,500 changes of policy in three minutes, one
// between any five requests. policy=steady has the same requests after the last of them.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []string{"sample", "large"} {
		for _, policy := range []string{"steady", "racing"} {
			b.Run(fmt.Sprintf("state=%s/policy=%s", size, policy), func(b *testing.B) {
				benchmarkReplay(b, size == "large", policy == "steady")
			})
		}
	}
}

// BenchmarkIdentityAndAuthorization is the part of a replay that says who it was and whether
// they may: attributes, authenticators, the policy of the moment and the chain, in the steady
// state with the large one of BenchmarkReplay.
func BenchmarkIdentityAndAuthorization(b *testing.B) {
	eng, st, events, history := benchmarkSetup(b, true, true)
	cfg := history.At(events[0].RequestReceivedTimestamp)
	chain := authz.New(cfg)
	grants := make([]rbacindex.Grant, 0, 64)
	measured(b, events, func(e *event.Event) {
		a, err := request.Of(e.Verb, e.RequestURI)
		eng.Authn().Evaluate(e, cfg, st)
		if u := e.EffectiveUser(); err == nil && u.Username != "" {
			view := st.RBAC(e.RequestReceivedTimestamp)
			ans := chain.Authorize(u, &a, &authz.Moment{At: e.RequestReceivedTimestamp, View: &view, Graph: st}, grants)
			ans.Steps()
		}
	})
}

func benchmarkReplay(b *testing.B, large, steady bool) {
	eng, st, events, _ := benchmarkSetup(b, large, steady)
	measured(b, events, func(e *event.Event) { eng.Replay(e, st) })
}

// benchmarkSetup returns an engine with the state and the decoded events of the recording.
func benchmarkSetup(b *testing.B, large, steady bool) (*replay.Engine, *state.State, []*event.Event, *config.History) {
	o := full(b)
	if large {
		in, err := sample.OpenState()
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		listed, err := io.ReadAll(in)
		if err != nil {
			b.Fatal(err)
		}
		o.States = []Input{memoryInput("state.json", append(listed, crowd(b)...))}
	}
	history, _, err := config.ReadHistory(os.DirFS("testdata/apiserver"))
	if err != nil {
		b.Fatal(err)
	}
	eng := replay.New(replay.Config{Apiserver: func(string, string) *config.History { return history }})
	o.Engine, o.Cluster, o.Workers, o.Progress = eng, "bench", 1, func(int) {}
	o.Trail = lineage.NewTrail(lineage.TrailConfig{})
	st, err := o.load(context.Background(), newSummary(eng))
	if err != nil {
		b.Fatal(err)
	}
	var events []*event.Event
	err = o.decoded(context.Background(), func([]Malformed) {}, func(bt *batch) error {
		for i := range bt.items {
			events = append(events, bt.items[i].event)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if steady {
		after := events[len(events)-1].StageTimestamp.Sub(events[0].RequestReceivedTimestamp) + time.Minute
		for i, e := range events {
			later := *e
			later.RequestReceivedTimestamp, later.StageTimestamp = e.RequestReceivedTimestamp.Add(after), e.StageTimestamp.Add(after)
			events[i] = &later
		}
	}
	return eng, st, events, history
}

// measured judges the events over and over, after once to have views, profiles and compiled
// chains there.
func measured(b *testing.B, events []*event.Event, judge func(*event.Event)) {
	for _, e := range events {
		judge(e)
	}
	runtime.GC()
	b.ReportAllocs()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m, began := perevent.Start(b), threadTime(b)
	n := 0
	for ; b.Loop(); n++ {
		judge(events[n%len(events)])
	}
	b.ReportMetric(float64(threadTime(b)-began)/float64(n), "cpu-ns/op")
	m.Report(n, 0)
}

// crowd returns a listing of 25,000 ClusterRoleBindings, 25,000 RoleBindings and 100,000 pods on
// 5,000 nodes, none of them the recording's own.
func crowd(tb testing.TB) []byte {
	tb.Helper()
	out := bytes.NewBufferString(`{"apiVersion":"v1","kind":"List","items":[`)
	n := 0
	add := func(v any, meta *metav1.ObjectMeta) {
		n++
		meta.UID, meta.ResourceVersion = types.UID(fmt.Sprintf("crowd-%d", n)), fmt.Sprint(n)
		meta.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		raw, err := json.Marshal(v)
		if err != nil {
			tb.Fatal(err)
		}
		if n > 1 {
			out.WriteByte(',')
		}
		out.Write(raw)
	}
	subject := func(i int) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: fmt.Sprintf("crowd-user-%d", i)},
			{Kind: "Group", APIGroup: rbacv1.GroupName, Name: fmt.Sprintf("crowd-group-%d", i%200)}}
	}
	for i := range 25_000 {
		c := &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crowd-%d", i)}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
				Kind: "ClusterRole", Name: "view"}, Subjects: subject(i)}
		add(c, &c.ObjectMeta)
		r := &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("crowd-%d", i%2000), Name: fmt.Sprintf("crowd-%d", i)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}, Subjects: subject(i)}
		add(r, &r.ObjectMeta)
	}
	for i := range 100_000 {
		namespace := fmt.Sprintf("crowd-%d", i%2000)
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: fmt.Sprintf("crowd-%d", i)},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("crowd-%d", i%5000), ServiceAccountName: fmt.Sprintf("app-%d", i%7),
				Volumes: []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("config-%d", i%50)}}}}},
				Containers: []corev1.Container{{Name: "c",
					EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{
						Name: fmt.Sprintf("secret-%d", i%50)}}}}}}}}
		add(p, &p.ObjectMeta)
	}
	out.WriteString("]}\n")
	return out.Bytes()
}

// threadTime returns the CPU time of the calling thread: what something costs, whoever else
// uses the machine.
func threadTime(b testing.TB) int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &ru); err != nil {
		b.Fatal(err)
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}
