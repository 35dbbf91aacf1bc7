// Package authorizer answers for an apiserver built on k8s.io/apiserver in place of
// Kubernetes' RBAC authorizer: authorizer.Authorizer and authorizer.RuleResolver over a
// rbacindex.Snapshot, kept up to date by informers.
//
//	informers ──events──▶ pending, by object ──one Apply for all──▶ Snapshot ──▶ published
//	  (follow.go)           the last word counts                                  │ atomic pointer
//	                                        Authorize, RulesFor ◀─────────────────┘
//
// # Same answers
//
// Decision, reason and errors are those of plugin/pkg/auth/authorizer/rbac over the same
// informers: Allow with the reason of one grant, or NoOpinion with the errors of roles that do
// not exist. Where that one names whichever grant its lister happens to list first, this one
// always names the same: a ClusterRoleBinding before RoleBindings, then by role and binding
// name. system:masters is another authorizer's business here as there.
//
// # When a change counts
//
// An event is taken up at once. Events that arrive while a Snapshot is being made wait for the
// next one, all together, so that a burst costs few of them; no timer is involved. A decision
// is made on one Snapshot, which does not change under it. Events of different kinds come
// from different informers, in no particular order, here as in the RBAC authorizer.
//
// # Before the first lists are complete
//
// Nothing is known and nothing is allowed: Authorize says NoOpinion with a reason that tells
// why, and no error, as the RBAC authorizer over empty informers would; RulesFor says that its
// answer is incomplete. HasSynced is for readiness checks. The first lists are made into a
// Snapshot once, however many objects they hold.
//
// # Objects
//
// The informers' objects are not copied and never modified. A Snapshot keeps those it is made
// of; a bounded cache of what subjects hold may keep some a while longer. An update that
// changes nothing RBAC looks at (metadata) is dropped, and the older object stays.
package authorizer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Config configures an Authorizer.
type Config struct {
	// Informers of the four RBAC kinds, for example SharedInformerFactory.Rbac().V1(). They are
	// started by their owner, before New or after. Required.
	Informers rbacinformers.Interface
	// Registerer receives the metrics; nil: none are registered.
	Registerer prometheus.Registerer
}

// Authorizer decides by the RBAC objects of informers. It is safe for concurrent use;
// decisions take no lock and never wait for updates.
type Authorizer struct {
	view    atomic.Pointer[view]
	metrics *metrics
	feeds   []feed

	scratches sync.Pool // of *scratch

	mu       sync.Mutex            // guards the rest
	pending  map[rbacindex.Key]any // changes not yet in a Snapshot; nil is a deletion
	synced   bool                  // the first lists are complete
	first    bool                  // they are to be made into a Snapshot, even if empty
	applying bool                  // drain runs
	closed   chan struct{}
	running  sync.WaitGroup // await and drain
}

var (
	_ authorizer.Authorizer   = (*Authorizer)(nil)
	_ authorizer.RuleResolver = (*Authorizer)(nil)
)

// view is what decisions are based on.
type view struct {
	snapshot *rbacindex.Snapshot // nil before the first lists are complete
	replaced chan struct{}       // closed when another view took the place
}

// ErrNotSynced is returned by RulesFor before the first lists are complete.
var ErrNotSynced = errors.New("RBAC: roles and bindings are not listed yet")

// New returns an Authorizer that follows the informers until Close. It adds a handler to each
// of them and does not wait for them.
func New(cfg Config) (*Authorizer, error) {
	if cfg.Informers == nil {
		return nil, errors.New("follow RBAC: no informers")
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("follow RBAC: %w", err)
	}
	a := &Authorizer{metrics: m, pending: map[rbacindex.Key]any{}, closed: make(chan struct{})}
	a.view.Store(&view{replaced: make(chan struct{})})
	if err := a.follow(cfg.Informers); err != nil {
		a.unfollow()
		return nil, fmt.Errorf("follow RBAC: %w", err)
	}
	a.running.Add(1)
	go a.await()
	return a, nil
}

// Close takes the handlers off the informers and waits until no update is being made.
// Decisions go on by the last Snapshot. It may be called more than once.
func (a *Authorizer) Close() {
	a.mu.Lock()
	select {
	case <-a.closed:
	default:
		close(a.closed)
	}
	a.mu.Unlock()
	a.unfollow()
	a.running.Wait()
}

// HasSynced reports whether the informers' first lists are in the Snapshot. Once true it stays
// true.
func (a *Authorizer) HasSynced() bool { return a.view.Load().snapshot != nil }

// Snapshot returns the policy that decisions are made on now, nil before HasSynced, and a channel
// that is closed when another one takes its place. It serves further questions (who can, what can a
// user do) and callers that cache answers.
func (a *Authorizer) Snapshot() (s *rbacindex.Snapshot, replaced <-chan struct{}) {
	v := a.view.Load()
	return v.snapshot, v.replaced
}

// scratch is the memory a decision needs, reused by the next one.
type scratch struct {
	request rbacindex.Attributes
	grants  []rbacindex.Grant
}

// maxGrants is the most grants a reused scratch has room for.
const maxGrants = 1024

// done empties a scratch, so that it keeps no strings or objects alive, and puts it back.
func (a *Authorizer) done(sc *scratch, used []rbacindex.Grant) {
	sc.request = rbacindex.Attributes{}
	clear(used)
	if sc.grants = used[:0]; cap(used) <= maxGrants {
		a.scratches.Put(sc)
	}
}

// Authorize implements authorizer.Authorizer. The decision is Allow, with the grant as reason,
// or NoOpinion, with the errors met as reason; the error is always nil, as the RBAC
// authorizer's is. A request without a user is never allowed.
func (a *Authorizer) Authorize(_ context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	s := a.view.Load().snapshot
	if s == nil {
		return authorizer.DecisionNoOpinion, ErrNotSynced.Error(), nil
	}
	who := attrs.GetUser()
	if who == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	sc, ok := a.scratches.Get().(*scratch)
	if !ok {
		sc = &scratch{grants: make([]rbacindex.Grant, 0, 16)}
	}
	sc.request = rbacindex.Attributes{
		User:            who.GetName(),
		Groups:          who.GetGroups(),
		Verb:            attrs.GetVerb(),
		Namespace:       attrs.GetNamespace(),
		APIGroup:        attrs.GetAPIGroup(),
		Resource:        attrs.GetResource(),
		Subresource:     attrs.GetSubresource(),
		Name:            attrs.GetName(),
		ResourceRequest: attrs.IsResourceRequest(),
		Path:            attrs.GetPath(),
	}
	res := s.Authorize(&sc.request, sc.grants)
	decision, reason := authorizer.DecisionNoOpinion, ""
	if res.Allowed {
		var text [256]byte
		decision, reason = authorizer.DecisionAllow, string(res.Grants[0].AppendReason(text[:0]))
	} else {
		reason = refusal(s, &sc.request, &res)
	}
	a.done(sc, res.Grants)
	return decision, reason, nil
}

// RulesFor implements authorizer.RuleResolver: the rules of everything bound to the user
// cluster-wide and, with a namespace, in it, one after the other, those of ClusterRoleBindings
// first; a role bound twice counts twice. Errors do not make the list incomplete, here as in the
// RBAC authorizer; being called too early does. The rules' lists are those of the objects and must
// not be modified.
func (a *Authorizer) RulesFor(_ context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo,
	[]authorizer.NonResourceRuleInfo, bool, error) {
	s := a.view.Load().snapshot
	if s == nil {
		return nil, nil, true, ErrNotSynced
	}
	if who == nil {
		return nil, nil, false, nil
	}
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	res := s.RulesFor(who.GetName(), who.GetGroups(), namespace, func(_ rbacindex.Grant, r *rbacv1.PolicyRule) bool {
		if len(r.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{Verbs: r.Verbs, APIGroups: r.APIGroups,
				Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		if len(r.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
		return true
	})
	if len(res.Errors()) == 0 {
		return resources, paths, false, nil
	}
	return resources, paths, false, unresolved(s, who.GetName(), who.GetGroups(), namespace)
}

// refusal returns the reason of a request that no grant allows.
func refusal(s *rbacindex.Snapshot, request *rbacindex.Attributes, res *rbacindex.Result) string {
	switch errs := res.Errors(); len(errs) {
	case 0:
		return ""
	case 1:
		return "RBAC: " + errs[0]
	}
	return "RBAC: " + unresolved(s, request.User, request.Groups, request.Namespace).Error()
}

// unresolved returns the error of everything bound to the user whose role cannot be had, put
// together as the RBAC authorizer puts it: one error a binding, of the types a lister returns,
// those of ClusterRoleBindings first; in the text each once. nil if there is none.
func unresolved(s *rbacindex.Snapshot, name string, groups []string, namespace string) error {
	var errs []error
	s.BindingsOf(name, groups, namespace, func(binding, role rbacindex.Key, _ rbacv1.Subject) bool {
		switch role.Kind {
		case rbacindex.KindRole, rbacindex.KindClusterRole:
			if _, ok := s.Get(role); ok {
				return true
			}
			resource := "role"
			if role.Kind == rbacindex.KindClusterRole {
				resource = "clusterrole"
			}
			errs = append(errs, apierrors.NewNotFound(rbacv1.Resource(resource), role.Name))
		default:
			errs = append(errs, fmt.Errorf("unsupported role reference kind: %q", roleKind(s, binding)))
		}
		return true
	})
	return utilerrors.NewAggregate(errs)
}

// roleKind returns the text of a binding for the kind of its role.
func roleKind(s *rbacindex.Snapshot, binding rbacindex.Key) string {
	o, _ := s.Get(binding)
	_, role, _ := rbacindex.BindingOf(o)
	return role.Kind
}
