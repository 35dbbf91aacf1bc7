package sqlgate_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/sqlgate"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

// TestMain fails the run when a goroutine outlives its test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	user     = "grafana"
	password = "correct horse"
)

// kit is a gate over a store with a slice of a recorded log, served over HTTP.
type kit struct {
	url    string
	client *http.Client

	mu      sync.Mutex
	changed *sync.Cond // a record came
	records []sqlgate.AccessRecord
	before  func(sql string) // called before a statement runs, when set
}

// watched tells the kit of every statement before it runs.
type watched struct {
	sqlgate.Session
	k *kit
}

func (w watched) Query(ctx context.Context, sql string, params [][2]string, format string) (io.ReadCloser, error) {
	w.k.mu.Lock()
	before := w.k.before
	w.k.mu.Unlock()
	if before != nil {
		before(sql)
	}
	return w.Session.Query(ctx, sql, params, format)
}

// onQuery sets what is called before a statement runs.
func (k *kit) onQuery(f func(sql string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.before = f
}

func newKit(t testing.TB, change func(*sqlgate.Config)) *kit {
	t.Helper()
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := storage.Open(t.Context(), storage.Config{Transport: engine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var rows []verdict.Row
	for i, line := range bytes.Split(bytes.TrimSpace(testfile.Read(t, "../testdata/events.jsonl.zst")), []byte("\n")) {
		r, err := storagetest.Row("c", line, event.Position{Epoch: 1, Offset: int64(i)}, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.Stage != event.StageRequestReceived {
			storagetest.Verdict(&r)
		}
		rows = append(rows, r)
	}
	if err := errors.Join(store.Insert(t.Context(), "t", rows), store.RollUp(t.Context())); err != nil {
		t.Fatal(err)
	}
	k := &kit{}
	k.changed = sync.NewCond(&k.mu)
	cfg := sqlgate.Config{
		Open: func(db string, settings [][2]string) (sqlgate.Session, error) {
			s, err := engine.Session(db, settings)
			if err != nil {
				return nil, err
			}
			return watched{s, k}, nil
		},
		Hello: engine.Hello, Database: "retrial", User: user, Password: password,
		Record: func(r sqlgate.AccessRecord) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.records = append(k.records, r)
			k.changed.Broadcast()
		},
	}
	if change != nil {
		change(&cfg)
	}
	gate, err := sqlgate.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gate)
	t.Cleanup(server.Close)
	k.url, k.client = server.URL, server.Client()
	return k
}

// answer is what came back.
type answer struct {
	status int
	code   string // X-ClickHouse-Exception-Code
	text   string
	header http.Header
}

// ask sends a query as the body; args are pairs of URL arguments.
func (k *kit) ask(t testing.TB, sql string, args ...string) answer {
	t.Helper()
	v := url.Values{}
	for i := 0; i < len(args); i += 2 {
		v.Add(args[i], args[i+1])
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, k.url+"/?"+v.Encode(), strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	return k.do(t, req)
}

func (k *kit) do(t testing.TB, req *http.Request) answer {
	t.Helper()
	res, err := k.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("X-ClickHouse-Exception-Code"), string(text), res.Header}
}

// last is the newest access record.
func (k *kit) last(t testing.TB) sqlgate.AccessRecord {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.records) == 0 {
		t.Fatal("no access record")
	}
	return k.records[len(k.records)-1]
}

// recorded is how many records there are.
func (k *kit) recorded() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.records)
}

// record waits for the record after n others.
func (k *kit) record(n int) sqlgate.AccessRecord {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.records) <= n {
		k.changed.Wait()
	}
	return k.records[n]
}
