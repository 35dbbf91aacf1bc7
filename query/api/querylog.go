package api

import (
	"cmp"
	"context"
	"math"
	"net"
	"net/http"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/storage/queries"
)

// QueryLog records who asked what of the store, and how it ended. Recording never delays an answer: questions are summed here and saved
// every few seconds and at the end.
//
//	page, socket, direct ─▶ New ────────┐
//	SQL clients ─▶ --clickhouse-listen ─┴─▶ note ─▶ saved every 2 s ─▶ storage query_log
type QueryLog struct {
	store askedStore
	log   *zap.Logger

	mu      sync.Mutex
	waiting map[queries.Asked]*queries.Asked // by all that is not a sum
	lost    int64
}

// askedStore keeps questions; *storage.Store does.
type askedStore interface {
	SaveAsked(ctx context.Context, asked []queries.Asked) error
}

const (
	saveAskedEvery = 2 * time.Second
	mostUnsaved    = 10_000 // distinct questions that wait while the store does not take them
)

// NewQueryLog returns a log that saves into a store; Run saves from time to time, Close the rest.
func NewQueryLog(store askedStore, log *zap.Logger) *QueryLog {
	return &QueryLog{store: store, log: log.Named("querylog"), waiting: map[queries.Asked]*queries.Asked{}}
}

// Note records one question.
func (q *QueryLog) Note(a queries.Asked) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.Count = 1
	if !q.add(a, mostUnsaved) {
		q.lost++
	}
}

// add adds a question to those that wait; it reports whether there was room for it.
func (q *QueryLog) add(a queries.Asked, most int) bool {
	key := a
	key.Time, key.Count, key.Bytes, key.Took = a.Time.Truncate(time.Minute), 0, 0, 0
	sum, ok := q.waiting[key]
	if !ok {
		if len(q.waiting) >= most {
			return false
		}
		kept := key
		sum = &kept
		q.waiting[key] = sum
	}
	sum.Count, sum.Bytes, sum.Took = sum.Count+a.Count, sum.Bytes+a.Bytes, sum.Took+a.Took
	return true
}

// Run saves what was noted until ctx ends, and then what is left.
func (q *QueryLog) Run(ctx context.Context) {
	for sleep.For(ctx, saveAskedEvery) == nil {
		q.Save(ctx)
	}
}

// Close saves what is left. Nothing may be noted afterwards.
func (q *QueryLog) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q.Save(ctx)
	return nil
}

// Save saves what waits. What the store refuses keeps waiting; some of it may then count twice.
func (q *QueryLog) Save(ctx context.Context) {
	q.mu.Lock()
	waiting, lost := q.waiting, q.lost
	q.waiting, q.lost = map[queries.Asked]*queries.Asked{}, 0
	q.mu.Unlock()
	if lost > 0 {
		q.log.Error("questions are missing in the query log: the store refused them", zap.Int64("questions", lost))
	}
	if len(waiting) == 0 {
		return
	}
	list := make([]queries.Asked, 0, len(waiting))
	for _, a := range waiting {
		list = append(list, *a)
	}
	err := q.store.SaveAsked(ctx, list)
	if err == nil {
		return
	}
	q.log.Warn("query log not saved; trying again", zap.Error(err))
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range list {
		q.add(a, math.MaxInt)
	}
}

// Caller says who asks, and through which door.
type Caller struct{ Door, Name, address string }

// CallerKey is the key of a Caller in a request's context.
type CallerKey struct{}

// ConnContext is an http.Server's ConnContext for unix sockets, whose peer is known.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, CallerKey{}, Caller{Door: "socket", Name: UserName(peerUID(conn))})
}

// callerOf returns who sent a request: the process at the other end of the socket, or whoever the page's listener let in. The name beside a
// token is the caller's own word.
func callerOf(r *http.Request) Caller {
	if c, ok := r.Context().Value(CallerKey{}).(Caller); ok {
		return c
	}
	c := Caller{Door: "page", Name: "anybody here"}
	c.address, _, _ = net.SplitHostPort(r.RemoteAddr)
	if name, _, ok := r.BasicAuth(); ok {
		c.Name = "token, as " + name
	} else if r.Header.Get("Authorization") != "" {
		c.Name = "token"
	}
	return c
}

// askerOf returns in whose line a request waits.
func askerOf(r *http.Request) asker {
	c := callerOf(r)
	if c.Door == "page" {
		return asker{origin: c.address, name: c.Name}
	}
	return asker{origin: c.Door + " " + c.Name}
}

// UserName returns a user of this machine as "uid (name)".
func UserName(uid int) string {
	if uid < 0 {
		return "unknown"
	}
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return id + " (" + u.Username + ")"
	}
	return id
}

// counted notes how an answer went.
type counted struct {
	http.ResponseWriter
	code  int
	bytes int64
}

func (c *counted) WriteHeader(code int) {
	c.code = cmp.Or(c.code, code)
	c.ResponseWriter.WriteHeader(code)
}

func (c *counted) Write(p []byte) (int, error) {
	c.code = cmp.Or(c.code, http.StatusOK)
	n, err := c.ResponseWriter.Write(p)
	c.bytes += int64(n)
	return n, err
}

// Unwrap lets an http.ResponseController reach the connection.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// status returns an HTTP answer's status in the words of the query log.
func (c *counted) status() string {
	switch {
	case c.code < 400:
		return "ok"
	case c.code < 500:
		return "refused"
	}
	return "failed"
}

// unrecorded are routes that show nobody's doings, and that pages and commands ask all the time.
var unrecorded = []string{"classes", "clusters", "connection", "doctor", "drained", "rules", "status"}

func (h handler) asked(path string, next http.HandlerFunc) http.HandlerFunc {
	if h.asking == nil || slices.Contains(unrecorded, path) {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		began, who := time.Now(), callerOf(r)
		answer := counted{ResponseWriter: w}
		defer func() { // an answer that is cut off panics
			h.asking.Note(queries.Asked{
				Time: time.Now(), Door: who.Door, Caller: who.Name, Address: who.address, Question: path, Detail: r.URL.RawQuery,
				Status: answer.status(), Bytes: answer.bytes, Took: time.Since(began),
			})
		}()
		next(&answer, r)
	}
}
