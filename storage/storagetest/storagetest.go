// Package storagetest opens stores on the embedded engine for tests, and makes rows from lines of an audit log.
package storagetest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/test/chserver/chservertest"
	"github.com/retrial-io/retrial/verdict"
)

// Need ends the test when the embedded engine cannot run here: a skip for a developer, a failure when the environment variable CI is set.
func Need(t testing.TB) {
	t.Helper()
	err := embedded.Suitable()
	if err == nil {
		_, err = embedded.Locate("")
	}
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("CI runs need the embedded store: %v", err)
	default:
		t.Skipf("NOT RUN: %v", err)
	}
}

// Open opens a store in a directory of its own, closed when the test ends. Only one store
// can be open in a process: such tests must not run in parallel.
func Open(t testing.TB) *storage.Store {
	t.Helper()
	return OpenAt(t, t.TempDir())
}

// OpenShared opens a store like Open, as one of several that write into its database.
func OpenShared(t testing.TB) *storage.Store {
	t.Helper()
	s, closeStore := start(t, t.TempDir(), true)
	t.Cleanup(closeStore)
	return s
}

// OpenAt opens a store in the given directory, closed when the test ends.
func OpenAt(t testing.TB, dir string) *storage.Store {
	t.Helper()
	s, closeStore := Start(t, dir)
	t.Cleanup(closeStore)
	return s
}

// Served names the environment variable that has the stores of all tests opened at a server,
// over HTTP, instead of in process: what holds for the one must hold for the other.
const Served = "RETRIAL_TEST_SERVED"

// Start opens a store in the given directory and returns what closes it, for tests that reopen one.
func Start(t testing.TB, dir string) (*storage.Store, func()) {
	t.Helper()
	return start(t, dir, false)
}

func start(t testing.TB, dir string, shared bool) (*storage.Store, func()) {
	t.Helper()
	Need(t)
	if os.Getenv(Clustered) != "" {
		return StartCluster(t, dir)
	}
	if os.Getenv(Served) != "" {
		server := chservertest.Start(t, chservertest.Dir(dir))
		s, err := storage.Open(context.Background(), storage.Config{DSN: server.DSN(chservertest.Owner, chservertest.OwnerPassword)})
		if err != nil {
			t.Fatal(err)
		}
		return s, func() {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			server.Stop()
		}
	}
	engine, err := embedded.Open(embedded.Config{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(context.Background(), storage.Config{Transport: engine, Shared: shared})
	if err != nil {
		engine.Close()
		t.Fatal(err)
	}
	return s, func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Row returns the row that a log line becomes at a position: keys, content and size as the pipeline computes them, without a verdict.
func Row(cluster string, line []byte, pos event.Position, received time.Time) (verdict.Row, error) {
	e, err := event.Decode(line)
	if err != nil {
		return verdict.Row{}, fmt.Errorf("decode line: %w", err)
	}
	canonical := event.AppendJSON(nil, e)
	request := event.RequestKey(cluster, e)
	return verdict.Row{
		Cluster: cluster, Source: "import", Received: received, Position: pos,
		EventKey: event.EventKey(request, e), Request: request, Content: event.Content(canonical),
		Size: len(canonical), Event: e, Sign: 1, Revision: 1,
	}, nil
}

// Verdict gives a row a plausible verdict derived from its event alone, the same for equal
// events: what the engine says is not the store's concern, only that it comes back.
func Verdict(r *verdict.Row) {
	e := r.Event
	decision, _ := e.Annotations.Get(event.AnnotationDecision)
	reason, _ := e.Annotations.Get(event.AnnotationReason)
	v := &verdict.Verdict{Outcome: verdict.OutcomeMatch, RecordedReason: reason, Authorizer: "rbac", Revision: r.Revision, Engine: "test",
		Config: "test"}
	if a, err := request.Of(e.Verb, e.RequestURI); err == nil {
		v.Attributes = a
	}
	switch decision {
	case "allow":
		v.Recorded, v.Replayed = verdict.DecisionAllow, verdict.DecisionAllow
		v.Grants = []verdict.Grant{{
			BindingKind: "ClusterRoleBinding", Binding: "admins", RoleKind: "ClusterRole", Role: "cluster-admin",
			SubjectKind: "Group", Subject: "system:masters",
			Reason: `RBAC: allowed by ClusterRoleBinding "admins" of ClusterRole "cluster-admin" to Group "system:masters"`,
		}, {
			BindingKind: "RoleBinding", BindingNamespace: "kube-system", Binding: "x\t\"y", RoleKind: "Role", Role: "z",
			SubjectKind: "ServiceAccount", SubjectNamespace: "kube-system", Subject: "sa", Rule: 3, Reason: "another text",
		}}
	case "forbid":
		v.Recorded, v.Replayed = verdict.DecisionForbid, verdict.DecisionForbid
		v.Errors = []string{`clusterrole.rbac.authorization.k8s.io "gone" not found`}
	default:
		v.Outcome, v.Class, v.Cause = verdict.OutcomeNotJudged, "unauthenticated", "no decision was recorded"
	}
	identity(e, v)
	chain(v)
	if w := e.ImpersonatedUser; w != nil && v.Replayed == verdict.DecisionAllow {
		v.Implied = append(v.Implied, verdict.Implied{Check: "impersonation", Replayed: verdict.DecisionAllow, Grants: v.Grants[1:],
			Attributes: verdict.Attributes{Verb: "impersonate", ResourceRequest: true, Resource: "users", Name: w.Username}})
	}
	r.Verdict = v
}

// identity says who can have authenticated the user, and by which credential.
func identity(e *event.Event, v *verdict.Verdict) {
	if id := e.User.Extra.Get("authentication.kubernetes.io/credential-id"); len(id) > 0 {
		v.Credential = id[0]
	}
	switch {
	case strings.HasPrefix(v.Credential, "JTI="):
		v.Explained = []string{"serviceaccount-bound"}
	case v.Credential != "":
		v.Explained = []string{"x509"}
	case e.User.Username == "system:anonymous":
		v.Explained = []string{"anonymous"}
	}
}

// chain says how the decision came about, and what it implies for some requests.
func chain(v *verdict.Verdict) {
	if v.Replayed == verdict.DecisionNone {
		return
	}
	v.Chain = []verdict.ChainStep{{Authorizer: "node", Answer: "no-opinion"}, {Authorizer: "rbac", Answer: "no-opinion"}}
	if v.Replayed == verdict.DecisionForbid {
		return
	}
	v.Chain[1] = verdict.ChainStep{Authorizer: "rbac", Answer: "allow", Reason: v.Grants[0].Reason}
	if v.Attributes.Subresource == "exec" || v.Attributes.Resource == "rolebindings" && v.Attributes.Verb == "create" {
		c := verdict.Implied{Check: "check", Attributes: v.Attributes, Replayed: v.Replayed, Recorded: v.Recorded, Covered: true,
			Grants: v.Grants[:1]}
		c.Attributes.Verb = "bind"
		v.Implied = []verdict.Implied{c}
	}
}
