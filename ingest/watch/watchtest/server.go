// Package watchtest is a fake kube-apiserver for tests of code that lists and watches: TLS,
// paged lists of one version, watches with history, bookmarks, compaction and the ways in
// which they break. Nothing in it depends on time; tests say what happens.
package watchtest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// patience is after how long a hanging test reports where it hangs.
const patience = 20 * time.Second

// Token is the bearer token the Server requires.
const Token = "watchtest-token"

// Server is the fake apiserver. Make one with New. Resources are the plurals in URLs: "roles".
type Server struct {
	now  func() time.Time
	http *httptest.Server

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at every change of what follows
	rv        int
	compacted int               // versions up to here are gone
	objects   map[string]object // by resource/namespace/name
	history   []change
	refusals  map[string]int // status code by resource
	goneCodes bool
	cuts      map[string]cut
	held      map[string]bool
	expire    map[string]bool // continue tokens are refused
	requests  []string
	watches   map[string]int // open watches by resource
}

type object struct {
	resource, key string
	rv            int
	json          []byte
}

type change struct {
	resource, kind string
	rv             int
	json           []byte
}

// cut is how often the watches of a resource were ended, and how the last time.
type cut struct {
	times   int
	orderly bool
}

// New starts a Server whose clock is now; the test's end closes it.
func New(t testing.TB, now func() time.Time) *Server {
	s := &Server{
		now: now, changed: make(chan struct{}), rv: 100, objects: map[string]object{}, refusals: map[string]int{},
		cuts: map[string]cut{}, held: map[string]bool{}, expire: map[string]bool{}, watches: map[string]int{},
	}
	s.http = httptest.NewUnstartedServer(s)
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // tests break connections on purpose
	s.http.StartTLS()
	t.Cleanup(s.http.Close)
	return s
}

// REST returns what a client needs to reach the Server.
func (s *Server) REST() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	return &rest.Config{Host: s.http.URL, BearerToken: Token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// update changes the Server and wakes its watches.
func (s *Server) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Put creates or replaces an object. content are the members of the object beside its
// metadata, as "\"rules\":[]"; annotations may be nil. It returns the object's uid.
func (s *Server) Put(resource, namespace, name, content string, annotations map[string]string) (uid string) {
	s.update(func() {
		s.rv++
		key := resource + "/" + namespace + "/" + name
		kind := "ADDED"
		uid = "uid-" + strconv.Itoa(s.rv)
		created := s.now().UTC().Format(time.RFC3339)
		if old, ok := s.objects[key]; ok {
			kind = "MODIFIED"
			var h struct {
				Metadata struct{ UID, CreationTimestamp string }
			}
			_ = json.Unmarshal(old.json, &h) // written below
			uid, created = h.Metadata.UID, h.Metadata.CreationTimestamp
		}
		meta := map[string]any{
			"name": name, "uid": uid, "resourceVersion": strconv.Itoa(s.rv), "creationTimestamp": created,
			"managedFields": []any{map[string]any{"manager": "test", "time": s.now().UTC().Format(time.RFC3339)}},
		}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		if annotations != nil {
			meta["annotations"] = annotations
		}
		m, _ := json.Marshal(meta) // strings only
		raw := []byte(`{"metadata":` + string(m))
		if content != "" {
			raw = append(append(raw, ','), content...)
		}
		raw = append(raw, '}')
		s.objects[key] = object{resource, key, s.rv, raw}
		s.history = append(s.history, change{resource, kind, s.rv, raw})
	})
	return uid
}

// Delete deletes an object.
func (s *Server) Delete(resource, namespace, name string) {
	s.update(func() {
		s.rv++
		key := resource + "/" + namespace + "/" + name
		last := s.objects[key]
		delete(s.objects, key)
		// The last content carries the version of the deletion.
		raw := strings.Replace(
			string(last.json),
			`"resourceVersion":"`+strconv.Itoa(last.rv)+`"`,
			`"resourceVersion":"`+strconv.Itoa(s.rv)+`"`,
			1,
		)
		s.history = append(s.history, change{resource, "DELETED", s.rv, []byte(raw)})
	})
}

// Bookmark sends a bookmark of the newest version to the resource's watches.
func (s *Server) Bookmark(resource string) {
	s.update(func() {
		raw := fmt.Sprintf(`{"metadata":{"resourceVersion":"%d","creationTimestamp":null}}`, s.rv)
		s.history = append(s.history, change{resource, "BOOKMARK", s.rv, []byte(raw)})
	})
}

// Send sends a frame to the resource's watches as it is, with $RV replaced by a new version.
func (s *Server) Send(resource, kind, object string) {
	s.update(func() {
		s.rv++
		object = strings.ReplaceAll(object, "$RV", strconv.Itoa(s.rv))
		s.history = append(s.history, change{resource, kind, s.rv, []byte(object)})
	})
}

// Compact forgets every version: earlier watches and continuations are answered with 410, as
// a status code if asCode is set, otherwise in the stream.
func (s *Server) Compact(asCode bool) {
	s.update(func() {
		s.rv++
		s.compacted, s.goneCodes, s.history = s.rv, asCode, nil
	})
}

// Restore sets the cluster back to an earlier version, as a backup would.
func (s *Server) Restore(rv int) { s.update(func() { s.rv, s.history = rv, nil }) }

// Refuse answers requests for a resource with a status code; 0 serves it again.
func (s *Server) Refuse(resource string, code int) { s.update(func() { s.refusals[resource] = code }) }

// Hold makes requests for a resource wait before their first byte until hold is false again.
func (s *Server) Hold(resource string, hold bool) { s.update(func() { s.held[resource] = hold }) }

// ExpireContinue refuses continuations of a resource's listing.
func (s *Server) ExpireContinue(resource string) { s.update(func() { s.expire[resource] = true }) }

// End ends the resource's watches: in an orderly way, or in the middle of a frame.
func (s *Server) End(resource string, orderly bool) {
	s.update(func() { s.cuts[resource] = cut{s.cuts[resource].times + 1, orderly} })
}

// Requests returns path and query of every request so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// AwaitWatch returns once n watches of the resource are open.
func (s *Server) AwaitWatch(t testing.TB, resource string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		s.mu.Lock()
		open, changed := s.watches[resource], s.changed
		s.mu.Unlock()
		if open == n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d watches of %s are open, waiting for %d", open, resource, n)
		}
	}
}

// AwaitRequests returns once n requests whose URI contains part have arrived.
func (s *Server) AwaitRequests(t testing.TB, part string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		s.mu.Lock()
		count, changed := 0, s.changed
		for _, r := range s.requests {
			if strings.Contains(r, part) {
				count++
			}
		}
		s.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d requests with %q, waiting for %d", count, part, n)
		}
	}
}
