package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// host runs statements on the engine for bubbles, which must not share channels or wait
// groups with what outlives them: a statement goes over as bytes and comes back as bytes.
// While one runs, the time of the bubble that waits stands still.
type host struct {
	engine *embedded.Engine
	jobs   chan *job
	idle   chan *job
	made   bool // the databases exist
	played int  // schedules

	// views is held for writing while a view is away: other blocks would miss it silently.
	views sync.RWMutex
}

type job struct {
	url    url.URL
	header http.Header
	body   []byte
	cut    int // bytes of the body that arrive; -1: all

	status int
	answer http.Header
	data   []byte
	err    error
	done   chan struct{}
}

const hostWorkers = 4

// theHost is the engine of this process: there can be one at a time.
var theHost = sync.OnceValues(func() (*host, error) { //nolint:gochecknoglobals // the process has one engine
	dir, err := os.MkdirTemp(scratch(), "retrial-faults-engine-")
	if err != nil {
		return nil, err
	}
	e, err := embedded.Open(embedded.Config{Path: dir, MaxMemory: 1 << 30, MaxThreads: 1, BackgroundThreads: 1})
	if err != nil {
		return nil, err
	}
	h := newHost(e)
	closers = append(closers, func() { e.Close(); os.RemoveAll(dir) })
	return h, nil
})

func newHost(e *embedded.Engine) *host {
	h := &host{engine: e, jobs: make(chan *job), idle: make(chan *job, hostWorkers)}
	for range hostWorkers {
		h.idle <- &job{done: make(chan struct{}, 1)}
		go h.work()
	}
	return h
}

// closers run when all tests have.
var closers []func() //nolint:gochecknoglobals // the process has one engine

// scratch returns where the files of schedules lie: memory, when there is such a file system.
func scratch() string {
	if s, err := os.Stat("/dev/shm"); err == nil && s.IsDir() {
		return "/dev/shm"
	}
	return ""
}

func needHost(t *testing.T) *host {
	t.Helper()
	storagetest.Need(t)
	h, err := theHost()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) work() {
	for j := range h.jobs {
		j.run(h.engine)
		j.done <- struct{}{}
	}
}

func (j *job) run(e *embedded.Engine) {
	var body io.Reader = bytes.NewReader(j.body)
	if j.cut >= 0 {
		body = io.MultiReader(bytes.NewReader(j.body[:min(j.cut, len(j.body))]), broken{})
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, j.url.String(), body)
	if err != nil {
		j.err = err
		return
	}
	req.Header = j.header
	res, err := e.RoundTrip(req)
	if err != nil {
		j.err = err
		return
	}
	defer res.Body.Close()
	j.status, j.answer = res.StatusCode, res.Header
	j.data, j.err = io.ReadAll(res.Body)
}

// broken is a reader whose connection went away.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// do runs one statement.
func (h *host) do(u url.URL, header http.Header, body []byte, cut int) (status int, answer http.Header, data []byte, err error) {
	j := <-h.idle
	j.url, j.header, j.body, j.cut = u, header.Clone(), body, cut
	j.status, j.answer, j.data, j.err = 0, nil, nil, nil
	h.jobs <- j
	<-j.done
	status, answer, data, err = j.status, j.answer, j.data, j.err
	h.idle <- j
	return status, answer, data, err
}

// RoundTrip implements http.RoundTripper without faults.
func (h *host) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readAll(req)
	if err != nil {
		return nil, err
	}
	status, header, data, err := h.do(*req.URL, req.Header, body, -1)
	if err != nil {
		return nil, err
	}
	return respond(req, status, header, data), nil
}

// exec runs a statement for the harness.
func (h *host) exec(sql string) error {
	status, _, data, err := h.do(url.URL{Scheme: "http", Host: "engine", Path: "/"}, http.Header{}, []byte(sql), -1)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %s", sql, data)
	}
	return err
}

func readAll(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

func respond(req *http.Request, status int, header http.Header, data []byte) *http.Response {
	return &http.Response{Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)), Request: req}
}

// Statements that faults wait for.
const (
	onInsert  = "insert"  // a block of events
	onPolicy  = "policy"  // observations
	onLetters = "letters" // dead letters
	onRepair  = "repair"  // rows counted in a rollup, or a difference added to it
	onLookUp  = "look-up" // which of a block's requests are known, or stored
	onQuery   = "query"   // any other
)

func statementOf(sql string) string {
	switch {
	case strings.HasPrefix(sql, "INSERT INTO"):
		head, _, _ := strings.Cut(sql, "(")
		switch {
		case strings.Contains(head, ".events"), strings.Contains(head, ".corrections"):
			return onInsert
		case strings.Contains(head, "policy_objects"):
			return onPolicy
		case strings.Contains(head, "dead_letters"):
			return onLetters
		}
		return onRepair
	case strings.Contains(sql, "request_key IN") || strings.Contains(sql, "koffset IN"):
		return onLookUp
	}
	return onQuery
}

// More of what can happen to a statement.
const (
	doMemory   = "out-of-memory"
	doDisk     = "disk-full"
	doReadOnly = "read-only"
	doPartial  = "partial" // the block lands in its table, not in every rollup, and fails
	doMerge    = "merge"   // it succeeds, and events are merged at once: a row and the one that takes it back are gone
)

var refusals = map[string]struct { //nolint:gochecknoglobals // constant table
	code int
	text string
}{
	doMemory:   {241, "Memory limit (total) exceeded. (MEMORY_LIMIT_EXCEEDED)"},
	doDisk:     {243, "Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)"},
	doReadOnly: {164, "default: Cannot execute query in readonly mode. (READONLY)"},
}

func refused(req *http.Request, what string) *http.Response {
	r := refusals[what]
	return respond(req, http.StatusInternalServerError, http.Header{"X-Clickhouse-Exception-Code": {strconv.Itoa(r.code)}},
		fmt.Appendf(nil, "Code: %d. DB::Exception: %s", r.code, r.text))
}

var errStatement = errors.New("injected: read: connection reset by peer")

// line is a process's connection to the engine, with faults.
type line struct{ p *process }

// RoundTrip implements http.RoundTripper.
func (l line) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readAll(req)
	if err != nil {
		return nil, err
	}
	if err := l.p.alive(); err != nil {
		return nil, err
	}
	sql := req.URL.Query().Get("query")
	if sql == "" {
		sql = string(body)
	}
	class := statementOf(sql)
	f := l.p.w.take(l.p, class)
	if what := l.p.w.storeNow(class); what != "" && f.What == "" {
		f.What, f.For = what, time.Second
	}
	if err := l.p.alive(); err != nil { // it may have been stopped and killed meanwhile
		return nil, err
	}
	cut := -1
	switch f.What {
	case doRefuse, doMute:
		if f.What == doMute {
			select {
			case <-time.After(f.For):
			case <-req.Context().Done():
			}
		}
		return nil, errStatement
	case doMemory, doDisk, doReadOnly:
		return refused(req, f.What), nil
	case doCut:
		cut = len(body) / 2
		if class != onInsert && class != onPolicy && class != onLetters {
			return nil, errStatement // half a statement is none
		}
	case doSlow:
		time.Sleep(f.For)
		if err := l.p.alive(); err != nil {
			return nil, err
		}
	case doStop:
		l.p.stopFor(f.For)
		if err := l.p.alive(); err != nil {
			return nil, err
		}
	case doDie:
		l.p.die()
		return nil, errStatement
	case doPartial, doDieMid:
		if f.What == doDieMid {
			defer l.p.die()
		}
		if class != onInsert {
			return nil, errStatement
		}
		at := f.N % len(l.p.w.views)
		if f.N == 0 { // one that every row counts in
			at = max(0, slices.IndexFunc(l.p.w.views, func(v string) bool { return strings.HasPrefix(v, "volume_") }))
		}
		view := l.p.w.db + "." + l.p.w.views[at]
		l.p.w.host.views.Lock()
		defer l.p.w.host.views.Unlock()
		if err := l.p.w.host.exec("DETACH TABLE " + view); err != nil {
			return nil, err
		}
		_, _, _, err := l.p.w.host.do(*req.URL, req.Header, body, -1)
		if err := errors.Join(err, l.p.w.host.exec("ATTACH TABLE "+view)); err != nil {
			return nil, err
		}
		return refused(req, doMemory), nil
	}
	l.p.w.host.views.RLock()
	status, header, data, err := l.p.w.host.do(*req.URL, req.Header, body, cut)
	l.p.w.host.views.RUnlock()
	switch f.What {
	case doLose, doCut:
		return nil, errStatement
	case doDieAfter:
		l.p.die()
		return nil, errStatement
	case doMerge:
		err = errors.Join(err, l.p.w.host.exec("OPTIMIZE TABLE "+l.p.w.db+".events FINAL"))
	}
	if err != nil {
		return nil, err
	}
	if err := l.p.alive(); err != nil {
		return nil, err
	}
	res := respond(req, status, header, data)
	if f.What == doCutAnswer {
		if len(data) == 0 {
			return nil, errStatement
		}
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), broken{}))
	}
	return res, nil
}
