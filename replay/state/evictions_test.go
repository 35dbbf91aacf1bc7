package state_test

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// by tells of a write at level Metadata by somebody, as far as it is kept.
func (s *told) by(user, at, verb, uri string) {
	s.t.Helper()
	e := &event.Event{
		Level: event.LevelMetadata, Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, AuditID: "audit-" + at,
		User: event.User{Username: user}, ResponseStatus: &event.Status{Code: 200}, RequestReceivedTimestamp: clock(s.t,
			at), StageTimestamp: clock(s.t, at),
	}
	obs, err := observe.FromEvent(e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Apply(obs...)
}

// An eviction is answered without its pod. What became of it follows from its grace, and from whether
// finalizers can have held it back.
func TestEvictions(t *testing.T) {
	const (
		pod    = podsURI + "/p"
		onNode = `,"nodeName":"n1"`
		done   = `{"kind":"Status","status":"Success"}`
		atOnce = `{"kind":"Eviction","deleteOptions":{"gracePeriodSeconds":0}}`
		usual  = `{"kind":"Eviction"}`
		alive  = "present u1 sa n1"
		gone   = "absent - - -"
		open   = "unknown u1 sa n1"
	)
	evict := func(s *told, at, body string) { s.event(at, "create", pod+"/eviction", 201, body, done) }
	patched := func(s *told, at, meta string) {
		s.event(at, "patch", pod, 200, `{"metadata":{"finalizers":[]}}`, podJSON("p", "u1", meta, onNode))
	}
	for name, c := range map[string]struct {
		meta string // of the pod when it was made
		spec string
		tell func(s *told)
		want []string
	}{
		"without a grace": {tell: func(s *told) {
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", gone}},
		"of a pod that has none": {spec: `,"terminationGracePeriodSeconds":0`, tell: func(s *told) {
			evict(s, "12:00:20", usual)
		}, want: []string{"12:00:19", alive, "12:00:21", gone}},
		"with a grace below zero, of a pod that has none": {spec: `,"terminationGracePeriodSeconds":0`, tell: func(s *told) {
			evict(s, "12:00:20", `{"kind":"Eviction","deleteOptions":{"gracePeriodSeconds":-1}}`)
		}, want: []string{"12:00:21", open + " deletion=12:00:21"}},
		"held by a finalizer": {meta: `,"finalizers":["x"]`, tell: func(s *told) {
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", open}},
		"after its finalizer went": {meta: `,"finalizers":["x"]`, tell: func(s *told) {
			patched(s, "12:00:10", "")
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", gone}},
		"after a finalizer came": {tell: func(s *told) {
			patched(s, "12:00:10", `,"finalizers":["x"]`)
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", open}},
		"with dependents first": {tell: func(s *told) {
			evict(s, "12:00:20", `{"kind":"Eviction","deleteOptions":{"gracePeriodSeconds":0,"propagationPolicy":"Foreground"}}`)
		}, want: []string{"12:00:21", open}},
		"after one with dependents first": {tell: func(s *told) {
			evict(s, "12:00:10", `{"kind":"Eviction","deleteOptions":{"propagationPolicy":"Foreground"}}`)
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive + " deletion=12:00:40", "12:00:21", open + " deletion=12:00:40"}},
		"with options nobody recorded": {tell: func(s *told) {
			evict(s, "12:00:20", "")
		}, want: []string{"12:00:21", open + " deletion=12:00:50"}},
		"of another pod of the name": {tell: func(s *told) {
			evict(s, "12:00:20", strings.Replace(atOnce, `"gracePeriodSeconds"`, `"preconditions":{"uid":"u0"},"gracePeriodSeconds"`, 1))
		}, want: []string{"12:00:21", alive}},
		"after a stranger wrote its status": {tell: func(s *told) {
			s.by("jane", "12:00:10", "patch", pod+"/status")
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", open}},
		"after a stranger wrote its status, and it was seen again": {tell: func(s *told) {
			s.by("jane", "12:00:10", "patch", pod+"/status")
			patched(s, "12:00:15", "")
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", gone}},
		"after its node wrote its status": {tell: func(s *told) {
			s.by("system:node:n1", "12:00:10", "patch", pod+"/status")
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", gone}},
		"after it was patched, which was not recorded": {tell: func(s *told) {
			s.by("system:node:n1", "12:00:10", "patch", pod)
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", open}},
		"after many patches that were not recorded": {tell: func(s *told) { // not all are remembered
			for i := range 60 {
				s.by("jane", "11:59:"+string([]byte{byte('0' + i/10), byte('0' + i%10)}), "patch", pod)
				s.by("jane", "12:01:"+string([]byte{byte('0' + i/10), byte('0' + i%10)}), "patch", pod)
			}
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive, "12:00:21", open}},
		"after a collection was deleted with dependents first": {tell: func(s *told) {
			s.event("12:00:10", "deletecollection", podsURI, 200, `{"propagationPolicy":"Foreground"}`, `{"kind":"PodList","items":[`+
				podJSON("p", "u1", "", onNode)+`]}`)
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:19", alive + " deletion=12:00:40", "12:00:21", open + " deletion=12:00:40"}},
		"twice, so that it was there the second time": {tell: func(s *told) {
			evict(s, "12:00:10", usual)
			evict(s, "12:00:20", atOnce)
		}, want: []string{"12:00:15", alive + " deletion=12:00:40", "12:00:21", gone}},
		"twice without a grace, at once": {tell: func(s *told) {
			s.during("12:00:10", "12:00:14", "create", pod+"/eviction", 201, atOnce, done)
			s.during("12:00:12", "12:00:16", "create", pod+"/eviction", 201, atOnce, done)
		}, want: []string{"12:00:11", alive, "12:00:14", gone}},
		"in no time": {tell: func(s *told) {
			s.during("12:00:20", "12:00:20", "create", pod+"/eviction", 201, atOnce, done)
		}, want: []string{"12:00:19", alive, "12:00:20", gone}},
		"and seen afterwards": {tell: func(s *told) {
			evict(s, "12:00:20", atOnce)
			patched(s, "12:00:30", "")
		}, want: []string{"12:00:31", alive}},
		"and its kubelet finds it gone when it writes its status": {tell: func(s *told) {
			evict(s, "12:00:20", usual)
			s.missing("12:00:30", "patch", pod+"/status", `pods "p" not found`)
		}, want: []string{"12:00:21", open + " deletion=12:00:50", "12:00:31", gone}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			c.tell(s) // in any order
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", c.meta, onNode+c.spec))
			s.expectPod("p", c.want...)
		})
	}
}

// A collection is answered as it was read. A finalizer that went before a pod's turn came does not
// hold the pod back.
func TestCollectionsOfFinishedPods(t *testing.T) {
	const (
		pod    = podsURI + "/p"
		onNode = `,"nodeName":"n1"`
		job    = `,"finalizers":["batch.kubernetes.io/job-tracking"]`
		frees  = `{"metadata":{"$deleteFromPrimitiveList/finalizers":["batch.kubernetes.io/job-tracking"]}}`
		gone   = "absent - - -"
		open   = "unknown u1 sa n1 deletion=12:00:14"
	)
	at := func(rv, pod string) string {
		return strings.Replace(pod, `"resourceVersion":"10"`, `"resourceVersion":"`+rv+`"`, 1)
	}
	finished := func(rv, meta string) string { return at(rv, ended(podJSON("p", "u1", meta, onNode))) }
	deleted := func(s *told, options, item string) {
		s.during("12:00:10", "12:00:14", "deletecollection", podsURI, 200, options, `{"kind":"PodList","items":[`+item+`]}`)
	}
	for name, c := range map[string]struct {
		tell func(s *told)
		want string // afterwards
	}{
		"its finalizer stays": {func(s *told) {
			deleted(s, "{}", finished("11", job))
		}, open},
		"its finalizer goes before its turn": {func(s *told) {
			deleted(s, "{}", finished("11", job))
			s.during("12:00:11", "12:00:12", "patch", pod, 200, frees, finished("12", ""))
		}, gone},
		"its finalizer goes before its turn, another comes": {func(s *told) {
			deleted(s, "{}", finished("11", job))
			s.during("12:00:11", "12:00:12", "patch", pod, 200, frees, finished("12", ""))
			s.during("12:00:12", "12:00:13", "patch", pod, 200, `{"metadata":{"finalizers":["x"]}}`, finished("13", `,"finalizers":["x"]`))
		}, open},
		"its finalizer goes before its turn, another may come": {func(s *told) {
			deleted(s, "{}", finished("11", job))
			s.during("12:00:11", "12:00:12", "patch", pod, 200, frees, finished("12", ""))
			s.by("jane", "12:00:13", "patch", pod)
		}, open},
		"its finalizer goes before its turn, dependents go first": {func(s *told) {
			deleted(s, `{"propagationPolicy":"Foreground"}`, finished("11", job))
			s.during("12:00:11", "12:00:12", "patch", pod, 200, frees, finished("12", ""))
		}, open},
		"its finalizer had gone before it was read with it": {func(s *told) {
			deleted(s, "{}", finished("13", job))
			s.during("12:00:08", "12:00:09", "patch", pod, 200, frees, finished("12", ""))
		}, open},
		"its finalizer goes after its turn": {func(s *told) {
			deleted(s, "{}", finished("11", job))
			s.during("12:00:12", "12:00:13", "patch", pod, 200, frees,
				finished("12", `,"deletionTimestamp":"2026-01-02T12:00:12Z","deletionGracePeriodSeconds":0`))
		}, gone},
		"and seen afterwards": {func(s *told) {
			deleted(s, "{}", finished("11", job))
			s.during("12:00:15", "12:00:16", "patch", pod, 200, frees, finished("12", ""))
		}, "present u1 sa n1 deletion=12:00:14"},
		"it runs, and its finalizer goes": {func(s *told) { // it may come to its end before its turn
			deleted(s, "{}", at("11", podJSON("p", "u1", job, onNode)))
			s.during("12:00:11", "12:00:12", "patch", pod, 200, frees, at("12", podJSON("p", "u1", "", onNode)))
		}, "unknown u1 sa n1 deletion=12:00:44"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			c.tell(s) // in any order
			s.event("12:00:00", "create", podsURI, 201, "", podJSON("p", "u1", job, onNode))
			s.expectPod("p", "12:00:09", "present u1 sa n1", "12:00:16", c.want)
		})
	}
}
