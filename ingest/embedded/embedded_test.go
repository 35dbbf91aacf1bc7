package embedded_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/stream"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func config(dir string) embedded.Config {
	return embedded.Config{Dir: dir, Consumers: stream.Consumers(""), Reserve: []string{stream.TopicDeadLetter},
		Verify: stream.VerifyCommit, TrimInterval: time.Hour}
}

func start(t testing.TB, dir string) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// connect returns a client of the broker with one partition per topic.
func connect(t testing.TB, b *embedded.Broker) *stream.Client {
	t.Helper()
	c, err := stream.NewClient(stream.Config{Brokers: []string{b.Addr()}, Dial: b.Dial, Partitions: 1, Retention: -1,
		FetchWait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.EnsureTopics(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

func record(value string) stream.Record {
	return stream.Record{Topic: stream.TopicPolicy, Kind: stream.KindObservation, Key: []byte("c"), Value: []byte(value), Cluster: "c",
		Received: time.Unix(0, 0)}
}

func produce(t testing.TB, c *stream.Client, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := c.Producer().Produce(context.Background(), record(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns everything the policy log holds, and the epoch of the records.
func read(t testing.TB, c *stream.Client) (values []string, positions []int64, epoch uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	marks, err := c.HighWatermarks(ctx, stream.TopicPolicy)
	if err != nil {
		t.Fatal(err)
	}
	r := c.ReadPolicy(ctx, nil, func(rs []stream.Record) error {
		for _, r := range rs {
			values, positions, epoch = append(values, string(r.Value)), append(positions, r.Position.Offset), r.Position.Epoch
		}
		return nil
	}, nil)
	defer r.Close()
	if err := r.WaitFor(ctx, marks); err != nil {
		t.Fatal(err)
	}
	return values, positions, epoch
}

// crash copies the directory of a running broker: what a kill at this moment would leave.
func crash(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestRestartKeepsRecordsAndCommits(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	c := connect(t, b)
	produce(t, c, 0, 20)
	_, _, epoch := read(t, c)
	if err := c.CommitPolicy(context.Background(), map[int32]int64{0: 12}); err != nil {
		t.Fatal(err)
	}
	image := crash(t, dir)
	c.Close()
	b.Close()
	for name, dir := range map[string]string{"closed": dir, "crashed": image} {
		t.Run(name, func(t *testing.T) {
			b := start(t, dir)
			c := connect(t, b)
			values, positions, again := read(t, c)
			if len(values) != 8 || values[0] != "12" || positions[0] != 12 || again != epoch {
				t.Errorf("%d records from %v at %v, epoch %d, was %d", len(values), values, positions, again, epoch)
			}
			produce(t, c, 20, 21)
			if values, positions, _ := read(t, c); values[len(values)-1] != "20" || positions[len(positions)-1] != 20 {
				t.Errorf("the next record is at %v", positions)
			}
		})
	}
}

// A partition consumed to its end keeps its last batch, so that offsets go on from there
// even after a kill; deletion never passes a commit.
func TestTrimKeepsTheLastBatchAndWhatIsNotConsumed(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	c := connect(t, b)
	produce(t, c, 0, 30)
	full := b.Held()
	b.Trim()
	if values, _, _ := read(t, c); len(values) != 30 {
		t.Errorf("without a commit %d of 30 records are left", len(values))
	}
	commit := func(next int64) {
		if err := c.CommitPolicy(context.Background(), map[int32]int64{0: next}); err != nil {
			t.Fatal(err)
		}
	}
	commit(10)
	b.Trim()
	if values, _, _ := read(t, c); len(values) != 20 || values[0] != "10" {
		t.Errorf("records left: %v", values)
	}
	commit(30)
	b.Trim()
	if b.Held() == 0 || b.Held() > full/10 {
		t.Errorf("%d of %d bytes are held of a log that is consumed", b.Held(), full)
	}
	for i := range 3 { // several crashes without a record in between
		dir = crash(t, dir)
		c.Close()
		b.Close()
		b = start(t, dir)
		c = connect(t, b)
		marks, err := c.HighWatermarks(context.Background(), stream.TopicPolicy)
		if err != nil || marks[0] != 30 {
			t.Fatalf("after crash %d the log ends at %d, %v", i+1, marks[0], err)
		}
	}
	produce(t, c, 30, 31)
	if values, positions, _ := read(t, c); values[len(values)-1] != "30" || positions[len(positions)-1] != 30 {
		t.Errorf("new record: %v at %v", values, positions)
	}
}

// A log that lost records (a file deleted, a disk that lied) hands out the same offsets
// again: consumers must notice, start over, and use another epoch.
func TestLostLogRaisesTheEpoch(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, dir string){
		"partition deleted": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "log", "partitions", stream.TopicPolicy+"-0")); err != nil {
				t.Fatal(err)
			}
		},
		"log cut": func(t *testing.T, dir string) {
			cut(t, filepath.Join(dir, "log", "partitions", stream.TopicPolicy+"-0"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := start(t, dir)
			c := connect(t, b)
			produce(t, c, 0, 20)
			_, _, epoch := read(t, c)
			if err := c.CommitPolicy(context.Background(), map[int32]int64{0: 20}); err != nil {
				t.Fatal(err)
			}
			c.Close()
			b.Close()
			lose(t, dir)
			b = start(t, dir)
			c = connect(t, b)
			// Offsets pass the old commit before anyone consumes: only the check at
			// start can see that records were lost.
			produce(t, c, 100, 140)
			values, _, again := read(t, c)
			if again <= epoch {
				t.Errorf("epoch is %d, was %d", again, epoch)
			}
			if n := len(values); n < 40 || values[n-40] != "100" || values[n-1] != "139" {
				t.Errorf("new records read: %v", values)
			}
		})
	}
}

// cut takes the second half of a partition's file away.
func cut(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.dat"))
	if err != nil || len(files) != 1 {
		t.Fatalf("log files %v, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err == nil {
		err = os.Truncate(files[0], info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	_, err := embedded.Start(config(dir))
	var locked *embedded.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, embedded.ErrLocked) {
		t.Fatalf("error %v", err)
	}
	if want := fmt.Sprintf("pid %d", os.Getpid()); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) ||
		locked.Dir != dir {
		t.Errorf("error %v names neither %s nor the directory", err, want)
	}
	b.Close()
	start(t, dir).Close()
}

func TestUnusableDirectories(t *testing.T) {
	for _, tc := range []struct {
		name string
		dir  func(t *testing.T) string
		want string
	}{
		{"none", func(*testing.T) string { return "" }, "no directory"},
		{"below a file", func(t *testing.T) string {
			file := filepath.Join(t.TempDir(), "file")
			write(t, file, "x")
			return filepath.Join(file, "dir")
		}, "not a directory"},
		{"lock is a directory", func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "must be writable"},
		{"not ours", func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "log"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "log", "meta.json"), "not JSON")
			return dir
		}, "restore the directory"},
		{"written by a later release", func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "log"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "log", "meta.json"), `{"version":99}`)
			return dir
		}, "newer than supported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tc.dir(t)
			for range 2 { // the lock is free again after a failure
				if _, err := embedded.Start(config(dir)); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
			}
		})
	}
	cfg := config(t.TempDir())
	cfg.MaxBytes = embedded.MinMaxBytes - 1
	if _, err := embedded.Start(cfg); err == nil || !strings.Contains(err.Error(), "too small") {
		t.Errorf("small cap: %v", err)
	}
}

// A directory this user may not write to.
func TestUnwritableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(config(dir)); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "must be writable") {
		t.Errorf("error %v", err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Bytes that are not Kafka, or Kafka the broker cannot stand, end their connection and
// nothing else.
func TestHostileBytes(t *testing.T) {
	b := start(t, t.TempDir())
	c := connect(t, b)
	frame := func(size uint32, key, version int16, rest ...byte) []byte {
		p := binary.BigEndian.AppendUint32(nil, size)
		p = binary.BigEndian.AppendUint16(p, uint16(key))
		p = binary.BigEndian.AppendUint16(p, uint16(version))
		return append(p, rest...)
	}
	for _, tc := range []struct {
		name  string
		bytes []byte
	}{
		{"unknown key", frame(14, 9999, 0, 0, 0, 0, 1, 0, 1, 'x', 0, 0, 0)},
		{"negative key", frame(14, -1, 0, 0, 0, 0, 1, 0, 1, 'x', 0, 0, 0)},
		{"key of another trade", frame(14, 22, 0, 0, 0, 0, 1, 0, 1, 'x', 0, 0, 0)},
		{"unknown version", frame(14, 0, 999, 0, 0, 0, 1, 0, 1, 'x', 0, 0, 0)},
		{"negative version", frame(14, 0, -5, 0, 0, 0, 1, 0, 1, 'x', 0, 0, 0)},
		{"four gigabytes", frame(1<<32-1, 3, 1, 0, 0, 0, 1)},
		{"no bytes", frame(0, 3, 1, 0, 0, 0, 1)},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")},
		{"TLS", []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 0, 0, 0, 0, 0}},
		{"zeros", make([]byte, 64)},
		{"produce that is none", frame(20, 0, 3, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, err := b.Dial(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			go conn.Write(tc.bytes) //nolint:errcheck // the broker may hang up in the middle
			if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || n != 0 {
				t.Errorf("read %d bytes, %v: want the connection ended", n, err)
			}
		})
	}
	t.Run("half a frame", func(t *testing.T) {
		conn, err := b.Dial(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(frame(100, 3, 1)); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
	produce(t, c, 0, 1)
	if values, _, _ := read(t, c); len(values) != 1 {
		t.Errorf("records %v", values)
	}
}

// The broker listens on no port.
func TestNoPort(t *testing.T) {
	b := start(t, t.TempDir())
	if conn, err := net.DialTimeout("tcp", "127.0.0.1:9092", time.Second); err == nil {
		conn.Close()
		t.Skip("something else listens on 9092")
	}
	if _, _, err := net.SplitHostPort(b.Addr()); err != nil {
		t.Errorf("address %q: %v", b.Addr(), err)
	}
}

func TestDialAfterClose(t *testing.T) {
	b := start(t, t.TempDir())
	b.Close()
	b.Close()
	if _, err := b.Dial(context.Background(), "", ""); err == nil {
		t.Error("a closed broker was reached")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := start(t, t.TempDir()).Dial(ctx, "", ""); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("dial with a dead context: %v", err)
	}
}

// Topics the broker retains forever although their own settings would not.
func TestTopicSettingsDeleteNothing(t *testing.T) {
	b := start(t, t.TempDir())
	transport := &kafka.Transport{Dial: b.Dial}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(b.Addr()), Transport: transport, Timeout: 10 * time.Second}
	resp, err := client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: stream.TopicPolicy, NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "1"},
			{ConfigName: "retention.bytes", ConfigValue: "1"}}}}})
	if err == nil {
		err = resp.Errors[stream.TopicPolicy]
	}
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, b)
	produce(t, c, 0, 5)
	b.Trim()
	if values, _, _ := read(t, c); len(values) != 5 {
		t.Errorf("%d of 5 records are left", len(values))
	}
}
