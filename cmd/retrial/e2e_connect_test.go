package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
)

// connecting is a running `retrial connect`; its lines are read as they come.
type connecting struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	all   []string
	errs  *output
}

func (in install) connect(t *testing.T, args ...string) *connecting {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c := &connecting{t: t, cmd: in.retrial(ctx, append(append([]string{"connect"}, args...), in.flags()...)...), errs: &output{}}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stderr = c.errs
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	return c
}

// until reads on to a line that holds the text.
func (c *connecting) until(text string) string {
	c.t.Helper()
	for c.lines.Scan() {
		c.all = append(c.all, c.lines.Text())
		if strings.Contains(c.lines.Text(), text) {
			return c.lines.Text()
		}
	}
	_ = c.cmd.Wait()
	c.t.Fatalf("connect ended before it said %q:\n%s\n%s", text, strings.Join(c.all, "\n"), c.errs)
	return ""
}

// end reads the rest and returns the exit code.
func (c *connecting) end() int {
	for c.lines.Scan() {
		c.all = append(c.all, c.lines.Text())
	}
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// stepOf asks for one step of a connection.
func (s *running) stepOf(t *testing.T, cluster, id string) doctor.Step {
	t.Helper()
	var c doctor.ConnectionAnswer
	s.get(t, "connection?cluster="+cluster, &c)
	i := slices.IndexFunc(c.Steps, func(s doctor.Step) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("there is no step %s: %+v", id, c)
	}
	return c.Steps[i]
}

// TestConnect follows connect from nothing to verdicts: the server is started while it
// waits, an apiserver posts with what it wrote, the state is imported, and it ends well.
func TestConnect(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	at := func(name string) string { return filepath.Join(in.dir, name) }
	c := in.connect(t, "prod", "--advertise-address", "127.0.0.1", "--output", at("out"))
	c.until("registered (in " + in.data() + ")")
	c.until("waiting   The server runs: None is running")
	s := in.serve(t, "--replay-hold", "0s", "--completeness-every", "1s")
	c.until("done      The server runs")
	c.until("done      The cluster is registered: Its certificate is valid until")
	c.until("waiting   The apiserver reaches the receiver: No apiserver has posted")
	c.until(strings.TrimPrefix(s.webhook, "https://") + ", which only this machine reaches")

	// A log that shows the making of the cluster would need no state.
	log := unborn(recorded(t))[:2000]
	to := s.sender(t, at("out/webhook.kubeconfig"))
	to.deliver(t, eventList(log))
	c.until("done      The apiserver reaches the receiver: 1 post from 127.0.0.1")
	c.until("done      Events arrive")
	c.until("waiting   The state before the log is known: It is not known which")
	c.until("retrial import --cluster prod --state state.json --data-dir " + in.data())
	in.run(t, "import", "--cluster", "prod", "--state", writeState(t, in.dir)).ok(t)
	c.until("waiting   The audit log is followed: Nothing was posted from it")
	appendLog(t, at("audit.log"), log[:20])
	// The port was not the server's when the file was written.
	put(t, at("webhook.kubeconfig"), strings.Replace(readFile(t, at("out/webhook.kubeconfig")), "https://127.0.0.1:9443", s.webhook, 1))
	follower := in.lasting(t, "import", "--follow", "--webhook-config", at("webhook.kubeconfig"), "--delay", "0s", at("audit.log"))
	c.until("done      The audit log is followed: 1 post from 127.0.0.1")
	c.until("waiting   What the apiservers send is counted: The apiservers' counters are not read")
	r := in.run(t, "doctor", "prod").ok(t)
	says(t, r.out, "The apiservers' counters are not read", "retrial cluster scrape prod")
	counters, authority := countingServer(t, "secret")
	put(t, at("token"), "secret")
	put(t, at("ca.crt"), authority)
	in.run(t, "cluster", "scrape", "prod", "--url", counters, "--token-file", at("token"), "--certificate-authority", at("ca.crt")).ok(t)
	c.until("prod is connected.")
	if code := c.end(); code != cli.ExitOK {
		t.Errorf("code %d: %s", code, c.errs)
	}
	follower.end(t, syscall.SIGTERM).ok(t)
	says(t, strings.Join(c.all, "\n"), "done      The state before the log is known: ",
		"done      Requests get a verdict: Of ")

	// The same again is over at once, and the doctor agrees.
	again := in.connect(t, "prod", "--advertise-address", "127.0.0.1", "--output", at("out"))
	again.until("will post its audit events to " + s.webhook) // the port is the running server's
	again.until("prod is connected.")
	if code := again.end(); code != cli.ExitOK {
		t.Errorf("again: code %d: %s", code, again.errs)
	}
	r = in.run(t, "doctor", "prod", "-o", "json").ok(t)
	var d doctor.Answer
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, check := range d.Checks {
		got[check.ID] = check.State
	}
	for _, id := range []string{"server", "store", "key-file", "certificates", "lag", "policy-lag", "dead-letters", "disk", "retention",
		"stream",
		doctor.StepRegistered, doctor.StepConnected, doctor.StepFirstEvent, doctor.StepState, doctor.StepCoverage, "audit-policy"} {
		if got[id] != doctor.CheckOK {
			t.Errorf("check %s is %q", id, got[id])
		}
	}
	if got[doctor.StepFollowed] != doctor.CheckOK || got["completeness"] != doctor.CheckWarn { // what is read is not settled yet
		t.Errorf("followed is %q, completeness is %q", got[doctor.StepFollowed], got["completeness"])
	}
	if got["listener"] != doctor.CheckWarn || got["clock"] != doctor.CheckWarn { // loopback; a log of another day
		t.Errorf("listener is %q, clock is %q", got["listener"], got["clock"])
	}
	says(t, in.run(t, "doctor").ok(t).out, "prod", "connected", "1 post")

	in.run(t, "cluster", "revoke", "prod").ok(t)
	if a, err := to.post(t.Context(), bytes.NewReader(eventList(log[:1]))); err != nil || a.code != http.StatusUnauthorized {
		t.Errorf("after the revocation: %d %v", a.code, err)
	}
	in.run(t, "doctor", "prod").refused(t, cli.ExitFinding, "not in order: registered of prod, connected of prod")
	in.run(t, "connect", "prod", "--no-wait", "--advertise-address", "127.0.0.1").refused(t, cli.ExitError, "revoked",
		"retrial cluster rotate prod")
	in.run(t, "doctor", "nobody").refused(t, cli.ExitNoMatch, "nothing is known of a cluster nobody", "retrial connect nobody")
	s.stop(t)

	// Nobody serves: that is told, and the rest is looked at.
	r = in.run(t, "doctor", "prod", "-o", "yaml")
	r.refused(t, cli.ExitFinding, "server")
	says(t, r.out, "id: server", "state: fail", "id: first-event", "2,000 events stored")
}

// TestConnectTellsWhyNothingArrives: an apiserver that does it wrong shows in the step, with
// what to do.
func TestConnectTellsWhyNothingArrives(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	s := in.serve(t)
	at := func(name string) string { return filepath.Join(in.dir, name) }
	in.run(t, "connect", "prod", "--no-wait", "--advertise-address", "127.0.0.1", "--output", at("out")).ok(t)
	good := s.sender(t, at("out/webhook.kubeconfig"))
	list := eventList(recorded(t)[:1])
	failed := func(says ...string) {
		t.Helper()
		step := s.stepOf(t, "prod", doctor.StepConnected)
		if step.State != doctor.StateFailed {
			t.Errorf("the step is %s", step.State)
		}
		for _, w := range says {
			if !strings.Contains(step.Text+"\n"+step.Todo, w) {
				t.Errorf("%q is not in: %s\n%s", w, step.Text, step.Todo)
			}
		}
	}
	if step := s.stepOf(t, "prod", doctor.StepConnected); step.State != doctor.StateWaiting ||
		!strings.Contains(step.Text, "No apiserver has posted") {
		t.Errorf("before anything: %+v", step)
	}

	distrusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
	t.Cleanup(distrusting.CloseIdleConnections)
	if _, err := (sender{good.url, distrusting}).post(t.Context(), bytes.NewReader(list)); err == nil {
		t.Fatal("a client without the authority was answered")
	}
	s.until(t, "prod", func(c doctor.ConnectionAnswer) bool { return len(c.Refused) == 1 })
	failed("does not accept the receiver's certificate", "names localhost, 127.0.0.1, ::1", "retrial connect prod --data-dir")

	wrong := selfSigned(t)
	foreign := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify:   true, //nolint:gosec // it is the client that is wrong here
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &wrong, nil }}}}
	t.Cleanup(foreign.CloseIdleConnections)
	if _, err := (sender{good.url, foreign}).post(t.Context(), bytes.NewReader(list)); err == nil {
		t.Fatal("a certificate of another authority was taken")
	}
	s.until(t, "prod", func(c doctor.ConnectionAnswer) bool { return len(c.Refused) == 2 })
	failed("presents a certificate from another authority", "belongs to another installation")

	path := func(p string) sender { u := *good.url; u.Path = p; return sender{&u, good.client} }
	for _, tc := range []struct {
		path string
		code int
		says string
	}{
		{"/v1/clusters/prd/audit", http.StatusForbidden, "the path says prd"},
		{"/v1/cluster/prod/audit", http.StatusNotFound, "no such path"},
	} {
		if a, err := path(tc.path).post(t.Context(), bytes.NewReader(list)); err != nil || a.code != tc.code {
			t.Fatalf("%s: %d %v", tc.path, a.code, err)
		}
		failed("An apiserver of it, at 127.0.0.1, was turned away", tc.says, "unchanged")
	}

	good.deliver(t, list)
	if step := s.stepOf(t, "prod", doctor.StepConnected); step.State != doctor.StateDone {
		t.Errorf("after a good post: %+v", step)
	}
	// What cannot be told from whom is no longer held against a cluster that posts.
	if _, err := (sender{good.url, foreign}).post(t.Context(), bytes.NewReader(list)); err == nil {
		t.Fatal("a certificate of another authority was taken")
	}
	s.until(t, "prod", func(c doctor.ConnectionAnswer) bool {
		return c.Refused[0].Reason == "unknown-authority" && c.Refused[0].Count == 2
	})
	if step := s.stepOf(t, "prod", doctor.StepConnected); step.State != doctor.StateDone {
		t.Errorf("after somebody else's failure: %+v", step)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for path, code := range map[string]int{"connection": http.StatusBadRequest, "connection?cluster=nobody": http.StatusOK,
		"doctor?clusters=x": http.StatusBadRequest} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://retrial/api/v1/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.local.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != code {
			t.Errorf("%s is answered %d", path, res.StatusCode)
		}
	}
	r := finish(t, in.retrial(ctx, "doctor", "--server", "http://127.0.0.1:1"))
	r.refused(t, cli.ExitFinding, "not in order: server")
	says(t, r.out, "connection refused")
	page := finish(t, in.retrial(ctx, "doctor", "--server", strings.TrimSuffix(s.ui, "/"))).ok(t)
	says(t, page.out, "It is running", "prod")
}

// until asks about a connection until it is as the test wants: handshakes are written down
// by another goroutine than the one that answers.
func (s *running) until(t *testing.T, cluster string, holds func(doctor.ConnectionAnswer) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		var c doctor.ConnectionAnswer
		s.get(t, "connection?"+url.Values{"cluster": {cluster}}.Encode(), &c)
		if holds(c) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(fmt.Errorf("the connection stays %+v", c))
		}
	}
}
