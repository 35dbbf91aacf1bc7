// Command bench measures the replica's node authorizer beside the real one, in one process:
// the questions of a cluster of 100,000 persistent volumes, then the memory of both graphs.
//
//	go run ./node/bench
//
// Its last line is the ratio for the chain secret → volume → claim → pod → node, and the least
// of all ratios.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	oracle "github.com/retrial-io/retrial/rbacindex/oracle/node"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

func main() {
	volumes := flag.Int("volumes", 100_000, "persistent volumes, each with a claim and a pod")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(*volumes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const (
	nodes   = 1000
	sharers = 10_000 // pods of the one claim that many pods share
	// newcomer is a node whose only pod has nothing to do with any volume.
	newcomer = "newcomer"
	rounds   = 5
)

// cluster is what both graphs are made of. Volume i is bound to claim i of pod i; all use the
// secret storage/everybody, groups of 1,000 a secret of their own.
type cluster struct {
	pods    []*corev1.Pod
	volumes []*corev1.PersistentVolume
}

func namespaceOf(i int) string { return fmt.Sprintf("team-%d", i/200) }
func nodeOf(i int) string      { return fmt.Sprintf("node-%d", i%nodes) }

func newCluster(n int) *cluster {
	c := &cluster{}
	for i := range n {
		claim := fmt.Sprintf("data-%d", i)
		c.volumes = append(c.volumes, volume(fmt.Sprintf("pv-%d", i), namespaceOf(i), claim, fmt.Sprintf("group-%d", i/1000)))
		c.pods = append(c.pods, pod(namespaceOf(i), fmt.Sprintf("pod-%d", i), nodeOf(i), claim))
	}
	c.volumes = append(c.volumes, volume("pv-shared", "shared", "shared", "shared"))
	for i := range sharers {
		c.pods = append(c.pods, pod("shared", fmt.Sprintf("sharer-%d", i), nodeOf(i), "shared"))
	}
	c.pods = append(c.pods, pod("elsewhere", "alone", newcomer, "unbound"))
	return c
}

func volume(name, namespace, claim, secret string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		Driver:             "driver",
		NodeStageSecretRef: &corev1.SecretReference{Namespace: "storage", Name: "everybody"}, NodePublishSecretRef: &corev1.SecretReference{
			Namespace: "storage", Name: secret},
	}
	return v
}

func pod(namespace, name, node, claim string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	p.Spec.NodeName, p.Spec.ServiceAccountName = node, "default"
	p.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: claim}}},
		{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}},
		{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name + "-secret"}}},
	}
	return p
}

// shape is a sort of question; ask makes the i-th of it.
type shape struct {
	name  string
	chain bool // through persistent volumes
	ask   func(i int) (node string, a verdict.Attributes)
}

func get(resource, namespace, name string) verdict.Attributes {
	return verdict.Attributes{Verb: "get", ResourceRequest: true, APIVersion: "v1", Resource: resource, Namespace: namespace, Name: name}
}

func shapes(n int) []shape {
	return []shape{
		{"secret of all volumes, node without their pods", true, func(i int) (string, verdict.Attributes) {
			return newcomer, get("secrets", "storage", "everybody")
		}},
		{"secret of all volumes, node with their pods", true, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("secrets", "storage", "everybody")
		}},
		{"secret of 1,000 volumes, node without their pods", true, func(i int) (string, verdict.Attributes) {
			return newcomer, get("secrets", "storage", fmt.Sprintf("group-%d", i%(n/1000)))
		}},
		{"secret of 1,000 volumes, node with their pods", true, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("secrets", "storage", fmt.Sprintf("group-%d", i/1000))
		}},
		{"volume of a claim of 10,000 pods, node without them", true, func(i int) (string, verdict.Attributes) {
			return newcomer, get("persistentvolumes", "", "pv-shared")
		}},
		{"volume of a claim of 10,000 pods, node with them", true, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("persistentvolumes", "", "pv-shared")
		}},
		{"volume of one pod, its node", true, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("persistentvolumes", "", fmt.Sprintf("pv-%d", i))
		}},
		{"volume of one pod, another node", true, func(i int) (string, verdict.Attributes) {
			return nodeOf(i + 1), get("persistentvolumes", "", fmt.Sprintf("pv-%d", i))
		}},
		{"claim of one pod", false, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("persistentvolumeclaims", namespaceOf(i), fmt.Sprintf("data-%d", i))
		}},
		{"secret of one pod", false, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("secrets", namespaceOf(i), fmt.Sprintf("pod-%d-secret", i))
		}},
		{"config map of 200 pods", false, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("configmaps", namespaceOf(i), "kube-root-ca.crt")
		}},
		{"config map of 10,000 pods", false, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("configmaps", "shared", "kube-root-ca.crt")
		}},
		{"pod", false, func(i int) (string, verdict.Attributes) {
			return nodeOf(i), get("pods", namespaceOf(i), fmt.Sprintf("pod-%d", i))
		}},
	}
}

func run(n int) error {
	if n < 1000 {
		return fmt.Errorf("%d volumes: at least 1000", n)
	}
	runtime.GOMAXPROCS(1)
	c := newCluster(n)
	start := heap()
	began := cpu()
	real := oracle.NewReal()
	for _, p := range c.pods {
		real.Write(nil, p)
	}
	for _, v := range c.volumes {
		real.Write(nil, v)
	}
	realTime, realBytes := cpu()-began, heap()-start

	facts, err := read(c)
	if err != nil {
		return err
	}
	start = heap()
	began = cpu()
	g := graph.New()
	for _, k := range []graph.Kind{graph.Pod, graph.Volume} {
		g.SetScope(k, "", []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
	}
	for i := range facts {
		g.Set(facts[i].object, facts[i].life[:])
	}
	ourTime, ourBytes := cpu()-began, heap()-start

	fmt.Printf("%d volumes, %d pods, %d nodes; GOMAXPROCS=1, CPU of the process, medians of %d rounds, whole authorization of one "+
		"request\n\n", len(c.volumes), len(c.pods), nodes, rounds)
	fmt.Println("| question | answer | Kubernetes | ours | ratio |\n| --- | --- | --- | --- | --- |")
	rules, at := node.RulesOf(nil), time.Unix(1000, 0)
	groups := []string{"system:nodes", "system:authenticated"}
	best, least := 0.0, 0.0
	for _, s := range shapes(n) {
		asked := make([]verdict.Attributes, 4096)
		users := make([]string, len(asked))
		allowed := 0
		for i := range asked {
			name, a := s.ask(i * 7919 % n)
			users[i], asked[i] = "system:node:"+name, a
			if i >= 16 && i < len(asked)-16 {
				continue // both are asked all of them below; these are compared
			}
			yes, reason, err := real.Authorize(users[i], groups, &a)
			ans := rules.Authorize(users[i], &a, g, at)
			if err != nil || yes != (ans.Allowed == graph.Present) || reason != ans.Reason {
				return fmt.Errorf("%s: %s %+v: real %v %q %v, ours %+v", s.name, users[i], a, yes, reason, err, ans)
			}
			if yes {
				allowed++
			}
		}
		theirs := measure(func(i int) {
			i %= len(asked)
			if _, _, err := real.Authorize(users[i], groups, &asked[i]); err != nil {
				panic(err)
			}
		})
		ours := measure(func(i int) {
			i %= len(asked)
			rules.Authorize(users[i], &asked[i], g, at)
		})
		ratio := theirs / ours
		answer := "no relation"
		if allowed > 0 {
			answer = "allow"
		}
		fmt.Printf("| %s | %s | %s | %s | %.1f× |\n", s.name, answer, duration(theirs), duration(ours), ratio)
		if s.chain {
			best = max(best, ratio)
		}
		if least == 0 || ratio < least {
			least = ratio
		}
	}
	fmt.Printf("\ngraph: Kubernetes %.0f MB built in %.1f s, ours %.0f MB in %.1f s (%.0f bytes a pod with its volume)\n",
		float64(realBytes)/1e6, realTime.Seconds(), float64(ourBytes)/1e6, ourTime.Seconds(), float64(ourBytes)/float64(len(c.pods)))
	fmt.Printf("node-bench volumes=%d chain_ratio=%.0f least_ratio=%.1f\n", len(c.volumes), best, least)
	runtime.KeepAlive(facts)
	return nil
}

// fact is an object as the graph takes it.
type fact struct {
	object graph.Object
	life   [1]graph.Step
}

func read(c *cluster) ([]fact, error) {
	facts := make([]fact, 0, len(c.pods)+len(c.volumes))
	add := func(o graph.Object, uid types.UID, object any) error {
		raw, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.Name, err)
		}
		content, err := graph.ContentOf(o.Kind, raw)
		if err != nil {
			return err
		}
		facts = append(facts, fact{o, [1]graph.Step{{NotBefore: 1, NotAfter: 1, Known: graph.Present, UID: string(uid),
			Content: &content}}})
		return nil
	}
	for _, p := range c.pods {
		if err := add(graph.Object{Kind: graph.Pod, Namespace: p.Namespace, Name: p.Name}, p.UID, p); err != nil {
			return nil, err
		}
	}
	for _, v := range c.volumes {
		if err := add(graph.Object{Kind: graph.Volume, Name: v.Name}, v.UID, v); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

// cpu returns the CPU time of the process, garbage collection included: other processes on
// the machine disturb it little.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure returns nanoseconds of CPU a call: the median of the rounds, each long enough to be
// read off the clock.
func measure(f func(i int)) float64 {
	const enough = 100 * time.Millisecond
	n := 1
	for {
		began := cpu()
		for i := range n {
			f(i)
		}
		if took := cpu() - began; took > enough/4 {
			n = max(1, int(float64(n)*float64(enough)/float64(took)))
			break
		}
		n *= 4
	}
	var each []float64
	for range rounds {
		began := cpu()
		for i := range n {
			f(i)
		}
		each = append(each, float64(cpu()-began)/float64(n))
	}
	slices.Sort(each)
	return each[rounds/2]
}

func duration(ns float64) string {
	switch {
	case ns >= 1e6:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	case ns >= 1e4:
		return fmt.Sprintf("%.0f µs", ns/1e3)
	case ns >= 1e3:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
