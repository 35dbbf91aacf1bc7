package detect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/internal/kubenames"
	apirequest "github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// Variable is a name expressions may use.
type Variable struct {
	Name string
	Type *cel.Type
	Doc  string
}

// Variables returns every variable of the rule language, in the order in which they are documented.
// Strings, numbers and lists that an event does not have are empty.
func Variables() []Variable {
	str, boolean, strs := cel.StringType, cel.BoolType, cel.ListType(cel.StringType)
	pairs, object := cel.MapType(cel.StringType, cel.StringType), cel.MapType(cel.StringType, cel.DynType)
	return []Variable{
		{"cluster", str, "name of the cluster"},
		{"verb", str, "verb as recorded"},
		{"user", str, "authenticated user"},
		{"uid", str, "UID of the authenticated user; a service account's, when it is one"},
		{"groups", strs, "groups of the authenticated user"},
		{"boundPod", str, "uid of the pod the authenticated user's token is bound to, empty for none"},
		{"impersonatedUser", str, "user the request was made as, when impersonating"},
		{"impersonatedGroups", strs, "groups of that user"},
		{"subject", str, "user the request was authorized as: the impersonated one if there is one"},
		{"subjectGroups", strs, "groups of the subject"},
		{"component", boolean, "the subject is a component of the control plane, see below"},
		{"path", str, "request path without its query"},
		{"query", str, "query of the request, raw"},
		{"isResource", boolean, "the request is for a resource, not for a URL"},
		{"apiGroup", str, "API group; from path and verb, not from objectRef, like the next four"},
		{"resource", str, "resource"},
		{"subresource", str, "subresource"},
		{"ns", str, "namespace, empty for cluster scope (namespace is a reserved word of CEL)"},
		{"name", str, "object name in the path, empty on create"},
		{"dryRun", boolean, "a write that asked for a dry run"},
		{"answerLost", boolean, "a write that was let through, and may have been done: it timed out, or the apiserver failed on it, so " +
			"its outcome is not recorded"},
		{"code", cel.IntType, "HTTP status code, 0 when none is recorded"},
		{"message", str, "message of the response status"},
		{"stage", str, "stage the request was judged at"},
		{"level", str, "audit level"},
		{"auditID", str, "audit ID: chosen by the client"},
		{"requestKey", str, "identity of the request: audit ID, user, verb, URI and time"},
		{"sourceIP", str, "last source address, the only one that the apiserver itself saw"},
		{"sourceIPs", strs, "all source addresses; the client controls all but the last"},
		{"userAgent", str, "user agent: chosen by the client"},
		{"annotations", pairs, "audit annotations"},
		{"time", cel.TimestampType, "when the request was received"},
		{"requestObject", object, "request body when it is an object, else empty"},
		{"written", object, "the same without members that are null"},
		{"requestPatch", cel.ListType(cel.DynType), "request body when it is a list (a JSON patch), else empty"},
		{"responseObject", object, "response body when it is an object, else empty"},
		{"object", object, "the object as it was written: the response unless it is a Status, else the request; without members that are " +
			"null. Of a JSON patch it has what the patch sets, in its place"},
		{"verdict.outcome", str, "match, drift, ambiguous, indeterminate, not_judged"},
		{"verdict.class", str, "class of the outcome"},
		{"verdict.recorded", str, "recorded decision: allow, forbid, none"},
		{"verdict.replayed", str, "replayed decision"},
		{"verdict.reason", str, "recorded reason"},
		{"verdict.authorizer", str, "authorizer that decided in the replica: masters, node, rbac"},
		{"verdict.grants", cel.ListType(pairs), "every granting path: binding, bindingKind, bindingNamespace, role, roleKind, " +
			"subject, subjectKind"},
		{"verdict.identity", strs, "contradictions in the recorded identity"},
		{"verdict.credential", str, "what the user authenticated with: JTI=…, X509SHA256=…, Secret=…; empty if the event does not show it"},
		{"verdict.missing", strs, "what an indeterminate verdict would need"},
		{"verdict.binds", strs, "of a write of a binding: the roles that it gives, or may give, as the replica knows it " +
			"(ClusterRole/name, Role/namespace/name), \"?\" for any"},
		{"verdict.admission", str, "not-run, admitted, rejected"},
		{"verdict.admissionPlugin", str, "admission plugin that refused the request; empty if none did"},
	}
}

// input is one request as expressions see it. Bodies are decoded once, when an expression first
// reads them.
type input struct {
	cluster string
	event   *event.Event
	verdict *verdict.Verdict
	attrs   *verdict.Attributes

	key       string
	req, resp *body
	part      int8 // component: 0 not known yet, 1 true, -1 false
	unchecked bool // it was too large for the rule at hand
}

// body is a decoded body: an object or a list, the other one empty.
type body struct {
	object map[string]any
	list   []any
	clean  map[string]any // see whole

	patched map[string]any // of a list: see patchedObject
}

// whole returns the object without members that are null: to Kubernetes they are absent, to an
// expression they would be values of the wrong type.
func (b *body) whole() map[string]any {
	if b.clean == nil {
		b.clean, _ = withoutNulls(b.object).(map[string]any)
	}
	return b.clean
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			if x != nil {
				m[k] = withoutNulls(x)
			}
		}
		return m
	case []any:
		l := make([]any, 0, len(v))
		for _, x := range v {
			if x != nil {
				l = append(l, withoutNulls(x))
			}
		}
		return l
	}
	return v
}

// reset points the input at another request. Without a verdict, attributes are taken from
// the event, and everything of the verdict is empty.
func (in *input) reset(cluster string, e *event.Event, v *verdict.Verdict) {
	*in = input{cluster: cluster, event: e, verdict: v}
	if v == nil {
		in.verdict = &verdict.Verdict{}
		// Without attributes a request is for no resource, like one with an unparsable URI.
		in.verdict.Attributes, _ = apirequest.Of(e.Verb, e.RequestURI)
	}
	in.attrs = &in.verdict.Attributes
}

// Parent implements interpreter.Activation.
func (in *input) Parent() cel.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (in *input) ResolveName(name string) (any, bool) {
	if text := textOf(name); text != nil {
		return types.String(text(in)), true
	}
	if flag := flagOf(name); flag != nil {
		return types.Bool(flag(in)), true
	}
	e, v := in.event, in.verdict
	switch name {
	case "groups":
		return list(e.User.Groups), true
	case "impersonatedGroups":
		if e.ImpersonatedUser == nil {
			return list(nil), true
		}
		return list(e.ImpersonatedUser.Groups), true
	case "subjectGroups":
		return list(e.EffectiveUser().Groups), true
	case "code":
		return types.Int(e.Code()), true
	case "sourceIPs":
		return list(e.SourceIPs), true
	case "annotations":
		m := make(map[string]string, len(e.Annotations))
		for _, p := range e.Annotations {
			m[p.Key] = p.Value
		}
		return native(m), true
	case "time":
		return types.Timestamp{Time: e.RequestReceivedTimestamp}, true
	case "requestObject":
		return native(in.request().object), true
	case "written":
		return native(in.request().whole()), true
	case "requestPatch":
		return native(in.request().list), true
	case "responseObject":
		return native(in.response().object), true
	case "object":
		return native(in.object()), true
	case "verdict.grants":
		grants := make([]map[string]string, len(v.Grants))
		for i, g := range v.Grants {
			grants[i] = map[string]string{
				"binding": g.Binding, "bindingKind": g.BindingKind, "bindingNamespace": g.BindingNamespace,
				"role": g.Role, "roleKind": g.RoleKind, "subject": g.Subject, "subjectKind": g.SubjectKind,
			}
		}
		return native(grants), true
	case "verdict.identity":
		return list(v.Identity), true
	case "verdict.binds":
		return list(v.Binds), true
	case "verdict.missing":
		return list(v.Missing), true
	}
	return nil, false
}

// object returns the object as it was written.
func (in *input) object() map[string]any {
	if o := in.response().whole(); o["kind"] != "Status" && len(o) > 0 {
		return o
	}
	req := in.request()
	if len(req.list) == 0 {
		return req.whole()
	}
	if req.patched == nil {
		req.patched = patchedObject(in.event.RequestObject)
	}
	return req.patched
}

// cut reports whether a receiver kept a part of a role or binding; see event.KeepBodies.
func (in *input) cut() bool { return event.Stripped(in.event) && in.object()["cut"] == true }

func list(s []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, s) }

func native(v any) ref.Val { return types.DefaultTypeAdapter.NativeToValue(v) }

func (in *input) requestKey() string {
	if in.key == "" {
		in.key = event.RequestKey(in.cluster, in.event).String()
	}
	return in.key
}

func (in *input) request() *body {
	if in.req == nil {
		in.req = decode(in.event.RequestObject)
	}
	return in.req
}

func (in *input) response() *body {
	if in.resp == nil {
		in.resp = decode(in.event.ResponseObject)
	}
	return in.resp
}

// decode decodes a body. One that is neither object nor list leaves both empty; the decoder of
// events has checked that it is JSON.
func decode(raw []byte) *body {
	b := &body{object: map[string]any{}, list: []any{}}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return b
	}
	if raw[0] != '{' && raw[0] != '[' {
		return b
	}
	v, ok := jsontext.Value(raw)
	if !ok { // unusual
		_ = json.Unmarshal(raw, &v)
	}
	switch v := v.(type) {
	case map[string]any:
		b.object = v
	case []any:
		b.list = v
	}
	return b
}

func (in *input) annotated(prefixes []string) bool {
	for _, a := range in.event.Annotations {
		for _, p := range prefixes {
			if strings.HasPrefix(a.Key, p) {
				return true
			}
		}
	}
	return false
}

func (in *input) inGroup(any []string) bool {
	for _, u := range []*event.User{&in.event.User, in.event.ImpersonatedUser} {
		if u == nil {
			continue
		}
		for _, g := range u.Groups {
			if slices.Contains(any, g) {
				return true
			}
		}
	}
	return false
}

// isComponent caches component, which rule after rule reads.
func (in *input) isComponent() bool {
	if in.part == 0 {
		in.part = -1
		if in.component() {
			in.part = 1
		}
	}
	return in.part > 0
}

// component reports whether a part of the control plane made this request by the right that the
// component has by default: the apiserver's loopback client, a node within the node authorizer, a
// controller's service account through its own system:controller role, another component through
// the cluster role of its own name. The name alone never suffices, except for the loopback client,
// which nobody can authenticate as from outside.
func (in *input) component() bool {
	if in.event.ImpersonatedUser != nil {
		return false
	}
	user := in.event.User.Username
	switch {
	case user == kubenames.APIServer:
		return slices.Contains(in.event.User.Groups, kubenames.Masters)
	case strings.HasPrefix(user, kubenames.NodePrefix):
		// The log alone does not always show a node's right to one object, nor where its pods were
		// being bound at that moment.
		return in.verdict.Authorizer == verdict.AuthorizerNode ||
			in.verdict.Recorded == verdict.DecisionAllow && (in.verdict.Class == verdict.ClassNodeGraph ||
				in.verdict.Class == verdict.ClassRaced)
	case strings.HasPrefix(user, kubenames.ServiceAccountPrefix):
		name, ok := strings.CutPrefix(user, kubenames.ServiceAccountPrefix+"kube-system:")
		return ok && in.granted("system:controller:"+name)
	}
	return strings.HasPrefix(user, kubenames.SystemPrefix) && in.granted(user)
}

// granted reports whether a cluster role of that name allowed the request, bound cluster-wide
// by a binding of the same name.
func (in *input) granted(role string) bool {
	return slices.ContainsFunc(in.verdict.Grants, func(g verdict.Grant) bool {
		return g.Role == role && g.RoleKind == "ClusterRole" && g.Binding == role && g.BindingKind == "ClusterRoleBinding" &&
			g.SubjectKind != "Group"
	})
}

// textOf returns how a string variable is read, nil for variables of other types. Every rule reads
// every request: what all of them read must not go through the interpreter.
func textOf(name string) func(*input) string {
	switch name {
	case "cluster":
		return func(in *input) string { return in.cluster }
	case "verb":
		return func(in *input) string { return in.event.Verb }
	case "user":
		return func(in *input) string { return in.event.User.Username }
	case "uid":
		return func(in *input) string { return in.event.User.UID }
	case "boundPod":
		return func(in *input) string {
			if uid := in.event.User.Extra.Get(event.ExtraPodUID); len(uid) == 1 {
				return uid[0]
			}
			return ""
		}
	case "impersonatedUser":
		return func(in *input) string {
			if in.event.ImpersonatedUser == nil {
				return ""
			}
			return in.event.ImpersonatedUser.Username
		}
	case "subject":
		return func(in *input) string { return in.event.EffectiveUser().Username }
	case "path":
		return func(in *input) string { p, _, _ := strings.Cut(in.event.RequestURI, "?"); return p }
	case "query":
		return func(in *input) string { _, q, _ := strings.Cut(in.event.RequestURI, "?"); return q }
	case "apiGroup":
		return func(in *input) string { return in.attrs.APIGroup }
	case "resource":
		return func(in *input) string { return in.attrs.Resource }
	case "subresource":
		return func(in *input) string { return in.attrs.Subresource }
	case "ns":
		return func(in *input) string { return in.attrs.Namespace }
	case "name":
		return func(in *input) string { return in.attrs.Name }
	case "message":
		return func(in *input) string {
			if in.event.ResponseStatus == nil {
				return ""
			}
			return in.event.ResponseStatus.Message
		}
	case "stage":
		return func(in *input) string { return string(in.event.Stage) }
	case "level":
		return func(in *input) string { return string(in.event.Level) }
	case "auditID":
		return func(in *input) string { return in.event.AuditID }
	case "requestKey":
		return (*input).requestKey
	case "sourceIP":
		return func(in *input) string {
			if n := len(in.event.SourceIPs); n > 0 {
				return in.event.SourceIPs[n-1]
			}
			return ""
		}
	case "userAgent":
		return func(in *input) string { return in.event.UserAgent }
	}
	return verdictTextOf(name)
}

func verdictTextOf(name string) func(*input) string {
	switch name {
	case "verdict.outcome":
		return func(in *input) string { return in.verdict.Outcome.String() }
	case "verdict.class":
		return func(in *input) string { return in.verdict.Class }
	case "verdict.recorded":
		return func(in *input) string { return in.verdict.Recorded.String() }
	case "verdict.replayed":
		return func(in *input) string { return in.verdict.Replayed.String() }
	case "verdict.reason":
		return func(in *input) string { return in.verdict.RecordedReason }
	case "verdict.authorizer":
		return func(in *input) string { return in.verdict.Authorizer }
	case "verdict.credential":
		return func(in *input) string { return in.verdict.Credential }
	case "verdict.admission":
		return func(in *input) string { return in.verdict.Admission.Recorded }
	case "verdict.admissionPlugin":
		return func(in *input) string { return in.verdict.Admission.Plugin() }
	}
	return nil
}

// flagOf returns how a bool variable is read, nil for variables of other types.
func flagOf(name string) func(*input) bool {
	switch name {
	case "component":
		return (*input).isComponent
	case "isResource":
		return func(in *input) bool { return in.attrs.ResourceRequest }
	case "dryRun":
		return func(in *input) bool { return event.DryRunOf(in.event) == event.DryRun }
	case "answerLost":
		return (*input).answerLost
	}
	return nil
}

// answerLost reports whether the request is a write that was allowed and whose outcome nobody was
// told.
func (in *input) answerLost() bool {
	switch in.event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return event.Ends(in.event) && in.verdict.Recorded == verdict.DecisionAllow && event.OutcomeOf(in.event) == event.PerhapsDone
	}
	return false
}
