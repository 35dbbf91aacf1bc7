package storage_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// killDir names the environment variable that makes TestKilledChild the child process.
const killDir = "RETRIAL_TEST_KILL_DIR"

// TestKilledChild is not a test by itself: TestKill runs it in a process of its own.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		return
	}
	s := storagetest.OpenAt(t, dir)
	in := rows(t, "c", 0)
	for i := 0; ; i++ {
		number(in, i)
		fmt.Printf("begin %d\n", i)
		if err := s.Insert(context.Background(), fmt.Sprint("block-", i), in); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("done %d\n", i)
	}
}

// number makes block i of the same lines: other audit IDs, other offsets.
func number(in []verdict.Row, i int) {
	for j := range in {
		in[j].Event.AuditID = fmt.Sprintf("%d-%d", i, j)
		in[j].Position.Offset = int64(i*len(in) + j)
		shift(&in[j], 0)
	}
}

// TestKill kills a process in the middle of inserting, several times on the same
// directory. Reopened, the store holds whole blocks, every acknowledged one, and after the
// interrupted block is sent again and recovered it equals a store that was never killed.
func TestKill(t *testing.T) {
	storagetest.Need(t)
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, after := range []int{1, 4} {
		t.Run(fmt.Sprint("after block ", after), func(t *testing.T) {
			dir := t.TempDir()
			begun, done := killAfter(t, dir, after)
			s := storagetest.OpenAt(t, dir)
			in := rows(t, "c", 0)
			got := totals(t, s).Events
			if got%int64(len(in)) != 0 || got < int64((done+1)*len(in)) || got > int64((begun+1)*len(in)) {
				t.Fatalf("%d rows of blocks of %d: %d blocks were acknowledged, %d begun", got, len(in), done+1, begun+1)
			}
			if err := s.Recover(context.Background(), 0, 1, days(in)); err != nil {
				t.Fatal(err)
			}
			for i := done + 1; i <= begun; i++ {
				number(in, i)
				known, err := s.Known(context.Background(), in)
				if err != nil {
					t.Fatal(err)
				}
				if len(known) == 0 {
					insert(t, s, fmt.Sprint("block-", i), in)
				}
			}
			v := consistent(t, s)
			if v.Events != int64((begun+1)*len(in)) {
				t.Fatalf("%d events, want %d blocks of %d", v.Events, begun+1, len(in))
			}
		})
	}
}

// killAfter runs the child until it has begun the block after the given one, kills it
// and returns the last block begun and the last acknowledged.
func killAfter(t *testing.T, dir string, after int) (begun, done int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.v")
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun, done = -1, -1
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, n, _ := strings.Cut(lines.Text(), " ")
		i, err := strconv.Atoi(n)
		switch {
		case err != nil:
		case word == "begin":
			begun = i
		case word == "done":
			done = i
		}
		if begun == after+1 && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return begun, done
}
