package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// insertChunk is how much of an INSERT's body is passed to the engine at a time: the engine
// copies it, and one big copy costs more than many of this size.
const insertChunk = 1 << 20

// killEvery is how often the kill of a statement whose context has ended is repeated until its
// call returns: the first KILL may come before the engine has registered the statement.
const killEvery = 10 * time.Millisecond

// insertQuery matches an INSERT whose data follows in the body, as clickhouse-go writes it.
//
//nolint:gochecknoglobals // compiled constant
var insertQuery = regexp.MustCompile(`(?is)^\s*(INSERT\s+INTO\s.*?)\s+FORMAT\s+(\w+)\s*;?\s*$`)

// TakesData reports whether a statement is an INSERT whose data follows in the request's body.
func TakesData(query string) bool { return insertQuery.MatchString(query) }

// helloQuery is the first query of clickhouse-go on a connection; see hello.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

// RoundTrip runs the statement of a ClickHouse HTTP request and answers as a server would. It implements http.RoundTripper. The response's
// body must be closed: it holds an engine connection until then. When the request's context ends, the statement is killed.
func (e *Engine) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	args := req.URL.Query()
	if args.Get("compress") == "1" || args.Get("decompress") == "1" || req.Header.Get("Content-Encoding") != "" {
		return nil, errors.New("embedded store: compression is useless within one process: configure none")
	}
	settings, pairs := Split(args)
	query, inURL := args.Get("query"), args.Has("query")
	if inURL {
		if m := insertQuery.FindStringSubmatch(query); m != nil {
			return e.insertBody(req, args.Get("database"), settings, m[1], m[2])
		}
	}
	sql := []byte(query)
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, fmt.Errorf("embedded store: read request: %w", err)
		}
		if inURL && len(body) > 0 {
			sql = append(append(sql, '\n'), body...)
		} else if !inURL {
			sql = body
		}
	}
	if string(bytes.TrimSpace(sql)) == helloQuery {
		return e.hello(req)
	}
	c, err := e.acquire(args.Get("database"), settings)
	if err != nil {
		return e.failed(req, err)
	}
	return e.statement(req, c, sql, pairs)
}

// failed turns an engine's exception into a response, anything else into an error.
func (e *Engine) failed(req *http.Request, err error) (*http.Response, error) {
	var x *exception
	if errors.As(err, &x) {
		return x.response(req), nil
	}
	return nil, err
}

// statement runs sql on c: as a stream if it reads, otherwise in one call.
func (e *Engine) statement(req *http.Request, c *conn, sql []byte, pairs [][2]string) (*http.Response, error) {
	ctx := req.Context()
	word := firstWord(string(sql))
	if word == "SELECT" || word == "WITH" {
		b := &streamBody{e: e, c: c, ctx: ctx, free: e.release}
		var text string
		e.killable(ctx, c, func() {
			b.stream = e.lib.run(e.lib.stream, c.handle, sql, pairs)
			text = e.lib.resultError(b.stream)
			if text == "" {
				text = b.fetch()
			}
		})
		if text == "" {
			if len(b.chunk) == 0 {
				b.finish(false)
				return respond(req, http.StatusOK, http.NoBody, 0), nil
			}
			return respond(req, http.StatusOK, b, -1), nil
		}
		x := newException(text)
		if x.code != codeNotImplemented {
			b.killed(x)
			b.finish(false)
			return e.refused(req, x)
		}
		e.lib.destroyResult(b.stream)
	}
	var r uintptr
	e.killable(ctx, c, func() { r = e.lib.run(e.lib.query, c.handle, sql, pairs) })
	text, data := e.lib.resultError(r), e.lib.resultBytes(r)
	e.lib.destroyResult(r)
	if word == "SET" || word == "USE" {
		e.discard(c) // what it changed is not known
	} else {
		e.release(c)
	}
	if text != "" {
		return e.refused(req, newException(text))
	}
	return respond(req, http.StatusOK, io.NopCloser(bytes.NewReader(data)), int64(len(data))), nil
}

// refused answers with an exception, or with the context's error if that caused it.
func (e *Engine) refused(req *http.Request, x *exception) (*http.Response, error) {
	if err := req.Context().Err(); err != nil && x.code == codeCancelled {
		return nil, err
	}
	return x.response(req), nil
}

// killable runs call, which blocks in the engine on c, and kills c's statement if ctx ends
// first. c stays held until the kill has taken effect.
func (e *Engine) killable(ctx context.Context, c *conn, call func()) {
	if ctx.Done() == nil {
		call()
		return
	}
	done, gone := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		tick := time.NewTicker(killEvery)
		defer tick.Stop()
		for {
			e.kill(c)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	call()
	close(done)
	if !stop() {
		<-gone
	}
}

// killTag is the setting by which statements are found: query ids are the engine's own.
const killTag = "log_comment"

// kill ends what runs on c, found by the log_comment of its statement or, without one, by that of its connection.
func (e *Engine) kill(c *conn) {
	e.controlMu.Lock()
	defer e.controlMu.Unlock()
	// A failure leaves the statement running; the next tick tries again.
	tag, ok := c.applied[killTag]
	if !ok {
		tag = c.name
	}
	_ = e.exec(e.control, "KILL QUERY WHERE Settings['"+killTag+"'] = "+quoteString(tag)+" ASYNC")
}

// streamBody is the body of a streamed result.
type streamBody struct {
	e        *Engine
	c        *conn
	ctx      context.Context
	stream   uintptr
	chunk    []byte
	ended    bool // nothing more to fetch
	finished bool
	err      error
	free     func(*conn) // releases the connection once the stream has ended
	bare     bool        // an exception in the middle is an error of Read, not framed into the data
}

// fetch reads the next chunk; it returns the engine's error text, if any.
func (b *streamBody) fetch() string {
	r := b.e.lib.fetch(b.c.handle, b.stream)
	defer b.e.lib.destroyResult(r)
	if text := b.e.lib.resultError(r); text != "" {
		b.ended = true
		return text
	}
	b.chunk = b.e.lib.resultBytes(r)
	b.ended = len(b.chunk) == 0
	return ""
}

// Read implements io.Reader. An exception in the middle of the stream is appended in the frame
// of ClickHouse's HTTP interface; if the context ended, Read returns its error.
func (b *streamBody) Read(p []byte) (int, error) {
	for len(b.chunk) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.ended || b.finished {
			return 0, io.EOF
		}
		var text string
		b.e.killable(b.ctx, b.c, func() { text = b.fetch() })
		if text != "" {
			x := newException(text)
			b.killed(x)
			if b.ctx.Err() != nil {
				b.err = b.ctx.Err()
				continue
			}
			if b.bare {
				b.err = x
			} else {
				b.chunk = x.midStream()
			}
		}
	}
	n := copy(p, b.chunk)
	b.chunk = b.chunk[n:]
	return n, nil
}

// killed makes the connection close after a statement that was killed: the engine lists the
// statement as running until then. A session's connection ends with the session.
func (b *streamBody) killed(x *exception) {
	if x.code == codeCancelled && !b.bare {
		b.free = b.e.discard
	}
}

// Close ends the stream and releases its connection.
func (b *streamBody) Close() error {
	b.finish(!b.ended)
	return nil
}

func (b *streamBody) finish(cancel bool) {
	if b.finished {
		return
	}
	b.finished = true
	if cancel {
		b.e.lib.cancelQuery(b.c.handle, b.stream)
	}
	b.e.lib.destroyResult(b.stream)
	b.free(b.c)
}

// insertBody streams the request's body into an INSERT. Data in the statement itself does not
// work for binary formats, so every INSERT with data is streamed.
func (e *Engine) insertBody(req *http.Request, db string, settings map[string]string, sql, format string) (*http.Response, error) {
	ctx := req.Context()
	c, err := e.acquire(db, settings)
	if err != nil {
		return e.failed(req, err)
	}
	written, err := e.insertStream(ctx, c, []byte(sql), []byte(format), req.Body)
	if err != nil {
		e.discard(c) // the engine lists an aborted insert as running until then
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return e.failed(req, err)
	}
	e.release(c)
	r := respond(req, http.StatusOK, http.NoBody, 0)
	r.Header.Set("X-ClickHouse-Summary", `{"written_rows":"`+strconv.FormatUint(written, 10)+`"}`)
	return r, nil
}

// insertStream runs one INSERT and returns the rows written, those of materialized views
// included. Nothing of it is committed before the last chunk is in.
func (e *Engine) insertStream(ctx context.Context, c *conn, sql, format []byte, body io.Reader) (uint64, error) {
	s := e.lib.insert(c.handle, bytesPointer(sql), uintptr(len(sql)), bytesPointer(format), uintptr(len(format)))
	defer e.lib.destroyInsert(s)
	if text := e.lib.insertError(s); text != "" {
		return 0, newException(text)
	}
	// A body that holds the rows in pieces of memory passes them on as they are.
	to := &inserting{ctx: ctx, lib: e.lib, stream: s}
	var err error
	if pieces, ok := body.(io.WriterTo); ok {
		_, err = pieces.WriteTo(to)
	} else {
		err = to.readFrom(body)
	}
	// The engine refuses data that ends early: it knows how much there should be.
	if err != nil && !to.refused && !errors.Is(err, io.ErrUnexpectedEOF) {
		e.lib.cancelInsert(s)
		return 0, fmt.Errorf("embedded store: read rows: %w", err)
	}
	var r uintptr
	e.killable(ctx, c, func() { r = e.lib.done(s) })
	defer e.lib.destroyResult(r)
	if text := e.lib.resultError(r); text != "" {
		return 0, newException(text)
	}
	return e.lib.resultRowsWritten(r), nil
}

// inserting passes what is written to it to an insert stream. It accepts pieces of any size; the engine copies them.
type inserting struct {
	ctx     context.Context
	lib     *library
	stream  uintptr
	refused bool // the engine accepts no more; its done says why
}

var errRefusedChunk = errors.New("the engine accepts no more")

// Write implements io.Writer.
func (w *inserting) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	for sent := 0; sent < len(b); {
		part := b[sent:min(len(b), sent+insertChunk)]
		if w.lib.appendChunk(w.stream, bytesPointer(part), uintptr(len(part))) != 0 {
			w.refused = true
			return sent, errRefusedChunk
		}
		sent += len(part)
	}
	return len(b), nil
}

// readFrom reads to the end in chunks: each of a network's small pieces would be a call into the engine.
func (w *inserting) readFrom(r io.Reader) error {
	buf := make([]byte, insertChunk)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if _, failed := w.Write(buf[:n]); failed != nil {
				return failed
			}
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// helloRevision is the protocol revision clickhouse-go decodes the hello at.
const helloRevision = 54460

// hello answers clickhouse-go's first query.
func (e *Engine) hello(req *http.Request) (*http.Response, error) {
	answer, err := e.Hello(helloRevision)
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	return respond(req, http.StatusOK, io.NopCloser(bytes.NewReader(answer)), int64(len(answer))), nil
}

// Hello returns the answer to clickhouse-go's first query, in Native format. The driver decodes it at its own protocol revision (which it
// sends as client_protocol_version) and everything after it at the revision found in the answer. The engine writes Native of revision 0 (no
// block header), so the answer must say 0, and must itself be encoded at the driver's revision.
func (e *Engine) Hello(revision int) ([]byte, error) {
	var name, version, zone proto.ColStr
	var zero proto.ColUInt32
	name.Append("embedded")
	version.Append(e.lib.version() + ".0")
	zero.Append(0)
	zone.Append("UTC")
	var buf proto.Buffer
	block := proto.Block{Info: proto.BlockInfo{BucketNum: -1}, Columns: 4, Rows: 1}
	err := block.EncodeBlock(&buf, revision, []proto.InputColumn{
		{Name: "displayName()", Data: &name},
		{Name: "version()", Data: &version},
		{Name: "revision()", Data: &zero},
		{Name: "timezone()", Data: &zone},
	})
	if err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	return buf.Buf, nil
}
