package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	closure "github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// grant is one right of an attacker: a rule in a namespace, or everywhere.
type grant struct {
	namespace string
	verb      string
	group     string
	resource  string
	name      string
}

func (g grant) String() string {
	s := g.verb + " " + g.resource
	if g.group != "" && !strings.HasSuffix(g.group, ".k8s.io") {
		s += "." + g.group
	}
	if g.name != "" {
		s += " " + g.name
	}
	if g.namespace == metav1.NamespaceSystem || g.namespace == vault {
		s += " in " + g.namespace
	}
	return s
}

func (g grant) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: []string{g.verb}, APIGroups: []string{g.group}, Resources: []string{g.resource}}
	if g.name != "" {
		r.ResourceNames = []string{g.name}
	}
	return r
}

// escalation is one way to more rights than one has.
type escalation struct {
	edge string // as the product names it
	how  string // which way, where there are several
	// grants are all that it takes. namespace is the escalation's own, name the attacker's.
	grants func(namespace, name string) []grant
	// prepare is what others did before.
	prepare func(t *testing.T, s *scene, namespace, name string)
	// attack is what the attacker does. It returns the credentials that were reached, or the
	// apiserver's refusal.
	attack func(ctx context.Context, a *attacker) (*rest.Config, error)
	// spare are the indexes of grants without which another way of the same edge is left: the
	// product names the edge to who lacks one. other tells that it does so to who holds them
	// as well.
	spare []int
	other bool
	// unnamed is why the product does not name the edge, where it does not.
	unnamed string
	// path are the edges of the whole path, where it has several; edges that are as good as
	// each other there stand with a bar between.
	path []string
	// namespaced says that no more than the namespace vault is reached.
	namespaced bool
	// none says that there is nothing to reach: what the attacker may do is done, what is more
	// is refused, with all grants.
	none bool
}

func (e escalation) name() string {
	if e.how == "" {
		return e.edge
	}
	return e.edge + "-" + e.how
}

// scene is the cluster that is attacked.
type scene struct {
	*controlplane.Cluster
	admin kubernetes.Interface
	node  *controlplane.Node
}

// attacker is somebody who holds an escalation's grants, all or all but one, and nothing else.
type attacker struct {
	*scene
	t         *testing.T
	namespace string
	name      string
	grants    []grant
	without   int // index of the grant it does not hold; -1 if it holds them all
	config    *rest.Config
	client    kubernetes.Interface
}

// attackers of an escalation: the first holds all grants, each other one lacks one.
func (s *scene) attackers(t *testing.T, e escalation) []*attacker {
	t.Helper()
	var all []*attacker
	for without := -1; without < len(e.grants("", "")); without++ {
		if without >= 0 && e.none {
			break
		}
		a := &attacker{scene: s, t: t, namespace: e.name(), name: e.name(), without: without}
		if without >= 0 {
			a.name = fmt.Sprintf("%s-without-%d", e.name(), without+1)
		}
		a.grants = e.grants(a.namespace, a.name)
		a.config = s.User(t, a.name)
		a.client = clientOf(t, a.config)
		all = append(all, a)
	}
	return all
}

func clientOf(t testing.TB, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// object returns the name of the role and of the binding that give a grant.
func (a *attacker) object(grant int) string { return fmt.Sprintf("%s-%d", a.name, grant+1) }

// hold gives the attacker its grants, each by a role and a binding of its own. The role of the
// grant it lacks is there, the binding is not.
func (a *attacker) hold(t *testing.T) {
	t.Helper()
	for i, g := range a.grants {
		meta, rules := metav1.ObjectMeta{Name: a.object(i), Namespace: g.namespace}, []rbacv1.PolicyRule{g.rule()}
		var err error
		if g.namespace == "" {
			_, err = a.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
				metav1.CreateOptions{})
		} else {
			_, err = a.admin.RbacV1().Roles(g.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules},
				metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if i != a.without {
			a.bind(t, i)
		}
	}
}

// bind makes the binding of a grant.
func (a *attacker) bind(t *testing.T, grant int) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: a.object(grant), Namespace: a.grants[grant].namespace}
	var err error
	if meta.Namespace == "" {
		_, err = a.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: a.self(),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: meta.Name}}, metav1.CreateOptions{})
	} else {
		_, err = a.admin.RbacV1().RoleBindings(meta.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: a.self(),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: meta.Name}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unbind takes the binding of a grant away.
func (a *attacker) unbind(t *testing.T, grant int) {
	t.Helper()
	var err error
	if name, namespace := a.object(grant), a.grants[grant].namespace; namespace == "" {
		err = a.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), name, metav1.DeleteOptions{})
	} else {
		err = a.admin.RbacV1().RoleBindings(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// settled waits until the authorizer knows what the attacker holds, and that it holds neither
// the rest nor the target.
func (a *attacker) settled(t *testing.T) {
	t.Helper()
	for i, g := range a.grants {
		resource, subresource, _ := strings.Cut(g.resource, "/")
		q := authorizationv1.ResourceAttributes{Verb: g.verb, Group: g.group, Resource: resource, Subresource: subresource,
			Namespace: g.namespace, Name: g.name}
		controlplane.Poll(t, fmt.Sprintf("%s to hold its grant %d", a.name, i+1), func(ctx context.Context) (bool, string) {
			answer, err := a.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: a.name, ResourceAttributes: &q}}, metav1.CreateOptions{})
			if err != nil {
				return false, err.Error()
			}
			if i == a.without && answer.Status.Allowed {
				t.Errorf("%s holds %v: %s", a.name, g, answer.Status.Reason)
				return true, ""
			}
			return answer.Status.Allowed == (i != a.without), answer.Status.Reason
		})
	}
}

// vault is a namespace without service accounts, from which nothing leads on.
const vault = "vault"

// target returns what nobody here may do at first: read the Secrets of the vault, or, where more
// than that is reached, those of all namespaces.
func target(ctx context.Context, cfg *rest.Config, namespaced bool) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	namespace := metav1.NamespaceAll
	if namespaced {
		namespace = vault
	}
	_, err = client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	return err
}

// refused reports whether an error is the authorizer's refusal. Those of streams carry its text
// alone.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || err != nil && strings.Contains(err.Error(), " is forbidden: ")
}

// superuser is a user, a service account and a group that are cluster administrators.
const (
	superuser  = "boss"
	superrobot = "robot"
	superteam  = "bosses"
)

// ground makes what every escalation of a scene finds.
func (s *scene) ground(t *testing.T, all []escalation) {
	t.Helper()
	subjects := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: superuser},
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: superteam},
	}
	namespaces := []string{vault}
	for _, e := range all {
		namespaces = append(namespaces, e.name())
	}
	for _, namespace := range namespaces {
		if _, err := s.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if namespace == vault {
			continue
		}
		if _, err := s.admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: superrobot}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: superrobot})
	}
	if _, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "administrators"},
			Subjects: subjects, RoleRef: clusterAdmin}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

var clusterAdmin = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}

// TestEscalations: every way to more rights that the product knows is gone once, against the
// real apiserver, by somebody who holds the grants of that way and nothing else; and for each
// of the grants somebody who lacks it is refused.
func TestEscalations(t *testing.T) {
	t.Parallel()
	s := &scene{Cluster: controlplane.Start(t, controlplane.Tunnel(t))}
	s.admin = clientOf(t, s.Admin(t))
	s.node = s.Node(t, s.admin, "node-1")
	s.Controllers(t)

	all := slices.Concat(policyEscalations, credentialEscalations, podEscalations, admissionEscalations)
	for _, edge := range closure.Edges() {
		if !slices.ContainsFunc(all, func(e escalation) bool { return e.edge == string(edge) && !e.none }) {
			t.Errorf("the product names the edge %s, and nobody goes it here", edge)
		}
	}
	s.ground(t, all)
	attackers := make([][]*attacker, len(all))
	for i, e := range all {
		attackers[i] = s.attackers(t, e)
		for _, a := range attackers[i] {
			a.hold(t)
			if e.prepare != nil {
				e.prepare(t, s, a.namespace, a.name)
			}
		}
	}
	s.compare(t, all, attackers)
	for _, of := range attackers {
		for _, a := range of {
			a.settled(t)
		}
	}

	table := []string{fmt.Sprintf("%-16s %-14s %-9s %s", "edge", "way", "executed", "refused without")}
	for i, e := range all {
		t.Run(e.name(), func(t *testing.T) {
			for _, a := range attackers[i] {
				a.t = t
				for _, namespaced := range []bool{true, false} {
					if err := target(t.Context(), a.config, namespaced); !apierrors.IsForbidden(err) {
						t.Fatalf("%s reads Secrets before it did anything: %v", a.name, err)
					}
				}
			}
			table = append(table, fmt.Sprintf("%-16s %-14s %s", e.edge, e.how, e.execute(t, attackers[i])))
		})
	}
	t.Logf("\n%s", strings.Join(table, "\n"))
}

// execute goes the way with each attacker, those who lack a grant first, and returns what is
// to be told: whether the way was gone, and without which grants it was not.
func (e escalation) execute(t *testing.T, attackers []*attacker) string {
	var lacking []string
	for _, a := range attackers[1:] {
		_, err := e.attack(t.Context(), a)
		if !refused(err) {
			t.Errorf("without %v: %v", a.grants[a.without], err)
			continue
		}
		if err := target(t.Context(), a.config, true); !apierrors.IsForbidden(err) {
			t.Errorf("without %v: Secrets are read: %v", a.grants[a.without], err)
		}
		lacking = append(lacking, attackers[0].grants[a.without].String())
	}
	a := attackers[0]
	reached, err := e.attack(t.Context(), a)
	if e.none {
		if !apierrors.IsForbidden(err) {
			t.Errorf("more than was held: %v", err)
		}
		return "nothing reached"
	}
	if err != nil {
		t.Fatalf("with %v: %v", a.grants, err)
	}
	controlplane.Poll(t, "the target", func(ctx context.Context) (bool, string) {
		err := target(ctx, reached, e.namespaced)
		return err == nil, fmt.Sprint(err)
	})
	if err := target(t.Context(), reached, false); e.namespaced && !apierrors.IsForbidden(err) {
		t.Errorf("more than the vault was reached: %v", err)
	}
	return fmt.Sprintf("%-9s %s", "yes", strings.Join(lacking, "; "))
}
