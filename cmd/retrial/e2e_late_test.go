package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// lateLog returns a log without the creation of one RoleBinding, that creation, and the log
// with it in its place. The binding let three service accounts of a namespace read all
// through the recording; some of their requests are repeated minutes after its end, so that
// more than ten minutes of events come before the creation does.
func lateLog(t *testing.T) (without [][]byte, late []byte, with [][]byte) {
	t.Helper()
	var again [][]byte
	var created, last time.Time
	for i, line := range recorded(t) {
		concerned := bytes.Contains(line, []byte("shipping-dev"))
		policy := bytes.Contains(line, []byte("/apis/rbac.authorization.k8s.io/"))
		if !long() && i%5 != 0 && !concerned && !policy {
			continue // every policy write, every request that may be concerned, some of the others
		}
		with = append(with, line)
		if late == nil && concerned && bytes.Contains(line, []byte(`"name":"app-reader"`)) {
			if e := decoded(t, line); e.Verb == "create" && e.ObjectRef.Resource == "rolebindings" {
				late, created = line, e.RequestReceivedTimestamp
				continue
			}
		}
		without = append(without, line)
		if late != nil && bytes.Contains(line, []byte(`"username":"system:serviceaccount:shipping-dev:`)) &&
			bytes.Contains(line, []byte(`"verb":"get"`)) {
			e := decoded(t, line)
			e.AuditID = "again-" + e.AuditID
			e.RequestReceivedTimestamp = e.RequestReceivedTimestamp.Add(5 * time.Minute)
			e.StageTimestamp = e.StageTimestamp.Add(5 * time.Minute)
			last = e.StageTimestamp
			again = append(again, event.AppendJSON(nil, e))
		}
	}
	if late == nil || last.Sub(created) < 10*time.Minute {
		t.Fatalf("the recording lacks the binding or its use: created %s, last used %s", created, last)
	}
	return append(without, again...), late, append(with, again...)
}

func decoded(t *testing.T, line []byte) *event.Event {
	t.Helper()
	e, err := event.Decode(bytes.Clone(line))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLateRoleBinding delivers a RoleBinding's creation after ten minutes of events that
// depended on it. Exactly those verdicts change that an offline evaluation says depend on
// it, and in the end everything is as if all had come in order. The server is then killed at
// seeded moments of the same correction: it ends the same.
func TestLateRoleBinding(t *testing.T) {
	t.Parallel()
	without, late, with := lateLog(t)
	before := newInstall(t)
	state := writeState(t, before.dir)
	at := func(in install, name string) string { return filepath.Join(in.dir, name) }
	withoutFile, withFile := writeLog(t, at(before, "without.jsonl"), without), writeLog(t, at(before, "with.jsonl"), with)

	s := before.serve(t)
	s.addCluster(t, "prod")
	before.run(t, "import", "--cluster", "prod", "--state", state, withoutFile).ok(t)
	s.stop(t)
	ask := func(in install) (judged map[string]string, usage []string) {
		t.Helper()
		totals := inspect(t, inspection{Data: in.data(),
			Queries: map[string]string{at(in, "verdicts"): verdictsOf("prod"), at(in, "usage"): usageOf("prod")}})
		if totals.Rows != totals.Events || totals.Volume != totals.Events || totals.Usage != totals.Judged ||
			totals.Grants != totals.GrantRows {
			t.Errorf("totals do not add up: %+v", totals)
		}
		return requests(t, lines(t, at(in, "verdicts"))), lines(t, at(in, "usage"))
	}
	judgedBefore, _ := ask(before)

	// In order, from scratch.
	scratch := newInstall(t)
	s = scratch.serve(t)
	scratch.run(t, "import", "--cluster", "prod", "--state", state, withFile).ok(t)
	s.stop(t)
	want, wantUsage := ask(scratch)

	// What must change, by the engine alone.
	affected := changed(offline(t, before, state, withoutFile), offline(t, before, state, withFile))
	if len(affected) < 100 {
		t.Fatalf("only %d requests depend on the binding", len(affected))
	}

	check := func(t *testing.T, in install) {
		t.Helper()
		got, usage := ask(in)
		if !maps.Equal(got, want) {
			different := slices.Sorted(maps.Keys(changed(got, want)))
			t.Errorf("%d verdicts are not as if the binding had come in time, such as %s", len(different), different[0])
			t.Logf("is  %s\nnot %s", difference(got[different[0]], want[different[0]]), difference(want[different[0]], got[different[0]]))
		}
		sameLines(t, "rollups", usage, wantUsage)
		if now := changed(judgedBefore, got); !maps.Equal(now, affected) {
			t.Errorf("%d verdicts changed, want exactly the %d that depend on the binding", len(now), len(affected))
		}
	}
	// deliver posts the late event and returns how long it took until all was judged for
	// good; with a crash, the server is killed that long after the post began.
	deliver := func(t *testing.T, in install, crash time.Duration) time.Duration {
		t.Helper()
		s := in.serve(t, "--replay-hold", "0s")
		to := s.sender(t, at(before, "prod.kubeconfig"))
		s.drained(t)
		began := time.Now()
		var moment <-chan time.Time
		if crash >= 0 {
			moment = time.After(crash)
		}
		acknowledged := make(chan bool, 1)
		go func() {
			a, err := to.post(t.Context(), bytes.NewReader(eventList([][]byte{late})))
			acknowledged <- err == nil && a.code == http.StatusOK
		}()
		if crash >= 0 {
			<-moment
			s.kill()
			safe := <-acknowledged
			s = in.serve(t, "--replay-hold", "0s")
			if !safe { // the apiserver posts it again
				s.sender(t, at(before, "prod.kubeconfig")).deliver(t, eventList([][]byte{late}))
			}
		} else if !<-acknowledged {
			t.Fatal("the late event was not taken")
		}
		s.drained(t)
		took := time.Since(began)
		s.stop(t)
		return took
	}

	undisturbed := before.copy(t)
	took := deliver(t, undisturbed, -1)
	check(t, undisturbed)

	crashes := 3
	if long() {
		crashes = 15
	}
	for seed := range crashes {
		t.Run("crash="+strconv.Itoa(seed), func(t *testing.T) {
			moment := time.Duration(float64(took) * rand.New(rand.NewPCG(uint64(seed), 3)).Float64())
			t.Logf("killed %s into a correction that takes %s", moment, took)
			in := before.copy(t)
			deliver(t, in, moment)
			check(t, in)
		})
	}
}

// copy copies an installation that nothing serves.
func (in install) copy(t *testing.T) install {
	t.Helper()
	to := install{t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", in.dir+"/.", to.dir).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", in.dir, err, out)
	}
	return to
}

// requests maps each request of a verdictsOf answer to its verdict.
func requests(t *testing.T, answer []string) map[string]string {
	t.Helper()
	out := make(map[string]string, len(answer))
	for _, line := range answer {
		var r struct {
			AuditID  string `json:"audit_id"`
			User     string `json:"user_name"`
			URI      string `json:"request_uri"`
			Received string `json:"request_received"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out[r.AuditID+" "+r.User+" "+r.URI] = line
	}
	if len(out) != len(answer) {
		t.Fatalf("%d verdicts for %d requests", len(answer), len(out))
	}
	return out
}

// offline evaluates a log and maps each request to its verdict.
func offline(t *testing.T, in install, state, file string) map[string]string {
	t.Helper()
	r := finish(t, in.retrial(t.Context(), "evaluate", "-o", "jsonl", "--state", state, "--events", file)).ok(t)
	out := map[string]string{}
	for line := range bytes.Lines([]byte(r.out)) {
		var v struct {
			AuditID    string `json:"auditID"`
			User       string `json:"user"`
			RequestURI string `json:"requestURI"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out[v.AuditID+" "+v.User+" "+v.RequestURI] = string(line)
	}
	return out
}

// changed returns the requests whose verdicts differ, or that one side alone has.
func changed(a, b map[string]string) map[string]bool {
	out := map[string]bool{}
	for k, v := range a {
		if b[k] != v {
			out[k] = true
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out[k] = true
		}
	}
	return out
}
