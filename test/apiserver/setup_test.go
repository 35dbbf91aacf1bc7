package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// clusterName is what the cluster is called in the product.
const clusterName = "live"

// live is an apiserver that posts to a running product, connected as `retrial connect` says.
type live struct {
	*controlplane.Cluster
	*product.Install
	server  *product.Server
	waiting *controlplane.Process // connect, until all is connected
	printed []string              // the flags that it printed
	folder  string                // what connect wrote
	ledger  *ledger
	root    *person // system:masters
	admin   *kubernetes.Clientset
	objects *writerOf
}

// connect brings all of it up; the arguments are further ones of `retrial serve`:
//
//	retrial serve ─▶ retrial connect ─▶ its flags ─▶ kube-apiserver ─▶ webhook ─▶ retrial serve
func connect(t testing.TB, args ...string) *live {
	t.Helper()
	in := product.New(t)
	l := &live{Install: in, folder: filepath.Join(in.Dir, "apiserver"), ledger: newLedger(strings.ToLower(t.Name()))}
	l.server = in.Serve(t, "127.0.0.1:0", args...)
	l.start(t, webhookAlone)
	return l
}

// webhookAlone are the flags of connect by which it sets up nothing beside the webhook.
var webhookAlone = []string{"--no-audit-log", "--no-metrics"}

// start runs connect, and a kube-apiserver with the flags it printed and further ones.
func (l *live) start(t testing.TB, connect []string, more ...string) {
	t.Helper()
	receiver, err := url.Parse(l.server.Webhook)
	if err != nil {
		t.Fatal(err)
	}
	l.waiting = l.Beside(t, append([]string{"connect", clusterName, "--for", "generic", "--advertise-address", receiver.Host, "--output",
		l.folder}, connect...)...)
	var text string
	controlplane.Poll(t, "connect to have said what to do", func(context.Context) (said bool, _ string) {
		if l.waiting.Ended() {
			t.Fatal("connect ended before anything was connected")
		}
		text, _, said = strings.Cut(l.waiting.Output(), "\nWaiting for")
		return said, ""
	})
	if l.printed = printedFlags(t, text); len(l.printed) == 0 {
		t.Fatalf("connect printed no flags:\n%s", text)
	}
	l.Cluster = controlplane.Start(t, append(slices.Clone(l.printed), more...)...)
	l.root = newPerson(t, l.ledger, "root", l.Admin(t))
	if l.admin, err = kubernetes.NewForConfig(l.ledger.watch("root", l.Admin(t))); err != nil {
		t.Fatal(err)
	}
	l.objects = newWriter(t, l.ledger.watch("root", l.Admin(t)))
}

// printedFlags returns the flags in what connect printed, as a shell reads them: a person copies
// them from there.
func printedFlags(t testing.TB, text string) []string {
	t.Helper()
	var flags []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(strings.TrimLeft(line, `'"`), "--") {
			continue
		}
		word, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+line).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		flags = append(flags, string(word))
	}
	return flags
}

// follow lets the server watch the cluster, as connect says: with the account of the manifest
// it wrote, and with nothing more. The server comes back on the address apiservers know.
func (l *live) follow(t testing.TB) {
	t.Helper()
	l.apply(t, filepath.Join(l.folder, "watch-rbac.yaml"))
	kubeconfig := filepath.Join(l.Dir, clusterName+".kubeconfig")
	controlplane.Kubeconfig(t, kubeconfig, l.ServiceAccount(t, l.admin, "retrial", "retrial-watch"))
	l.restart(t, "--watch-clusters", clusterName+"="+kubeconfig)
	listed(t, l.server)
	l.Drained(t)
}

// restart stops the server and starts it on the address apiservers know.
func (l *live) restart(t testing.TB, args ...string) {
	t.Helper()
	l.server.Stop(t)
	l.again(t, args...)
}

// again starts the server on the address apiservers know.
func (l *live) again(t testing.TB, args ...string) {
	t.Helper()
	receiver, err := url.Parse(l.server.Webhook)
	if err != nil {
		t.Fatal(err)
	}
	l.server = l.Serve(t, net.JoinHostPort("127.0.0.1", receiver.Port()), args...)
}

// listed waits until a server that watches a cluster has listed all kinds but Secrets, which
// its account may not read.
func listed(t testing.TB, s *product.Server) {
	t.Helper()
	controlplane.Poll(t, "the watch to have listed everything", func(context.Context) (bool, string) {
		n := s.Metric(t, "retrial_watch_relists_total")
		return n >= 12, fmt.Sprint(n)
	})
}

// tell loads the state from a listing, the other way that connect names.
func (l *live) tell(t testing.TB) {
	t.Helper()
	file := filepath.Join(l.Dir, "state.json")
	if err := os.WriteFile(file, l.listing(t), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Do(t, "import", "--cluster", clusterName, "--state", file)
}

// arrived waits until the product has everything the apiserver has logged so far, and
// compares the counts: the apiserver's own of events handed to its audit backend, and the
// product's of events stored. Both have to speak of the same moment, at which nothing else is
// under way: one at which the only event between two questions is the first question's.
func (l *live) arrived(t testing.TB) {
	t.Helper()
	controlplane.Poll(t, "all events to arrive", func(ctx context.Context) (bool, string) {
		before := l.logged(t)
		moment := time.Now()
		logged := l.logged(t)
		if logged != before+1 {
			return false, fmt.Sprintf("%d events between two questions", logged-before)
		}
		stored := 0
		controlplane.Poll(t, fmt.Sprintf("%d events to arrive", logged), func(context.Context) (bool, string) {
			stored = l.stored(t, moment)
			return stored >= logged, fmt.Sprintf("%d did", stored)
		})
		// More: a request that was on its way at that moment, or a watch that ended since.
		t.Logf("events: %d logged by the apiserver, %d stored", logged, stored)
		return stored == logged, fmt.Sprintf("%d logged, %d stored", logged, stored)
	})
	for _, metric := range []string{"apiserver_audit_error_total", "apiserver_audit_requests_rejected_total"} {
		if n := controlplane.Metric(l.metrics(t), metric); n != 0 {
			t.Errorf("%s is %v: the apiserver lost events", metric, n)
		}
	}
}

// metrics returns what the apiserver says of itself.
func (l *live) metrics(t testing.TB) string {
	t.Helper()
	_, text := l.root.do(t, ask{line: "GET /metrics", want: []int{200}})
	return text
}

func (l *live) logged(t testing.TB) int {
	return int(controlplane.Metric(l.metrics(t), "apiserver_audit_event_total"))
}

// stored counts the events of requests that arrived before a moment.
func (l *live) stored(t testing.TB, before time.Time) int {
	t.Helper()
	l.Drained(t)
	var answer struct{ Totals struct{ Events int } }
	l.Ask(t, "overview", url.Values{"cluster": {clusterName}, "from": {before.Add(-90 * time.Minute).UTC().Format(time.RFC3339Nano)},
		"to": {before.UTC().Format(time.RFC3339Nano)}}, &answer)
	return answer.Totals.Events
}

// decided waits until the apiserver's authorizer answers a question as wanted: a change of
// policy takes a moment to reach it, and nobody should ask in between.
func (l *live) decided(t testing.TB, want bool, user string, groups []string, a authorizationv1.ResourceAttributes) {
	t.Helper()
	controlplane.Poll(t, "the authorizer to notice", func(ctx context.Context) (bool, string) {
		answer, err := l.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return answer.Status.Allowed == want, answer.Status.Reason
	})
}

// auditFlags returns those of a command line that have to do with auditing.
func auditFlags(arguments []string) []string {
	return slices.DeleteFunc(slices.Clone(arguments), func(f string) bool { return !strings.HasPrefix(f, "--audit") })
}
