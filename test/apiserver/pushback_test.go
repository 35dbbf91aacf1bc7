package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// refusal is one way of not taking a batch.
type refusal struct {
	code  int
	after string // Retry-After; "" is none
}

func (r refusal) String() string {
	if r.after == "" {
		return fmt.Sprintf("%d without Retry-After", r.code)
	}
	return fmt.Sprintf("%d, Retry-After: %s", r.code, r.after)
}

// refuser is a receiver that answers each batch in a way of its own, for as long as it is to,
// and notes when the apiserver came.
type refuser struct {
	ways []refusal

	mu      sync.Mutex
	batches map[string]*pushed // by the audit ID of the first event
	order   []*pushed
	taking  bool
}

// pushed is one batch.
type pushed struct {
	way    refusal
	events int
	posts  []time.Time
	taken  bool
}

func (r *refuser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var list struct{ Items []struct{ AuditID string } }
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil || len(list.Items) == 0 {
		http.Error(w, "no list", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.batches[list.Items[0].AuditID]
	if b == nil {
		b = &pushed{way: r.ways[len(r.batches)%len(r.ways)], events: len(list.Items)}
		r.batches[list.Items[0].AuditID] = b
		r.order = append(r.order, b)
	}
	b.posts = append(b.posts, time.Now())
	if r.taking {
		b.taken = true
		return
	}
	if b.way.after != "" {
		w.Header().Set("Retry-After", b.way.after)
	}
	w.WriteHeader(b.way.code)
}

// pushBack runs an apiserver that posts to a refuser, and has one batch for each way sent.
func pushBack(t *testing.T, ways []refusal, flags ...string) (*refuser, *live) {
	t.Helper()
	r := &refuser{ways: ways, batches: map[string]*pushed{}}
	hook := httptest.NewServer(r)
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	policy, config := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "webhook.kubeconfig")
	// Nothing but what the test asks for: each request is then a batch of its own.
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: Metadata, users: " +
		"[probe]}\n- {level: None}\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	controlplane.Kubeconfig(t, config, &rest.Config{Host: hook.URL + "/v1/clusters/live/audit"})
	l := &live{ledger: newLedger(strings.ToLower(t.Name()))}
	l.Cluster = controlplane.Start(t, append(flags, "--audit-policy-file="+policy, "--audit-webhook-config-file="+config,
		"--audit-webhook-mode=batch", "--audit-webhook-batch-max-size=1")...)
	l.root = newPerson(t, l.ledger, "root", l.Admin(t))
	probe, err := kubernetes.NewForConfig(l.User(t, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	for range ways {
		if _, err := probe.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	controlplane.Poll(t, "every batch to be posted", func(context.Context) (bool, string) {
		n := len(r.seen())
		return n == len(ways), fmt.Sprint(n)
	})
	return r, l
}

// seen returns what became of the batches so far.
func (r *refuser) seen() []pushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []pushed
	for _, b := range r.order {
		c := *b
		c.posts = append([]time.Time(nil), b.posts...)
		out = append(out, c)
	}
	return out
}

// What Retrial answers when it has no room rests on this: an apiserver that is told when to
// come back does so within its attempt, up to ten times and for 30 seconds, and only then
// counts the attempt as failed.
func TestPushBack(t *testing.T) {
	t.Parallel()
	ways := []refusal{{429, "1"}, {503, "1"}, {429, ""}, {503, ""}}
	r, l := pushBack(t, ways, "--audit-webhook-initial-backoff=60s") // one attempt, and then a long pause
	controlplane.Poll(t, "the posts of one attempt", func(context.Context) (bool, string) {
		b := r.seen()
		return len(b[0].posts) >= 11 && len(b[1].posts) >= 11, fmt.Sprintf("%d and %d", len(b[0].posts), len(b[1].posts))
	})
	r.mu.Lock()
	r.taking = true
	r.mu.Unlock()
	for i, b := range r.seen() {
		want := 1
		if b.way.after != "" {
			want = 11
		}
		if len(b.posts) != want {
			t.Errorf("%v: %d posts in one attempt, want %d", b.way, len(b.posts), want)
		}
		if last := b.posts[len(b.posts)-1].Sub(b.posts[0]); want > 1 && last < 9*time.Second {
			t.Errorf("%v: the last post came after %v: it does not wait as long as it is told", b.way, last)
		}
		t.Logf("batch %d: %v: %d posts in the first attempt", i, b.way, len(b.posts))
	}
	if n := controlplane.Metric(l.metrics(t), "apiserver_audit_error_total"); n != 0 {
		t.Errorf("%v events were given up", n)
	}
}

// TestPushBackUntilDropped writes down how each answer ends. It takes six minutes.
func TestPushBackUntilDropped(t *testing.T) {
	if os.Getenv("RETRIAL_PUSHBACK") == "" {
		t.Skip("NOT RUN: it takes six minutes: RETRIAL_PUSHBACK=1 scripts/test-apiserver.sh -run TestPushBackUntilDropped -v .")
	}
	var ways []refusal
	for _, code := range []int{429, 503, 500} {
		for _, after := range []string{"", "1", "2", "3", "5", "10", "60"} {
			ways = append(ways, refusal{code, after})
		}
	}
	ways = append(ways, refusal{400, ""}, refusal{400, "1"})
	r, l := pushBack(t, ways)
	given := 0.0
	for deadline := time.Now().Add(8 * time.Minute); given < float64(len(ways)) && time.Now().Before(deadline); time.Sleep(5 *
		time.Second) {
		given = controlplane.Metric(l.metrics(t), "apiserver_audit_error_total")
	}
	for _, b := range r.seen() {
		var attempts []string
		for i, at := range b.posts {
			since := at.Sub(b.posts[0])
			if i == 0 || at.Sub(b.posts[i-1]) > 8*time.Second && b.way.after != "10" && b.way.after != "60" {
				attempts = append(attempts, fmt.Sprintf("%.0f", since.Seconds()))
			}
		}
		t.Logf("| %v | %d posts | last after %.0f s | attempts at %s s |", b.way, len(b.posts),
			b.posts[len(b.posts)-1].Sub(b.posts[0]).Seconds(), strings.Join(attempts, ", "))
	}
	if given != float64(len(ways)) {
		t.Errorf("%v of %d batches were given up", given, len(ways))
	}
}
