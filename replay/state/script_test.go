package state_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

var update = flag.Bool("update", false, "rewrite the expectations of testdata/scripts")

// TestScripts runs testdata/scripts/*.txtar. The archive's comment says in prose what is
// pinned; its file "script" holds what was observed and, after it, what is asked:
//
//	object RESOURCE NAME [uid= rv= created= …]   an object of the next state file
//	state BEGAN ENDED [since= kinds=]            a state file (all kinds unless named)
//	write RECEIVED DONE VERB RESOURCE NAME [level= code= uid= rv= …]   an audit event
//	watch FROM TO RESOURCE NAME [uid= rv= deleted]
//	gap FROM RESOURCE
//
//	at TIME              what the RBAC view holds
//	window FROM TO       the views of a window
//	namespace NAME FROM TO
//	account NS/NAME TIME
//	account-in NS/NAME FROM TO
//	history RESOURCE NAME
//
// Lines that begin with ">" are the expected answer; -update rewrites them. Every script
// is asked again with its observations applied in other orders and twice: the answers
// must not differ.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(ar.Files) != 1 || ar.Files[0].Name != "script" {
				t.Fatalf("%s: want exactly one file, script", file)
			}
			sc := parseScript(t, string(ar.Files[0].Data))
			in := state.New("script")
			in.Apply(sc.observations...)
			got := sc.answer(t, in)
			if *update {
				ar.Files[0].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(ar.Files[0].Data); got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for i := range 24 {
				obs := slices.Clone(sc.observations)
				if i == 0 {
					slices.Reverse(obs)
				} else {
					obs = append(obs, obs[:len(obs)/2]...) // half of them twice
					rnd.Shuffle(len(obs), func(i, j int) { obs[i], obs[j] = obs[j], obs[i] })
				}
				s := state.New("script")
				for _, o := range obs {
					s.Apply(o)
				}
				if again := sc.answer(t, s); again != got {
					t.Fatalf("order %d: got\n%s\nwant\n%s\norder: %s", i, again, got, dump(obs))
				}
			}
		})
	}
}

func dump(obs []observe.Observation) string {
	var sb strings.Builder
	for _, o := range obs {
		sb.Write(o.Append(nil))
		sb.WriteByte('\n')
	}
	return sb.String()
}

// script is a parsed script: what was observed, and the lines to answer.
type script struct {
	lines        []string
	observations []observe.Observation
}

func parseScript(t *testing.T, text string) *script {
	sc := &script{}
	var pending []observe.Observation
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, ">") {
			continue
		}
		sc.lines = append(sc.lines, line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		switch f[0] {
		case "object":
			o := newFields(t, f[1], f[2], f[3:])
			pending = append(pending, observe.Observation{
				Resource: f[1], Namespace: o.namespace, Name: o.name, UID: o.opt["uid"],
				ResourceVersion: o.opt["rv"], Object: o.object(true),
			})
		case "state":
			o := newFields(t, "", "", f[3:])
			snap := observe.Snapshot{Began: clock(t, f[1]), Ended: clock(t, f[2]), Kinds: kept.Resources(), Objects: pending}
			if k := o.opt["kinds"]; k != "" {
				snap.Kinds = strings.Split(k, ",")
			}
			if v := o.opt["since"]; v != "" {
				snap.Since = clock(t, v)
			}
			sc.observations = append(sc.observations, snap.Observations()...)
			pending = nil
		case "write":
			name, rest := "", f[5:]
			if len(rest) > 0 && !strings.Contains(rest[0], "=") {
				name, rest = rest[0], rest[1:]
			}
			sc.observations = append(sc.observations, auditWrite(t, f[1], f[2], f[3], f[4], name, rest)...)
		case "watch":
			o := newFields(t, f[3], f[4], f[5:])
			w := observe.Observation{
				Source: observe.SourceWatch, Resource: f[3], Namespace: o.namespace, Name: o.name,
				UID: o.opt["uid"], ResourceVersion: o.opt["rv"], NotBefore: clock(t, f[1]), NotAfter: clock(t, f[2]),
			}
			if _, w.Deleted = o.opt["deleted"]; !w.Deleted {
				w.Object = o.object(true)
			}
			sc.observations = append(sc.observations, w)
		case "gap":
			sc.observations = append(sc.observations, observe.Observation{
				Source: observe.SourceWatch, Resource: f[2], AllOf: true, Unknown: true,
				NotBefore: clock(t, f[1]), NotAfter: clock(t, f[1]),
			})
		case "at", "window", "namespace", "account", "account-in", "history":
		default:
			t.Fatalf("unknown command %q", line)
		}
	}
	return sc
}

// answer runs the script's questions and returns it with the answers filled in.
func (sc *script) answer(t *testing.T, s *state.State) string {
	var sb strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&sb, "> "+format+"\n", args...) }
	view := func(v state.View) {
		lines := []string{}
		v.RBAC.All(func(k rbacindex.Key, obj any) bool {
			lines = append(lines, fmt.Sprintf("%s %s", k, fingerprint(obj)))
			return true
		})
		slices.Sort(lines)
		for _, l := range lines {
			say("  %s", l)
		}
		for _, k := range v.Unknown {
			say("  unknown %s", k)
		}
		for _, k := range v.Doubted {
			say("  doubted %s", k)
			if o, ok := v.Most.Get(k); ok {
				say("    at most %s", fingerprint(o))
			}
		}
		for _, k := range v.UnknownKinds {
			say("  unknown kind %s", k)
		}
	}
	for _, line := range sc.lines {
		sb.WriteString(line + "\n")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "at":
			view(s.RBAC(clock(t, f[1])))
		case "window":
			for i, v := range s.RBACWindow(clock(t, f[1]), clock(t, f[2])) {
				if i == 0 {
					say("first")
				}
				for _, c := range v.Changed {
					say("then %s", c)
				}
				view(v)
			}
		case "namespace":
			say("%s", s.Namespace(f[1], clock(t, f[2]), clock(t, f[3])))
		case "account":
			ns, name, _ := strings.Cut(f[1], "/")
			uid, known := s.ServiceAccount(ns, name, clock(t, f[2]))
			say("%s", strings.TrimSpace(known.String()+" "+uid))
		case "account-in":
			ns, name, _ := strings.Cut(f[1], "/")
			known, changed := s.ServiceAccountIn(ns, name, clock(t, f[2]), clock(t, f[3]))
			say("%s, changed: %v", known, changed)
		case "history":
			o := newFields(t, f[1], f[2], nil)
			for _, v := range s.History(f[1], o.namespace, o.name) {
				assumed := ""
				if v.Assumed {
					assumed = " (assumed)"
				}
				say("%s %s%s", v, v.UID, assumed)
			}
		}
	}
	return sb.String()
}

// clock reads HH:MM:SS[.frac] of one fixed day.
func clock(t *testing.T, s string) time.Time {
	t.Helper()
	tm, err := time.Parse("2006-01-02T15:04:05", "2026-01-02T"+s)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// fields are the words that describe an object.
type fields struct {
	resource, namespace, name string
	opt                       map[string]string
}

func newFields(t *testing.T, resource, name string, words []string) *fields {
	o := &fields{resource: resource, name: name, opt: map[string]string{}}
	if ns, n, ok := strings.Cut(name, "/"); ok {
		o.namespace, o.name = ns, n
	}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		if k == "created" || k == "deleting" {
			v = clock(t, v).Format(time.RFC3339)
		}
		o.opt[k] = v
	}
	return o
}

var kinds = map[string][2]string{
	kept.Roles:               {"rbac.authorization.k8s.io/v1", "Role"},
	kept.ClusterRoles:        {"rbac.authorization.k8s.io/v1", "ClusterRole"},
	kept.RoleBindings:        {"rbac.authorization.k8s.io/v1", "RoleBinding"},
	kept.ClusterRoleBindings: {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
	kept.Namespaces:          {"v1", "Namespace"},
	kept.ServiceAccounts:     {"v1", "ServiceAccount"},
}

// object renders the object as JSON; stored tells whether it carries what the server adds.
func (o *fields) object(stored bool) []byte {
	md := map[string]any{"name": o.name}
	if o.namespace != "" {
		md["namespace"] = o.namespace
	}
	if stored {
		md["uid"], md["resourceVersion"] = o.opt["uid"], o.opt["rv"]
		if c := o.opt["created"]; c != "" {
			md["creationTimestamp"] = c
		}
	}
	if v := o.opt["label"]; v != "" {
		md["labels"] = map[string]string{"l": v}
	}
	if d := o.opt["deleting"]; d != "" {
		md["deletionTimestamp"] = d
	}
	if f := o.opt["finalizers"]; f != "" {
		md["finalizers"] = strings.Split(f, ",")
	}
	obj := map[string]any{"apiVersion": kinds[o.resource][0], "kind": kinds[o.resource][1], "metadata": md}
	switch o.resource {
	case kept.Roles, kept.ClusterRoles:
		verb := o.opt["verbs"]
		if verb == "" {
			verb = "get"
		}
		obj["rules"] = []any{map[string]any{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": strings.Split(verb, ",")}}
	case kept.RoleBindings, kept.ClusterRoleBindings:
		user := o.opt["user"]
		if user == "" {
			user = "alice"
		}
		obj["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}
		obj["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
	case kept.Namespaces:
		if _, ok := o.opt["emptied"]; ok {
			obj["spec"] = map[string]any{}
		} else {
			obj["spec"] = map[string]any{"finalizers": []string{"kubernetes"}}
		}
		obj["status"] = map[string]any{"phase": "Active"}
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	return b
}

// auditWrite makes the audit event of a write and reads it.
func auditWrite(t *testing.T, received, done, verb, resource, name string, words []string) []observe.Observation {
	t.Helper()
	obs, err := observe.FromEvent(auditEvent(t, received, done, verb, resource, name, words))
	if err != nil {
		t.Fatal(err)
	}
	return obs
}

// auditEvent renders a write as the apiserver would record it, and decodes it.
func auditEvent(t *testing.T, received, done, verb, resource, name string, words []string) *event.Event {
	t.Helper()
	o := newFields(t, resource, name, words)
	level := o.opt["level"]
	if level == "" {
		level = "RequestResponse"
	}
	plural, _, _ := strings.Cut(resource, ".")
	uri := "/api/v1"
	if strings.Contains(resource, ".") {
		uri = "/apis/rbac.authorization.k8s.io/v1"
	}
	ns := o.namespace
	if v := o.opt["in"]; v != "" {
		ns = v
	}
	if ns != "" {
		uri += "/namespaces/" + ns
	}
	uri += "/" + plural
	if o.name != "" && verb != "create" && verb != "deletecollection" {
		uri += "/" + o.name
	}
	if v := o.opt["sub"]; v != "" {
		uri += "/" + v
	}
	if v := o.opt["query"]; v != "" {
		uri += "?" + v
	}
	code := map[string]int{"create": 201}[verb]
	if code == 0 {
		code = 200
	}
	if v := o.opt["code"]; v != "" {
		if _, err := fmt.Sscan(v, &code); err != nil {
			t.Fatal(err)
		}
	}
	status := map[string]any{"metadata": map[string]any{}, "code": code}
	ev := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": level, "auditID": "a", "stage": "ResponseComplete",
		"requestURI": uri, "verb": verb, "user": map[string]any{"username": "admin"}, "responseStatus": status,
		"requestReceivedTimestamp": clock(t, received).Format("2006-01-02T15:04:05.000000Z"),
		"stageTimestamp":           clock(t, done).Format("2006-01-02T15:04:05.000000Z"),
	}
	_, hidden := o.opt["generated"]
	if verb == "create" && o.name != "" && !hidden {
		ev["objectRef"] = map[string]any{"resource": plural, "namespace": ns, "name": o.name}
	}
	if v := o.opt["stage"]; v != "" {
		ev["stage"] = v
	}
	if level == "Metadata" {
		if v := o.opt["uid"]; v != "" && verb == "delete" {
			status["status"], status["details"] = "Success", map[string]any{"name": o.name, "uid": v}
		}
		return decode(t, ev)
	}
	switch verb {
	case "create", "update":
		ev["requestObject"] = json.RawMessage(o.object(false))
	case "patch":
		ev["requestObject"] = map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}
	case "delete", "deletecollection":
		if v := o.opt["options"]; v != "" {
			ev["requestObject"] = json.RawMessage(v)
		}
	}
	if level == "Request" || o.opt["truncated"] != "" {
		if o.opt["truncated"] != "" {
			delete(ev, "requestObject")
			ev["annotations"] = map[string]any{"audit.k8s.io/truncated": "true"}
		}
		return decode(t, ev)
	}
	switch verb {
	case "delete":
		if _, object := o.opt["object"]; object {
			ev["responseObject"] = json.RawMessage(o.object(true))
		} else {
			ev["responseObject"] = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success",
				"details": map[string]any{"name": o.name, "uid": o.opt["uid"]}}
		}
	case "deletecollection":
		var items []json.RawMessage
		for _, item := range strings.Split(o.opt["items"], ",") {
			if item == "" {
				continue
			}
			n, uid, _ := strings.Cut(item, ":")
			uid, finalizer, _ := strings.Cut(uid, ":")
			it := fields{resource: resource, namespace: ns, name: n, opt: map[string]string{"uid": uid, "rv": "1", "finalizers": finalizer}}
			var m map[string]any
			if err := json.Unmarshal(it.object(true), &m); err != nil {
				t.Fatal(err)
			}
			delete(m, "kind")
			delete(m, "apiVersion")
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, b)
		}
		ev["responseObject"] = map[string]any{"kind": kinds[resource][1] + "List", "metadata": map[string]any{}, "items": items}
	default:
		ev["responseObject"] = json.RawMessage(o.object(true))
	}
	return decode(t, ev)
}

func decode(t *testing.T, ev map[string]any) *event.Event {
	t.Helper()
	b, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
