package state_test

import (
	"testing"

	"github.com/retrial-io/retrial/rbacindex"
)

// A binding whose creation the apiserver cut off is anything to anybody. Whoever reads or writes it with an
// answer that is recorded settles it, as does who looks for it in vain; what tells no content does not.
func TestFateOfABindingThatWasCutOff(t *testing.T) {
	const (
		uri  = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		body = `"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","roleRef":{` +
			`"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}`
		is   = `{"metadata":{"name":"p","uid":"u1","resourceVersion":"9"},` + body + `}`
		user = `"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}]`
	)
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "p"}
	for name, c := range map[string]struct {
		tell  func(s *told)
		known bool
	}{
		"nothing more":       {tell: func(*told) {}},
		"read, not recorded": {tell: func(s *told) { s.during("12:01:00", "12:01:01", "get", uri+"/p", 200, "", "") }},
		"read":               {tell: func(s *told) { s.during("12:01:00", "12:01:01", "get", uri+"/p", 200, "", is) }, known: true},
		"patched and answered": {tell: func(s *told) { s.during("12:01:00", "12:01:01", "patch", uri+"/p", 200, "{"+user+"}", is) },
			known: true},
		"patched, not answered": {tell: func(s *told) { s.during("12:01:00", "12:01:01", "patch", uri+"/p", 200, "{"+user+"}", "") }},
		"written anew": {tell: func(s *told) {
			s.during("12:01:00", "12:01:01", "update", uri+"/p", 200, `{"metadata":{"name":"p"},`+body+`}`, "")
		}, known: true},
		"written anew, lost": {tell: func(s *told) {
			s.during("12:01:00", "12:01:01", "update", uri+"/p", 504, `{"metadata":{"name":"p"},`+body+`}`, "")
		}},
		"deleted": {tell: func(s *told) { s.during("12:01:00", "12:01:01", "delete", uri+"/p", 200, "{}", wentAway) }, known: true},
		"looked for in vain": {tell: func(s *told) {
			s.during("12:01:00", "12:01:01", "get", uri+"/p", 404, "", `clusterrolebindings.rbac.authorization.k8s.io "p" not found`)
		}, known: true},
		"made again: it was there": {tell: func(s *told) {
			s.during("12:01:00", "12:01:01", "create", uri, 409, `{"metadata":{"name":"p"},`+body+`}`, "")
		}},
	} {
		s := tell(t, true)
		s.during("12:00:10", "12:00:11", "create", uri, 201, "", "")
		c.tell(s)
		v := s.RBAC(clock(t, "12:02:00"))
		if v.IsUnknown(key) == c.known || len(v.Unknown) > 0 == c.known {
			t.Errorf("%s: unknown %v, in doubt %v", name, v.Unknown, v.Doubted)
		}
		if before := s.RBAC(clock(t, "12:00:30")); !before.IsUnknown(key) && !c.known {
			t.Errorf("%s: known before", name)
		}
	}
}
