package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// engine is a store of its own for one side: test/chserver, the embedded engine over HTTP.
type engine struct {
	*process
	url string // http://127.0.0.1:port
}

const (
	storeUser     = "retrial"
	storePassword = "secret"
)

// dsn returns the engine's address with its user.
func (e *engine) dsn() string {
	return strings.Replace(e.url, "://", "://"+storeUser+":"+storePassword+"@", 1)
}

func startEngine(ctx context.Context, o options, name string) (*engine, error) {
	cmd := exec.CommandContext(ctx, o.chserver, "--path", filepath.Join(o.dir, name), "--listen", "127.0.0.1:0", "--user",
		storeUser+":"+storePassword)
	cmd.Stderr = os.Stderr
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	p, err := start(cmd)
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("chserver did not start: %w", err), p.end())
	}
	return &engine{p, strings.TrimSpace(line)}, nil
}

// process is one that runs until it is ended.
type process struct {
	*exec.Cmd
	ended chan struct{} // closed when it has, by whatever
	err   error         // why, then
}

func start(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{Cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// end stops a process and waits for it.
func (p *process) end() error {
	_ = p.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	<-p.ended
	return p.err
}

// cpuOf returns the processor time a process has used so far, from /proc.
func cpuOf(pid int) (time.Duration, error) {
	const ticksPerSecond = 100 // USER_HZ, fixed on Linux
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond, errors.Join(err1, err2)
}

// idle waits until processes together use next to no processor time: nothing is under way and
// the store has merged what it wanted to merge.
func idle(ctx context.Context, pids ...int) error {
	total := func() (sum time.Duration, err error) {
		for _, pid := range pids {
			used, e := cpuOf(pid)
			sum, err = sum+used, errors.Join(err, e)
		}
		return sum, err
	}
	last, err := total()
	for quiet := 0; err == nil && quiet < 4; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
		var now time.Duration
		if now, err = total(); now-last < 40*time.Millisecond {
			quiet++
		} else {
			quiet = 0
		}
		last = now
	}
	return err
}
