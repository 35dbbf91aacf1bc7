package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/stream"
)

// childEnv makes the test binary a producer over the directory it names.
const childEnv = "RETRIAL_TEST_EMBEDDED_DIR"

// child produces until it is killed and writes each value to stdout once it is
// acknowledged.
func child(dir string) {
	b, err := embedded.Start(config(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c, err := stream.NewClient(stream.Config{Brokers: []string{b.Addr()}, Dial: b.Dial, Partitions: 1, Retention: -1})
	if err == nil {
		err = c.EnsureTopics(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	for k := range 4 {
		go func() {
			for i := 0; ; i++ {
				var rs []stream.Record
				var ack strings.Builder
				for j := range 1 + i%7 {
					v := fmt.Sprintf("%d-%d-%d-%d", os.Getpid(), k, i, j)
					fmt.Fprintln(&ack, v)
					rs = append(rs, record(v+strings.Repeat("x", 50*(i%40))))
				}
				if err := c.Producer().Produce(context.Background(), rs...); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				out.Lock()
				os.Stdout.WriteString(ack.String())
				out.Unlock()
			}
		}()
	}
	select {}
}

// Every record a killed process had acknowledged is there, once and in full, whatever the
// kill tore.
func TestKillLosesNothing(t *testing.T) {
	dir := t.TempDir()
	var acked []string
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		n := 0
		for lines.Scan() {
			acked = append(acked, lines.Text())
			if n++; n == 300+117*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || n < 300 {
			t.Fatalf("the child ended by itself after %d records: %v", n, err)
		}
	}
	b := start(t, dir)
	c := connect(t, b)
	values, positions, _ := read(t, c)
	seen := make(map[string]int, len(values))
	for i, v := range values {
		name := strings.TrimRight(v, "x")
		seen[name]++
		if positions[i] != int64(i) {
			t.Fatalf("record %d is at offset %d", i, positions[i])
		}
	}
	for _, v := range acked {
		if seen[v] != 1 {
			t.Errorf("%s was acknowledged and is there %d times", v, seen[v])
		}
	}
	t.Logf("%d records acknowledged over 3 kills, %d in the log", len(acked), len(values))
}
