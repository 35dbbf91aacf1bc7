package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/completeness"
	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/query/memory"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
)

// logPatience is how long a question about a log may take: only the asker waits for it.
const logPatience = 12 * time.Hour

// Client replays the log and returns a client of the API that answers from it, until done is called:
//
//	--events, --state ─▶ redacted, judged ─┬─▶ state ───────────┐
//	                                       ├─▶ query/memory ────┼─▶ query.Service ─▶ the API
//	                                       └─▶ a temporary store ┘   (opened by what is asked in SQL)
func (l Log) Client(ctx context.Context) (client *apiclient.Client, done func() error, err error) {
	service, done, err := l.service(ctx)
	if err != nil {
		return nil, nil, err
	}
	return apiclient.InProcess(newLogAPI(service)), done, nil
}

// newLogAPI returns the API of a log. Only this process asks it, and questions are not recorded.
func newLogAPI(s *query.Service) http.Handler {
	return api.New(s.Questions(), nil, zap.NewNop(), logPatience)
}

// service replays the log and returns what answers from it.
func (l Log) service(ctx context.Context) (*query.Service, func() error, error) {
	if l.Rules == nil {
		rules, err := LoadRules("--rules", nil)
		if err != nil {
			return nil, nil, err
		}
		l.Rules = rules
	}
	if l.Key == nil {
		l.Key = make([]byte, 32)
		rand.Read(l.Key) // never returns an error
	}
	log, err := l.open(replay.DefaultLag)
	if err != nil {
		return nil, nil, err
	}
	log.base.Redact = redact.New(l.Key).Redact
	st, trail := state.New(l.name()), lineage.NewTrail(lineage.TrailConfig{})
	rows := memory.New(l.name(), l.Rules, memory.MostBytes, func(ctx context.Context, visit memory.Visit) error {
		_, err := log.run(ctx, func(o *evaluate.Options) { o.Rows = visit })
		return err
	})
	sum, err := log.run(ctx, func(o *evaluate.Options) {
		o.State, o.Trail, o.Policy, o.Rows = st, trail, rows.Policy, rows.Add
	})
	if err == nil {
		err = l.readable(sum)
	}
	if err != nil {
		return nil, nil, err
	}
	rows.Malformed(sum.Malformed)
	l.hints(sum)
	last := rows.Last() // what is asked up to now is asked up to the end of the log
	tables := &logTables{log: log}
	done := func() error {
		l.detectHints(rows)
		return tables.close()
	}
	return &query.Service{
		Store: rows, Tables: tables.open, Replay: logState{cluster: l.name(), state: st}, Apiserver: log.history,
		Now: func() time.Time { return last.Add(time.Minute + completeness.Settle) }, Version: version.Version,
		Offline: true, Empty: sum.Events == 0, Followed: trail.Lineage,
	}, done, nil
}

// detectHints prints why findings may be incomplete.
func (l Log) detectHints(rows *memory.Store) {
	st, ok := rows.Detected()
	if !ok {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(st.Errors)) {
		fmt.Fprintf(l.Streams.Err, "rule %s failed on %d requests, for example: %s\n", id, st.Errors[id], safe.Text(st.FirstError[id]))
	}
	if st.Dropped > 0 {
		fmt.Fprintf(l.Streams.Err, "%d requests were left out of rules that count: too many groups at once\n", st.Dropped)
	}
}

// logTables is the temporary store that answers a log's SQL questions. The first makes it, in a folder of its own; close removes it.
type logTables struct {
	log *openLog

	mu    sync.Mutex
	store *storage.Store
	closers
}

// open makes the store, the first time.
func (t *logTables) open(ctx context.Context) (query.Tables, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.store != nil {
		return t.store, nil
	}
	store, err := t.fill(ctx)
	if err != nil {
		return nil, errors.Join(err, t.closers.close())
	}
	t.store = store
	return store, nil
}

func (t *logTables) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.store = nil
	return t.closers.close()
}
