package kafkatest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Node is one broker of a cluster. Its methods may be called from several goroutines, but
// not at the same time.
type Node struct {
	c               *Cluster
	id              int
	plaintext, sasl int // ports
	heapMB          int
	dir             string

	mu      sync.Mutex
	process *process // nil: it does not run
}

// process is one run of a node.
type process struct {
	cmd     *exec.Cmd
	started chan struct{} // closed when it serves clients
	ended   chan struct{} // closed when it has ended
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// startedLine is what a broker logs when it serves clients and the controller knows it.
const startedLine = "Kafka Server started"

// Start starts the broker unless it runs, and returns when it serves clients. When it ends
// before, the error has its last words.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		p, err := n.launch()
		if err != nil {
			return fmt.Errorf("start node %d: %w", n.id, err)
		}
		n.process = p
	}
	select {
	case <-n.process.started:
		return nil
	case <-n.process.ended:
		n.process = nil
		return fmt.Errorf("node %d ended before it served: %s", n.id, n.lastWords())
	case <-ctx.Done():
		return fmt.Errorf("node %d does not serve: %w: %s", n.id, ctx.Err(), n.lastWords())
	}
}

func (n *Node) launch() (*process, error) {
	log, err := os.OpenFile(n.file("kafka.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	heap := strconv.Itoa(n.heapMB) + "m"
	args := []string{"-Xms" + heap, "-Xmx" + heap, "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"}
	if n.heapMB <= 256 {
		args = append(args, "-XX:TieredStopAtLevel=1") // short runs never pay for the second compiler
	}
	p := &process{cmd: exec.Command(n.c.install.java, append(args, "-cp", n.c.install.classPath, "kafka.Kafka",
		n.file("server.properties"))...),
		started: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Dir = n.dir
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	tie(p.cmd)
	running := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see tie
		err := p.cmd.Start()
		_ = in.Close()
		running <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in the log
		}
		close(p.ended)
	}()
	go func() {
		lines := bufio.NewScanner(io.TeeReader(out, log))
		said := false
		for lines.Scan() {
			if !said && strings.Contains(lines.Text(), startedLine) {
				said = true
				close(p.started)
			}
		}
		_, _ = io.Copy(log, out) // after a line no scanner takes
		_, _ = out.Close(), log.Close()
	}()
	return p, <-running
}

// Kill ends the broker as kill -9 does, if it runs.
func (n *Node) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		_ = n.process.cmd.Process.Kill() // it may have ended
		<-n.process.ended
		n.process = nil
	}
}

// Stop ends the broker in an orderly way, if it runs.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	_ = n.process.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-n.process.ended:
		n.process = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %d does not stop: %w", n.id, ctx.Err())
	}
}

// CPU returns the processor time the running broker has used.
func (n *Node) CPU() (time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return 0, fmt.Errorf("node %d does not run", n.id)
	}
	return processCPU(n.process.cmd.Process.Pid)
}

// lastWords returns the end of the log.
func (n *Node) lastWords() string {
	text, err := os.ReadFile(n.file("kafka.log"))
	if err != nil {
		return err.Error()
	}
	const most = 4000
	return string(text[max(0, len(text)-most):])
}
