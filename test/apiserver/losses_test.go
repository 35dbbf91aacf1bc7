package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// connected connects an apiserver of that name and returns its webhook's file.
func connected(t *testing.T, apiserver string) func(in *product.Install, server string) string {
	return func(in *product.Install, server string) string {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(in.Dir, "hook-"+apiserver)
		in.Do(t, "connect", clusterName, "--no-wait", "--apiserver", apiserver, "--advertise-address", u.Host, "--output", folder)
		return filepath.Join(folder, "webhook.kubeconfig")
	}
}

// gets makes n requests of an apiserver that all fail, each for a name of its own.
func gets(t *testing.T, cfg *rest.Config, host, name string, n int) {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for i := range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/v1/namespaces/default/configmaps/%s-%d",
			host, name, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
}

// TestBufferOverflow gives the webhook a buffer of twenty events and lets it post ten a second:
// what finds the buffer full is missing, to the event, is told as that, and the log has it.
func TestBufferOverflow(t *testing.T) {
	m := measure(t, connected(t, "one"), "--audit-webhook-batch-buffer-size=20", "--audit-webhook-batch-max-size=10",
		"--audit-webhook-batch-throttle-qps=1", "--audit-webhook-batch-throttle-burst=1")
	gets(t, m.root, m.URL(), "burst", 300)
	controlplane.Poll(t, "batches to arrive", func(context.Context) (bool, string) {
		return m.server.Metric(t, "retrial_webhook_events_acknowledged_total") > 100, ""
	})
	var got report
	var code int
	controlplane.Poll(t, "the events that found the buffer full to be missing", func(context.Context) (bool, string) {
		var text string
		got, code, text = m.ask(t)
		if len(got.Servers) != 1 || got.Servers[0].Measured == nil {
			return false, text
		}
		of := got.Servers[0].Measured
		return of.BufferErrors > 200 && of.Missing <= of.BufferErrors && of.BufferErrors <= of.AtMost && of.AtMost-of.Missing <= 2, text
	})
	of := got.Servers[0].Measured
	if code != 3 || of.WebhookErrors != 0 || len(of.Gaps) == 0 {
		t.Errorf("exit code %d, %+v", code, of)
	}
	for _, g := range of.Gaps {
		if g.Cause != "buffer-overflow" || !strings.Contains(g.Text, "buffer") {
			t.Errorf("%+v", g)
		}
	}
	t.Logf("%d of %d events found the buffer full: %s", of.BufferErrors, of.Sent, of.Gaps[0].Text)
	follower := m.Beside(t, "import", "--follow", "--webhook-config", m.kubeconfig, m.log)
	got, code = m.exactly(t, 0)
	if of := got.Servers[0].Measured; code != 0 || of.Recovered < of.BufferErrors-1 { // one may be under way, see exactly
		t.Errorf("with the log: exit code %d, %+v", code, of)
	}
	follower.Stop(t)
}

// TestOrderlyStop ends an apiserver as one does, with watches open: it closes its webhook before
// it records their ends. That is said, and is nobody's fault; everything else is there.
func TestOrderlyStop(t *testing.T) {
	m := measure(t, connected(t, "one"))
	client, err := rest.HTTPClientFor(m.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	const watches = 12
	for i := range watches {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			fmt.Sprintf("%s/api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=3000&labelSelector=n%%3D%d", m.URL(), i), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		go func() { defer res.Body.Close(); _, _ = io.Copy(io.Discard, res.Body) }()
	}
	gets(t, m.root, m.URL(), "before", 120)
	m.exactly(t, 0)
	m.Apiserver().Stop(t)
	m.Again(t, m.extra...)
	gets(t, m.root, m.URL(), "after", 120)
	var got report
	var code int
	controlplane.Poll(t, "both runs of the apiserver to be accounted for", func(context.Context) (bool, string) {
		var text string
		got, code, text = m.ask(t)
		if len(got.Servers) != 1 || got.Servers[0].Measured == nil {
			return false, text
		}
		of := got.Servers[0].Measured
		return of.Restarts == 1 && got.Pairs.Stopped >= watches && of.Missing == 0 && of.AtMost <= 1, text
	})
	if code != 0 || got.Pairs.Overdue+got.Pairs.NoStart+got.Pairs.NoAnswer != 0 {
		t.Errorf("exit code %d, %+v, %+v", code, got.Pairs, got.Problems)
	}
	t.Logf("%d requests were ended by the stop", got.Pairs.Stopped)
}

// TestTwoApiservers kills one of two apiservers with a batch unsent: what is missing is missing
// of that one alone, because of its end, and its own log has it.
func TestTwoApiservers(t *testing.T) {
	m := measure(t, connected(t, "one"))
	second := connected(t, "two")(m.Install, m.server.Webhook)
	log := filepath.Join(m.Dir, "second", "audit.log")
	if err := os.Mkdir(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	flags := []string{
		"--audit-policy-file=" + filepath.Join(m.Dir, "policy.yaml"), "--audit-log-path=" + log,
		"--audit-webhook-config-file=" + second, "--audit-webhook-batch-max-wait=1s", "--audit-webhook-initial-backoff=1s",
	}
	// Its last batch waits longer than it has to live.
	lazy := append(flags[:3:3], "--audit-webhook-batch-max-wait=1h", "--audit-webhook-batch-max-size=100",
		"--audit-webhook-batch-buffer-size=10000")
	two := m.Another(t, lazy...)
	m.scrape = append(m.scrape, "--completeness-scrape", clusterName+"/two="+two.URL())
	m.again(t)
	gets(t, m.root, m.URL(), "one", 100)
	gets(t, m.root, two.URL(), "two", 250)
	controlplane.Poll(t, "the second's counter to be read", func(context.Context) (bool, string) {
		got, _, text := m.ask(t)
		return len(got.Servers) == 2 && got.Servers[1].Measured != nil && got.Servers[1].Measured.Sent >= 250, text
	})
	two.Apiserver().Kill()
	two.Again(t, flags...)
	measuredOf := func(missing func(one, two int64) bool) (report, int) {
		var got report
		var code int
		controlplane.Poll(t, "both to be measured", func(context.Context) (bool, string) {
			var text string
			got, code, text = m.ask(t)
			if len(got.Servers) != 2 || got.Servers[0].Measured == nil || got.Servers[1].Measured == nil {
				return false, text
			}
			a, b := got.Servers[0].Measured, got.Servers[1].Measured
			return b.Restarts == 1 && a.AtMost-a.Missing <= 1 && missing(a.Missing, b.Missing), text
		})
		return got, code
	}
	got, code := measuredOf(func(one, two int64) bool { return one == 0 && two > 0 && two < 100 })
	gaps := got.Servers[1].Measured.Gaps
	if code != 3 || got.Servers[1].Name != "two" || len(gaps) != 1 || gaps[0].Cause != "restart" {
		t.Errorf("exit code %d, %s: %+v", code, got.Servers[1].Name, gaps)
	}
	t.Logf("lost by the one that was killed: %d to %d; %+v", got.Servers[1].Measured.Missing, got.Servers[1].Measured.AtMost, gaps)
	follower := m.Beside(t, "import", "--follow", "--webhook-config", second, log)
	if _, code = measuredOf(func(one, two int64) bool { return one == 0 && two == 0 }); code != 0 {
		t.Errorf("with its log: exit code %d", code)
	}
	follower.Stop(t)
}
