package workload

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// The smallest cluster, for tests that decide themselves what happens and when: users user0,
// user1, … get pods in namespaces ns0, ns1, …, which roles bound in ns1 or everywhere let them.

// Stages returns the stages of a request: 0 and 1 have one before the answer, others none.
func Stages(kind int) []event.Stage {
	switch kind {
	case 0:
		return []event.Stage{event.StageRequestReceived, event.StageResponseComplete}
	case 1:
		return []event.Stage{event.StageResponseStarted, event.StageResponseComplete}
	default:
		return []event.Stage{event.StageResponseComplete}
	}
}

// GetPod returns a stage of a user's request for a pod.
func GetPod(id, pod string, user, ns int, stage event.Stage, at time.Time, took time.Duration, allow bool) *event.Event {
	e := &event.Event{
		Level: event.LevelRequest, AuditID: id, Stage: stage, Verb: "get",
		RequestURI:               fmt.Sprintf("/api/v1/namespaces/ns%d/pods/%s", ns, pod),
		User:                     event.User{Username: fmt.Sprintf("user%d", user), Groups: []string{"system:authenticated"}},
		RequestObject:            fmt.Appendf(nil, `{"padding":"%s"}`, bytes.Repeat([]byte("x"), 40)),
		RequestReceivedTimestamp: at.Truncate(time.Microsecond), StageTimestamp: at.Truncate(time.Microsecond).Add(took),
	}
	switch {
	case stage == event.StageRequestReceived:
	case allow:
		answer(e, "allow", 200)
	default:
		answer(e, "forbid", 403)
	}
	return e
}

func answer(e *event.Event, decision string, code int32) {
	e.ResponseStatus = &event.Status{Code: code, Raw: fmt.Appendf(nil, `{"metadata":{},"code":%d}`, code)}
	e.Annotations = e.Annotations.Set(event.AnnotationDecision, decision).Set(event.AnnotationReason, "")
}

// BindRole returns the creation of a user's binding to ClusterRole role0, role1, …, or its
// deletion. The resourceVersion says where it binds: a multiple of three everywhere, others
// in ns1.
func BindRole(name string, rv, role, user int, at time.Time, gone bool) *event.Event {
	uid := fmt.Sprintf("uid-%s-%d", name, rv)
	scope, resource, kind, namespace := "/apis/rbac.authorization.k8s.io/v1/namespaces/ns1", "rolebindings", "RoleBinding",
		`"namespace":"ns1",`
	if rv%3 == 0 {
		scope, resource, kind, namespace = "/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", ""
	}
	e := &event.Event{
		Level: event.LevelRequestResponse, AuditID: fmt.Sprint("write-", uid, gone), Stage: event.StageResponseComplete,
		User:                     event.User{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}},
		RequestReceivedTimestamp: at.Truncate(time.Microsecond), StageTimestamp: at.Truncate(time.Microsecond).Add(2 * time.Millisecond),
	}
	if gone {
		e.Verb, e.RequestURI = "delete", scope+"/"+resource+"/"+name
		e.ResponseObject = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":%q,`+
			`"group":%q,"kind":%q,"uid":%q}}`, name, rbacGroup, resource, uid)
		answer(e, "allow", 200)
		return e
	}
	e.Verb, e.RequestURI = "create", scope+"/"+resource
	e.ResponseObject = fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q,%s"uid":%q,`+
		`"resourceVersion":"%d","creationTimestamp":%q},"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":"role%d"},`+
		`"subjects":[{"apiGroup":%q,"kind":"User","name":"user%d"}]}`,
		kind, name, namespace, uid, rv, at.Format(time.RFC3339), rbacGroup, role, rbacGroup, user)
	answer(e, "allow", 201)
	return e
}

// PodRole returns a listed ClusterRole that lets get pods, all or those named.
func PodRole(name string, rv int, pods ...string) observe.Observation {
	names := ""
	for i, pod := range pods {
		names += []string{`,"resourceNames":[`, ","}[min(i, 1)] + strconv.Quote(pod)
	}
	if names != "" {
		names += "]"
	}
	object := fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q,"uid":"uid-%d",`+
		`"resourceVersion":"%d","creationTimestamp":"2026-02-01T00:00:00Z"},"rules":[{"apiGroups":[""],"resources":["pods"],`+
		`"verbs":["get"]%s}]}`, name, rv, rv, names)
	return observe.Observation{Source: observe.SourceSnapshot, Resource: kept.ClusterRoles, Name: name, UID: fmt.Sprintf("uid-%d", rv),
		ResourceVersion: strconv.Itoa(rv), Object: object}
}
