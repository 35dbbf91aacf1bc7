package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// during tells of a write from one time to another.
func (s *told) during(from, to, verb, uri string, code int32, request, response string) {
	s.t.Helper()
	e := &event.Event{
		Level: event.LevelRequest, Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, AuditID: "audit-" + from,
		ResponseStatus: &event.Status{Code: code}, ObjectRef: &event.ObjectRef{Name: "p"}, RequestObject: []byte(
			request), ResponseObject: []byte(response),
		RequestReceivedTimestamp: clock(s.t, from), StageTimestamp: clock(s.t, to),
	}
	if response != "" {
		e.Level = event.LevelRequestResponse
	}
	if code == 404 {
		e.ResponseStatus.Reason, e.ResponseStatus.Message = "NotFound", response
		e.ResponseObject = nil
	}
	obs, err := observe.FromEvent(e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Apply(obs...)
}

// listed tells of a listing of pods.
func (s *told) listed(began, ended string, pods ...string) {
	s.t.Helper()
	snap := observe.Snapshot{Began: clock(s.t, began), Ended: clock(s.t, ended), Kinds: []string{kept.Pods}}
	for _, pod := range pods {
		if err := observe.ReadObjects(strings.NewReader(pod), func(o observe.RawObject) error {
			snap.Objects = append(snap.Objects, o.Observation())
			return nil
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.LoadSnapshot(snap); err != nil {
		s.t.Fatal(err)
	}
}

// given gives a pod an ephemeral container.
const given = `{"spec":{"ephemeralContainers":[{"name":"e"}]}}`

// Each is a way in which a pod's fate is easily mistaken, found by holding the state against
// Kubernetes' registry.
func TestFatesOfPods(t *testing.T) {
	const (
		pod     = podsURI + "/p"
		onNode  = `,"nodeName":"n1"`
		options = `{"kind":"DeleteOptions"}`
		held    = `,"deletionTimestamp":"2026-01-02T12:00:10Z","deletionGracePeriodSeconds":0,"finalizers":["x"]`
		made    = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"serviceAccountName":"sa"}}`
	)
	pending := func(deletion string, grace int) string {
		return fmt.Sprintf(`,"deletionTimestamp":"2026-01-02T%sZ","deletionGracePeriodSeconds":%d`, deletion, grace)
	}
	list := func(item string) string { return `{"kind":"PodList","items":[` + item + `]}` }
	for name, c := range map[string]struct {
		tell func(s *told)
		want []string
		open bool // at the last time asked about
	}{
		"made when it was first listed": {tell: func(s *told) {
			s.during("12:00:00.5", "12:00:00.5", "create", podsURI, 201, made, "")
			s.listed("12:00:00.2", "12:00:00.5", podJSON("p", "u1", "", ""))
		}, want: []string{"12:00:00.500001", "present u1 sa -", "12:00:02", "present u1 sa -"}},
		"deleted in the second in which it was made": {tell: func(s *told) {
			s.listed("12:00:00.2", "12:00:04", podJSON("p", "u1", "", ""))
			s.during("12:00:00.6", "12:00:00.7", "delete", pod, 200, options, "")
		}, want: []string{"12:00:05", "unknown u1 sa -"}, open: true},
		"a collection deleted over the turn of a second": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", onNode))
			s.during("12:00:10.9", "12:00:11.1", "deletecollection", podsURI, 200, options, list(podJSON("p", "u1", "", onNode)))
		}, want: []string{"12:00:12", "unknown u1 sa n1 deletion=12:00:41"}, open: true},
		"found gone while its collection was being deleted": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", onNode))
			s.during("12:00:12", "12:00:13", "get", pod, 404, "", `pods "p" not found`)
			s.during("12:00:10", "12:00:20", "deletecollection", podsURI, 200, options, list(ended(podJSON("p", "u1", "", onNode))))
		}, want: []string{"12:00:12", "present u1 sa n1", "12:00:14", "absent - - -"}},
		"found gone before its collection was deleted": {tell: func(s *told) {
			s.during("11:59:00", "11:59:01", "get", pod, 404, "", `pods "p" not found`)
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", onNode))
			s.during("12:00:10", "12:00:20", "deletecollection", podsURI, 200, options, list(ended(podJSON("p", "u1", "", onNode))))
		}, want: []string{"12:00:19", "present u1 sa n1", "12:00:21", "absent - - -"}},
		"cut short when the grace was over": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", onNode))
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", pending("12:00:40", 30), onNode))
			s.event("12:00:50", "delete", pod, 200, `{"gracePeriodSeconds":1}`, podJSON("p", "u1", pending("12:00:50", 1), onNode))
		}, want: []string{"12:00:30", "present u1 sa n1 deletion=12:00:40", "12:00:51", "present u1 sa n1 deletion=12:00:50"}},
		"deleted twice at once": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", onNode))
			s.during("12:00:10", "12:00:10.2", "delete", pod, 200, options, podJSON("p", "u1", pending("12:00:40", 30), onNode))
			s.during("12:00:10.1", "12:00:11.2", "delete", pod, 200, options, podJSON("p", "u1", pending("12:00:41", 30), onNode))
		}, want: []string{"12:00:12", "present u1 sa n1 deletion=12:00:40"}, open: true},
		"first seen when its grace is cut short": {tell: func(s *told) {
			s.event("12:00:50", "delete", pod, 200, `{"gracePeriodSeconds":0}`, podJSON("p", "u1", held, onNode))
		}, want: []string{"12:00:40", "present u1 sa n1"}, open: true},
		"only its end was seen": {tell: func(s *told) {
			s.event("12:00:50", "delete", pod, 200, `{"gracePeriodSeconds":0}`, podJSON("p", "u1", "", onNode))
		}, want: []string{"12:00:51", "absent - - -", "12:00:40", "present u1 sa n1"}, open: true},
		"only its end was seen, answered with metadata, after another": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.event("12:00:10", "delete", pod, 200, options, podJSON("p", "u1", "", ""))
			s.event("12:00:20", "delete", pod, 200, options,
				`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"p","namespace":"a","uid":"u2"}}`)
		}, want: []string{"12:00:05", "present u1 sa -", "12:00:15", "unknown - - -", "12:00:21", "absent - - -"}},
		"held back by finalizers when it was listed": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.listed("12:00:20", "12:00:30", podJSON("p", "u1", held, ""))
		}, want: []string{"12:00:25", "unknown u1 sa - deletion=12:00:10"}},
		"made over the turn of a second, and looked for meanwhile": {tell: func(s *told) {
			s.during("12:00:00.9", "12:00:01.2", "create", podsURI, 201, made, podJSON("p", "u1", "", ""))
			s.during("12:00:01.1", "12:00:01.1", "delete", pod, 404, options, `pods "p" not found`)
		}, want: []string{"12:00:02", "present u1 sa -"}},
		"looked for while it was being made": {tell: func(s *told) {
			s.during("12:00:10.2", "12:00:10.3", "create", podsURI, 201, made, "")
			s.during("12:00:10", "12:00:11", "patch", pod+"/ephemeralcontainers", 404, "{}", `pods "p" not found`)
		}, want: []string{"12:00:12", "present - sa -"}},
		"looked for while one may have been made": {tell: func(s *told) {
			s.during("12:00:10.2", "12:00:10.3", "create", podsURI, 406, made, "")
			s.during("12:00:10", "12:00:11", "delete", pod, 404, options, `pods "p" not found`)
		}, want: []string{"12:00:12", "unknown - - -"}, open: true},
		"bound, which was answered in no form": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", pod+"/binding", 406,
				`{"kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}`, "")
		}, want: []string{"12:00:12", "unknown - - -"}, open: true},
		"bound while it was being made": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", podsURI, 201, made, "")
			s.during("12:00:10.2", "12:00:10.3", "create", pod+"/binding", 201,
				`{"kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}`, "")
		}, want: []string{"12:00:12", "present - sa n1"}},
		"bound in the old way, for which a uid is not a condition": {tell: func(s *told) {
			s.during("12:00:10", "12:00:10.1", "create", podsURI, 201, made, podJSON("p", "u1", "", ""))
			s.during("12:00:11", "12:00:11.1", "create", "/api/v1/namespaces/a/bindings", 201,
				`{"kind":"Binding","metadata":{"name":"p","uid":"other"},"target":{"kind":"Node","name":"n1"}}`, "")
		}, want: []string{"12:00:12", "present u1 sa n1"}},
		"bound by its uid while it was being made again": {tell: func(s *told) {
			s.during("12:00:00", "12:00:00.1", "create", podsURI, 201, strings.Replace(made, `"sa"`, `"sb"`, 1), "")
			s.during("12:00:05", "12:00:05.1", "delete", pod, 200, options, "")
			s.during("12:00:10", "12:00:11", "create", podsURI, 201, made, "")
			s.during("12:00:10.2", "12:00:10.3", "create", pod+"/binding", 201,
				`{"kind":"Binding","metadata":{"name":"p","uid":"u2"},"target":{"kind":"Node","name":"n1"}}`, "")
		}, want: []string{"12:00:01", "present - sb -", "12:00:06", "unknown - sb -", "12:00:12", "present u2 - n1"}},
		"given a finalizer while its collection was being deleted": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", `,"resourceVersion":"3"`, ""))
			s.during("12:00:10.1", "12:00:10.2", "delete", pod, 200, `{"propagationPolicy":"Orphan"}`, podJSON("p", "u1",
				`,"resourceVersion":"4","deletionTimestamp":"2026-01-02T12:00:10Z",`+
					`"deletionGracePeriodSeconds":0,"finalizers":["orphan"]`, ""))
			s.during("12:00:10", "12:00:10.3", "deletecollection", podsURI, 200, options,
				list(podJSON("p", "u1", `,"resourceVersion":"3"`, "")))
		}, want: []string{"12:00:09", "present u1 sa -", "12:00:12", "unknown u1 sa - deletion=12:00:10"}, open: true},
		"running once more while its collection was being deleted": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", `,"resourceVersion":"2"`, onNode))
			s.during("12:00:10.1", "12:00:10.2", "patch", pod+"/status", 200, `{"status":{"phase":"Running"}}`, podJSON("p", "u1",
				`,"resourceVersion":"4"`, onNode))
			s.during("12:00:10", "12:00:10.3", "deletecollection", podsURI, 200, options,
				list(ended(podJSON("p", "u1", `,"resourceVersion":"3"`, onNode))))
		}, want: []string{"12:00:09", "present u1 sa n1", "12:00:11", "unknown u1 sa n1"}},
		"written while its collection was being deleted, its containers ended": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", `,"resourceVersion":"2"`, onNode))
			s.during("12:00:10.1", "12:00:10.2", "patch", pod+"/status", 200, `{"status":{"reason":"x"}}`,
				ended(podJSON("p", "u1", `,"resourceVersion":"4"`, onNode)))
			s.during("12:00:10", "12:00:10.3", "deletecollection", podsURI, 200, options,
				list(ended(podJSON("p", "u1", `,"resourceVersion":"3"`, onNode))))
		}, want: []string{"12:00:09", "present u1 sa n1", "12:00:11", "absent - - -"}},
		"patched, perhaps made, while it was looked for": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", "", ""))
			s.during("12:00:05", "12:00:05", "deletecollection", podsURI, 200, options, "")
			s.during("12:00:10.2", "12:00:10.2", "patch", pod, 406, "{}", "")
			s.during("12:00:10", "12:00:10.3", "create", pod+"/eviction", 404, "", `pods "p" not found`)
		}, want: []string{"12:00:04", "present u1 sa -", "12:00:12", "unknown - - -"}, open: true},
		"made again in the second in which it was deleted with others": {tell: func(s *told) {
			s.during("12:00:00", "12:00:00", "create", podsURI, 201, "", "")
			s.during("12:00:00.1", "12:00:00.1", "deletecollection", podsURI, 200, options,
				list(podJSON("p", "u1", `,"resourceVersion":"3"`, "")))
			s.during("12:00:00.2", "12:00:00.2", "patch", pod, 201, "", "")
		}, want: []string{"12:00:00.15", "absent - - -", "12:00:01", "present - - -"}},
		"evicted while a longer deletion was pending": {tell: func(s *told) {
			s.event("12:00:00", "create", podsURI, 201, "", strings.Replace(podJSON("p", "u1", `,"resourceVersion":"2"`, onNode),
				`"spec":{`, `"spec":{"terminationGracePeriodSeconds":0,`, 1))
			s.event("12:00:10", "delete", pod, 200, `{"gracePeriodSeconds":60}`,
				strings.Replace(podJSON("p", "u1", `,"resourceVersion":"3"`+pending("12:01:10", 60), onNode), `"spec":{`,
					`"spec":{"terminationGracePeriodSeconds":0,`, 1))
			s.during("12:00:20", "12:00:20", "create", pod+"/eviction", 201, `{"kind":"Eviction","metadata":{"name":"p"}}`, "")
		}, want: []string{"12:00:15", "present u1 sa n1 deletion=12:01:10", "12:00:21", "unknown u1 sa n1 deletion=12:01:10"}, open: true},
		"deleted before it was first listed": {tell: func(s *told) {
			s.listed("12:00:13.3", "12:00:16.3", podJSON("p", "u1", pending("12:00:18", 5), onNode))
		}, want: []string{"12:00:14.3", "present u1 sa n1", "12:00:17", "present u1 sa n1 deletion=12:00:18"}},
		"only its making and its end were seen": {tell: func(s *told) {
			s.during("12:00:03", "12:00:03", "delete", pod, 404, options, `pods "p" not found`)
			s.during("12:00:04", "12:00:04", "create", podsURI, 201, made, "")
			s.event("12:00:06", "delete", pod, 200, `{"gracePeriodSeconds":0}`,
				`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"p","kind":"pods","uid":"u1"}}`)
		}, want: []string{"12:00:05", "unknown - - -", "12:00:07", "absent - - -"}},
		"deleted while it was being made": {tell: func(s *told) {
			s.during("12:00:10", "12:00:11", "create", podsURI, 201, made, "")
			s.during("12:00:10.2", "12:00:10.3", "delete", pod, 200, options, "")
		}, want: []string{"12:00:12", "unknown - sa -"}, open: true},
		"patched before anything else was seen of it": {tell: func(s *told) {
			s.during("12:00:10", "12:00:10", "patch", pod, 200, `{"metadata":{"finalizers":null}}`, "")
		}, want: []string{"12:00:09", "unknown - - -", "12:00:11", "unknown - - -"}, open: true},
		"given containers before anything else was seen of it": {tell: func(s *told) {
			s.during("12:00:10", "12:00:10", "patch", pod+"/ephemeralcontainers", 200, given, "")
		}, want: []string{"12:00:09", "unknown - - -", "12:00:11", "unknown - - -"}, open: true},
		"patched after its making, of which only the name was recorded": {tell: func(s *told) {
			s.during("12:00:00", "12:00:00", "create", podsURI, 201, made, "")
			s.during("12:00:10", "12:00:10", "patch", pod, 200, `{"metadata":{"finalizers":null}}`, "")
		}, want: []string{"12:00:11", "present - sa -"}},
		"replaced in the second in which it was made": {tell: func(s *told) {
			s.during("12:00:00.1", "12:00:00.1", "create", podsURI, 201, strings.Replace(made, `"sa"`, `"sb","nodeName":"n1"`, 1), "")
			s.during("12:00:00.2", "12:00:00.2", "delete", pod, 200, options, "")
			s.during("12:00:00.3", "12:00:00.3", "create", podsURI, 201, made, "")
			s.listed("12:00:01", "12:00:01", podJSON("p", "u1", "", ""))
		}, want: []string{"12:00:00.1", "present - sb n1", "12:00:00.25", "unknown - sb n1", "12:00:00.3", "present u1 sa -"}},
		"replaced, perhaps, in the second in which it was made": {tell: func(s *told) {
			s.during("12:00:00.1", "12:00:00.1", "create", podsURI, 201, strings.Replace(made, `"sa"`, `"sb"`, 1), "")
			s.during("12:00:00.2", "12:00:00.2", "delete", pod, 200, options, "")
			s.during("12:00:00.3", "12:00:00.3", "create", podsURI, 406, made, "")
			s.listed("12:00:01", "12:00:01", podJSON("p", "u1", "", ""))
		}, want: []string{"12:00:00.15", "unknown u1 sa -", "12:00:01.1", "present u1 sa -"}, open: true},
		"replaced while it was listed": {tell: func(s *told) {
			s.during("12:00:00.1", "12:00:00.1", "create", podsURI, 201, strings.Replace(made, `"sa"`, `"sb","nodeName":"n1"`, 1), "")
			s.during("12:00:00.2", "12:00:00.2", "delete", pod, 200, options, "")
			s.during("12:00:00.3", "12:00:00.3", "create", podsURI, 201, made, "")
			s.listed("12:00:00", "12:00:00.5", podJSON("p", "u1", "", ""))
		}, want: []string{"12:00:00.15", "unknown u1 sa -"}},
		"given containers while it was being deleted": {tell: func(s *told) {
			s.during("12:00:10", "12:00:10.1", "create", podsURI, 201, made, "")
			s.during("12:00:20", "12:00:20.1", "delete", pod, 200, options, "")
			s.during("12:00:30", "12:00:30.1", "patch", pod+"/ephemeralcontainers", 200, given, "")
		}, want: []string{"12:00:31", "unknown - sa -"}, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			c.tell(s)
			s.expectPod("p", c.want...)
			last := c.want[len(c.want)-2]
			if p, _ := s.Pod("a", "p", clock(t, last)); p.DeletionOpen != c.open {
				t.Errorf("at %s deletion open: %v, want %v", last, p.DeletionOpen, c.open)
			}
		})
	}
}

// A listing shows a deletion that was asked for before, perhaps with another grace. That the pod may have gone
// before the listing ended does not take away that it was being deleted by then.
func TestFateOfADeletionShownLater(t *testing.T) {
	const deleted = `,"deletionTimestamp":"2026-01-02T12:00:09Z","deletionGracePeriodSeconds":5,"finalizers":["x"]`
	s := tell(t, true)
	s.during("12:00:04.9", "12:00:04.9", "deletecollection", podsURI, 200, `{"kind":"DeleteOptions"}`, "")
	s.listed("12:00:04.8", "12:00:06.9", podJSON("p", "u1", deleted, `,"nodeName":"n1"`))
	at := clock(t, "12:00:04.5")
	changing := func(v state.Version) bool { return !v.NotBefore.After(at) && v.NotAfter.After(at) }
	if history := s.History(kept.Pods, "a", "p"); !slices.ContainsFunc(history, changing) {
		t.Errorf("no change of the pod may have been under way at %s: %+v", at, history)
	}
}

// What a listing shows of a pod it may have been given since it was made.
func TestFateOfAnEphemeralContainer(t *testing.T) {
	const ephemeral = `,"nodeName":"n1","ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"late"}}]}]`
	s := tell(t, true)
	s.during("12:00:00.1", "12:00:00.2", "create", podsURI, 201,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"serviceAccountName":"sa","nodeName":"n1"}}`, "")
	s.during("12:00:10", "12:00:10.1", "patch", podsURI+"/p/ephemeralcontainers", 200, given, "")
	s.listed("12:00:20", "12:00:21", podJSON("p", "u1", "", ephemeral))
	for at, open := range map[string]bool{"12:00:05": true, "12:00:15": true, "12:00:22": false} {
		if got := s.RelatedWithin(clock(t, at), clock(t, at), "n1", "", "secrets", "a", "late"); got.Has(state.Unknown) != open {
			t.Errorf("at %s the path from the Secret to the node is %v, want it to be open: %v", at, got, open)
		}
	}
}

// A write that began when a listing ended may be in it.
func TestFateOfWhatAListingShows(t *testing.T) {
	const ephemeral = `,"nodeName":"n1","ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"late"}}]}]`
	s := tell(t, true)
	s.during("12:00:00.1", "12:00:00.1", "create", podsURI, 201, "", "")
	s.during("12:00:10", "12:00:10", "patch", podsURI+"/p/ephemeralcontainers", 200, given, "")
	s.listed("12:00:05", "12:00:10", podJSON("p", "u1", "", ephemeral))
	if got := s.RelatedWithin(clock(t, "12:00:04"), clock(t, "12:00:04"), "n1", "", "secrets", "a", "late"); !got.Has(state.Unknown) {
		t.Errorf("before, the path from the Secret to the node is %v, want it to be open", got)
	}
}

// A node that is held by finalizers may end by a write of its status, which is not kept; a volume's is.
func TestFatesOfWhatFinalizersHold(t *testing.T) {
	const meta = `"metadata":{"name":"o","uid":"u1","resourceVersion":"10","deletionTimestamp":"2026-01-02T12:00:10Z","finalizers":["x"]}}`
	for _, c := range []struct {
		resource, uri, object string
		held, after           state.Known
	}{
		{kept.Nodes, "/api/v1/nodes", `{"kind":"Node","apiVersion":"v1",`, state.Unknown, state.Unknown},
		{kept.PersistentVolumes, "/api/v1/persistentvolumes", `{"kind":"PersistentVolume","apiVersion":"v1",`, state.Present,
			state.Unknown},
		{kept.VolumeAttachments, "/apis/storage.k8s.io/v1/volumeattachments",
			`{"kind":"VolumeAttachment","apiVersion":"storage.k8s.io/v1",`, state.Present, state.Unknown},
	} {
		t.Run(c.resource, func(t *testing.T) {
			s := tell(t, true)
			s.event("12:00:10", "delete", c.uri+"/o", 200, `{}`, c.object+meta)
			s.event("12:00:20", "patch", c.uri+"/o/status", 200, "", "")
			for at, want := range map[string]state.Known{"12:00:11": c.held, "12:00:21": c.after} {
				if _, got := s.Version(c.resource, "", "o", clock(t, at)); got != want {
					t.Errorf("at %s %s, want %s", at, got, want)
				}
			}
		})
	}
}

// A volume's collection is deleted while what holds it back is taken away: it has gone then. What
// came between its deletion and its end, and may have ended it, did not.
func TestFateOfAVolumeThatIsHeld(t *testing.T) {
	const uri = "/api/v1/persistentvolumes"
	volume := func(meta string) string {
		return `{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"v","uid":"u1","resourceVersion":"10"` + meta +
			`},"spec":{}}`
	}
	for name, c := range map[string]struct{ collection, end string }{
		"at once":          {"12:00:12.5", "12:00:12"},
		"one by the other": {"12:00:11", "12:00:12"},
	} {
		s := tell(t, true)
		s.event("12:00:00", "create", uri, 201, "", volume(`,"finalizers":["x"]`))
		s.during("12:00:10", c.collection, "deletecollection", uri, 200, `{"kind":"DeleteOptions"}`,
			`{"kind":"PersistentVolumeList","items":[`+volume(`,"finalizers":["x"]`)+`]}`)
		if name != "at once" {
			s.during("12:00:11.2", "12:00:11.3", "update", uri+"/v/status", 200, "", "")
		}
		s.during(c.end, "12:00:13", "update", uri+"/v", 200, "", volume(`,"deletionTimestamp":"2026-01-02T12:00:10Z"`))
		for at, want := range map[string]state.Known{"12:00:09": state.Present, "12:00:11.5": state.Present, "12:00:14": state.Absent} {
			if _, got := s.Version(kept.PersistentVolumes, "", "v", clock(t, at)); got != want {
				t.Errorf("%s: at %s %s, want %s", name, at, got, want)
			}
		}
	}
}

// A binding is deleted with its dependents orphaned while a listing is taken, and what holds it back is
// taken away by a write whose answer was not recorded: it may have gone.
func TestFateOfABindingListedWhileItIsDeleted(t *testing.T) {
	const (
		uri     = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		binding = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b"%s},"roleRef":{` +
			`"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`
	)
	of := func(meta string) string { return fmt.Sprintf(binding, meta) }
	s := tell(t, true)
	s.during("12:00:02", "12:00:02", "create", uri, 201, of(""), "")
	s.during("12:00:03", "12:00:03", "update", uri+"/b", 200, of(`,"uid":"u1"`), "")
	s.during("12:00:06", "12:00:06", "delete", uri+"/b?propagationPolicy=Orphan", 200, "", "")
	s.during("12:00:07", "12:00:07", "update", uri+"/b", 200, of(`,"uid":"u1","deletionTimestamp":"2026-01-02T12:00:06Z"`), "")
	snap := observe.Snapshot{Began: clock(t, "12:00:04"), Ended: clock(t, "12:00:07"), Kinds: []string{kept.ClusterRoleBindings},
		Objects: []observe.Observation{{
			Resource: kept.ClusterRoleBindings, Name: "b", UID: "u1", ResourceVersion: "2", Object: []byte(
				of(`,"uid":"u1","resourceVersion":"2","creationTimestamp":"2026-01-02T12:00:02Z"`)),
		}}}
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	if v, known := s.Version(kept.ClusterRoleBindings, "", "b", clock(t, "12:00:08")); known != state.Unknown {
		t.Errorf("%s: %+v, want unknown", known, v)
	}
}

// A patch of metadata that changes nothing is answered with the version there is. That it left the
// binding as it was does not tell what the write before it did.
func TestFateOfABindingPatchedTwice(t *testing.T) {
	const (
		uri     = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","uid":"u1","resourceVersion":"20"}}`
		binding = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b","uid":"u1",` +
			`"resourceVersion":"10"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{` +
			`"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`
	)
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b"}
	s := tell(t, true)
	s.event("12:00:00", "create", uri, 201, "", binding)
	s.event("12:00:20", "patch", uri+"/b", 200, `{"metadata":{"labels":{"a":"b"}}}`, partial)
	if v := s.RBAC(clock(t, "12:00:21")); v.IsUnknown(key) {
		t.Error("unknown, though nothing but its labels was changed")
	} else if obj, _ := v.RBAC.Get(key); len(obj.(*rbacv1.ClusterRoleBinding).Subjects) != 1 {
		t.Errorf("%v, want one subject", obj)
	}
	s.event("12:00:10", "patch", uri+"/b", 200, `{"subjects":null}`, partial)
	if v := s.RBAC(clock(t, "12:00:10").Add(time.Hour)); !v.IsUnknown(key) {
		t.Error("known, though what its subjects were changed to was not recorded")
	}
}

// A binding is deleted, after or while a write is under way whose answer was lost and which may have made it,
// and a later listing that goes for the whole log does not show it: whether it was there before is open,
// unless somebody looked.
func TestFateOfABindingFoundAfterALostWrite(t *testing.T) {
	const (
		uri     = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b"
		binding = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b"},"roleRef":{` +
			`"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`
	)
	for name, c := range map[string]struct {
		begun, ended string // of the deletion
		looked       bool
		want         state.Known
	}{
		"after it":                   {"12:00:06", "12:00:07", false, state.Unknown},
		"while it was under way":     {"12:00:05", "12:00:06", false, state.Unknown},
		"after a listing without it": {"12:00:06", "12:00:07", true, state.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, false)
			listed := func(began, ended, since string) {
				snap := observe.Snapshot{Began: clock(t, began), Ended: clock(t, ended), Kinds: []string{kept.ClusterRoleBindings}}
				if since != "" {
					snap.Since = clock(t, since)
				}
				if _, err := s.LoadSnapshot(snap); err != nil {
					t.Fatal(err)
				}
			}
			if c.looked {
				listed("12:00:04", "12:00:04.5", "")
			}
			s.during("12:00:05.2", "12:00:05.3", "update", uri, 504, binding, "")
			s.during(c.begun, c.ended, "delete", uri, 200, "", "")
			listed("12:00:08", "12:00:09", "12:00:02")
			if v, known := s.Version(kept.ClusterRoleBindings, "", "b", clock(t, "12:00:05")); known != c.want {
				t.Errorf("%s: %+v, want %s", known, v, c.want)
			}
		})
	}
}

// An object that is not a pod is written while others write or list it too: it may have been held back, or
// made, after what seems to end it.
func TestFatesOfObjectsWrittenAtOnce(t *testing.T) {
	const (
		roles   = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		secrets = "/api/v1/namespaces/a/secrets"
		options = `{"kind":"DeleteOptions"}`
	)
	role := func(meta string) string {
		return `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"p"` + meta +
			`},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`
	}
	listed := func(s *told, began, ended, resource, namespace, rv, object string) {
		if _, err := s.LoadSnapshot(observe.Snapshot{Began: clock(t, began), Ended: clock(t, ended), Kinds: []string{resource},
			Objects: []observe.Observation{{
				Resource: resource, Namespace: namespace, Name: "p", UID: "u1", ResourceVersion: rv, Object: []byte(object),
			}}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		resource, namespace string
		tell                func(s *told)
		want                map[string]state.Known
	}{
		"held back while its collection was being deleted": {kept.ClusterRoles, "", func(s *told) {
			s.event("12:00:00", "create", roles, 201, "", role(`,"uid":"u1","resourceVersion":"3"`))
			s.during("12:00:10.1", "12:00:10.2", "delete", roles+"/p", 200, `{"propagationPolicy":"Orphan"}`,
				role(`,"uid":"u1","resourceVersion":"4","deletionTimestamp":"2026-01-02T12:00:10Z","deletionGracePeriodSeconds":0,`+
					`"finalizers":["orphan"]`))
			s.during("12:00:10", "12:00:10.3", "deletecollection", roles, 200, options, `{"kind":"ClusterRoleList","items":[`+
				role(`,"uid":"u1","resourceVersion":"3"`)+`]}`)
		}, map[string]state.Known{"12:00:09": state.Present, "12:00:11": state.Unknown}},
		"deleted with its collection": {kept.ClusterRoles, "", func(s *told) {
			s.event("12:00:00", "create", roles, 201, "", role(`,"uid":"u1","resourceVersion":"3"`))
			s.during("12:00:10", "12:00:10.3", "deletecollection", roles, 200, options, `{"kind":"ClusterRoleList","items":[`+
				role(`,"uid":"u1","resourceVersion":"3"`)+`]}`)
		}, map[string]state.Known{"12:00:09": state.Present, "12:00:11": state.Absent}},
		"made again as a listing ended": {kept.Secrets, "a", func(s *told) {
			s.during("12:00:05.1", "12:00:05.1", "delete", secrets+"/p", 200, "", "")
			s.during("12:00:05.3", "12:00:05.3", "create", secrets, 201, "", "")
			listed(s, "12:00:03", "12:00:05.3", kept.Secrets, "a", "4",
				`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"p","namespace":"a",`+
					`"creationTimestamp":"2026-01-02T12:00:05Z"},"type":"Opaque"}`)
		}, map[string]state.Known{"12:00:04": state.Unknown, "12:00:06": state.Present}},
		"made twice while it was listed": {kept.ClusterRoles, "", func(s *told) {
			s.during("12:00:03", "12:00:03", "create", roles, 201, "", "")
			s.during("12:00:03.1", "12:00:03.1", "delete", roles+"/p", 200, "", "")
			s.during("12:00:03.2", "12:00:03.2", "create", roles, 201, "", "")
			listed(s, "12:00:02", "12:00:03.2", kept.ClusterRoles, "", "2", role(`,"creationTimestamp":"2026-01-02T12:00:03Z"`))
		}, map[string]state.Known{"12:00:04": state.Unknown}},
		"made again while the deletion of another was answered": {kept.ClusterRoles, "", func(s *told) {
			s.event("12:00:10.1", "create", roles, 201, "", role(`,"uid":"u2","resourceVersion":"5",`+
				`"creationTimestamp":"2026-01-02T12:00:10Z"`))
			s.during("12:00:10", "12:00:10.2", "delete", roles+"/p", 200, options,
				`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"p","uid":"u1"}}`)
		}, map[string]state.Known{"12:00:11": state.Present}},
		"looked for while it was being made, and others deleted": {kept.ClusterRoles, "", func(s *told) {
			s.during("12:00:02", "12:00:02.1", "deletecollection", roles, 200, options, "")
			s.during("12:00:02.2", "12:00:02.2", "patch", roles+"/p", 404, "{}", `clusterroles.rbac.authorization.k8s.io "p" not found`)
			s.during("12:00:02", "12:00:02.3", "create", roles, 201, role(""), "")
		}, map[string]state.Known{"12:00:03": state.Unknown}},
		"looked for while it was being made, as its answer tells, and others deleted": {kept.ClusterRoles, "", func(s *told) {
			s.during("12:00:03.1", "12:00:03.1", "deletecollection", roles, 200, options, "")
			s.during("12:00:03.4", "12:00:03.4", "delete", roles+"/p", 404, options, `clusterroles.rbac.authorization.k8s.io "p" not found`)
			s.during("12:00:03", "12:00:03.5", "patch", roles+"/p", 201, role(""),
				role(`,"uid":"u1","resourceVersion":"2","creationTimestamp":"2026-01-02T12:00:03Z"`))
		}, map[string]state.Known{"12:00:04": state.Unknown}},
		"changed between two listings of which the first ended late": {kept.ClusterRoles, "", func(s *told) {
			s.during("12:00:03", "12:00:03", "create", roles, 201, "", "")
			s.during("12:00:05", "12:00:05", "delete", roles+"/p", 200, "", "")
			s.during("12:00:06", "12:00:06", "patch", roles+"/p", 200, "", "")
			listed(s, "12:00:02", "12:00:06", kept.ClusterRoles, "", "2", role(`,"creationTimestamp":"2026-01-02T12:00:03Z"`))
			listed(s, "12:00:04", "12:00:07", kept.ClusterRoles, "", "3",
				role(`,"creationTimestamp":"2026-01-02T12:00:03Z","deletionTimestamp":"2026-01-02T12:00:05Z",`+
					`"finalizers":["foregroundDeletion"]`))
		}, map[string]state.Known{"12:00:08": state.Unknown}},
	} {
		s := tell(t, true)
		c.tell(s)
		for at, want := range c.want {
			if v, got := s.Version(c.resource, c.namespace, "p", clock(t, at)); got != want {
				t.Errorf("%s: at %s %s, want %s: %+v", name, at, got, want, v)
			}
		}
	}
}

// What holds a role back is taken away by a write whose answer was lost: it may have gone with it.
func TestFateOfARoleThatIsFreedPerhaps(t *testing.T) {
	const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	role := func(meta string) string {
		return `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"p","uid":"u1"` + meta +
			`},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`
	}
	s := tell(t, true)
	s.event("12:00:00", "create", roles, 201, "", role(`,"resourceVersion":"3"`))
	s.event("12:00:10", "delete", roles+"/p?propagationPolicy=Orphan", 200, "",
		role(`,"resourceVersion":"4","deletionTimestamp":"2026-01-02T12:00:10Z","deletionGracePeriodSeconds":0,"finalizers":["orphan"]`))
	s.during("12:00:20", "12:00:20", "update", roles+"/p", 504, role(`,"resourceVersion":"4","deletionTimestamp":"2026-01-02T12:00:10Z"`),
		"")
	v := s.RBAC(clock(t, "12:00:21"))
	if key := (rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "p"}); !v.IsUnknown(key) {
		t.Error("known")
	} else if obj, ok := v.RBAC.Get(key); ok {
		t.Errorf("grants %v for certain", obj)
	}
}

// The answer to the creation of a binding that the apiserver was to name is lost: it may give its role to
// its subjects, and nobody else is concerned. A listing settles it.
func TestFateOfABindingNamedByTheServer(t *testing.T) {
	const uri = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	s := tell(t, true)
	obs, err := observe.FromEvent(&event.Event{
		Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, Verb: "create", RequestURI: uri, AuditID: "x",
		ResponseStatus:           &event.Status{Code: 504},
		RequestReceivedTimestamp: clock(t, "12:00:10"), StageTimestamp: clock(t,
			"12:00:11"), ObjectRef: &event.ObjectRef{Resource: "clusterrolebindings"},
		RequestObject: []byte(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"generateName":"g-"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{` +
			`"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(obs...)
	v := s.RBAC(clock(t, "12:00:12"))
	if len(v.UnknownKinds) > 0 || len(v.Doubted) != 1 || !strings.HasPrefix(v.Doubted[0].Name, "g-/") {
		t.Fatalf("in doubt are %v, kinds %v, want one binding alone", v.Doubted, v.UnknownKinds)
	}
	for name, want := range map[string]state.Known{"g-x7k2p": state.Unknown, "g-x7k2": state.Absent, "h-x7k2p": state.Absent} {
		if _, got := s.Version(kept.ClusterRoleBindings, "", name, clock(t, "12:00:12")); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		if got := v.IsUnknown(rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name}); got != (want == state.Unknown) {
			t.Errorf("the view says of %s unknown: %v", name, got)
		}
	}
	if obj, ok := v.Most.Get(v.Doubted[0]); !ok || obj.(*rbacv1.ClusterRoleBinding).Subjects[0].Name != "mallory" {
		t.Errorf("at the most %v", obj)
	}
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: clock(t, "12:01:00"), Ended: clock(t, "12:01:01"),
		Kinds: []string{kept.ClusterRoleBindings}}); err != nil {
		t.Fatal(err)
	}
	if v := s.RBAC(clock(t, "12:01:02")); !v.Certain() {
		t.Errorf("in doubt after a listing: %v %v", v.Doubted, v.Unknown)
	}
}
