package query

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/analysis/revert"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// lastKnown has the newest content of every object, and no requests.
type lastKnown struct {
	Rows
	objects map[string]observe.Observation
}

func (l *lastKnown) take(obs []observe.Observation) {
	for _, o := range obs {
		if len(o.Object) > 0 && !o.Deleted {
			o.Object = bytes.Clone(o.Object)
			l.objects[o.Resource+" "+o.Namespace+"/"+o.Name] = o
		}
	}
}

func (l *lastKnown) Writes(context.Context, string, []queries.Written) ([]verdict.Row, error) {
	return nil, nil
}

func (l *lastKnown) NewestObject(_ context.Context, _, resource, namespace, name string) ([]byte, error) {
	o, ok := l.objects[resource+" "+namespace+"/"+name]
	if !ok {
		return nil, nil
	}
	return o.Append(nil), nil
}

// reverted returns how writes are taken back that a State knows of.
func reverted(t *testing.T, st *state.State, rows *lastKnown, events ...*event.Event) ([]PolicyChange, *PolicyRevert) {
	t.Helper()
	x := effects{st: st, known: true, changes: st.Changes(events[0].RequestReceivedTimestamp.Add(-time.Nanosecond),
		events[len(events)-1].StageTimestamp.Add(time.Nanosecond))}
	x.touched = x.changes.Touched()
	var list []PolicyChange
	for _, e := range events {
		list = append(list, x.of(e, map[change]bool{}))
	}
	out, err := (&Service{Store: rows}).revertOf(t.Context(), "c", st, list)
	if err != nil {
		t.Fatal(err)
	}
	return list, out
}

// call is one run of kubectl: its arguments, and the objects it read.
type call struct {
	args    []string
	objects []map[string]any
}

// commands runs a text by a shell in which kubectl only notes how it is called.
func commands(t *testing.T, folder, text string) (calls []call) {
	t.Helper()
	stub := filepath.Join(folder, "kubectl")
	if _, err := os.Stat(stub); err != nil {
		const program = "#!/bin/sh\nn=$(ls \"$NOTES\" | grep -c args)\n" +
			"for a in \"$@\"; do printf '%s\\0' \"$a\"; done > \"$NOTES/$n.args\"\ncat > \"$NOTES/$n.in\"\n"
		if err := os.WriteFile(stub, []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	notes := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu")
	cmd.Stdin = nil
	cmd.Args = append(cmd.Args, "-c", text)
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "NOTES="+notes)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s\n%s", err, out, text)
	}
	for i := 0; ; i++ {
		args, err := os.ReadFile(filepath.Join(notes, strconv.Itoa(i)+".args"))
		if err != nil {
			return calls
		}
		in, err := os.ReadFile(filepath.Join(notes, strconv.Itoa(i)+".in"))
		if err != nil {
			t.Fatal(err)
		}
		c := call{args: strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")}
		for doc := range strings.SplitSeq(string(in), "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			if object != nil {
				c.objects = append(c.objects, object)
			}
		}
		calls = append(calls, c)
	}
}

// obey does to objects what kubectl would, as far as the policy goes.
func obey(t *testing.T, objects map[rbacindex.Key]map[string]any, calls []call) {
	t.Helper()
	for _, c := range calls {
		if c.args[0] == "delete" && !slices.Contains(c.args, "-f") {
			kind, name, _ := strings.Cut(c.args[2], "/")
			k := rbacindex.Key{Name: name}
			for _, known := range []rbacindex.Kind{rbacindex.KindRole, rbacindex.KindClusterRole, rbacindex.KindRoleBinding,
				rbacindex.KindClusterRoleBinding} {
				if strings.EqualFold(known.String(), kind) {
					k.Kind = known
				}
			}
			if len(c.args) == 5 {
				k.Namespace = c.args[4]
			}
			delete(objects, k)
			continue
		}
		for _, o := range c.objects {
			text, _ := json.Marshal(o)
			_, k, err := rbacindex.FromJSON(fmt.Sprint(o["kind"]), text)
			if err != nil {
				t.Fatal(err)
			}
			switch have := objects[k]; {
			case c.args[0] == "delete":
				delete(objects, k)
			case c.args[0] == "patch":
				delete(have, "aggregationRule")
			case have == nil:
				objects[k] = o
			default:
				if fmt.Sprint(have["roleRef"]) != fmt.Sprint(o["roleRef"]) {
					t.Errorf("%s names another role: an apiserver refuses that", k)
				}
				for _, member := range []string{"rules", "subjects", "aggregationRule"} {
					if v, ok := o[member]; ok {
						have[member] = v
					}
				}
			}
		}
	}
}

// plain returns an object as JSON has it, nil for none.
func plain(t *testing.T, object any) (out map[string]any) {
	t.Helper()
	if object == nil {
		return nil
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRevertOfTheSample takes back policy writes of the recorded cluster, each alone: where what was before is known, the commands make
// it that again.
func TestRevertOfTheSample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a shell a write; runs without -short")
	}
	st, rows := state.New("c"), &lastKnown{objects: map[string]observe.Observation{}}
	r, err := sample.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	snap, _, err := observe.ReadSnapshot(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	rows.take(snap.Observations())
	var writes []*event.Event
	log, err := sample.OpenAuditLog()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		e, err := event.Decode(bytes.Clone(lines.Bytes()))
		if err != nil {
			continue
		}
		obs, _ := observe.FromEvent(e)
		st.Apply(obs...)
		rows.take(obs)
		if e.Stage == event.StageResponseComplete && policyKind(e) != 0 && queries.IsWrite(e.Verb) && e.Code() < 300 {
			writes = append(writes, e)
		}
	}
	now := st.RBAC(Latest)
	folder, done := t.TempDir(), map[string]int{}
	for i, e := range writes {
		if i%23 > 0 && e.Verb != "update" && e.Verb != "patch" || i%3 > 0 && e.Verb == "patch" {
			continue
		}
		list, back := reverted(t, st, rows, e)
		objects := map[rbacindex.Key]map[string]any{}
		for _, c := range list[0].done {
			if is, ok := now.RBAC.Get(c.key); ok {
				objects[c.key] = plain(t, is)
			}
		}
		if back.Text != "" {
			obey(t, objects, commands(t, folder, back.Text))
		}
		for j, c := range list[0].done {
			action := back.Objects[min(j, len(back.Objects)-1)].Action
			if done[action]++; action == revert.Aggregated {
				continue
			}
			before := st.RBAC(c.v.NotAfter.Add(-time.Nanosecond))
			if before.IsUnknown(c.key) {
				continue
			}
			was, existed := before.RBAC.Get(c.key)
			object, exists := objects[c.key]
			if exists != existed {
				t.Errorf("%s %s: %s was there before: %t, and is when it is reverted: %t\n%s", e.Verb, e.AuditID, c.key, existed, exists,
					back.Text)
				continue
			}
			if !existed {
				continue
			}
			text, _ := json.Marshal(object)
			is, _, err := rbacindex.FromJSON(c.key.Kind.String(), text)
			if err != nil {
				t.Fatal(err)
			}
			if meaning(was) != meaning(is) {
				t.Errorf("%s %s: %s was\n%s\nand is when it is reverted\n%s", e.Verb, e.AuditID, c.key, meaning(was), meaning(is))
			}
		}
	}
	t.Log(len(writes), done)
	for _, action := range []string{revert.Create, revert.Delete, revert.Update, revert.None} {
		if done[action] == 0 {
			t.Errorf("no write was taken back by %s", action)
		}
	}
}

// meaning is what a role or binding gives.
func meaning(object any) string {
	rules, _ := rbacindex.RulesOf(object)
	subjects, role, _ := rbacindex.BindingOf(object)
	text, _ := json.Marshal([]any{rules, subjects, role})
	return strings.NewReplacer("[[]", "[null", ",[],", ",null,").Replace(string(text))
}

// TestRevertTexts pins what is said and written for each kind of write.
func TestRevertTexts(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 11, minute, 0, 0, time.UTC) }
	const head = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":`
	binding := func(role, user string) string {
		return head + `"RoleBinding","metadata":{"namespace":"shop","name":"b","uid":"u` + role + `","labels":{"team":"a"},` +
			`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"x\":1}"}},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"` + role + `"},` +
			`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + user + `"}]}`
	}
	hostile := "a'b\nEOF\n$(id) \u202e"
	name, _ := json.Marshal(hostile)
	write := func(minute int, resource, name, uid, object string) observe.Observation {
		o := observe.Observation{Source: observe.SourceAudit, Resource: resource, Name: name, UID: uid,
			ResourceVersion: strconv.Itoa(minute), Object: []byte(object), Deleted: object == "", Created: minute == 10,
			NotBefore: at(minute), NotAfter: at(minute).Add(time.Millisecond)}
		if resource == kept.RoleBindings || resource == kept.Roles {
			o.Namespace = "shop"
		}
		if o.Deleted {
			o.ResourceVersion, o.Object = "", nil
		}
		return o
	}
	role := func(name, more string) string {
		return head + `"ClusterRole","metadata":{"name":` + name + `,"uid":"u2"},` +
			`"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]` + more + `}`
	}
	rb := func(minute int, role, user string) observe.Observation {
		return write(minute, kept.RoleBindings, "b", "u"+role, binding(role, user))
	}
	gone := func(minute int) observe.Observation { return write(minute, kept.RoleBindings, "b", "ur", "") }
	const later = "RoleBinding/shop/b was changed 1 time after that, last at 2026-11-20T11:"
	const asBefore = `kubectl apply --server-side --force-conflicts -f - <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: b
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: r
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: ann
EOF
`
	for _, c := range []struct {
		name     string
		obs      []observe.Observation
		minute   int // of the write that is taken back
		actions  string
		warnings []string
		text     string // without comments
	}{
		{"made", []observe.Observation{rb(10, "r", "ann")}, 10, "delete", nil,
			"kubectl delete --ignore-not-found rolebinding/b -n shop\n"},
		{"made and gone", []observe.Observation{rb(10, "r", "ann"), gone(12)},
			10, "none", []string{later + "12:00Z: it is as it was before"}, ""},
		{"deleted", []observe.Observation{rb(10, "r", "ann"), gone(12)},
			12, "create", nil, `kubectl apply --server-side --force-conflicts -f - <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  labels:
    team: a
  name: b
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: r
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: ann
EOF
`},
		{"updated, and again", []observe.Observation{rb(10, "r", "ann"),
			rb(12, "r", "bob"), rb(14, "r", "eve")},
			12, "update", []string{later + "14:00Z: reverting undoes that as well"},
			asBefore},
		{"made again with another role", []observe.Observation{rb(10, "r", "ann"),
			gone(12), rb(14, "other", "ann")}, 12, "recreate",
			[]string{later + "14:00Z: reverting undoes that as well"},
			"kubectl delete --ignore-not-found rolebinding/b -n shop\n" + asBefore},
		{"aggregated", []observe.Observation{write(10, kept.ClusterRoles, "r", "u2", role(`"r"`, "")), write(12, kept.ClusterRoles, "r",
			"u2", role(`"r"`, `,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}`))}, 12, "update", nil,
			`kubectl patch --type=json -p '[{"op":"remove","path":"/aggregationRule"}]' -f - <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: r
EOF
kubectl apply --server-side --force-conflicts -f - <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: r
rules:
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - get
EOF
`},
		{"hostile", []observe.Observation{write(10, kept.ClusterRoles, hostile, "u2", role(string(name), ""))}, 10, "delete", nil,
			`kubectl delete --ignore-not-found -f - <<'EOF'
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a'b\nEOF\n$(id) \u202e"}}
EOF
`},
		{"not known", []observe.Observation{{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: "r", Unknown: true,
			NotBefore: at(9), NotAfter: at(9)}, write(12, kept.ClusterRoles, "r", "u2", role(`"r"`, ""))}, 12, "unknown",
			[]string{"what ClusterRole/r was before is not known: it was written by 2026-11-20T11:09:00Z, and what was written was " +
				"not recorded"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, rows := state.New("c"), &lastKnown{objects: map[string]observe.Observation{}}
			nothing := observe.Snapshot{Began: at(0), Ended: at(0), Since: at(-60), Kinds: kept.Resources()}
			if _, err := st.LoadSnapshot(nothing); err != nil {
				t.Fatal(err)
			}
			var e *event.Event
			for _, o := range c.obs {
				st.Apply(o)
				rows.take([]observe.Observation{o})
				if o.NotBefore.Equal(at(c.minute)) {
					plural, group, _ := strings.Cut(o.Resource, ".")
					verb := "update"
					if o.Deleted {
						verb = "delete"
					}
					e = &event.Event{AuditID: "x", Stage: event.StageResponseComplete, Verb: verb, User: event.User{Username: "root\n"},
						ObjectRef:                &event.ObjectRef{APIGroup: group, Resource: plural, Namespace: o.Namespace, Name: o.Name},
						RequestReceivedTimestamp: o.NotBefore, StageTimestamp: o.NotAfter}
				}
			}
			_, got := reverted(t, st, rows, e)
			var actions []string
			for _, o := range got.Objects {
				actions = append(actions, o.Action)
			}
			if strings.Join(actions, " ") != c.actions || !slices.Equal(got.Warnings, append([]string{}, c.warnings...)) {
				t.Errorf("got %q, warnings %q", actions, got.Warnings)
			}
			var text strings.Builder
			for line := range strings.Lines(got.Text) {
				if !strings.HasPrefix(line, "#") {
					text.WriteString(line)
				}
			}
			if text.String() != c.text {
				t.Errorf("got\n%s\nwant\n%s", text.String(), c.text)
			}
			for _, w := range got.Warnings {
				if got.Text != "" && !strings.Contains(got.Text, "# warning: "+w) {
					t.Errorf("the commands do not say %q:\n%s", w, got.Text)
				}
			}
			if got.Text != "" {
				commands(t, t.TempDir(), got.Text)
			}
		})
	}
}
