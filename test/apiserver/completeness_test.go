package apiserver

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// nothingOmitted is an audit policy that leaves out nothing but the stage that says nothing.
const nothingOmitted = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": ` +
	`"RequestResponse"}]}`

// measured is an apiserver that posts to a product which reads its metrics, and writes a log
// that rotates.
type measured struct {
	*controlplane.Cluster
	*product.Install
	server     *product.Server
	kubeconfig string   // of its webhook
	log        string   // path of its audit log
	extra      []string // its flags about auditing
	root       *rest.Config
	settle     string // how long events are under way
	scrape     []string
	receiver   string // address of the webhook's listener
}

// measure brings all of it up. add registers the cluster and says where its webhook's
// configuration lies; flags are further ones for the apiserver.
func measure(t *testing.T, add func(in *product.Install, server string) string, flags ...string) *measured {
	t.Helper()
	m := &measured{Install: product.New(t), settle: "10s"}
	m.server = m.Serve(t, "127.0.0.1:0")
	u, err := url.Parse(m.server.Webhook)
	if err != nil {
		t.Fatal(err)
	}
	m.receiver = net.JoinHostPort("127.0.0.1", u.Port())
	m.kubeconfig = add(m.Install, m.server.Webhook)
	policy := filepath.Join(m.Dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(nothingOmitted), 0o600); err != nil {
		t.Fatal(err)
	}
	m.log = filepath.Join(m.Dir, "log", "audit.log")
	if err := os.Mkdir(filepath.Dir(m.log), 0o700); err != nil {
		t.Fatal(err)
	}
	m.extra = append([]string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + m.log, "--audit-log-maxsize=1", "--audit-log-compress",
		"--audit-webhook-config-file=" + m.kubeconfig, "--audit-webhook-batch-max-wait=1s", "--audit-webhook-initial-backoff=1s",
	}, flags...)
	m.Cluster = controlplane.Start(t, m.extra...)
	m.root = m.Admin(t)
	reader := m.User(t, "scraper", "system:monitoring")
	file := func(name string, content []byte) string {
		path := filepath.Join(m.Dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	m.scrape = []string{
		"--completeness-scrape", clusterName + "/one=" + m.URL(), "--completeness-every", "1s",
		"--completeness-ca-files", clusterName + "=" + file("k8s-ca.crt", reader.CAData),
		"--completeness-client-certificates", clusterName + "=" + file("scraper.crt", reader.CertData),
		"--completeness-client-keys", clusterName + "=" + file("scraper.key", reader.KeyData),
	}
	m.again(t)
	return m
}

// again starts the server anew, where apiservers look for it, with the metrics to read.
func (m *measured) again(t *testing.T) {
	t.Helper()
	m.server.Stop(t)
	m.server = m.Serve(t, m.receiver, m.scrape...)
}

// traffic makes requests, some twenty a second, until it is stopped; stop returns the URIs of
// those that were answered.
func (m *measured) traffic(t *testing.T) (stop func() []string) {
	t.Helper()
	client, err := rest.HTTPClientFor(m.root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var made []string
	group.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			uri := fmt.Sprintf("/api/v1/namespaces/default/configmaps/none-%d", n)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL()+uri, nil)
			if err != nil {
				return
			}
			// It may be away for a moment. One that ends refuses requests before they are audited.
			if res, err := client.Do(req); err == nil {
				res.Body.Close()
				if res.StatusCode == http.StatusNotFound {
					made = append(made, uri)
				} else {
					t.Logf("GET %s: %s", uri, res.Status)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() []string {
		cancel()
		group.Wait()
		client.CloseIdleConnections()
		if len(made) < 20 {
			t.Errorf("only %d requests were made", len(made))
		}
		return made
	}
}

// report is what `retrial completeness -o json` prints.
type report struct {
	Servers []struct {
		Name     string
		Events   int64
		Measured *struct {
			Sent, Received, Missing, AtMost, WebhookErrors, BufferErrors, LogErrors, Recovered int64
			Restarts                                                                           int
			Losses                                                                             []struct {
				Cause, Text                string
				Events, Arrived, Unwritten int64
				ArrivedBy                  time.Time
			}
			Gaps []struct {
				Cause, Text   string
				Before, After time.Time
				Missing       int64
			}
		}
	} `json:"apiservers"`
	Pairs    struct{ Open, Stopped, Overdue, NoStart, NoAnswer int64 }
	Problems []struct{ Severity, Kind, Text string }
	Log      []struct {
		Plugin, Cause, Reason string
		Events                int64
		Lost                  []struct{ AuditID, Verb, RequestURI string }
	}
}

// flowing is traffic, once batches of it arrive.
func (m *measured) flowing(t *testing.T) (stop func() []string) {
	t.Helper()
	stop = m.traffic(t)
	controlplane.Poll(t, "batches to flow", func(context.Context) (bool, string) {
		return m.server.Metric(t, "retrial_webhook_events_acknowledged_total") > 200, ""
	})
	return stop
}

// gaveUp waits until the webhook gives a batch up, stops the traffic, and returns how many events it
// dropped.
func (m *measured) gaveUp(t *testing.T, stop func() []string) (dropped int64) {
	t.Helper()
	controlplane.Poll(t, "the webhook to give the batch up", func(context.Context) (bool, string) {
		got, _, text := m.ask(t)
		if len(got.Servers) != 1 || got.Servers[0].Measured == nil {
			return false, text
		}
		dropped = got.Servers[0].Measured.WebhookErrors
		return dropped > 0, text
	})
	stop()
	if dropped < 5 || dropped > 400 {
		t.Errorf("%d events were dropped: want a batch with others beside the PATCH", dropped)
	}
	return dropped
}

// ask runs the command; its exit code is 3 when something is missing.
func (m *measured) ask(t *testing.T, args ...string) (report, int, string) {
	t.Helper()
	all := append([]string{"completeness", "--cluster", clusterName, "--settle", m.settle, "-o", "json", "--data-dir",
		filepath.Join(m.Dir, "data")}, args...)
	r := m.Try(t, all...)
	var out report
	if err := json.Unmarshal([]byte(r.Out), &out); err != nil {
		t.Fatalf("exit code %d: %v\n%s\n%s", r.Code, err, r.Out, r.Err)
	}
	return out, r.Code, r.Out
}

// exactly waits until the command knows exactly how many events are missing, and that is so
// many. With everything at rest the readings' times bound it to the event.
func (m *measured) exactly(t *testing.T, missing int64, args ...string) (report, int) {
	t.Helper()
	var got report
	var code int
	controlplane.Poll(t, fmt.Sprintf("%d events to be missing", missing), func(context.Context) (bool, string) {
		var text string
		got, code, text = m.ask(t, args...)
		if len(got.Servers) != 1 || got.Servers[0].Measured == nil {
			return false, text
		}
		of := got.Servers[0].Measured
		// An apiserver has events of its own at any moment: one may be under way when it is read.
		return of.Missing <= missing && missing <= of.AtMost && of.AtMost-of.Missing <= 1 && of.Sent > 100, text
	})
	return got, code
}

// TestPatchHole makes the webhook lose a whole batch, by one PATCH whose body is not JSON: the
// product says how many events are missing, between which requests and why; the apiserver's own
// log names them; and a follower of the audit log brings all in but the one that no backend has.
func TestPatchHole(t *testing.T) {
	m := measure(t, func(in *product.Install, server string) string {
		file := filepath.Join(in.Dir, "webhook.kubeconfig")
		in.Do(t, "cluster", "add", clusterName, "--apiserver", "one", "--server", server, "--output", file)
		return file
	})
	client, err := rest.HTTPClientFor(m.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	do := func(method, path, kind string, body []byte, want int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, m.URL()+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Fatalf("%s %s: %s", method, path, res.Status)
		}
	}
	const maps = "/api/v1/namespaces/default/configmaps"
	large, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "large"},
		"data": map[string]string{"k": strings.Repeat("x", 60_000)}})
	if err != nil {
		t.Fatal(err)
	}
	do(http.MethodPost, maps, "application/json", large, http.StatusCreated)
	for range 30 { // the log rotates a few times
		do(http.MethodPut, maps+"/large", "application/json", large, http.StatusOK)
	}
	m.exactly(t, 0)

	// Requests go on all the while, so that batches with and without the PATCH follow each other.
	stop := m.flowing(t)
	// Wherever a batch ends, the PATCH's has those before it or those after.
	others := func() {
		for range 10 {
			do(http.MethodGet, maps+"/none", "", nil, http.StatusNotFound)
		}
	}
	others()
	began := time.Now()
	do(http.MethodPatch, maps+"/large", "application/json-patch+json", []byte("this is not JSON"), http.StatusBadRequest)
	patched := time.Now()
	others()
	dropped := m.gaveUp(t, stop)
	out := filepath.Join(m.Dir, "apiserver.log")
	if err := os.WriteFile(out, []byte(m.Apiserver().Output()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, code := m.exactly(t, dropped, "--apiserver-log", out)
	if code != 3 {
		t.Errorf("exit code %d", code)
	}
	gaps := got.Servers[0].Measured.Gaps
	if len(gaps) != 1 || gaps[0].Cause != "unencodable-batch" || !strings.Contains(gaps[0].Text, "PATCH") {
		t.Fatalf("%+v", gaps)
	}
	// The requests before and behind it bound the PATCH.
	if g := gaps[0]; g.Before.After(patched) || g.After.Before(began) {
		t.Errorf("the pause is said to be between %s and %s, the PATCH was made between %s and %s", g.Before, g.After, began, patched)
	}
	named := int64(0)
	suspect := false
	for _, e := range got.Log {
		if e.Plugin == "webhook" {
			named += int64(len(e.Lost))
			if e.Cause != "unencodable-batch" || e.Events != dropped {
				t.Errorf("%+v", e)
			}
		}
		for _, l := range e.Lost {
			suspect = suspect || l.Verb == "patch" && l.RequestURI == maps+"/large"
		}
	}
	if named != dropped || !suspect {
		t.Errorf("the apiserver's log names %d of %d events, the PATCH among them: %v", named, dropped, suspect)
	}
	t.Logf("lost with one PATCH: %d events; %s", dropped, gaps[0].Text)

	// What the log has closes it: rotated and packed files, and the one that is being written.
	follower := m.Beside(t, "import", "--follow", "--webhook-config", m.kubeconfig, m.log)
	got, code = m.exactly(t, 1)
	if of := got.Servers[0].Measured; code != 0 || of.LogErrors != 1 || of.WebhookErrors != dropped {
		t.Errorf("exit code %d, %+v", code, of)
	}
	// Nearly everything came both ways. A block is counted when it is settled, a moment after its
	// events can be asked for.
	controlplane.Poll(t, "duplicates to be counted", func(context.Context) (bool, string) {
		n := m.server.Metric(t, "retrial_runner_duplicates_total")
		return n >= 100, fmt.Sprintf("%v duplicates", n)
	})
	follower.Stop(t)
	rotated, err := filepath.Glob(filepath.Join(filepath.Dir(m.log), "audit-*"))
	if err != nil || len(rotated) < 2 {
		t.Errorf("the log was rotated into %v %v", rotated, err)
	}
	t.Logf("followed: %s", strings.TrimSpace(follower.Output()))
}

// TestRotate changes the server's certificate, the cluster's and the authority while requests
// are made: not one event is lost, the old is refused in the end, and no sooner. The apiserver
// is started anew to take the new authority; TestRotateReload waits for it to do so by itself.
func TestRotate(t *testing.T) {
	rotate(t, func(t *testing.T, m *measured) {
		m.Apiserver().Stop(t)
		controlplane.Run(t, m.Folder(), nil, controlplane.Binary(t, "kube-apiserver"), append(m.Base(), m.extra...)...)
	})
}

// TestRotateReload measures that a kube-apiserver that names certificates by file takes new
// ones while it runs: it looks every five minutes.
func TestRotateReload(t *testing.T) {
	if os.Getenv("RETRIAL_LONG") == "" {
		t.Skip("takes some ten minutes: RETRIAL_LONG=1 scripts/test-apiserver.sh -run TestRotateReload -v")
	}
	rotate(t, func(*testing.T, *measured) {})
}

func rotate(t *testing.T, takeUp func(*testing.T, *measured)) {
	var folder string
	m := measure(t, func(in *product.Install, server string) string {
		folder = filepath.Join(in.Dir, "hook")
		in.Do(t, "cluster", "add", clusterName, "--apiserver", "one", "--server", server, "--output-dir", folder)
		return filepath.Join(folder, "webhook.kubeconfig")
	})
	stop := m.traffic(t)
	data := []string{"--data-dir", filepath.Join(m.Dir, "data")}
	cluster := func(args ...string) product.Result {
		return m.Try(t, append(append([]string{"cluster"}, args...), data...)...)
	}
	ok := func(args ...string) {
		t.Helper()
		if r := cluster(args...); r.Code != 0 {
			t.Fatalf("retrial cluster %v: %d\n%s", args, r.Code, r.Err)
		}
	}
	old := serialOf(t, filepath.Join(folder, "client.crt"))
	ok("rotate", "--server-certificate")
	ok("rotate", "--authority")
	if r := cluster("rotate", "--authority", "--finish"); r.Code == 0 || !strings.Contains(r.Err, "still in use") {
		t.Errorf("finished before anybody had the new one: %d %s", r.Code, r.Err)
	}
	ok("rotate", clusterName, "--apiserver", "one", "--server", m.server.Webhook, "--output-dir", folder)
	fresh := serialOf(t, filepath.Join(folder, "client.crt"))
	if old == fresh {
		t.Fatal("the certificate is the same")
	}
	began := time.Now()
	takeUp(t, m)
	used := filepath.Join(m.Dir, "data", "pki", "clusters", clusterName+".used")
	pollFor(t, 12*time.Minute, "the apiserver to use the new certificate", func() bool {
		text, err := os.ReadFile(used)
		return err == nil && strings.Contains(string(text), fresh)
	})
	t.Logf("the new client certificate was in use after %s", time.Since(began).Round(time.Second))
	pollFor(t, 12*time.Minute, "the old certificate to be out of use", func() bool {
		return cluster("rotate", "--authority", "--finish", "--quiet", "15s").Code == 0
	})
	ca, err := os.ReadFile(filepath.Join(m.Dir, "data", "pki", "ca.crt"))
	if err != nil || bytes.Count(ca, []byte("BEGIN CERTIFICATE")) != 1 {
		t.Errorf("the bundle after the end: %v\n%s", err, ca)
	}
	// Whoever connects anew meets the certificate of the new authority.
	m.again(t)
	before := m.server.Metric(t, "retrial_webhook_events_acknowledged_total")
	pollFor(t, 12*time.Minute, "posts over a new connection", func() bool {
		return m.server.Metric(t, "retrial_webhook_events_acknowledged_total") > before+100
	})
	t.Logf("posts over connections verified by the new authority after %s", time.Since(began).Round(time.Second))
	made := stop()
	// Every request that was answered is there, once.
	wrong := map[string]int{} // how often what is not there once is there
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("of %d requests that were answered these are not stored once, but as often: %v", len(made), wrong)
		}
	})
	pollFor(t, controlplane.Patience, "all requests to arrive", func() bool {
		m.Drained(t)
		stored := map[string]int{}
		for query := (url.Values{"cluster": {clusterName}, "resource": {"configmaps"}, "limit": {"500"}}); ; {
			var page struct {
				Events []struct{ RequestURI string }
				Older  string
			}
			m.Ask(t, "events", query, &page)
			for _, e := range page.Events {
				stored[e.RequestURI]++
			}
			if page.Older == "" {
				break
			}
			query.Set("before", page.Older)
		}
		clear(wrong)
		for _, uri := range made {
			if stored[uri] != 1 {
				wrong[uri] = stored[uri]
			}
		}
		return len(wrong) == 0
	})
	t.Logf("%d requests were made, each is there once", len(made))
	got, code, text := m.ask(t)
	if len(got.Servers) != 1 || got.Servers[0].Measured == nil || code != 0 {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	if of := got.Servers[0].Measured; of.WebhookErrors != 0 || of.Missing != 0 {
		t.Errorf("%+v", of)
	}
	t.Logf("measured: %+v", *got.Servers[0].Measured)
	if list := cluster("list"); !strings.Contains(list.Out, clusterName) || strings.Contains(list.Out, "earlier certificates") {
		t.Errorf("%s", list.Out)
	}
}

// pollFor is controlplane.Poll with a patience of its own.
func pollFor(t *testing.T, patience time.Duration, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// serialOf returns the serial of a certificate as the registry writes it.
func serialOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no PEM", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(cert.SerialNumber.Bytes())
}
