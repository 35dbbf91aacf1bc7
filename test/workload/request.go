package workload

import (
	"fmt"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// call is one request: what it asks and what comes of it.
type call struct {
	verb                     string
	group, version, resource string // no resource: path is asked
	sub, namespace, name     string
	created                  string // name in the body of a create
	query, path              string
	uid                      string // of the object that is updated
	level                    event.Level
	body, answer             []byte
	code                     int32
	refused                  bool
	reason                   string // instead of the actor's
	median                   time.Duration
	long                     time.Duration // of a watch or a stream, which has two stages
}

// Answers that are not refusals, as the apiserver writes them.
var plainStatus = map[int32][]byte{ //nolint:gochecknoglobals // constant table
	200: []byte(`{"metadata":{},"code":200}`),
	201: []byte(`{"metadata":{},"code":201}`),
	101: []byte(`{"metadata":{},"code":101}`),
}

// do makes the events of a request of an actor.
func (g *Generator) do(a *actor, c *call) {
	g.fresh(a)
	if c.refused && g.rng.IntN(100) == 0 { // let through by what is in no policy
		c.refused, c.reason = false, grantReason("ClusterRoleBinding", "temporary", "ClusterRole", "cluster-admin", "Group",
			"system:authenticated")
	}
	e := &event.Event{
		Level: event.LevelMetadata, AuditID: g.uuid(), Stage: event.StageResponseComplete, Verb: c.verb, User: a.user,
		SourceIPs: a.ips, UserAgent: a.agent, RequestReceivedTimestamp: g.now,
	}
	if c.level != "" {
		e.Level = c.level
	}
	e.RequestURI = c.uri()
	if c.resource != "" {
		e.ObjectRef = &event.ObjectRef{Resource: c.resource, Namespace: c.namespace, Name: c.name, APIGroup: c.group, APIVersion: c.version,
			Subresource: c.sub, UID: c.uid}
		if c.created != "" && !c.refused {
			e.ObjectRef.Name = c.created
		}
		if c.uid != "" {
			e.ObjectRef.ResourceVersion = g.write()
		}
	}
	e.Annotations = event.Pairs{{Key: event.AnnotationDecision, Value: "allow"}, {Key: event.AnnotationReason, Value: a.reason}}
	if c.reason != "" {
		e.Annotations[1].Value = c.reason
	}
	switch {
	case c.refused:
		c.code = 403
		e.Annotations[0].Value, e.Annotations[1].Value = "forbid", ""
		e.ResponseStatus = c.failure(c.forbidden(a.user.Username), "Forbidden")
	case c.code == 404:
		e.ResponseStatus = c.failure(fmt.Sprintf("%s %q not found", c.groupResource(), c.name), "NotFound")
	case c.code == 409:
		e.ResponseStatus = c.failure(fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; please apply "+
			"your changes to the latest version and try again", c.groupResource(), c.name), "Conflict")
	default:
		if c.code == 0 {
			c.code = 200
		}
		e.ResponseStatus = &event.Status{Code: c.code, Raw: plainStatus[c.code]}
	}
	if !c.refused {
		e.RequestObject, e.ResponseObject = c.body, c.answer
	}
	if c.median == 0 {
		c.median = 2 * time.Millisecond
	}
	e.StageTimestamp = g.now.Add(g.takes(c.median))
	if c.long > 0 && !c.refused {
		first := *e
		first.Stage = event.StageResponseStarted
		g.push(&first)
		e.StageTimestamp = e.StageTimestamp.Add(c.long)
	}
	g.push(e)
}

// write returns the resourceVersion of the next write.
func (g *Generator) write() string {
	g.revision += 1 + uint64(g.rng.IntN(8))
	return strconv.FormatUint(g.revision, 10)
}

func (c *call) uri() string {
	if c.resource == "" {
		return c.path
	}
	b := make([]byte, 0, 160)
	if c.group == "" {
		b = append(b, "/api/"...)
	} else {
		b = append(append(append(b, "/apis/"...), c.group...), '/')
	}
	b = append(b, c.version...)
	if c.namespace != "" && c.resource != "namespaces" {
		b = append(append(b, "/namespaces/"...), c.namespace...)
	}
	b = append(append(b, '/'), c.resource...)
	if c.name != "" && c.verb != "watch" { // the name of a watch is in its field selector
		b = append(append(b, '/'), c.name...)
	}
	if c.sub != "" {
		b = append(append(b, '/'), c.sub...)
	}
	if c.query != "" {
		b = append(append(b, '?'), c.query...)
	}
	return string(b)
}

func (c *call) groupResource() string {
	if c.group == "" {
		return c.resource
	}
	return c.resource + "." + c.group
}

// failure returns a status as the apiserver writes it.
func (c *call) failure(message, reason string) *event.Status {
	s := &event.Status{Status: "Failure", Message: message, Reason: reason, Code: c.code}
	raw := append([]byte(`{"metadata":{},"status":"Failure","message":`), strconv.Quote(message)...)
	raw = append(raw, `,"reason":"`+reason+`","details":{`...)
	if c.name != "" {
		raw = append(raw, `"name":"`+c.name+`",`...)
	}
	if c.group != "" {
		raw = append(raw, `"group":"`+c.group+`",`...)
	}
	if c.resource != "" {
		raw = append(raw, `"kind":"`+c.resource+`"`...)
	}
	raw = append(raw, `},"code":`...)
	s.Raw = append(strconv.AppendInt(raw, int64(c.code), 10), '}')
	return s
}

// forbidden returns the apiserver's text.
func (c *call) forbidden(user string) string {
	if c.resource == "" {
		return fmt.Sprintf("forbidden: User %q cannot %s path %q", user, c.verb, c.path)
	}
	resource, place := c.resource, " at the cluster scope"
	if c.sub != "" {
		resource += "/" + c.sub
	}
	if c.namespace != "" {
		place = fmt.Sprintf(" in the namespace %q", c.namespace)
	}
	what := c.groupResource()
	if c.name != "" {
		what += fmt.Sprintf(" %q", c.name)
	}
	return fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q%s", what, user, c.verb, resource, c.group, place)
}
