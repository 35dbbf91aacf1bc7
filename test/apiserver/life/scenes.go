package life

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// scene is something that happens in a namespace.
type scene struct {
	name string
	play func(*stage) error
}

// scenes are those that need no controllers beside Kubernetes' own.
var scenes = []scene{
	{"deployment", (*stage).deployment},
	{"jobs", (*stage).jobs},
	{"roles of an owner", (*stage).ownedRoles},
	{"pods that end", (*stage).pods},
	{"claims", (*stage).claims},
	{"settings taken away", (*stage).settingsTaken},
	{"evictions", (*stage).evictions},
	{"tokens", (*stage).tokens},
	{"bindings of an owner", (*stage).ownedBindings},
	{"daemons", (*stage).daemons},
	{"custom resources", (*stage).customResources},
	{"held by finalizers", (*stage).finalizers},
	{"people", (*stage).people},
	{"owners among pods", (*stage).ownedPods},
	{"kubelet restart", (*stage).restart},
	{"aggregated API", (*stage).flunders},
}

// deployment is scaled, rolled and deleted in one of the ways.
func (s *stage) deployment() error {
	apps := s.developer.AppsV1().Deployments(s.ns)
	if _, err := apps.Create(s.ctx, deployment("web", 2), create); err != nil {
		return err
	}
	if err := s.run("app=web", 2); err != nil {
		return err
	}
	scale := fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+s.rng.IntN(4))
	roll := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":"%d"}}}}}`, s.rng.IntN(1000))
	for _, patch := range []string{scale, roll} {
		if _, err := apps.Patch(s.ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if err := s.run("app=web", 1); err != nil {
		return err
	}
	if err := apps.Delete(s.ctx, "web", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	return s.developer.CoreV1().Pods(s.ns).DeleteCollection(s.ctx, metav1.DeleteOptions{GracePeriodSeconds: pick(s, nil, new(int64))},
		metav1.ListOptions{LabelSelector: "app=web"})
}

// jobs run to their end, fail, or are deleted while they run, in each of the ways.
func (s *stage) jobs() error {
	jobs := s.developer.BatchV1().Jobs(s.ns)
	for name, container := range map[string]string{"good": "ends", "bad": "fails", "long": "runs", "stopped": "runs"} {
		if _, err := jobs.Create(s.ctx, job(name, container, int32(1+s.rng.IntN(3))), create); err != nil {
			return err
		}
	}
	short := job("forgotten", "ends", 1)
	short.Spec.TTLSecondsAfterFinished = new(int32)
	if _, err := jobs.Create(s.ctx, short, create); err != nil {
		return err
	}
	if err := s.phase("app=good", 1, corev1.PodSucceeded); err != nil {
		return err
	}
	if err := s.run("app=long", 1); err != nil {
		return err
	}
	if _, err := jobs.Patch(s.ctx, "stopped", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	for _, name := range []string{"good", "bad", "long", "stopped"} {
		if err := jobs.Delete(s.ctx, name, metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
			return err
		}
	}
	// Pods of jobs that were orphaned stay, and their finalizers with them.
	return s.developer.CoreV1().Pods(s.ns).DeleteCollection(s.ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "app in (good,bad,long,stopped)"})
}

// pods are deleted by hand: gracefully, twice, at once, in vain.
func (s *stage) pods() error {
	pods := s.developer.CoreV1().Pods(s.ns)
	names := []string{"graceful", "twice", "forced", "shortened", "kept", "ended"}
	for _, name := range names {
		container := "runs"
		if name == "ended" {
			container = "ends"
		}
		p := pod(name, container)
		p.Labels = labels("bare")
		p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		if _, err := pods.Create(s.ctx, p, create); err != nil {
			return err
		}
	}
	if err := s.run("app=bare", len(names)-1); err != nil {
		return err
	}
	kept, err := pods.Get(s.ctx, "kept", metav1.GetOptions{})
	if err != nil {
		return err
	}
	other, old, ten := types.UID("00000000-0000-4000-8000-000000000000"), "1", int64(10)
	for _, d := range []struct {
		name    string
		options metav1.DeleteOptions
		refused bool
	}{
		{"graceful", metav1.DeleteOptions{}, false},
		{"twice", metav1.DeleteOptions{GracePeriodSeconds: &ten}, false},
		{"twice", metav1.DeleteOptions{}, false},
		{"forced", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, false},
		{"shortened", metav1.DeleteOptions{GracePeriodSeconds: &ten}, false},
		{"shortened", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, false},
		{"kept", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, false},
		{"kept", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}, true},
		{"kept", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &kept.UID, ResourceVersion: &old}}, true},
		{"absent", metav1.DeleteOptions{}, true},
	} {
		err := pods.Delete(s.ctx, d.name, d.options)
		if d.refused != (err != nil) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", d.name, errors.Join(err, errUnexpected))
		}
	}
	err = pods.DeleteCollection(s.ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		metav1.ListOptions{LabelSelector: "app=bare"})
	if err != nil {
		return err
	}
	return s.phase("app=bare", 1, corev1.PodRunning)
}

// errUnexpected is an answer that Kubernetes does not give.
var errUnexpected = errors.New("unexpected answer")

// settingsTaken: what pods mount is deleted and comes back while they run.
func (s *stage) settingsTaken() error {
	reader := pod("reader", "runs")
	if _, err := s.developer.CoreV1().Pods(s.ns).Create(s.ctx, reader, create); err != nil {
		return err
	}
	if err := s.run("app=reader", 1); err != nil {
		return err
	}
	core := s.developer.CoreV1()
	if err := core.Secrets(s.ns).Delete(s.ctx, "settings", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := core.ConfigMaps(s.ns).Delete(s.ctx, "settings", metav1.DeleteOptions{}); err != nil {
		return err
	}
	// A pod that waits for them, and one that goes meanwhile.
	if _, err := core.Pods(s.ns).Create(s.ctx, pod("waits", "runs"), create); err != nil {
		return err
	}
	if err := core.Pods(s.ns).Delete(s.ctx, "reader", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.gone("app=reader"); err != nil {
		return err
	}
	if err := s.settings(); err != nil {
		return err
	}
	return s.run("app=waits", 1)
}

// evictions are refused by a budget, allowed, tried dry, and of pods that are not there.
func (s *stage) evictions() error {
	apps, policy := s.developer.AppsV1().Deployments(s.ns), s.Admin.PolicyV1()
	if _, err := apps.Create(s.ctx, deployment("guarded", 2), create); err != nil {
		return err
	}
	if err := s.run("app=guarded", 2); err != nil {
		return err
	}
	all := intstr.FromInt32(2)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: metav1.SetAsLabelSelector(labels("guarded"))}}
	if _, err := policy.PodDisruptionBudgets(s.ns).Create(s.ctx, budget, create); err != nil {
		return err
	}
	pods, err := s.developer.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: "app=guarded"})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return errLate
	}
	evict := func(name string, o metav1.DeleteOptions) error {
		return s.Admin.CoreV1().Pods(s.ns).EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &o})
	}
	victim := pods.Items[0].Name
	if err := evict(victim, metav1.DeleteOptions{}); !apierrors.IsTooManyRequests(err) {
		return fmt.Errorf("evict: %w", errors.Join(err, errUnexpected))
	}
	if err := evict("absent", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("evict: %w", errors.Join(err, errUnexpected))
	}
	if err := policy.PodDisruptionBudgets(s.ns).Delete(s.ctx, "guard", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err !=
		nil {
		return err
	}
	one, ways := int64(1), []metav1.DeleteOptions{{DryRun: []string{metav1.DryRunAll}}, {}}
	ways = append(ways, metav1.DeleteOptions{GracePeriodSeconds: pick(s, &one, &one, &one, new(int64))})
	for _, o := range ways {
		if err := s.until("the budget to be gone", func() (bool, error) {
			err := evict(victim, o)
			if apierrors.IsTooManyRequests(err) {
				return false, nil
			}
			return true, err
		}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return s.run("app=guarded", 2)
}

// daemons run on both nodes while one of them is cordoned and tainted.
func (s *stage) daemons() error {
	sets := s.developer.AppsV1().DaemonSets(s.ns)
	if _, err := sets.Create(s.ctx, daemonSet("agent"), create); err != nil {
		return err
	}
	if err := s.run("app=agent", len(s.Nodes)); err != nil {
		return err
	}
	if _, err := sets.Patch(s.ctx, "agent", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"rolled":"once"}}}}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	node := s.Nodes[s.rng.IntN(len(s.Nodes))].Name
	for _, patch := range []string{`{"spec":{"unschedulable":true}}`, `{"spec":{"unschedulable":null}}`} {
		if _, err := s.Admin.CoreV1().Nodes().Patch(s.ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if err := sets.Delete(s.ctx, "agent", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	return s.developer.CoreV1().Pods(s.ns).DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=agent"})
}

// claims of a StatefulSet are bound by the controller, protected while they are in use, and
// outlive their set.
func (s *stage) claims() error {
	class := s.ns
	for i := range 3 {
		v := volume(fmt.Sprintf("%s-%d", s.ns, i), class)
		if _, err := s.Admin.CoreV1().PersistentVolumes().Create(s.ctx, v, create); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	sets, claims := s.developer.AppsV1().StatefulSets(s.ns), s.developer.CoreV1().PersistentVolumeClaims(s.ns)
	if _, err := sets.Create(s.ctx, statefulSet("store", class, 2), create); err != nil {
		return err
	}
	if err := s.run("app=store", 2); err != nil {
		return err
	}
	if err := claims.Delete(s.ctx, "data-store-1", metav1.DeleteOptions{}); err != nil { // in use: it stays until the pod goes
		return err
	}
	if err := s.developer.CoreV1().Pods(s.ns).Delete(s.ctx, "store-1", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.run("app=store", 1); err != nil {
		return err
	}
	if err := sets.Delete(s.ctx, "store", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	if s.rng.IntN(2) == 0 {
		return s.Admin.CoreV1().PersistentVolumes().DeleteCollection(s.ctx, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "metadata.name=" + s.ns + "-2"})
	}
	return s.developer.CoreV1().Pods(s.ns).DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=store"})
}

// restart ends a kubelet and starts it again, at most one at a time.
func (s *stage) restart() error {
	s.kubelets.Lock()
	defer s.kubelets.Unlock()
	n := s.Nodes[s.rng.IntN(len(s.Nodes))]
	p := pod("stays", "runs")
	p.Spec.NodeName = n.Name // bound by whoever makes it, without a scheduler
	if _, err := s.Admin.CoreV1().Pods(s.ns).Create(s.ctx, p, create); err != nil {
		return err
	}
	if err := s.run("app=stays", 1); err != nil {
		return err
	}
	n.Kill()
	// while nobody is there to end it
	if err := s.developer.CoreV1().Pods(s.ns).Delete(s.ctx, "stays", metav1.DeleteOptions{}); err != nil {
		return err
	}
	n.Restart()
	return s.gone("app=stays")
}
