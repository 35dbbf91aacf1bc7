package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeersReport: each is held against ours as it must be compared, by medians.
func TestPeersReport(t *testing.T) {
	r := &peersResult{Machine: "a machine", LoadBefore: "1", LoadAfter: "2", Versions: []string{"victorialogs v1"},
		Missing: map[string]string{"collector-tuned": "it could not be built: no network"}}
	for _, f := range []struct {
		name string
		rate float64
		cpu  []float64
	}{
		{ownName, 0, []float64{30, 10, 20}}, {victoriaName, 0, []float64{10, 10, 100}}, {ownKafkaName, 0, []float64{50}},
		{collectorName, 0, []float64{200}}, {ownName, 500, []float64{90}}, {victoriaName, 500, []float64{60}},
		{collectorName, 500, []float64{5}},
	} {
		figure := &peerFigure{Peer: f.name, Rate: f.rate}
		for _, cpu := range f.cpu {
			figure.add(one{events: 7, cpu: cpu, memory: 2 * cpu, disk: 100})
		}
		r.Figures = append(r.Figures, figure)
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a machine; load 1 before, 2 after\nvictorialogs v1\n",
		"collector-tuned is not measured: it could not be built: no network; its last figures are in docs/peer.md\n",
		"retrial        20.0  ",
		"  10.0 to 100.0  ",
		"retrial ÷ victorialogs at saturation: CPU 2.00, memory 2.00, disk 1.00\n",
		"retrial-kafka ÷ collector at saturation: CPU 0.25,",
		"retrial ÷ victorialogs at 500 events/s: CPU 1.50,",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "÷"); n != 3 {
		t.Errorf("%d ratios, want 3: none of ours, none without ours beside it:\n%s", n, out.String())
	}
}

// TestPeersMissing: what cannot be run is named with the reason.
func TestPeersMissing(t *testing.T) {
	t.Setenv("RETRIAL_TEST_KAFKA_BROKERS", "127.0.0.1:9092")
	b := peersBench{programs: t.TempDir()}
	for name, text := range map[string]string{"victoria-logs.log": "go: x\ngo: no network\n", "collector": "", "chserver": ""} {
		if err := os.WriteFile(filepath.Join(b.programs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		victoriaName: "it could not be built: go: no network", "collector-raw-lean": "", "collector-fast": "no such peer",
		"loki": "no such peer",
	} {
		if _, why := b.missing(name); why != want {
			t.Errorf("%s: %q, want %q", name, why, want)
		}
	}
	t.Setenv("RETRIAL_TEST_KAFKA_BROKERS", "")
	if _, why := b.missing(collectorName); !strings.HasPrefix(why, "it needs a Kafka") {
		t.Errorf("a collector without Kafka: %q", why)
	}
}

// TestEncodeOTLP holds the bytes to the messages of the .proto files, spelled out.
func TestEncodeOTLP(t *testing.T) {
	const line = `{"requestReceivedTimestamp":"1970-01-01T00:00:01.000000Z"}`
	got, err := encodeOTLP("c", [][]byte{[]byte(line)})
	if err != nil {
		t.Fatal(err)
	}
	want := "\x0a\x88\x01" + // ResourceLogs, of 136 bytes
		"\x0a\x3b" + // Resource
		"\x0a\x20\x0a\x0cservice.name\x12\x10\x0a\x0ekube-apiserver" +
		"\x0a\x17\x0a\x10k8s.cluster.name\x12\x03\x0a\x01c" +
		"\x12\x49\x12\x47" + // ScopeLogs, LogRecord
		"\x09\x00\xca\x9a\x3b\x00\x00\x00\x00" + "\x2a\x3c\x0a\x3a" + line
	if string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}
