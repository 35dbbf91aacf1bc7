package webhook

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/identity"
)

// TestContacts: who was accepted, who was turned away and why is remembered by cluster; what
// cannot be attributed shows with every cluster.
func TestContacts(t *testing.T) {
	c := NewContacts(nil)
	s := newSite(t, Config{Contacts: c}, ServerConfig{Contacts: c})
	prod, test := s.add(t, "prod"), s.add(t, "test")
	wrong := newAuthority(t, s)
	foreign, err := wrong.Registry().Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	if c.Accepted("prod") != nil || c.Refusals("prod") != nil {
		t.Error("something is remembered before anything happened")
	}

	one := s.client(t, prod, true)
	for range 2 {
		if code, text, err := s.send(t, one, "prod", ""); code != 200 {
			t.Fatalf("answer %d %s %v", code, text, err)
		}
	}
	if a := c.Accepted("prod"); a == nil || a.Posts != 2 || a.Events != 2 || a.Remote != "127.0.0.1" || a.Last.Before(a.First) {
		t.Errorf("accepted of prod: %+v", a)
	}
	if c.Accepted("test") != nil {
		t.Error("test never posted")
	}

	// A follower of the log has the same credentials, and is another.
	follower, err := one.Post(s.url+"/v1/clusters/prod/audit?source=log", "application/json", strings.NewReader(list()))
	if err != nil || follower.StatusCode != http.StatusOK {
		t.Fatalf("a follower is answered %+v %v", follower, err)
	}
	_ = follower.Body.Close()
	if a := c.Followed("prod"); a == nil || a.Posts != 1 || a.Remote != "127.0.0.1" {
		t.Errorf("followed of prod: %+v", a)
	}
	if a := c.Accepted("prod"); a == nil || a.Posts != 2 {
		t.Errorf("accepted of prod, with a follower: %+v", a)
	}
	if c.Followed("test") != nil {
		t.Error("test is not followed")
	}

	latest := func(t *testing.T, cluster string, reason Reason, says string) {
		t.Helper()
		r := c.Refusals(cluster)
		if len(r) == 0 || r[0].Reason != reason || !strings.Contains(r[0].Detail, says) || r[0].Remote != "127.0.0.1" {
			t.Errorf("refusals of %q: %+v, want %s with %q first", cluster, r, reason, says)
		}
	}
	_, _, _ = s.send(t, s.client(t, identity.Credentials{}, true), "prod", "")
	latest(t, "prod", ReasonCredential, "no client certificate")
	_, _, _ = s.send(t, s.client(t, test, true), "prod", "")
	latest(t, "test", ReasonCluster, "the path says prod")
	latest(t, "prod", ReasonCredential, "no client certificate") // that was test's doing
	resp, err := s.client(t, test, true).Post(s.url+"/v1/cluster/test/audit", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	latest(t, "test", ReasonPath, "no such path")

	_, _, _ = s.send(t, s.client(t, foreign, true), "prod", "")
	<-s.refused
	latest(t, "prod", ReasonUnknownAuthority, "unknown authority")
	latest(t, "test", ReasonUnknownAuthority, "unknown authority")
	distrusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{}}}
	defer distrusting.CloseIdleConnections()
	_, _, _ = s.send(t, distrusting, "prod", "")
	<-s.refused
	latest(t, "prod", ReasonNotTrusted, "remote error: tls: bad certificate")
	plain := &http.Client{Transport: &http.Transport{}}
	defer plain.CloseIdleConnections()
	if resp, err := plain.Get(strings.Replace(s.url, "https", "http", 1)); err == nil {
		_ = resp.Body.Close()
	}
	<-s.refused
	latest(t, "prod", ReasonNotTLS, "HTTP request")
	later := time.Now().Add(366 * 24 * time.Hour)
	s.now.Store(&later)
	_, _, _ = s.send(t, s.client(t, prod, true), "prod", "")
	<-s.refused
	latest(t, "prod", ReasonExpired, "expired")
}

// TestContactsAreBounded: a repeated refusal replaces its earlier one, and the oldest goes first.
func TestContactsAreBounded(t *testing.T) {
	now := time.Unix(1, 0)
	c := NewContacts(func() time.Time { now = now.Add(time.Second); return now })
	for i := range 3 * keptRefusals {
		c.refuse("prod", "10.0.0.1:80", ReasonCredential, "one that tries again and again")
		c.refuse(fmt.Sprintf("c%d", i), "10.0.0.2:80", ReasonCredential, strings.Repeat("ü", detailBytes))
	}
	if n := len(c.refusals); n != keptRefusals {
		t.Errorf("%d refusals are kept", n)
	}
	r := c.Refusals("prod")
	if len(r) != 1 || r[0].Count != 3*keptRefusals || !r[0].First.Before(r[0].Last) {
		t.Errorf("the repeated one: %+v", r)
	}
	if last := c.Refusals(fmt.Sprintf("c%d", 3*keptRefusals-1)); len(last) != 1 || len(last[0].Detail) > detailBytes+len("…") ||
		!bytes.HasSuffix([]byte(last[0].Detail), []byte("ü…")) {
		t.Errorf("the last one: %+v", last)
	}
	for i := range keptClusters + 1 {
		c.accept(fmt.Sprint(i), "", "10.0.0.1:80", 1)
	}
	if n := len(c.accepted); n != keptClusters {
		t.Errorf("%d clusters are kept", n)
	}
	var none *Contacts
	none.accept("prod", "", "", 1)
	none.refuse("prod", "", ReasonPath, "")
	none.handshake("http: TLS handshake error from 10.0.0.1:1: EOF")
	if none.Accepted("prod") != nil || none.Refusals("prod") != nil || !none.Since().IsZero() {
		t.Error("a nil record remembers")
	}
}

func TestHandshakeReasons(t *testing.T) {
	const from = "http: TLS handshake error from 10.0.0.1:1: "
	for line, want := range map[string]Reason{
		from + "EOF": "",
		from + "read tcp 1->2: read: connection reset by peer":                                        "",
		from + "tls: first record does not look like a TLS handshake":                                 ReasonHandshake,
		"http: TLS handshake error from [::1]:1: remote error: tls: unknown certificate authority":    ReasonNotTrusted,
		from + "tls: client offered only unsupported versions: [302 301]":                             ReasonHandshake,
		"http: superfluous response.WriteHeader call":                                                 "",
		from + "tls: failed to verify certificate: x509: certificate signed by unknown authority":     ReasonUnknownAuthority,
		from + "tls: failed to verify certificate: x509: certificate has expired or is not yet valid": ReasonExpired,
	} {
		c := NewContacts(nil)
		c.handshake(line)
		var got Reason
		if len(c.refusals) > 0 {
			got = c.refusals[0].Reason
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

// TestUnfollowed: an apiserver whose log nobody follows is named, once it has posted for a while.
func TestUnfollowed(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := NewContacts(func() time.Time { return now })
	since := func() time.Time { return now.Add(-5 * time.Minute) }
	for range 10 {
		c.accept("prod", "a", "10.0.0.1:1", 1)
		c.accept("prod", "b", "10.0.0.2:1", 1)
		c.follow("prod", "a", "10.0.0.1:2", 1)
		c.follow("prod", "gone", "10.0.0.3:2", 1)
		if got := c.Unfollowed("prod", since()); got != nil && now.Minute() <= 5 {
			t.Errorf("at %s %q: it has only begun to post", now.Format(time.TimeOnly), got)
		}
		now = now.Add(time.Minute)
	}
	if got := c.Unfollowed("prod", since()); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q, want b", got)
	}
	if got := c.Unfollowed("test", since()); got != nil {
		t.Errorf("of another cluster %q", got)
	}
	c.follow("prod", "b", "10.0.0.2:2", 1)
	if got := c.Unfollowed("prod", since()); got != nil {
		t.Errorf("%q, and all are followed", got)
	}
	for range 10 { // nobody posts any more
		now = now.Add(time.Minute)
	}
	if got := c.Unfollowed("prod", since()); got != nil {
		t.Errorf("%q, and none posts", got)
	}
	for i := range 1000 {
		c.accept("prod", fmt.Sprint("s", i), "10.0.0.1:1", 1)
	}
	if n := len(c.servers["prod"]); n > keptServers {
		t.Errorf("%d apiservers are remembered", n)
	}
	var none *Contacts
	if none.Unfollowed("prod", now) != nil {
		t.Error("nobody remembers")
	}
}
