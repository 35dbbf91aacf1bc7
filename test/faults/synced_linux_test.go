package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a power failure leaves of a real process's files is found out by watching its syncs:
// a filter on its system calls, installed before the product is executed, hands every fsync
// and fdatasync of all its threads, the engine's too, to the harness before it is done. The
// harness notes how much of which file will be on disk, and lets it go on, or ends the
// process there and then. Afterwards every file is cut to what was synced, or by chance to a
// little more. Names are taken to be as durable as a journaling file system makes them.

// watchEnv makes the test binary install the filter and execute what its arguments say.
const watchEnv = "RETRIAL_FAULTS_WATCHED"

// Numbers of the kernel's interface, see seccomp(2).
const (
	seccompSetModeFilter  = 1
	seccompNewListener    = 8
	seccompRetAllow       = 0x7fff0000
	seccompRetNotify      = 0x7fc00000
	seccompContinue       = 1
	seccompIoctlReceive   = 0xc0502100
	seccompIoctlSend      = 0xc0182101
	sysFsync, sysDataSync = 74, 75 // amd64
)

// watchedExec never returns.
func watchedExec() {
	runtime.LockOSThread() // the filter is the thread's that executes
	err := func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: sysFsync, Jt: 1},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: sysDataSync, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: seccompRetNotify},
			{Code: unix.BPF_RET | unix.BPF_K, K: seccompRetAllow},
		}
		prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompSetModeFilter, seccompNewListener, uintptr(unsafe.Pointer(&prog)))
		if errno != 0 {
			return fmt.Errorf("seccomp: %w", errno)
		}
		if err := unix.Sendmsg(3, []byte{1}, unix.UnixRights(int(fd)), nil, 0); err != nil {
			return err
		}
		unix.Close(int(fd))
		unix.Close(3)
		return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}()
	fmt.Fprintln(os.Stderr, "watched:", err)
	os.Exit(97)
}

// fileID tells files apart even when an inode is used again.
type fileID struct {
	inode uint64
	born  unix.StatxTimestamp
}

func identify(path string) (id fileID, size int64, err error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME|unix.STATX_SIZE, &st); err != nil {
		return id, 0, err
	}
	return fileID{st.Ino, st.Btime}, int64(st.Size), nil
}

// watcher notes the syncs of one process and can end it at one of them.
type watcher struct {
	listener int

	mu      sync.Mutex
	durable map[fileID]int64
	syncs   int
	endAt   int // 0: at none
	end     func()
	ended   bool
}

// watch prepares cmd to be started under a watcher; call the returned function once it is
// started.
func watch(cmd *exec.Cmd, dir string, endAt int, end func()) (*watcher, func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "watched")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Args = append([]string{self}, cmd.Args...)
	cmd.Args[1] = cmd.Path
	cmd.Path = self
	cmd.Env = append(cmd.Env, watchEnv+"=1")
	w := &watcher{durable: map[fileID]int64{}, endAt: endAt, end: end}
	// What is there at the start is on disk.
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if id, size, err := identify(path); err == nil {
				w.durable[id] = size
			}
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	return w, func() error {
		theirs.Close()
		defer unix.Close(pair[0])
		oob := make([]byte, unix.CmsgSpace(4))
		buf := make([]byte, 1)
		_, n, _, _, err := unix.Recvmsg(pair[0], buf, oob, 0)
		if err != nil {
			return err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil || len(messages) == 0 {
			return errors.Join(err, errors.New("the process sent no listener"))
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return err
		}
		w.listener = fds[0]
		go w.serve()
		return nil
	}, nil
}

// notification and response are the kernel's structures.
type notification struct {
	id        uint64
	pid       uint32
	flags     uint32
	nr        int32
	arch      uint32
	ip        uint64
	arguments [6]uint64
}

type response struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

func (w *watcher) serve() {
	defer unix.Close(w.listener)
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), seccompIoctlReceive, uintptr(unsafe.Pointer(&n)))
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ENOENT: // the thread that asked is gone; the last one ends the listener
			if w.over() {
				return
			}
			continue
		case errno != 0:
			return
		}
		id, size, err := identify(fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.arguments[0]))
		w.mu.Lock()
		w.syncs++
		if w.syncs == w.endAt {
			w.ended = true
			w.mu.Unlock()
			w.end() // before it is done
			continue
		}
		if err == nil && !w.ended {
			w.durable[id] = size
		}
		w.mu.Unlock()
		r := response{id: n.id, flags: seccompContinue}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), seccompIoctlSend, uintptr(unsafe.Pointer(&r)))
	}
}

// over reports whether nobody uses the filter any more.
func (w *watcher) over() bool {
	p := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
	_, err := unix.Poll(p, 50)
	return err == nil && p[0].Revents&unix.POLLHUP != 0
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.syncs
}

// power leaves of the files what a power failure would. The process must be gone.
func (w *watcher) power(dir string, rng *rand.Rand) (cut int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cut, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		id, size, err := identify(path)
		if err != nil {
			return err
		}
		kept := min(w.durable[id], size)
		if rest := size - kept; rest > 0 && rng.IntN(3) == 0 {
			kept += rng.Int64N(rest + 1)
		}
		if kept == size {
			return nil
		}
		cut++
		return os.Truncate(path, kept)
	})
}
