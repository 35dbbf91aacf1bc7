package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// lostWrites writes a few roles and bindings of a real apiserver and loses answers: by timeouts that are
// too short, by clients that hang up, and by taking what was answered out of the log.
type lostWrites struct {
	t       *testing.T
	rnd     *rand.Rand
	client  *http.Client
	host    string
	n       int
	dropped map[string]bool // audit IDs of requests whose answers are taken out of the log
	moments []servedMoment
}

// servedMoment is what the apiserver listed from one time to another.
type servedMoment struct {
	began, at time.Time
	is        map[rbacindex.Key]any
}

var (
	lostRoles    = []string{"lost-r0", "lost-r1"}
	lostBindings = []string{"lost-b0", "lost-b1"}
)

const lostURI = "/apis/rbac.authorization.k8s.io/v1/"

// TestLostPatches: patches and other writes of a real apiserver whose answers are lost leave the truth
// within what the replica says is certain and what it says may be. ORACLE_LOST is how many writes,
// ORACLE_SEED the seed.
func TestLostPatches(t *testing.T) {
	t.Parallel()
	n, seed := 500, 1
	for name, of := range map[string]*int{"ORACLE_LOST": &n, "ORACLE_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *of, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"+
		"- level: None\n  verbs: [list, watch]\n- level: RequestResponse\n  resources: [{group: rbac.authorization.k8s.io}]\n- level: "+
		"None\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := controlplane.Start(t, "--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-mode=blocking-strict")
	client, err := rest.HTTPClientFor(c.Admin(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	l := &lostWrites{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 1)), client: client, host: c.URL(), dropped: map[string]bool{}}
	began := l.list()
	for range n {
		l.write()
		l.list()
	}
	l.do(t.Context(), http.MethodDelete, lostURI+"clusterroles/lost-end", "", nil, "the-end")
	var events []*event.Event
	controlplane.Poll(t, "the log to be written", func(context.Context) (bool, string) {
		events = l.events(log)
		return slices.ContainsFunc(events, func(e *event.Event) bool { return e.AuditID == "the-end" }), fmt.Sprintf("%d events",
			len(events))
	})
	l.compare(began, events)
}

// write makes one write, of which the answer may be lost.
func (l *lostWrites) write() {
	l.n++
	list, name := "clusterroles", lostRoles[l.rnd.IntN(len(lostRoles))]
	if l.rnd.IntN(3) > 0 {
		list, name = "clusterrolebindings", lostBindings[l.rnd.IntN(len(lostBindings))]
	}
	method, uri, kind := http.MethodPatch, lostURI+list+"/"+name, ""
	var body any
	switch l.rnd.IntN(8) {
	case 0:
		method, uri, kind, body = http.MethodPost, lostURI+list, "application/json", l.object(list, name)
	case 1:
		method, kind, body = http.MethodPut, "application/json", l.object(list, name)
	case 2:
		method = http.MethodDelete
	default:
		kind, body = l.patch(list, name)
	}
	sep := "?"
	if kind == "application/apply-patch+yaml" {
		uri, sep = uri+"?fieldManager=lost&force=true", "&"
	}
	ctx, cancel := l.t.Context(), context.CancelFunc(func() {})
	id := fmt.Sprintf("lost-%d", l.n)
	switch l.rnd.IntN(5) {
	case 0:
		uri += sep + fmt.Sprintf("timeout=%dus", 200+l.rnd.IntN(3000))
	case 1:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(200+l.rnd.IntN(4000))*time.Microsecond)
	case 2:
		l.dropped[id] = true
	}
	defer cancel()
	var raw []byte
	if body != nil {
		raw = l.marshal(body)
	}
	l.do(ctx, method, uri, kind, raw, id)
}

// do makes a request; what is answered tells nothing here.
func (l *lostWrites) do(ctx context.Context, method, uri, kind string, body []byte, id string) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, l.host+uri, bytes.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Audit-ID", id)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if res, err := l.client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

func (l *lostWrites) marshal(v any) []byte {
	l.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return raw
}

// elements are rules or subjects.
func (l *lostWrites) elements(list string) []any {
	out := []any{}
	for _, what := range []string{"one", "two", "three"} {
		switch {
		case l.rnd.IntN(2) == 0:
		case list == "clusterroles":
			out = append(out, map[string]any{"verbs": []string{"get"}, "apiGroups": []string{""}, "resources": []string{what}})
		default:
			out = append(out, map[string]any{"kind": "User", "apiGroup": rbacv1.GroupName, "name": what})
		}
	}
	return out
}

func (l *lostWrites) object(list, name string) map[string]any {
	o := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name}}
	if list == "clusterroles" {
		o["rules"] = l.elements(list)
		return o
	}
	o["kind"], o["subjects"] = "ClusterRoleBinding", l.elements(list)
	o["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": lostRoles[l.rnd.IntN(len(lostRoles))]}
	return o
}

// patch makes a patch of any kind.
func (l *lostWrites) patch(list, name string) (kind string, body any) {
	member := "subjects"
	if list == "clusterroles" {
		member = "rules"
	}
	elements := l.elements(list)
	switch l.rnd.IntN(6) {
	case 0:
		return "application/merge-patch+json", map[string]any{member: elements}
	case 1:
		return "application/strategic-merge-patch+json", map[string]any{member: elements,
			"metadata": map[string]any{"labels": map[string]any{"l": strconv.Itoa(l.n)}}}
	case 2:
		o := l.object(list, name)
		if l.rnd.IntN(4) == 0 {
			delete(o, member)
		}
		return "application/apply-patch+yaml", o
	case 3:
		return "application/merge-patch+json",
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": strconv.Itoa(l.rnd.IntN(2))}}}
	}
	ops := []any{}
	for range 1 + l.rnd.IntN(2) {
		switch l.rnd.IntN(4) {
		case 0:
			ops = append(ops, map[string]any{"op": "replace", "path": "/" + member, "value": l.elements(list)})
		case 1:
			ops = append(ops, map[string]any{"op": "remove", "path": "/" + member + "/0"})
		default:
			if len(elements) > 0 {
				ops = append(ops, map[string]any{"op": "add", "path": "/" + member + "/-", "value": elements[0]})
			}
		}
	}
	return "application/json-patch+json", ops
}

// list notes what there is.
func (l *lostWrites) list() time.Time {
	l.t.Helper()
	m := servedMoment{began: time.Now(), is: map[rbacindex.Key]any{}}
	for list, into := range map[string]func([]byte) error{
		"clusterroles": func(raw []byte) error {
			var of rbacv1.ClusterRoleList
			err := json.Unmarshal(raw, &of)
			for i := range of.Items {
				m.is[rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: of.Items[i].Name}] = &of.Items[i]
			}
			return err
		},
		"clusterrolebindings": func(raw []byte) error {
			var of rbacv1.ClusterRoleBindingList
			err := json.Unmarshal(raw, &of)
			for i := range of.Items {
				m.is[rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: of.Items[i].Name}] = &of.Items[i]
			}
			return err
		},
	} {
		req, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.host+lostURI+list, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		res, err := l.client.Do(req)
		if err != nil {
			l.t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil {
			err = into(raw)
		}
		if err != nil || res.StatusCode != http.StatusOK {
			l.t.Fatal(res.Status, err)
		}
	}
	m.at = time.Now()
	l.moments = append(l.moments, m)
	return m.began
}

// events reads the log, without the answers that are dropped.
func (l *lostWrites) events(log string) (out []*event.Event) {
	l.t.Helper()
	file, err := os.Open(log)
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		e, err := event.Decode(bytes.Clone(lines.Bytes()))
		if err != nil {
			l.t.Fatal(err)
		}
		if l.dropped[e.AuditID] {
			e.ResponseObject, e.ResponseStatus = nil, nil
		}
		out = append(out, e)
	}
	return out
}

// compare holds what the apiserver had against what the replica says, all events being known and with those
// alone that ended before.
func (l *lostWrites) compare(began time.Time, events []*event.Event) {
	l.t.Helper()
	later := l.replica(began)
	lost, done := 0, 0
	for _, e := range events {
		l.apply(later, e)
		if strings.HasPrefix(e.AuditID, "lost-") && event.OutcomeOf(e) == event.PerhapsDone {
			if lost++; l.dropped[e.AuditID] {
				done++
			}
		}
	}
	then := l.replica(began)
	slices.SortStableFunc(events, func(a, b *event.Event) int { return a.StageTimestamp.Compare(b.StageTimestamp) })
	next, asked, doubted, unknown := 0, 0, 0, 0
	for i := range l.moments {
		m := &l.moments[i]
		for next < len(events) && !events[next].StageTimestamp.After(m.at) {
			l.apply(then, events[next])
			next++
		}
		// Of who hung up the write may have been done while it was listed.
		if slices.ContainsFunc(events, func(e *event.Event) bool {
			return e.StageTimestamp.After(m.began) && e.RequestReceivedTimestamp.Before(m.at) && event.OutcomeOf(e) == event.Done
		}) {
			continue
		}
		states := map[string]*state.State{"later": later}
		if !slices.ContainsFunc(events[next:], func(e *event.Event) bool { return e.RequestReceivedTimestamp.Before(m.at) }) {
			states["then"] = then
		}
		for when, s := range states {
			v := s.RBAC(m.at)
			for _, k := range lostKeys() {
				asked++
				switch wrong := misses(&v, k, m.is[k]); {
				case wrong != "":
					l.t.Errorf("asked %s about %s after write %d: %s", when, k, i, wrong)
				case v.IsDoubted(k):
					doubted++
				case v.IsUnknown(k):
					unknown++
				}
			}
		}
		if l.t.Failed() {
			for _, e := range events[max(0, next-12):min(next+3, len(events))] {
				l.t.Logf("%s..%s %s %s %s %s -> %d %s", e.RequestReceivedTimestamp.Format("04:05.000000"),
					e.StageTimestamp.Format("04:05.000000"), e.AuditID, e.Verb, e.RequestURI, e.RequestObject, e.Code(), e.ResponseObject)
			}
			return
		}
	}
	l.t.Logf("%d writes, %d without an answer, %d of them taken out; %d questions: %d in doubt, %d unknown", l.n, lost, done, asked,
		doubted, unknown)
	if lost*8 < l.n || lost-done < 5 || doubted == 0 {
		l.t.Error("few answers were lost: little was tried")
	}
	if unknown*15 > asked || doubted*10 > asked*7 {
		l.t.Error("a lost answer concerns too much")
	}
}

// replica returns a state that knows what there was in the beginning.
func (l *lostWrites) replica(began time.Time) *state.State {
	l.t.Helper()
	s := state.New("c")
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: began, Ended: began, Kinds: kept.Resources()}); err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *lostWrites) apply(s *state.State, e *event.Event) {
	l.t.Helper()
	obs, err := observe.FromEvent(e)
	if err != nil {
		l.t.Fatal(err)
	}
	s.Apply(obs...)
}

func lostKeys() (keys []rbacindex.Key) {
	for i := range lostRoles {
		keys = append(keys, rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: lostRoles[i]},
			rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: lostBindings[i]})
	}
	return keys
}

// misses says how an object is not within what a view says of it, "" where it is.
func misses(v *state.View, k rbacindex.Key, is any) string {
	least, there := v.RBAC.Get(k)
	all := partsOf(is)
	if !v.IsUnknown(k) {
		switch {
		case there != (is != nil):
			return fmt.Sprintf("said to be there: %v, is: %v", there, is != nil)
		case !slices.Equal(partsOf(least), all):
			return fmt.Sprintf("said to hold %q, holds %q", partsOf(least), all)
		}
		return ""
	}
	for _, part := range partsOf(least) {
		if !slices.Contains(all, part) {
			return fmt.Sprintf("said to hold at least %q, holds %q", partsOf(least), all)
		}
	}
	if !v.IsDoubted(k) || is == nil {
		return ""
	}
	var most [][]string
	within := false
	v.Most.All(func(at rbacindex.Key, object any) bool {
		if content.ObjectOf(at) == k {
			parts := partsOf(object)
			most = append(most, parts)
			within = within || v.IsPart(k) || !slices.ContainsFunc(all, func(part string) bool { return !slices.Contains(parts, part) })
		}
		return true
	})
	if !within {
		return fmt.Sprintf("said to hold at the most one of %q, holds %q", most, all)
	}
	return ""
}

// partsOf returns the rules of a role; the role and the subjects of a binding.
func partsOf(object any) (parts []string) {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		for _, r := range o.Rules {
			parts = append(parts, fmt.Sprint(r))
		}
	case *rbacv1.ClusterRoleBinding:
		parts = append(parts, fmt.Sprint(o.RoleRef))
		for _, s := range o.Subjects {
			parts = append(parts, fmt.Sprint(s))
		}
	}
	return parts
}
