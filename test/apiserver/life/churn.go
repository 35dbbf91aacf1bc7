package life

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Plan says how much Churn does.
type Plan struct {
	Seed uint64
	// Namespaces is how many come and go at least; more do while Until has not come.
	Namespaces int
	Until      time.Time
	// Every is the time between the beginnings of two, unless there are too many at once; zero
	// is as fast as they go.
	Every time.Duration
}

// Lived is what Churn saw to its end.
type Lived struct {
	Namespaces int            // that are gone again
	Running    int            // pods that ran when their namespace was deleted
	Scenes     map[string]int // by name
}

// parallel is how many namespaces live at the same time.
const parallel = 4

// perNamespace is how many scenes a namespace sees.
const perNamespace = 5

// Churn makes namespaces, lets scenes be played in them, one after the other, and deletes
// them with what still runs. Which scenes and with what options is up to the seed; how they
// interleave is not. Scenes that the apiserver, rightly, refuses at some step are not failures
// (a namespace may be gone before they end), but every one must have been played to its end
// once.
func (c *Cluster) Churn(t testing.TB, plan Plan) Lived {
	t.Helper()
	lived := Lived{Scenes: map[string]int{}}
	var mu sync.Mutex
	var next atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range parallel {
		workers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				due := began.Add(time.Duration(n) * plan.Every)
				if n >= plan.Namespaces && (due.After(plan.Until) || !time.Now().Before(plan.Until)) {
					return
				}
				select {
				case <-time.After(time.Until(due)):
				case <-t.Context().Done():
					return
				}
				s := c.stage(t, plan.Seed, n)
				played, running, err := s.live()
				mu.Lock()
				lived.Running += running
				for _, name := range played {
					lived.Scenes[name]++
				}
				switch {
				case err == nil:
					lived.Namespaces++
				case errors.Is(err, errLate):
					t.Logf("%s: %v", s.ns, err)
				default:
					t.Errorf("%s: %v", s.ns, err)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	// On a busy machine a few end later than they are waited for.
	if all := int(next.Load()) - parallel; 10*(lived.Namespaces+1) < 9*all {
		t.Errorf("%d namespaces of %d are gone", lived.Namespaces, all)
	}
	for _, s := range c.scenes {
		if lived.Scenes[s.name] == 0 {
			t.Errorf("never played to its end: %s", s.name)
		}
	}
	return lived
}

// stage is one namespace while it lives.
type stage struct {
	*Cluster
	ctx       context.Context
	t         testing.TB
	rng       *rand.Rand
	n         int
	ns        string
	developer *kubernetes.Clientset // edit in the namespace
	visitor   *kubernetes.Clientset // view in the namespace
	custom    dynamic.Interface     // the developer's, for what has no client of its own
}

func (c *Cluster) stage(t testing.TB, seed uint64, n int) *stage {
	s := &stage{Cluster: c, ctx: t.Context(), t: t, n: n, ns: fmt.Sprintf("life-%d", n), rng: rand.New(rand.NewPCG(seed, uint64(n)))}
	dana := c.User(t, "dana-"+s.ns, "developers")
	s.developer, s.visitor = s.as(dana), s.as(c.User(t, "vera-"+s.ns))
	var err error
	if s.custom, err = dynamic.NewForConfig(dana); err != nil {
		t.Error(err)
	}
	return s
}

// as returns a client with the given credentials.
func (s *stage) as(cfg *rest.Config) *kubernetes.Clientset {
	cfg.UserAgent, cfg.WarningHandler = "life/v1", rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		s.t.Error(err)
	}
	return client
}

// live returns the namespace's life. It returns which scenes were played to their end and how many
// pods ran at the end.
func (s *stage) live() (played []string, running int, _ error) {
	if err := s.furnish(); err != nil {
		return nil, 0, fmt.Errorf("furnish: %w", err)
	}
	for i := range perNamespace {
		// By turns, so that a few namespaces see them all; how, is up to the seed.
		scene := s.scenes[(s.n*perNamespace+i)%len(s.scenes)]
		err := scene.play(s)
		var status apierrors.APIStatus
		switch {
		case err == nil:
			played = append(played, scene.name)
		case errors.As(err, &status), errors.Is(err, errLate):
			s.t.Logf("%s: %s: %v", s.ns, scene.name, err)
		default:
			return played, 0, fmt.Errorf("%s: %w", scene.name, err)
		}
	}
	running, err := s.leave()
	return played, running, err
}

// furnish makes the namespace and what its pods mount, and gives people their rights.
func (s *stage) furnish() error {
	core, rbac := s.Admin.CoreV1(), s.Admin.RbacV1()
	if _, err := core.Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, create); err != nil {
		return err
	}
	for role, who := range map[string]string{"edit": "dana-" + s.ns, "view": "vera-" + s.ns} {
		if _, err := rbac.RoleBindings(s.ns).Create(s.ctx, within(role, "ClusterRole", role, user(who)), create); err != nil {
			return err
		}
	}
	if _, err := core.ServiceAccounts(s.ns).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
		create); err != nil {
		return err
	}
	return s.settings()
}

// settings makes the Secret and the ConfigMap that pods mount.
func (s *stage) settings() error {
	meta, data := metav1.ObjectMeta{Name: "settings"}, map[string]string{"key": fmt.Sprint(s.rng.IntN(1000))}
	_, err := s.Admin.CoreV1().Secrets(s.ns).Create(s.ctx, &corev1.Secret{ObjectMeta: meta, StringData: data}, create)
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = s.Admin.CoreV1().ConfigMaps(s.ns).Create(s.ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: data}, create)
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// leave deletes the namespace with whatever still lives in it and waits until it is gone. A
// few pods are made for it, so that there is always something that runs.
func (s *stage) leave() (running int, _ error) {
	_, err := s.Admin.AppsV1().Deployments(s.ns).Create(s.ctx, deployment("last", int32(2+s.rng.IntN(2))), create)
	if err == nil {
		_, err = s.Admin.BatchV1().Jobs(s.ns).Create(s.ctx, job("last-job", "runs", 2), create)
	}
	if err == nil {
		err = s.run("app=last", 2)
	}
	if err == nil {
		err = s.run("app=last-job", 2)
	}
	if err != nil && !errors.Is(err, errLate) {
		return 0, err
	}
	pods, err := s.Admin.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	if err := s.Admin.CoreV1().Namespaces().Delete(s.ctx, s.ns, metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return running, err
	}
	return running, s.until("the namespace to be gone", func() (bool, error) {
		_, err := s.Admin.CoreV1().Namespaces().Get(s.ctx, s.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// propagation returns one of the ways to delete an owner, or that of the API's default.
func (s *stage) propagation() *metav1.DeletionPropagation {
	ways := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
		metav1.DeletePropagationOrphan}
	i := s.rng.IntN(len(ways) + 1)
	if i == len(ways) {
		return nil
	}
	return &ways[i]
}

// pick returns one of the given values.
func pick[T any](s *stage, values ...T) T { return values[s.rng.IntN(len(values))] }

// errLate says that something awaited did not come.
var errLate = errors.New("did not come")

// patience bounds a wait within a scene.
const patience = 2 * time.Minute

// until waits until done says so.
func (s *stage) until(what string, done func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(s.ctx, 250*time.Millisecond, patience, true, func(context.Context) (bool, error) { return done() })
	if wait.Interrupted(err) {
		return fmt.Errorf("%s: %w", what, errLate)
	}
	return err
}

// run waits until as many pods run.
func (s *stage) run(selector string, n int) error {
	return s.phase(selector, n, corev1.PodRunning)
}

// phase waits until as many pods that are not being deleted are in one of the phases.
func (s *stage) phase(selector string, n int, phases ...corev1.PodPhase) error {
	return s.until(fmt.Sprintf("%d pods %s to be %v", n, selector, phases), func() (bool, error) {
		pods, err := s.developer.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		found := 0
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil && slices.Contains(phases, p.Status.Phase) {
				found++
			}
		}
		return found >= n, nil
	})
}

// gone waits until there are no such pods.
func (s *stage) gone(selector string) error {
	return s.until("pods "+selector+" to be gone", func() (bool, error) {
		pods, err := s.visitor.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: selector})
		return err == nil && len(pods.Items) == 0, err
	})
}
