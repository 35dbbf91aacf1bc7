package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/watch/watchtest"
)

// TestServeWatchesClusters: a cluster named by --watch-clusters is judged by what the watch
// saw, with no state file and no policy write in the audit stream.
func TestServeWatchesClusters(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	double := watchtest.New(t, time.Now)
	double.Put("namespaces", "", "kube-system", "", nil)
	double.Put("namespaces", "", "default", "", nil)
	double.Put("roles", "default", "reader", podReader, nil)
	double.Put("rolebindings", "default", "jane", toJane, nil)
	kubeconfig := filepath.Join(in.dir, "watched.kubeconfig")
	rc := double.REST()
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
`, rc.Host, base64.StdEncoding.EncodeToString(rc.CAData), rc.BearerToken)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	s := in.serve(t, "--watch-clusters", "prod="+kubeconfig, "--replay-hold", "0s")
	to := s.addCluster(t, "prod")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := func(metric string, n float64) {
		t.Helper()
		if !s.reach(ctx, metric, n) {
			t.Fatalf("%s did not reach %v:\n%s", metric, n, s.log)
		}
		s.drained(t) // what the watch sent has been applied
	}
	const granted = `RBAC: allowed by RoleBinding \"jane/default\" of Role \"reader\" to User \"jane\"`
	// ask posts a request of jane's and expects its verdict. It was made a second later than
	// it is now when the change before it must be over by any bound.
	ask := func(id string, after time.Duration, decision, reason string, code int, verdict string) {
		t.Helper()
		at := time.Now().Add(after).UTC().Format("2006-01-02T15:04:05.000000Z")
		to.deliver(t,
			[]byte(fmt.Sprintf(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"level":"Metadata",`+
				`"auditID":%q,"stage":"ResponseComplete",`+
				`"requestURI":"/api/v1/namespaces/default/pods/a","verb":"get","user":{"username":"jane",`+
				`"groups":["system:authenticated"]},`+
				`"objectRef":{"resource":"pods","namespace":"default","name":"a","apiVersion":"v1"},"responseStatus":{"metadata":{},`+
				`"code":%d},`+
				`"requestReceivedTimestamp":%q,"stageTimestamp":%q,"annotations":{"authorization.k8s.io/decision":%q,`+
				`"authorization.k8s.io/reason":"%s"}}]}`,
				id, code, at, at, decision, reason)))
		s.drained(t)
		says(t, in.run(t, "why", id).ok(t).out, verdict)
	}
	seen("retrial_watch_relists_total", 6)
	ask("with-binding", 0, "allow", granted, 200, "match")
	double.Delete("rolebindings", "default", "jane")
	seen("retrial_watch_events_total", 1)
	ask("without-binding", time.Second, "forbid", "", 403, "match")
	ask("still-allowed", time.Second, "allow", granted, 200, "drift")

	// Stopped, changed, started again: the watch goes on where it was.
	s.stop(t)
	double.Put("rolebindings", "default", "jane", toJane, nil)
	s = in.serve(t, "--watch-clusters", "prod="+kubeconfig, "--replay-hold", "0s")
	to = s.sender(t, filepath.Join(in.dir, "prod.kubeconfig"))
	seen("retrial_watch_events_total", 1)
	ask("with-binding-again", time.Second, "allow", granted, 200, "match")
	s.stop(t)
}

const (
	podReader = `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`
	toJane    = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"User",` +
		`"apiGroup":"rbac.authorization.k8s.io","name":"jane"}]`
)
