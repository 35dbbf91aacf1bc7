package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/test/kafkatest"
)

// TestAddPartitionsOnKafka adds partitions on a real Kafka and spreads the cluster over more and then over all of them, while events come
// in by two receivers, and some that came before the change again after it. Meanwhile a replay process is killed, another joins, and Kafka
// is killed. In the end every posted event is stored once, and verdicts and rollups are those of one process that saw all in order.
//
// RETRIAL_TEST_KAFKA_ALL has it run, as make test-kafka does.
func TestAddPartitionsOnKafka(t *testing.T) {
	if !kafkatest.All() {
		t.Skip("takes minutes for each version of Kafka: make test-kafka")
	}
	for _, setting := range kafkatest.Settings() {
		if setting.Mechanism != "" { // as TestScaleOutOnKafka
			t.Run(setting.String(), func(t *testing.T) { addPartitions(t, setting) })
		}
	}
}

func addPartitions(t *testing.T, setting kafkatest.Setting) {
	s := newFleet(t, setting, 3, 1)
	if err := s.kafka.Grant(t.Context(), kafkatest.Right{Resource: kafka.ResourceTypeTopic, Prefix: "audit.",
		Operation: kafka.ACLOperationTypeAlter}); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(s.dir, name) }
	without, late, with := lateLog(t)
	state, whole := writeState(t, s.dir), writeLog(t, at("audit.jsonl"), with)
	partitions := func(args ...string) (p server.Partitions) {
		t.Helper()
		out := s.run(t, append(append([]string{"partitions"}, args...), append(s.shared, "-o", "json")...)...).ok(t).out
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	replay := func() *running { return s.member("replay", "--replay-hold", "0s", "--replay-batch-rows", "400") }
	first, second := replay(), replay()
	first.run(t, "import", "--cluster", "prod", "--state", state, "--wait=false").ok(t)
	group := &balancer{t: t, kubeconfig: at("prod.kubeconfig")}
	group.put(0, s.member("ingest"))
	group.put(1, s.member("ingest"))
	if p := partitions(); p.Layout.Epoch != 1 || p.Layout.PerCluster != 1 || len(p.Partitions) != 3 {
		t.Errorf("a new topic has %+v", p)
	}

	bodies := batches(without, 11)
	part := func(i, n int) [][]byte { return bodies[i*len(bodies)/n : (i+1)*len(bodies)/n] }
	var third *running
	group.deliver(part(0, 4), nil)
	group.deliver(part(1, 4), func() {
		if p := partitions("set", "--partitions", "7", "--per-cluster", "3"); len(p.Partitions) != 7 || p.Layout.Epoch != 2 {
			t.Errorf("added partitions: %+v", p)
		}
		second.kill()
	})
	group.deliver(part(0, 4)[:len(bodies)/8], nil) // they stand on the other side
	group.deliver(part(2, 4), func() { third = replay(); s.kafka.Nodes[0].Kill(); s.kafka.Nodes[0].Restart(t) })
	group.deliver([][]byte{eventList([][]byte{late})}, nil)
	group.deliver(part(3, 4), func() {
		partitions("set", "--per-cluster", "7")
		if p := partitions("set", "--per-cluster", "7"); p.Layout.Epoch != 3 {
			t.Errorf("set twice: %+v", p.Layout)
		}
	})
	s.run(t, append([]string{"partitions", "set", "--partitions", "5"}, s.shared...)...).refused(t, cli.ExitError, "has 7 partitions")
	first.drained(t)
	third.drained(t)
	until(t, "all partitions to reach the layout", func() (bool, string) {
		p := partitions()
		return p.Reached(), fmt.Sprintf("%+v", p)
	})
	forwarded := first.gauge(t, "retrial_runner_forwarded_total") + third.gauge(t, "retrial_runner_forwarded_total")
	owned := first.gauge(t, "retrial_runner_partitions") + third.gauge(t, "retrial_runner_partitions")
	t.Logf("sent on to the right partition: %v", forwarded)
	if forwarded == 0 || owned != 7 {
		t.Errorf("%v events were sent on, %v partitions are owned", forwarded, owned)
	}
	for _, m := range []*running{first, third, group.members[0].Load(), group.members[1].Load()} {
		m.stop(t)
	}
	s.closeStore()
	checkImported(t, s.install, "prod", state, whole, with)
	likeOneProcess(t, s.install, state, whole)
}
