package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/test/kafkatest"
)

// TestFindingsAreSharedOnKafka has two replay processes share the clusters whose findings they work out, through a real Kafka. Both make
// findings; one is killed while events come in, another joins, and events come again. In the end the findings of every cluster are
// those of its log: none is missed, none is there that should not be.
//
// RETRIAL_TEST_KAFKA_ALL has it run, as make test-kafka does.
func TestFindingsAreSharedOnKafka(t *testing.T) {
	if !kafkatest.All() {
		t.Skip("takes minutes for each version of Kafka: make test-kafka")
	}
	for _, setting := range kafkatest.Settings() {
		if setting.Mechanism != "" { // as TestScaleOutOnKafka
			t.Run(setting.String(), func(t *testing.T) { shareFindings(t, setting) })
		}
	}
}

func shareFindings(t *testing.T, setting kafkatest.Setting) {
	const parts = 6
	s := newFleet(t, setting, parts, 1)
	// Of six parts, two of these clusters are in the lower three, two in the upper.
	clusters := []string{"prod", "birch", "north", "stage"}
	at := func(name string) string { return filepath.Join(s.dir, name) }
	for _, name := range clusters[1:] {
		s.run(t, "cluster", "add", name, "--server", "https://127.0.0.1:9443", "--output", at(name+".kubeconfig")).ok(t)
	}
	log := unborn(portion(t))
	file, bodies := writeLog(t, at("audit.jsonl"), log), batches(log, 5)
	want := map[string]map[string]detect.Finding{}
	for _, name := range clusters {
		want[name] = findingsByID(t, s.runAlone(t, "findings", "--cluster", name, "--events", file, "-o", "json").ok(t).out)
		if len(want[name]) < 20 {
			t.Fatalf("%d findings of the log", len(want[name]))
		}
	}
	receiver := s.member("ingest")
	senders := map[string]sender{}
	for _, name := range clusters {
		senders[name] = receiver.sender(t, at(name+".kubeconfig"))
	}
	post := func(bodies [][]byte) {
		t.Helper()
		for _, name := range clusters {
			deliverAll(t, senders[name], bodies, nil)
		}
	}
	replay := func() *running { return s.member("replay", append([]string{"--replay-hold", "0s"}, promptly...)...) }
	led := func(want map[*running]float64) {
		t.Helper()
		until(t, "the parts to be shared out", func() (bool, string) {
			is, ok := "", true
			for m, n := range want {
				got := m.gauge(t, doctor.MetricDetectPartsLed)
				is, ok = fmt.Sprint(is, " ", got), ok && got == n
			}
			return ok, is
		})
	}
	finds := func(m *running) {
		t.Helper()
		until(t, "a process to make findings", func() (bool, string) {
			return m.gauge(t, "retrial_detect_findings_total") > 0, "none"
		})
	}

	first, second := replay(), replay()
	led(map[*running]float64{first: parts / 2, second: parts / 2})
	third := len(bodies) / 3
	post(bodies[:third])
	finds(first)
	finds(second)
	second.kill()
	post(bodies[third : 2*third])
	led(map[*running]float64{first: parts})
	if n := first.gauge(t, doctor.MetricDetectParts); n != parts {
		t.Errorf("there are %v parts", n)
	}
	joined := replay()
	post(bodies[2*third:])
	led(map[*running]float64{first: parts / 2, joined: parts / 2})
	post(bodies[:third])
	first.drained(t)
	joined.drained(t)
	for _, name := range clusters {
		joined.settled(t, name, want[name])
	}
	for _, m := range []*running{first, joined} {
		if n := m.gauge(t, "retrial_detect_errors_total"); n != 0 {
			t.Errorf("%v errors", n)
		}
		m.stop(t)
	}
	receiver.stop(t)
	s.closeStore()
}
