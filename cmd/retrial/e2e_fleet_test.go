package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/test/chserver"
	"github.com/retrial-io/retrial/test/kafkatest"
)

// fleet is what several processes of the product share: a real Kafka, a store that is served
// over HTTP, one authority with its registry, one redaction key. The install is the
// administrator's; the store's files are in its data directory.
type fleet struct {
	install
	t       *testing.T
	kafka   *kafkatest.Cluster
	shared  []string // flags of every process
	store   *exec.Cmd
	closed  chan struct{}
	members int
}

// newFleet starts Kafka and the store and registers the cluster "prod", whose events are spread over some of the partitions.
func newFleet(t *testing.T, setting kafkatest.Setting, partitions, spread int) *fleet {
	t.Helper()
	s := &fleet{install: newInstall(t), t: t, kafka: kafkatest.Run(t, kafkatest.Config{Version: setting.Version}),
		closed: make(chan struct{})}
	if err := os.WriteFile(filepath.Join(s.dir, "hmac.key"), []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, "cluster", "add", "prod", "--server", "https://127.0.0.1:9443", "--output", filepath.Join(s.dir, "prod.kubeconfig")).ok(t)
	s.shared = append(setting.Access(s.kafka).Flags(), "--kafka-replication", "1", "--kafka-partitions", fmt.Sprint(partitions),
		"--kafka-cluster-partitions", fmt.Sprint(spread),
		"--clickhouse-dsn", s.startStore(), "--webhook-listen", "127.0.0.1:0", "--ui-listen", "127.0.0.1:0", "--log-format", "json")
	return s
}

// storeMain serves the store in the folder that is its argument, and prints its URL.
func storeMain() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server, err := chserver.Listen(chserver.Config{Engine: chdb.Config{Path: os.Args[1]}, Listen: "127.0.0.1:0",
		Users: []chserver.User{{Name: "retrial", Password: "secret"}}})
	if err == nil {
		fmt.Println("http://retrial:secret@" + server.Addr())
		<-ctx.Done()
		err = server.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "retrial-store:", err)
		os.Exit(cli.ExitError)
	}
}

func (s *fleet) startStore() (dsn string) {
	s.t.Helper()
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.store = exec.Command("retrial-store", filepath.Join(s.data(), "clickhouse"))
	stdout, err := s.store.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var errs output
	s.store.Stderr = &errs
	tie(s.store)
	said := make(chan string, 1)
	go func() {
		runtime.LockOSThread() // see tie
		defer close(s.closed)
		defer close(said)
		if err := s.store.Start(); err != nil {
			fmt.Fprintln(&errs, err)
			return
		}
		if lines := bufio.NewScanner(stdout); lines.Scan() {
			said <- lines.Text()
		}
		_ = s.store.Wait() // closeStore looks at it
	}()
	if dsn = <-said; dsn == "" {
		s.t.Fatalf("the store does not start: %s", errs.String())
	}
	s.t.Cleanup(func() {
		_ = s.store.Process.Kill() // it has ended if the test went well
		<-s.closed
	})
	return dsn
}

// closeStore ends the store, so that its files can be looked at.
func (s *fleet) closeStore() {
	s.t.Helper()
	_ = s.store.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.closed:
	case <-time.After(patience):
		s.t.Fatal("the store does not stop")
	}
	if code := s.store.ProcessState.ExitCode(); code != cli.ExitOK {
		s.t.Fatalf("the store ended with code %d", code)
	}
}

// member starts one of the processes on a machine of its own: it gets what an administrator
// hands to each.
func (s *fleet) member(command string, args ...string) *running {
	s.t.Helper()
	s.members++
	in := install{filepath.Join(s.dir, fmt.Sprintf("%s-%d", command, s.members))}
	if err := os.MkdirAll(in.data(), 0o700); err != nil {
		s.t.Fatal(err)
	}
	for from, to := range map[string]string{"data/pki": "data/pki", "hmac.key": "hmac.key"} {
		if out, err := exec.CommandContext(s.t.Context(), "cp", "-a", filepath.Join(s.dir, from),
			filepath.Join(in.dir, to)).CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
	}
	return s.again(in, command, args...)
}

// again starts a process on the files that an earlier one has left.
func (s *fleet) again(in install, command string, args ...string) *running {
	s.t.Helper()
	all := append(append([]string{command}, s.shared...), in.flags()...)
	m, err := in.launch(s.t, in.retrial(context.Background(), append(all, args...)...))
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}
