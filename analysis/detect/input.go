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
	if text := texts[name]; text != nil {
		return types.String(text(in)), true
	}
	if flag := flags[name]; flag != nil {
		return types.Bool(flag(in)), true
	}
	if value := values[name]; value != nil {
		return value(in), true
	}
	return nil, false
}

// values are how all other variables are read.
var values = map[string]func(*input) ref.Val{ //nolint:gochecknoglobals // constant table
	"groups": func(in *input) ref.Val { return list(in.event.User.Groups) },
	"impersonatedGroups": func(in *input) ref.Val {
		if in.event.ImpersonatedUser == nil {
			return list(nil)
		}
		return list(in.event.ImpersonatedUser.Groups)
	},
	"subjectGroups": func(in *input) ref.Val { return list(in.event.EffectiveUser().Groups) },
	"code":          func(in *input) ref.Val { return types.Int(in.event.Code()) },
	"sourceIPs":     func(in *input) ref.Val { return list(in.event.SourceIPs) },
	"annotations": func(in *input) ref.Val {
		m := make(map[string]string, len(in.event.Annotations))
		for _, p := range in.event.Annotations {
			m[p.Key] = p.Value
		}
		return native(m)
	},
	"time":           func(in *input) ref.Val { return types.Timestamp{Time: in.event.RequestReceivedTimestamp} },
	"requestObject":  func(in *input) ref.Val { return native(in.request().object) },
	"written":        func(in *input) ref.Val { return native(in.request().whole()) },
	"requestPatch":   func(in *input) ref.Val { return native(in.request().list) },
	"responseObject": func(in *input) ref.Val { return native(in.response().object) },
	"object":         func(in *input) ref.Val { return native(in.object()) },
	"verdict.grants": func(in *input) ref.Val {
		grants := make([]map[string]string, len(in.verdict.Grants))
		for i, g := range in.verdict.Grants {
			grants[i] = map[string]string{
				"binding": g.Binding, "bindingKind": g.BindingKind, "bindingNamespace": g.BindingNamespace,
				"role": g.Role, "roleKind": g.RoleKind, "subject": g.Subject, "subjectKind": g.SubjectKind,
			}
		}
		return native(grants)
	},
	"verdict.identity": func(in *input) ref.Val { return list(in.verdict.Identity) },
	"verdict.binds":    func(in *input) ref.Val { return list(in.verdict.Binds) },
	"verdict.missing":  func(in *input) ref.Val { return list(in.verdict.Missing) },
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
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
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
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a.Key, p) }) {
			return true
		}
	}
	return false
}

func (in *input) inGroup(any []string) bool {
	is := func(g string) bool { return slices.Contains(any, g) }
	return slices.ContainsFunc(in.event.User.Groups, is) ||
		in.event.ImpersonatedUser != nil && slices.ContainsFunc(in.event.ImpersonatedUser.Groups, is)
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

// texts are how string variables are read. Every rule reads every request: what all of them read must not go through the interpreter.
var texts = map[string]func(*input) string{ //nolint:gochecknoglobals // constant table
	"cluster": func(in *input) string { return in.cluster },
	"verb":    func(in *input) string { return in.event.Verb },
	"user":    func(in *input) string { return in.event.User.Username },
	"uid":     func(in *input) string { return in.event.User.UID },
	"boundPod": func(in *input) string {
		if uid := in.event.User.Extra.Get(event.ExtraPodUID); len(uid) == 1 {
			return uid[0]
		}
		return ""
	},
	"impersonatedUser": func(in *input) string {
		if in.event.ImpersonatedUser == nil {
			return ""
		}
		return in.event.ImpersonatedUser.Username
	},
	"subject":     func(in *input) string { return in.event.EffectiveUser().Username },
	"path":        func(in *input) string { p, _, _ := strings.Cut(in.event.RequestURI, "?"); return p },
	"query":       func(in *input) string { _, q, _ := strings.Cut(in.event.RequestURI, "?"); return q },
	"apiGroup":    func(in *input) string { return in.attrs.APIGroup },
	"resource":    func(in *input) string { return in.attrs.Resource },
	"subresource": func(in *input) string { return in.attrs.Subresource },
	"ns":          func(in *input) string { return in.attrs.Namespace },
	"name":        func(in *input) string { return in.attrs.Name },
	"message": func(in *input) string {
		if in.event.ResponseStatus == nil {
			return ""
		}
		return in.event.ResponseStatus.Message
	},
	"stage":      func(in *input) string { return string(in.event.Stage) },
	"level":      func(in *input) string { return string(in.event.Level) },
	"auditID":    func(in *input) string { return in.event.AuditID },
	"requestKey": (*input).requestKey,
	"sourceIP": func(in *input) string {
		if n := len(in.event.SourceIPs); n > 0 {
			return in.event.SourceIPs[n-1]
		}
		return ""
	},
	"userAgent":               func(in *input) string { return in.event.UserAgent },
	"verdict.outcome":         func(in *input) string { return in.verdict.Outcome.String() },
	"verdict.class":           func(in *input) string { return in.verdict.Class },
	"verdict.recorded":        func(in *input) string { return in.verdict.Recorded.String() },
	"verdict.replayed":        func(in *input) string { return in.verdict.Replayed.String() },
	"verdict.reason":          func(in *input) string { return in.verdict.RecordedReason },
	"verdict.authorizer":      func(in *input) string { return in.verdict.Authorizer },
	"verdict.credential":      func(in *input) string { return in.verdict.Credential },
	"verdict.admission":       func(in *input) string { return in.verdict.Admission.Recorded },
	"verdict.admissionPlugin": func(in *input) string { return in.verdict.Admission.Plugin() },
}

// flags are how bool variables are read.
var flags = map[string]func(*input) bool{ //nolint:gochecknoglobals // constant table
	"component":  (*input).isComponent,
	"isResource": func(in *input) bool { return in.attrs.ResourceRequest },
	"dryRun":     func(in *input) bool { return event.DryRunOf(in.event) == event.DryRun },
	"answerLost": (*input).answerLost,
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
