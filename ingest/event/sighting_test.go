package event

import (
	"testing"
	"time"
)

func TestSighting(t *testing.T) {
	const agent = "kube-apiserver/v1.36.3 (linux/amd64) kubernetes/abcdef0"
	at := time.Date(2026, 5, 4, 11, 3, 0, 0, time.UTC)
	made := func(user, ip, agent string, as *User) *Event {
		return &Event{User: User{Username: user}, SourceIPs: []string{ip}, UserAgent: agent, ImpersonatedUser: as,
			RequestReceivedTimestamp: at}
	}
	for _, c := range []struct {
		name    string
		e       *Event
		version string
		minor   int
	}{
		{"own request", made("system:apiserver", "::1", agent, nil), "1.36.3", 36},
		{"over IPv4", made("system:apiserver", "127.0.0.1", agent, nil), "1.36.3", 36},
		{"a distribution", made("system:apiserver", "127.0.0.1", "k3s/v1.30.4+k3s1 (linux/arm64) kubernetes/98262b5", nil), "1.30.4", 30},
		{"a release candidate", made("system:apiserver", "127.0.0.1", "kube-apiserver/v1.37.0-rc.1 (linux/amd64) kubernetes/abc", nil),
			"1.37.0", 37},
		{"from elsewhere", made("system:apiserver", "10.0.0.1", agent, nil), "", 0},
		{"through a proxy", &Event{User: User{Username: "system:apiserver"}, SourceIPs: []string{"127.0.0.1", "127.0.0.1"},
			UserAgent: agent}, "", 0},
		{"somebody else", made("jane", "127.0.0.1", agent, nil), "", 0},
		{"impersonating", made("system:apiserver", "127.0.0.1", agent, &User{Username: "jane"}), "", 0},
		{"another client", made("system:apiserver", "127.0.0.1", "Go-http-client/2.0", nil), "", 0},
		{"no version", made("system:apiserver", "127.0.0.1", "kube-apiserver/v1 (linux/amd64) kubernetes/abc", nil), "", 0},
		{"nothing", &Event{}, "", 0},
	} {
		version, minor, ok := Sighting(c.e)
		if version != c.version || minor != c.minor || ok != (c.minor > 0) {
			t.Errorf("%s: %q %d %v", c.name, version, minor, ok)
		}
	}

	var s Sightings
	e := made("system:apiserver", "::1", agent, nil)
	for range 2 {
		if !s.Fresh("c", "a", e) {
			t.Error("not fresh, though none was passed on")
		}
	}
	s.Passed("c", "a", e)
	later := *e
	later.RequestReceivedTimestamp = at.Add(6 * time.Minute)
	next := *e
	next.RequestReceivedTimestamp = at.Add(7 * time.Minute) // 11:10
	if s.Fresh("c", "a", e) || s.Fresh("c", "a", &later) || !s.Fresh("c", "b", e) || !s.Fresh("c", "a", &next) {
		t.Error("one sighting of each apiserver's version in ten minutes is enough, and needed")
	}
}
