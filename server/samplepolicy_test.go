package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/query"
)

// refused reports whether the file says that a request was refused.
func (s *sampled) refused() bool { return s.decision == "forbid" || s.Code() == 401 || s.Code() == 403 }

// byRBAC reports whether the file says that RBAC allowed a request.
func (s *sampled) byRBAC() bool {
	for _, a := range s.Annotations {
		if a.Key == "authorization.k8s.io/reason" {
			return s.decision == "allow" && strings.HasPrefix(a.Value, "RBAC:")
		}
	}
	return false
}

// path is the address of a request without its query.
func (s *sampled) path() string {
	path, _, _ := strings.Cut(s.RequestURI, "?")
	return path
}

// writesPolicy reports whether a request wrote a role or binding.
func (s *sampled) writesPolicy() bool {
	return s.ObjectRef != nil && s.ObjectRef.APIGroup == "rbac.authorization.k8s.io" && s.Code() < 300 &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, s.Verb)
}

func refusalsOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	var refused, system int64
	byID := map[string]*sampled{}
	for i := range all {
		s := &all[i]
		byID[s.AuditID] = s
		if who := s.EffectiveUser().Username; !s.refused() {
			continue
		} else if kubenames.Own(who) && who != kubenames.Anonymous {
			system++
		} else {
			refused++
		}
	}
	got := askSample[query.RefusalsAnswer](t, h, "refusals", "limit", "500")
	// Admission refuses with other codes as well.
	if got.Requests < refused || got.Requests > refused+refused/10 || got.System < system || !got.Known || got.LookedBackTo == nil {
		t.Errorf("%d refused and %d of Kubernetes' own, want %d and %d: %+v", got.Requests, got.System, refused, system, got.LookedBackTo)
	}
	causes := map[string]int{}
	for i := range got.Refusals {
		r := &got.Refusals[i]
		causes[r.Cause]++
		first := byID[r.AuditID]
		if first == nil || first.EffectiveUser().Username != r.Subject || !first.RequestReceivedTimestamp.Equal(r.First) {
			t.Errorf("the first is not in the file: %+v", r)
			continue
		}
		since := *got.LookedBackTo
		for _, w := range r.Writes {
			since = w.NotAfter
			if by := byID[w.AuditID]; w.AuditID != "" && (by == nil || !by.writesPolicy() || by.User.Username != w.User) {
				t.Errorf("%s was not written by %s", w.Object, w.AuditID)
			}
		}
		if r.Cause != query.CauseNever && r.Cause != query.CauseChange {
			continue
		}
		for j := range all {
			s := &all[j]
			if at := s.RequestReceivedTimestamp; at.After(since) && at.Before(r.First) && s.Verb == r.Verb && s.path() == first.path() &&
				s.EffectiveUser().Username == r.Subject && s.byRBAC() &&
				slices.Equal(s.EffectiveUser().Groups, first.EffectiveUser().Groups) {
				t.Errorf("%s %s %s was allowed at %v, by %s; %s", r.Subject, r.Verb, first.path(), at, s.AuditID, r.Text)
			}
		}
	}
	for _, c := range []string{query.CauseNever, query.CauseChange, query.CauseAdmission, query.CauseAnonymous, query.CauseCheck,
		query.CauseImpersonation, query.CauseNamespace} {
		if causes[c] == 0 {
			t.Errorf("no refusal is of cause %s: %v", c, causes)
		}
	}
	for _, c := range got.Changes {
		var requests int64
		for _, i := range c.Refusals {
			requests += got.Refusals[i].Requests
		}
		if requests > c.Requests || c.Requests == 0 || len(c.Subjects) == 0 {
			t.Errorf("%+v: %d requests", c, requests)
		}
	}
	// What a change made does not depend on how much is listed.
	few := askSample[query.RefusalsAnswer](t, h, "refusals", "limit", "5")
	if len(few.Refusals) != 5 || len(few.Changes) != 5 || !few.More {
		t.Errorf("%d refusals and %d changes, more: %t", len(few.Refusals), len(few.Changes), few.More)
	}
	for i, c := range few.Changes {
		if c.Write.Object != got.Changes[i].Write.Object || c.Requests != got.Changes[i].Requests {
			t.Errorf("%s made %d refusals, and %s %d where more is listed", c.Write.Object, c.Requests, got.Changes[i].Write.Object,
				got.Changes[i].Requests)
		}
	}
	sumsOfRefusals(t, h, all, got.Refusals[0].Subject)
}

// sumsOfRefusals compares the refusals of one subject with the file.
func sumsOfRefusals(t *testing.T, h http.Handler, all []sampled, subject string) {
	t.Helper()
	want, got := map[[2]string]int64{}, map[[2]string]int64{}
	for i := range all {
		if s := &all[i]; s.refused() && s.EffectiveUser().Username == subject {
			want[[2]string{s.Verb, s.resource()}]++
		}
	}
	for _, r := range askSample[query.RefusalsAnswer](t, h, "refusals", "limit", "500", "subject", subject).Refusals {
		got[[2]string{r.Verb, r.Resource}] += r.Requests
	}
	for k, n := range want {
		if got[k] < n {
			t.Errorf("%s %v: %d refused, want %d", subject, k, got[k], n)
		}
	}
}

func policyChangesOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	last := all[len(all)-1].RequestReceivedTimestamp
	from := last.Add(-20 * time.Second)
	var want, got []string
	for i := range all {
		if s := &all[i]; s.writesPolicy() && !s.RequestReceivedTimestamp.Before(from) {
			want = append(want, s.AuditID)
		}
	}
	list := askSample[query.PolicyChangesAnswer](t, h, "policy-changes", "from", from.Format(time.RFC3339Nano), "limit", "500")
	effects := map[string]string{}
	for _, c := range list.Changes {
		if c.AuditID != "" {
			got = append(got, c.AuditID)
			effects[c.Effect] = c.AuditID
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || len(want) == 0 || !list.Known || list.More {
		t.Errorf("%d writes, want %d", len(got), len(want))
	}
	for effect, id := range effects {
		one := askSample[query.PolicyChangesAnswer](t, h, "policy-changes", "id", id)
		changed := one.Detail.Access != nil && len(one.Detail.Access.Subjects) > 0
		if len(one.Changes) != 1 || one.Changes[0].Effect != effect || changed != (effect == query.EffectYes) {
			t.Errorf("%s: %s, but %+v", id, effect, one.Changes)
		}
	}
	if effects[query.EffectYes] == "" || effects[query.EffectNo] == "" {
		t.Errorf("effects %v", effects)
	}
	if w := get(h, "policy-changes?cluster=sample&id=absent"); w.Code != http.StatusNotFound {
		t.Errorf("an absent write: %d %s", w.Code, w.Body)
	}
	cameOfTheSample(t, h)
}

// cameOfTheSample asks what came of the write that made most refusals: these are in its hour, and allowed until then.
func cameOfTheSample(t *testing.T, h http.Handler) {
	t.Helper()
	changes := askSample[query.RefusalsAnswer](t, h, "refusals", "limit", "500").Changes
	if len(changes) == 0 {
		t.Fatal("no write made refusals")
	}
	w := changes[0].Write
	detail := askSample[query.PolicyChangesAnswer](t, h, "policy-changes", "id", w.AuditID).Detail
	var requests int64
	for _, r := range detail.Refusals {
		requests += r.Requests
		if r.First.Before(w.NotAfter) || r.Last.After(detail.Until) {
			t.Errorf("%+v is not of the hour after %v", r, w.NotAfter)
		}
	}
	if requests < changes[0].Requests {
		t.Errorf("%d requests were refused since, want %d", requests, changes[0].Requests)
	}
	for _, u := range detail.FirstUses {
		if u.First.Before(*w.NotBefore) || !u.First.Before(detail.Until) {
			t.Errorf("%+v is not of the hour after %v", u, w.NotAfter)
		}
	}
}

func firstUsesOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	first, last := all[0].RequestReceivedTimestamp, all[len(all)-1].RequestReceivedTimestamp
	middle := first.Add(last.Sub(first) * 3 / 5)
	type access struct{ subject, verb, resource, namespace string }
	of := func(s *sampled) access {
		return access{s.EffectiveUser().Username, s.Verb, s.resource(), s.namespace()}
	}
	firsts := map[access]time.Time{}
	for i := range all {
		if k := of(&all[i]); firsts[k].IsZero() {
			firsts[k] = all[i].RequestReceivedTimestamp
		}
	}
	got := askSample[query.FirstUsesAnswer](t, h, "first-uses", "from", middle.Format(time.RFC3339Nano), "limit", "1000", "includeSystem",
		"true")
	if got.Baseline != "enough" || got.Since == nil || !got.Since.Equal(first) {
		t.Errorf("baseline %s since %v, want %v", got.Baseline, got.Since, first)
	}
	told := map[access]bool{}
	for _, u := range got.Uses {
		k := access{u.Subject, u.Verb, u.Resource, u.Namespace}
		if told[k] = true; u.First.Before(middle) || firsts[k].After(u.First) && u.Resource != "" {
			t.Errorf("%+v, of which the file has the first at %v", u, firsts[k])
		}
	}
	until := last
	if got.MoreUses {
		until = got.Uses[len(got.Uses)-1].First
	}
	for k, at := range firsts {
		if !at.Before(middle) && at.Before(until) && k.resource != "" && !told[k] && got.Unnamed == 0 {
			t.Errorf("%+v was done first at %v", k, at)
		}
	}
	none := askSample[query.FirstUsesAnswer](t, h, "first-uses", "from", first.Add(-time.Hour).Format(time.RFC3339Nano))
	if none.Baseline != "none" || len(none.Uses)+len(none.Grants) != 0 {
		t.Errorf("without a baseline: %s, %d uses", none.Baseline, len(none.Uses))
	}
	short := askSample[query.FirstUsesAnswer](t, h, "first-uses", "from", first.Add(time.Second).Format(time.RFC3339Nano))
	if short.Baseline != "short" {
		t.Errorf("a baseline of a second is %s", short.Baseline)
	}
}

func dangersOfTheSample(t *testing.T, h http.Handler, all []sampled) {
	got := askSample[query.DangersAnswer](t, h, "dangers", "includeSystem", "true", "limit", "2000")
	if got.More != 0 || got.System != 0 || len(got.Holders) == 0 {
		t.Fatalf("%d holders, %d more, %d of Kubernetes' own", len(got.Holders), got.More, got.System)
	}
	others := askSample[query.DangersAnswer](t, h, "dangers", "limit", "2000")
	if own := func(x query.DangerHolder) bool { return x.System }; slices.ContainsFunc(others.Holders, own) ||
		len(others.Holders) != len(slices.DeleteFunc(slices.Clone(got.Holders), own)) {
		t.Errorf("%d holders without Kubernetes' own; by their marks it is another number", len(others.Holders))
	}
	type holder struct{ kind, namespace, name, scope string }
	held := map[string]map[holder]*query.DangerHolder{}
	for i := range got.Holders {
		x := &got.Holders[i]
		if held[x.Danger] == nil {
			held[x.Danger] = map[holder]*query.DangerHolder{}
		}
		held[x.Danger][holder{x.Kind, x.Namespace, x.Name, x.Scope}] = x
	}
	for danger, resources := range map[string][2]string{"secrets-read": {"list", "secrets"}, "pod-create": {"create", "pods"},
		"token-request": {"create", "serviceaccounts/token"}, "impersonate": {"impersonate", "users"},
		"escalate": {"escalate", "clusterroles"}} {
		able := askSample[query.WhoCanAnswer](t, h, "who-can", "verb", resources[0], "resource", resources[1], "allNamespaces", "true")
		for _, s := range able.Subjects {
			scope, _ := strings.CutPrefix(strings.TrimPrefix(s.Scope, "cluster"), "namespace:")
			k := holder{s.Kind, s.Namespace, s.Name, scope}
			if len(s.Grants) > 1 && s.Grants[0].Kind == query.KindSuperuser || s.Name == "system:masters" {
				continue
			}
			if wide := danger == "impersonate" || danger == "escalate"; wide && scope != "" {
				continue // nothing that a namespace has
			}
			if held[danger][k] == nil && held["cluster-admin"][k] == nil {
				t.Errorf("%s: %+v is left out", danger, k)
			}
		}
	}
	// What the record says a binding allowed was used by it.
	for _, x := range got.Holders {
		if x.Danger != "secrets-read" || x.Kind == "Group" {
			continue
		}
		name := x.Name
		if x.Kind == "ServiceAccount" {
			name = kubenames.ServiceAccount(x.Namespace, x.Name)
		}
		var used int64
		for i := range all {
			s := &all[i]
			if s.EffectiveUser().Username == name && s.resource() == "secrets" &&
				slices.Contains([]string{"get", "list", "watch"}, s.Verb) && (x.Scope == "" || s.namespace() == x.Scope) && s.byRBAC() &&
				namedBy(s, x.Grants) {
				used++
			}
		}
		if x.Ever < used || x.Requests != x.Ever || (x.Last == nil) != (x.Ever == 0) {
			t.Errorf("%+v was used %d times by the record", x, used)
		}
	}
	for _, d := range got.Dangers {
		if d.Holders != len(held[d.ID]) {
			t.Errorf("%+v: %d holders", d, len(held[d.ID]))
		}
	}
	if w := get(h, "dangers?cluster=sample&danger=bindd"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "bind") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// namedBy reports whether the recorded reason names one of the grants' bindings.
func namedBy(s *sampled, grants []query.DangerGrant) bool {
	for _, a := range s.Annotations {
		if a.Key != "authorization.k8s.io/reason" {
			continue
		}
		for _, g := range grants {
			kind, name, _ := strings.Cut(g.Binding, "/")
			if _, after, ok := strings.Cut(name, "/"); ok && kind == "RoleBinding" {
				name = after + "/" + strings.TrimSuffix(name, "/"+after)
			}
			if strings.Contains(a.Value, kind+` "`+name+`"`) {
				return true
			}
		}
	}
	return false
}
