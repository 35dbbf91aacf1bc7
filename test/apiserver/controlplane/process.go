package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience bounds every wait: long enough for a machine that is busy with everything else,
// and no assertion about how fast anything is.
const Patience = 4 * time.Minute

// Binary returns the path of a program that scripts/test-apiserver.sh built, or ends the test.
func Binary(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("RETRIAL_APISERVER_BIN")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(cache, "retrial", "apiserver")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI runs need %s: scripts/test-apiserver.sh build", path)
		}
		t.Skipf("NOT RUN: %v; build it with scripts/test-apiserver.sh build", err)
	}
	return path
}

// Poll asks until done says yes, every tenth of a second, and ends the test after Patience.
// What done found last, as text, goes into the message.
func Poll(t testing.TB, what string, done func(context.Context) (bool, string)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, Patience, true, func(ctx context.Context) (ok bool, _ error) {
		ok, last = done(ctx)
		return ok, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %s", what, err, last)
	}
}

// Process is a program that runs beside the test and never outlives it.
type Process struct {
	cmd    *exec.Cmd
	log    string // file of both its outputs
	exited chan struct{}
}

// Run starts a program; what it writes goes into a file of its own below dir, or, to be kept,
// below RETRIAL_APISERVER_LOGS. The log's end is shown when the test fails.
func Run(t testing.TB, dir string, env []string, name string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	logs := dir
	if keep := os.Getenv("RETRIAL_APISERVER_LOGS"); keep != "" {
		logs = keep
	}
	out, err := os.CreateTemp(logs, filepath.Base(name)+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	p.log = out.Name()
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig goes by the thread that started the process
		defer close(p.exited)
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the end of what %s wrote:\n%s", filepath.Base(name), tail(p.Output(), 4_000))
		}
	})
	return p
}

// Output returns everything the process has written so far.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Arguments returns what the kernel says the running process was started with, without its name.
func (p *Process) Arguments(t testing.TB) []string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")[1:]
}

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Done waits until the process has ended by itself, and wants it to have ended well.
func (p *Process) Done(t testing.TB) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(Patience):
		t.Fatalf("%v does not end:\n%s", p.cmd.Args, p.Output())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("%v: exit code %d:\n%s", p.cmd.Args, code, p.Output())
	}
}

// Wait waits until the process has ended by itself, however long that takes.
func (p *Process) Wait() { <-p.exited }

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Stop asks the process to end and waits until it has.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(Patience):
		t.Fatalf("%v does not stop", p.cmd.Args[0])
	}
}

func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}
