package state_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Pods end at once, after a grace period that can only become shorter, or when the last finalizer
// is taken away; and what was not recorded of it is not known.
//
//	at once      |-|                                          absent
//	with grace   |-| deletion ........|-| grace 0             absent
//	held         |-| deletion ........ grace over ...|-| last finalizer taken away, absent
//	not told     |-| deletion ........? unknown from the write that may have ended it
func TestHowPodsEnd(t *testing.T) {
	const (
		pod     = podsURI + "/p"
		onNode  = `,"nodeName":"n1"`
		options = `{"kind":"DeleteOptions"}`
	)
	deleting := func(seconds int, finalizers string) string {
		return fmt.Sprintf(`,"deletionTimestamp":"2026-01-02T12:00:40Z","deletionGracePeriodSeconds":%d,"finalizers":[%s]`, seconds,
			finalizers)
	}
	list := func(item string) string { return `{"kind":"PodList","items":[` + item + `]}` }
	gone := func(s *told, at string) {
		s.missing(at, "delete", pod, `pods "p" not found`)
	}
	for name, c := range map[string]struct {
		tell func(s *told)
		want []string
	}{
		"a collection deleted again while its deletion is pending": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, options, list(podJSON("p", "u1", "", onNode)))
			s.event("12:00:20", "deletecollection", podsURI, 200, options, list(podJSON("p", "u1", deleting(30, ""), onNode)))
		}, []string{"12:00:11", "present u1 sa n1 deletion=12:00:40", "12:00:21", "present u1 sa n1 deletion=12:00:40"}},
		"a pod that has succeeded is deleted again while its deletion is pending": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, options, list(podJSON("p", "u1", "", onNode)))
			s.event("12:00:20", "deletecollection", podsURI, 200, options, list(ended(podJSON("p", "u1", deleting(30, ""), onNode))))
		}, []string{"12:00:21", "present u1 sa n1 deletion=12:00:40"}},
		"a pod that has succeeded": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, options, list(ended(podJSON("p", "u1", "", onNode))))
		}, []string{"12:00:09", "present u1 sa n1", "12:00:11", "absent - - -"}},
		"a pod that has succeeded and is held by a finalizer": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, options, list(ended(podJSON("p", "u1", `,"finalizers":["x"]`, onNode))))
		}, []string{"12:00:11", "unknown u1 sa n1 deletion=12:00:10"}},
		"dependents go first": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, `{"propagationPolicy":"Foreground","gracePeriodSeconds":0}`,
				list(podJSON("p", "u1", "", onNode)))
		}, []string{"12:00:11", "unknown u1 sa n1 deletion=12:00:10"}},
		"the grace is shortened": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, `{"gracePeriodSeconds":5}`, list(podJSON("p", "u1", deleting(30, ""),
				onNode)))
		}, []string{"12:00:11", "present u1 sa n1 deletion=12:00:15"}},
		"the grace is over at once": {func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, `{"gracePeriodSeconds":0}`, list(podJSON("p", "u1", deleting(30, ""),
				onNode)))
		}, []string{"12:00:11", "absent - - -"}},
		"the last finalizer goes": {func(s *told) {
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", deleting(0, `"batch.kubernetes.io/job-tracking"`), onNode))
			s.event("12:00:20", "patch", pod, 200, "", podJSON("p", "u1", deleting(0, ""), onNode))
		}, []string{"12:00:11", "present u1 sa n1 deletion=12:00:40", "12:00:21", "absent - - -"}},
		"the garbage collector takes the last finalizer": {func(s *told) {
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", deleting(0, `"foregroundDeletion"`), onNode))
			s.event("12:00:20", "patch", pod, 200, `{"metadata":{"finalizers":[]}}`,
				`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"p","namespace":"a","uid":"u1",`+
					`"resourceVersion":"12","deletionTimestamp":"2026-01-02T12:00:40Z","deletionGracePeriodSeconds":0}}`)
		}, []string{"12:00:11", "present u1 sa n1 deletion=12:00:40", "12:00:21", "absent - - -"}},
		"a finalizer goes, which was not recorded": {func(s *told) {
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", deleting(0, `"x"`), onNode))
			s.event("12:00:20", "patch", pod+"/status", 200, "", "") // which is not kept
		}, []string{"12:00:09", "present u1 sa n1", "12:00:11", "unknown u1 sa n1 deletion=12:00:40"}},
		"a finalizer goes, which was not recorded, and it is seen later": {func(s *told) {
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", deleting(0, `"x","y"`), onNode))
			s.event("12:00:20", "patch", pod, 200, "", "")
			s.event("12:00:30", "patch", pod, 200, "", podJSON("p", "u1", deleting(0, `"y"`), onNode))
		}, []string{"12:00:21", "present u1 sa n1 deletion=12:00:40"}},
		"no finalizer holds it, and its grace is not over": {func(s *told) {
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", deleting(30, ""), onNode))
			s.event("12:00:20", "patch", pod, 200, "", "")
		}, []string{"12:00:21", "present u1 sa n1 deletion=12:00:40"}},
		"it is not being deleted": {func(s *told) {
			s.event("12:00:20", "patch", pod, 200, "", "")
		}, []string{"12:00:21", "present u1 sa n1"}},
		"evicted, and its kubelet ends it": {func(s *told) {
			s.event("12:00:10", "create", pod+"/eviction", 201, `{"kind":"Eviction"}`, `{"kind":"Status","status":"Success"}`)
			s.event("12:00:20", "delete", pod, 200, options, podJSON("p", "u1", deleting(0, ""), onNode))
		}, []string{"12:00:11", "present u1 sa n1 deletion=12:00:40", "12:00:21", "absent - - -"}},
		"evicted, and its kubelet finds it gone": {func(s *told) {
			s.event("12:00:10", "create", pod+"/eviction", 201, `{"kind":"Eviction"}`, `{"kind":"Status","status":"Success"}`)
			gone(s, "12:00:20")
		}, []string{"12:00:11", "unknown u1 sa n1 deletion=12:00:40", "12:00:21", "absent - - -"}},
		"found gone, how it ended was not seen": {func(s *told) {
			gone(s, "12:00:20")
		}, []string{"12:00:10", "present u1 sa n1", "12:00:21", "absent - - -"}},
		"found gone before it was made": {func(s *told) {
			gone(s, "11:59:00")
		}, []string{"12:00:10", "present u1 sa n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			c.tell(s) // in any order
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", onNode))
			s.expectPod("p", c.want...)
		})
	}
}

// ended is a pod whose containers have come to an end.
func ended(pod string) string { return pod[:len(pod)-len(`"Running"}}`)] + `"Succeeded"}}` }

// missing tells of a write that found no object.
func (s *told) missing(at, verb, uri, message string) {
	s.t.Helper()
	e := &event.Event{
		Level: event.LevelMetadata, Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, AuditID: "audit-" + at,
		ResponseStatus:           &event.Status{Code: 404, Status: "Failure", Reason: "NotFound", Message: message},
		RequestReceivedTimestamp: clock(s.t, at), StageTimestamp: clock(s.t, at),
	}
	obs, err := observe.FromEvent(e)
	if err != nil || len(obs) != 1 {
		s.t.Fatal(obs, err)
	}
	s.Apply(obs...)
}

// A binding that is deleted with its dependents first, or loses its owner, is answered about with
// metadata alone. It grants as before until it has gone, and nothing else becomes unknown.
func TestHowBindingsEnd(t *testing.T) {
	const (
		uri     = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		one     = uri + "/b"
		partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","uid":"u1","resourceVersion":%q%s}}`
		held    = `,"deletionTimestamp":"2026-01-02T12:00:10Z","finalizers":["foregroundDeletion"]`
		ending  = `,"deletionTimestamp":"2026-01-02T12:00:10Z"`
	)
	binding := func(rv, meta string) string {
		return fmt.Sprintf(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b",`+
			`"uid":"u1","resourceVersion":%q%s},`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{`+
			`"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`, rv, meta)
	}
	for name, c := range map[string]struct {
		tell func(s *told)
		want []string
	}{
		"dependents first": {func(s *told) {
			s.event("12:00:10", "delete", one, 200, `{"propagationPolicy":"Foreground"}`, binding("11", held))
			s.event("12:00:20", "patch", one, 200, `{"metadata":{"resourceVersion":"11","finalizers":[]}}`, fmt.Sprintf(partial, "11",
				ending))
		}, []string{"12:00:11", "jane", "12:00:21", "absent"}},
		"dependents first, at level Metadata": {func(s *told) {
			s.event("12:00:10", "delete", one, 200, "", "")
			s.event("12:00:20", "patch", one, 200, "", "")
			s.missing("12:00:30", "delete", one, `clusterrolebindings.rbac.authorization.k8s.io "b" not found`)
		}, []string{"12:00:11", "unknown", "12:00:31", "absent"}},
		"dependents first, at level Request": {func(s *told) {
			s.event("12:00:10", "delete", one, 200, `{"propagationPolicy":"Foreground"}`, "")
			s.event("12:00:20", "patch", one, 200, `{"metadata":{"finalizers":[]}}`, "")
			s.event("12:00:30", "create", uri, 201, "", binding("20", ""))
		}, []string{"12:00:11", "jane", "12:00:21", "unknown", "12:00:31", "jane"}},
		"its owner was orphaned": {func(s *told) {
			s.event("12:00:20", "patch", one, 200, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"o"}],"uid":"u1"}}`,
				fmt.Sprintf(partial, "12", ""))
		}, []string{"12:00:21", "jane"}},
		"its labels changed, at level Request": {func(s *told) {
			s.event("12:00:20", "patch", one, 200, `{"metadata":{"labels":{"a":"b"}}}`, "")
		}, []string{"12:00:21", "jane"}},
		"its labels changed after it was written at level Metadata": {func(s *told) {
			s.event("12:00:10", "update", one, 200, "", "")
			s.event("12:00:20", "patch", one, 200, `{"metadata":{"labels":{"a":"b"}}}`, fmt.Sprintf(partial, "12", ""))
		}, []string{"12:00:21", "unknown"}},
		"looked for in vain": {func(s *told) {
			s.missing("12:00:30", "patch", one, `clusterrolebindings.rbac.authorization.k8s.io "b" not found`)
		}, []string{"12:00:20", "jane", "12:00:31", "absent"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			c.tell(s) // in any order
			s.event("12:00:00", "create", uri, 201, "", binding("10", ""))
			key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b"}
			for i := 0; i < len(c.want); i += 2 {
				v := s.RBAC(clock(t, c.want[i]))
				got := "absent"
				if v.IsUnknown(key) {
					got = "unknown"
				} else if obj, ok := v.RBAC.Get(key); ok {
					got = obj.(*rbacv1.ClusterRoleBinding).Subjects[0].Name
				}
				if got != c.want[i+1] {
					t.Errorf("at %s %s, want %s; %s", c.want[i], got, c.want[i+1], s.Reason(key, clock(t, c.want[i])))
				}
			}
		})
	}
}

// A namespace is marked by the first deletion and ended by the next, when nothing is left in its spec
// and the options take away what else holds it back.
func TestHowNamespacesEnd(t *testing.T) {
	const (
		one     = "/api/v1/namespaces/n"
		partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"n","uid":"u1",` +
			`"resourceVersion":"12","deletionTimestamp":"2026-01-02T12:00:10Z","finalizers":["orphan"]}}`
	)
	namespace := func(rv, finalizers, spec string) string {
		return fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"u1","resourceVersion":%q,`+
			`"creationTimestamp":"2026-01-02T12:00:00Z",`+
			`"deletionTimestamp":"2026-01-02T12:00:10Z","finalizers":[%s]},"spec":{"finalizers":[%s]}}`, rv, finalizers, spec)
	}
	marked := tell(t, true)
	marked.event("12:00:10", "delete", one, 200, `{"orphanDependents":false}`, namespace("11", `"foregroundDeletion"`, ""))
	if got := marked.Namespace("n", clock(t, "12:00:11"), clock(t, "12:00:11")); got != state.NamespaceUnknown {
		t.Errorf("marked or ended by options that put on a finalizer and take it away: %v, want unknown", got)
	}
	for name, c := range map[string]struct {
		options, answer string
		want            state.NamespaceAnswer
	}{
		"its orphans are let go": {`{"propagationPolicy":"Background"}`, namespace("12", `"orphan"`, ""),
			state.NamespaceAbsent},
		"its orphans are let go, its spec holds it": {`{"propagationPolicy":"Background"}`, namespace("12", `"orphan"`,
			`"kubernetes"`), state.NamespaceTerminating},
		"its orphans are let go, something holds it": {`{"propagationPolicy":"Background"}`, namespace("12", `"orphan","x"`, ""),
			state.NamespaceTerminating},
		"its orphans are let go, answered with metadata": {`{"propagationPolicy":"Background"}`, partial, state.NamespaceUnknown},
		"its dependents are not orphaned": {`{"orphanDependents":false}`, namespace("12", `"foregroundDeletion"`, ""),
			state.NamespaceAbsent},
		"its orphans stay": {`{}`, namespace("12", `"orphan"`, ""), state.NamespaceTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			s.event("12:00:10", "delete", one, 200, `{"propagationPolicy":"Orphan"}`, namespace("11", `"orphan"`, ""))
			s.event("12:00:20", "delete", one, 200, c.options, c.answer)
			for at, want := range map[string]state.NamespaceAnswer{"12:00:15": state.NamespaceTerminating, "12:00:21": c.want} {
				if got := s.Namespace("n", clock(t, at), clock(t, at)); got != want {
					t.Errorf("at %s %v, want %v", at, got, want)
				}
			}
		})
	}
}

// In which of two seconds a collection was deleted is not known. A later deletion that is seen with the value that was
// calculated for one of them does not tell; the same deletion, which has the same grace, does.
//
//	collection deleted   |-| over the turn of a second, grace 1: deletion 12 or 11
//	listed                   |-| grace 1: deletion 12
//	deleted again               |-| grace 0: deletion 12
func TestDeletionSeenAsItWasEstimated(t *testing.T) {
	deleted := func(grace int) string {
		return podJSON("p", "u1", fmt.Sprintf(`,"deletionTimestamp":"2026-01-02T12:00:12Z","deletionGracePeriodSeconds":%d,`+
			`"finalizers":["foregroundDeletion"]`, grace), `,"nodeName":"n1"`)
	}
	for _, listed := range []bool{false, true} {
		s := tell(t, true)
		s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", `,"nodeName":"n1"`))
		s.during("12:00:10.9", "12:00:11.1", "deletecollection", podsURI, 200, `{"gracePeriodSeconds":1,"propagationPolicy":"Foreground"}`,
			`{"kind":"PodList","items":[`+podJSON("p", "u1", "", `,"nodeName":"n1"`)+`]}`)
		if listed {
			s.listed("12:00:11.5", "12:00:11.6", deleted(1))
		}
		s.event("12:00:12.3", "delete", podsURI+"/p", 200, `{"gracePeriodSeconds":0}`, deleted(0))
		for at, open := range map[string]bool{"12:00:11.2": !listed, "12:00:12.2": !listed, "12:00:13": false} {
			p, known := s.Pod("a", "p", clock(t, at))
			if p.DeletionOpen != open || p.DeletionAt != clock(t, "12:00:12") {
				t.Errorf("listed: %v: at %s %v, deletion %v, open: %v, want it to be open: %v", listed, at, known, p.DeletionAt,
					p.DeletionOpen, open)
			}
		}
	}
}
