package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// TestLostBatch does what the steps of `retrial connect` say, all of them, and makes the webhook
// lose a batch before the follower is started: one PATCH whose body cannot be encoded. It is
// known that events are missing, how many and why; they arrive from the log, once; nothing that
// was made is undecided in the end; and doctor says each of it at its time.
func TestLostBatch(t *testing.T) {
	l := &live{Install: product.New(t), ledger: newLedger("lostbatch")}
	l.folder = filepath.Join(l.Dir, "apiserver")
	l.server = l.Serve(t, "127.0.0.1:0", "--completeness-every", "1s")
	l.start(t, nil, "--audit-webhook-initial-backoff=1s")
	t.Run("nothing but what was printed", func(t *testing.T) {
		got := slices.DeleteFunc(auditFlags(l.Apiserver().Arguments(t)), func(f string) bool {
			return strings.HasPrefix(f, "--audit-webhook-initial-backoff")
		})
		if !slices.Equal(got, l.printed) || !strings.Contains(strings.Join(got, " "), "--audit-log-path="+l.folder) {
			t.Errorf("the apiserver runs with %q, connect printed %q", got, l.printed)
		}
	})
	l.tell(t)
	l.doctor(t, "followed", "warn", "a batch that the webhook drops would be lost for good")
	l.doctor(t, "completeness", "warn", "The apiservers' counters are not read", "retrial cluster scrape live")

	// The counters, as the printed commands have them read.
	l.apply(t, filepath.Join(l.folder, "metrics-rbac.yaml"))
	reader := l.ServiceAccount(t, l.admin, "retrial", "retrial-metrics")
	token, ca := filepath.Join(l.Dir, "metrics.token"), filepath.Join(l.Dir, "metrics-ca.crt")
	for file, content := range map[string][]byte{token: []byte(reader.BearerToken), ca: reader.CAData} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	controlplane.Poll(t, "the authorizer to know the account", func(context.Context) (bool, string) {
		r := l.Try(t, "cluster", "scrape", clusterName, "--url", l.URL(), "--token-file", token, "--certificate-authority", ca,
			"--data-dir", filepath.Join(l.Dir, "data"))
		return r.Code == 0, r.Err
	})
	l.doctor(t, "completeness", "warn", "is being read, and not known yet")
	m := &measured{Cluster: l.Cluster, Install: l.Install, server: l.server, root: l.Admin(t), settle: "10s"}
	m.exactly(t, 0)

	dropped := l.loseBatch(t, m)
	got, code := m.exactly(t, dropped)
	if code != 3 {
		t.Errorf("exit code %d", code)
	}
	losses := got.Servers[0].Measured.Losses
	if len(losses) != 1 || losses[0].Cause != "unencodable-batch" || losses[0].Events != dropped || losses[0].Arrived != 0 ||
		!strings.Contains(losses[0].Text, "one PATCH whose body is not JSON") || !strings.Contains(losses[0].Text, "None of the") {
		t.Errorf("%+v", losses)
	}

	// The follower, as its unit runs it.
	started := time.Now()
	follower := l.Beside(t, l.unit(t)...)
	got, code = m.exactly(t, 1) // the PATCH itself is in no backend
	losses = got.Servers[0].Measured.Losses
	if code != 0 || len(losses) != 1 || losses[0].Arrived != dropped-1 || losses[0].Unwritten != 1 ||
		losses[0].ArrivedBy.Before(started.Add(-time.Second)) {
		t.Errorf("exit code %d, %+v", code, losses)
	}
	controlplane.Poll(t, "what came both ways to be counted", func(context.Context) (bool, string) {
		n := l.server.Metric(t, "retrial_runner_duplicates_total")
		return n >= 100, fmt.Sprintf("%v duplicates", n)
	})
	t.Logf("lost with one PATCH: %d events; %s", dropped, losses[0].Text)
	l.waiting.Done(t)
	if _, told, _ := strings.Cut(l.waiting.Output(), "\nWaiting for"); !strings.Contains(told, clusterName+" is connected.") ||
		!strings.Contains(told, "The audit log is followed: ") {
		t.Errorf("connect ended without a word:\n%s", told)
	}
	l.nothingUnknown(t)

	l.doctor(t, "followed", "ok", "post")
	pollFor(t, 6*time.Minute, "the hour to be settled", func() bool {
		check := l.check(t, "completeness")
		return check.State == "ok" && strings.Contains(check.Text, fmt.Sprintf("%d of the %d came from a log", dropped-1, dropped))
	})
	t.Logf("doctor: %+v", l.check(t, "completeness"))
	follower.Stop(t)
}

// TestPatchMetadata: under the audit policy without bodies of PATCH a body that cannot be encoded
// costs nothing, and what a patched role became is known from the watch.
func TestPatchMetadata(t *testing.T) {
	t.Parallel()
	l := &live{Install: product.New(t), ledger: newLedger("patchmetadata")}
	l.folder = filepath.Join(l.Dir, "apiserver")
	l.server = l.Serve(t, "127.0.0.1:0")
	l.start(t, append([]string{"--policy", "patch-metadata"}, webhookAlone...), "--audit-webhook-initial-backoff=1s")
	l.follow(t)
	l.objects.mustPut(t, decode(t, []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: fred, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: fred}]
`)))
	const role = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/reader"
	l.root.must(t, ask{line: "PATCH " + role, body: "application/merge-patch+json this is not JSON", want: []int{http.StatusBadRequest}},
		ask{line: "PATCH " + role, body: `application/merge-patch+json {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ` +
			`["list"]}]}`, want: []int{http.StatusOK}})
	fred := newPerson(t, l.ledger, "fred", l.User(t, "fred"))
	l.decided(t, true, "fred", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "default"})
	controlplane.Poll(t, "the product to know what the role became", func(context.Context) (bool, string) {
		r := l.Try(t, "can", "fred", "list", "pods", "-n", "default", "--cluster", clusterName, "--data-dir", filepath.Join(l.Dir, "data"))
		return r.Code == 0, r.Out + r.Err
	})
	fred.may(t, "GET /api/v1/namespaces/default/pods")
	fred.mayNot(t, "GET /api/v1/namespaces/default/secrets")
	l.arrived(t) // and nothing was lost
	patches, lists := 0, 0
	for _, v := range l.verdicts(t) {
		if v.Outcome == "drift" {
			t.Errorf("drift: %+v", v)
		}
		if v.Verb == "patch" && v.RequestURI == role {
			patches++
		}
		if v.User == "fred" && strings.HasPrefix(v.RequestURI, "/api/v1/namespaces/default/pods") {
			lists++
			t.Logf("%+v", v)
		}
	}
	if patches != 2 || lists != 1 {
		t.Errorf("%d of 2 patches, %d of 1 list are there", patches, lists)
	}
}

// loseBatch makes requests, one of which costs the webhook its batch, and returns how many events
// it dropped.
func (l *live) loseBatch(t *testing.T, m *measured) int64 {
	t.Helper()
	stop := m.flowing(t)
	// What the shipped policy logs with bodies, among others.
	l.root.must(t, ask{line: "PATCH /api/v1/namespaces/default/serviceaccounts/none", body: "application/merge-patch+json this is not JSON",
		want: []int{http.StatusBadRequest, http.StatusNotFound}})
	return m.gaveUp(t, stop)
}

// unit returns the command line of the follower in the unit that connect wrote; it keeps its position
// elsewhere.
func (l *live) unit(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.folder, "retrial-follow.service"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "ExecStart=/usr/local/bin/retrial "); ok {
			args := strings.Fields(command)
			i := slices.Index(args, "--position")
			if i < 0 || args[i+1] != "/var/lib/retrial-follow/live.json" {
				t.Fatalf("the follower runs with %q", args)
			}
			args[i+1] = filepath.Join(l.Dir, "follow.json")
			return args
		}
	}
	t.Fatal("the unit has no command")
	return nil
}

// check returns the only check of an ID that doctor tells of the cluster.
func (l *live) check(t *testing.T, id string) (found struct{ ID, State, Text, Todo string }) {
	t.Helper()
	r := l.Try(t, "doctor", clusterName, "-o", "json", "--data-dir", filepath.Join(l.Dir, "data"))
	var answer struct {
		Checks []struct{ ID, State, Text, Todo string }
	}
	if err := json.Unmarshal([]byte(r.Out), &answer); err != nil {
		t.Fatalf("%v: %s %s", err, r.Out, r.Err)
	}
	n := 0
	for _, c := range answer.Checks {
		if c.ID == id {
			found, n = c, n+1
		}
	}
	if n != 1 {
		t.Errorf("doctor says %d times how %s is", n, id)
	}
	return found
}

// doctor waits until it says so.
func (l *live) doctor(t *testing.T, id, state string, says ...string) {
	t.Helper()
	controlplane.Poll(t, "doctor to say how "+id+" is", func(context.Context) (bool, string) {
		c := l.check(t, id)
		for _, s := range says {
			if !strings.Contains(c.Text+"\n"+c.Todo, s) {
				return false, fmt.Sprintf("%+v", c)
			}
		}
		return c.State == state, fmt.Sprintf("%+v", c)
	})
}

// nothingUnknown: every request has a verdict, and none is undecided for want of an event.
func (l *live) nothingUnknown(t *testing.T) {
	t.Helper()
	l.Drained(t)
	outcomes, classes := map[string]int{}, map[string]int{}
	for _, v := range l.verdicts(t) {
		outcomes[v.Outcome]++
		if v.Outcome == "drift" || v.Class == "unknown-object" || v.Class == "no-state" {
			classes[v.Class]++
			t.Errorf("%s %s by %s: %s %s: %s", v.Verb, v.RequestURI, v.User, v.Outcome, v.Class, v.Cause)
		}
	}
	t.Logf("outcomes %v", outcomes)
	if outcomes["match"] < 100 {
		t.Errorf("too few requests to say anything: %v", outcomes)
	}
}
