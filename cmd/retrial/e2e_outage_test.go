package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/test/kafkatest"
	"github.com/retrial-io/retrial/test/process"
	"github.com/retrial-io/retrial/test/workload"
)

// maxReceiverRSS is what a receiver may use at its peak while Kafka is away.
const maxReceiverRSS = 256 << 20

// TestOutage takes Kafka away from a receiver that events come in to, kills the receiver in
// the middle of the outage, starts it without Kafka, and brings Kafka back: every event that
// was posted is in Kafka, in the order of the posts. It is a few seconds' worth of events;
// make test-outage posts a quarter of an hour's, 3.6 million.
//
// RETRIAL_OUTAGE_EVENTS and RETRIAL_OUTAGE_RATE (events a second; 0: as fast as it goes) say
// how many and how fast.
func TestOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("its bound of memory is that of a build without the race detector, tested without -short")
	}
	t.Parallel()
	events, rate := outageSetting(t, "RETRIAL_OUTAGE_EVENTS", 12_000), outageSetting(t, "RETRIAL_OUTAGE_RATE", 0)
	kafka := kafkatest.Run(t, kafkatest.Config{})
	node := kafka.Nodes[0]
	in := install{t.TempDir()}
	flags := onKafka(kafka.Plaintext())
	s := in.ingest(t, "127.0.0.1:0", flags...)
	to := s.addCluster(t, "prod")
	load := newNumbered(t)

	load.send(t, to, 2_000, rate)
	node.Kill()
	began := time.Now()
	load.send(t, to, events/2, rate)
	peak := s.peakRSS(t)
	s.kill()
	s = in.ingest(t, s.webhook[len("https://"):], flags...)
	load.send(t, to, events-events/2, rate)
	held, ok := s.metric(t.Context(), "retrial_spool_bytes")
	if records, _ := s.metric(t.Context(), "retrial_spool_records"); !ok || records < float64(events) {
		t.Errorf("%v records are spooled, %d were acknowledged without Kafka", records, events)
	}
	away := time.Since(began)
	before := s.peakRSS(t)

	began = time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := node.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for s.gauge(t, "retrial_spool_active") > 0 {
		select {
		case <-s.exited:
			t.Fatal("the receiver is gone")
		case <-time.After(50 * time.Millisecond):
		}
	}
	drained := time.Since(began)
	load.send(t, to, 2_000, rate)
	after := s.peakRSS(t)
	if files := s.gauge(t, "retrial_spool_kept_segments"); files != 0 {
		t.Errorf("%v segments were kept aside", files)
	}
	s.stop(t)
	load.arrived(t, kafka)
	t.Logf("%d events of %.0f bytes without Kafka in %.0f s: %.0f MB spooled, %.0f bytes each; drained %.1f s after Kafka was started; "+
		"peak RSS of the receiver %d MiB until it was killed, %d MiB after, %d MiB with draining",
		events, load.size(), away.Seconds(), held/1e6, held/float64(events), drained.Seconds(), peak>>20, before>>20, after>>20)
	for _, rss := range []int64{peak, after} {
		if rss > maxReceiverRSS {
			t.Errorf("the receiver used %d MiB, %d are allowed", rss>>20, maxReceiverRSS>>20)
		}
	}
}

// outageSetting reads a setting of the test.
func outageSetting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// ingest starts the receiving half.
func (in install) ingest(t *testing.T, listen string, args ...string) *running {
	t.Helper()
	all := append([]string{"ingest", "--webhook-listen", listen, "--ui-listen", "127.0.0.1:0", "--log-format", "json"}, in.flags()...)
	s, err := in.launch(t, in.retrial(context.Background(), append(all, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gauge is the value of a metric of a process that has to be there.
func (s *running) gauge(t *testing.T, name string) float64 {
	t.Helper()
	v, ok := s.metric(t.Context(), name)
	if !ok {
		t.Fatalf("no metrics:\n%s", complaints(s.log.String()))
	}
	return v
}

// peakRSS is the most memory the process has had resident, in bytes.
func (s *running) peakRSS(t *testing.T) int64 {
	t.Helper()
	peak, err := process.PeakMemory(s.cmd.Process.Pid)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("NOT RUN: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return peak
}

// numbered makes events of a recorded log whose audit IDs count.
type numbered struct {
	lines [][]byte
	next  int
	bytes int64
}

const numberedBatch = 400

// placeholder stands where the number goes; it has no form of an identifier, see workload.Renumber.
var placeholder = []byte("retrial#000000000000")

func newNumbered(t *testing.T) *numbered {
	t.Helper()
	id := regexp.MustCompile(`"auditID":"[^"]*"`)
	n := &numbered{}
	for _, line := range recorded(t)[:8_000] {
		n.lines = append(n.lines, id.ReplaceAll(line, append(append([]byte(`"auditID":"`), placeholder...), '"')))
	}
	return n
}

// body returns the next events as one post. Every other identifier in it is its own, too:
// what does not compress in a real log does not here.
func (n *numbered) body(count int) []byte {
	at := n.next / numberedBatch * numberedBatch % (len(n.lines) - numberedBatch)
	b := workload.Renumber(eventList(n.lines[at:at+count]), strconv.Itoa(n.next))
	for i := 0; ; n.next++ {
		j := bytes.Index(b[i:], placeholder)
		if j < 0 {
			return b
		}
		i += j + len(placeholder)
		copy(b[i-12:i], fmt.Appendf(nil, "%012d", n.next))
	}
}

func (n *numbered) size() float64 { return float64(n.bytes) / float64(n.next) }

// send posts so many events, one body after the other, as an apiserver does until each is
// taken; a rate is kept by the clock, and made good when it was missed.
func (n *numbered) send(t *testing.T, to sender, events, rate int) {
	t.Helper()
	began, first := time.Now(), n.next
	for n.next < first+events {
		if rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(n.next-first) * time.Second / time.Duration(rate))))
		}
		body := n.body(min(numberedBatch, first+events-n.next))
		n.bytes += int64(len(body))
		for {
			a, err := to.post(t.Context(), bytes.NewReader(body))
			if err == nil && a.code == http.StatusOK {
				break
			}
			if err == nil && a.code < 500 && a.code != http.StatusTooManyRequests {
				t.Fatalf("%d %s", a.code, a.text)
			}
			select {
			case <-t.Context().Done():
				t.Fatal("the time is up")
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// arrived reads all of Kafka: every number is there, and first came in the order it was
// posted within its partition.
func (n *numbered) arrived(t *testing.T, cluster *kafkatest.Cluster) {
	t.Helper()
	brokers := cluster.Plaintext().Brokers
	seen, total := make([]bool, n.next), 0
	for partition := range 4 {
		conn, err := kafka.DialLeader(t.Context(), "tcp", brokers[0], stream.TopicEvents, partition)
		if err != nil {
			t.Fatal(err)
		}
		end, err := conn.ReadLastOffset()
		_ = conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: brokers, Topic: stream.TopicEvents, Partition: partition, MaxBytes: 16 << 20})
		last := -1
		for at := int64(0); at < end; {
			m, err := r.ReadMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at = m.Offset + 1
			if string(m.Key) == "layout" {
				continue // the barrier that a new topic begins with
			}
			total++
			_, rest, found := bytes.Cut(m.Value, placeholder[:8])
			if !found || len(rest) < 12 {
				t.Fatalf("an event nobody posted: %.300s", m.Value)
			}
			id, err := strconv.Atoi(string(rest[:12]))
			if err != nil || id >= n.next {
				t.Fatalf("an event nobody posted: %.300s", m.Value)
			}
			if !seen[id] && id < last {
				t.Errorf("partition %d: event %d came behind %d", partition, id, last)
			}
			seen[id], last = true, max(last, id)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	lost := 0
	for _, s := range seen {
		if !s {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d events are not in Kafka", lost, n.next)
	}
	t.Logf("Kafka has all but %d of %d events, and %d of them again", lost, n.next, total-n.next+lost)
}
