package sqlgate

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// helloQuery is the first query of clickhouse-go on a connection.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

// recordedQuery is how much of a query's text a record keeps.
const recordedQuery = 64 << 10

// secret hashes a user and a password, so that comparing them takes constant time.
func secret(user, password string) [32]byte {
	return sha256.Sum256([]byte(user + "\x00" + password))
}

// ServeHTTP implements http.Handler: /ping is open to all, everything else is a query.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-ClickHouse-Server-Display-Name", "retrial")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/ping" {
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	begin := g.cfg.Now()
	out := &counter{ResponseWriter: w}
	sql, err := g.serve(out, r)
	if err == nil && sql == "" {
		return // no query
	}
	record := AccessRecord{
		At: begin, User: g.cfg.User, Remote: r.RemoteAddr, Agent: r.UserAgent(),
		Query: sql[:min(len(sql), recordedQuery)], Bytes: out.bytes, Took: g.cfg.Now().Sub(begin),
	}
	result := "ok"
	if err != nil {
		c := asCoded(err)
		record.Code, record.Error = c.Code(), c.Error()
		record.Refused = status(c.Code()) < http.StatusInternalServerError
		result = resultOf(c.Code())
		if !out.wrote && !errors.Is(err, errClient) {
			fail(w, r, c)
		}
		if c.Code() == codeAuthentication {
			record.User = ""
		}
	}
	g.metrics.ended(result, record.Took, record.Bytes)
	g.cfg.Record(record)
}

// errClient is wrapped by errors of writing to the caller, who cannot be answered any more.
var errClient = errors.New("the caller went away")

// serve answers one query and returns its text, as far as it was read.
func (g *Gate) serve(w *counter, r *http.Request) (sql string, err error) {
	if err := g.caller(r); err != nil {
		if asCoded(err).Code() == codeAuthentication {
			w.Header().Set("WWW-Authenticate", `Basic realm="Retrial's store", charset="UTF-8"`)
		}
		return "", err
	}
	q, err := g.read(r)
	if err != nil || q.sql == "" {
		if err == nil {
			_, _ = io.WriteString(w.ResponseWriter, "Ok.\n")
		}
		return q.sql, err
	}
	if q.queryID != "" {
		w.Header().Set("X-ClickHouse-Query-Id", q.queryID)
	}
	w.Header().Set("X-ClickHouse-Timezone", "UTC")
	if g.cfg.Hello != nil && q.revision > 0 && q.format == "Native" && strings.TrimSpace(q.sql) == helloQuery {
		answer, err := g.cfg.Hello(q.revision)
		if err != nil {
			return q.sql, err
		}
		return q.sql, g.answer(w, r, q, "Native", strings.NewReader(string(answer)))
	}
	// The engine's own limit ends a query first; this one ends queries that the engine does not
	// check, and those whose caller does not read.
	ctx, cancel := context.WithTimeout(r.Context(), g.cfg.Time+5*time.Second)
	defer cancel()
	if err := g.acquire(ctx); err != nil {
		return q.sql, err
	}
	defer func() { <-g.slots }()
	s, err := g.open(q.settings)
	if err != nil {
		return q.sql, err
	}
	defer s.Close()
	text, format, err := g.admit(ctx, s, q)
	if err != nil {
		return q.sql, err
	}
	if formats[format] == "" {
		return q.sql, newError(codeUnknownFormat, "UNKNOWN_FORMAT", "the format %q is not offered", format)
	}
	body, err := s.Query(ctx, text, q.params, format)
	if err != nil {
		return q.sql, err
	}
	defer body.Close()
	return q.sql, g.answer(w, r, q, format, body)
}

// acquire waits for a free slot: a dashboard queries all its panels at once. The number of waiting queries is bounded.
func (g *Gate) acquire(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case g.waiting <- struct{}{}:
		defer func() { <-g.waiting }()
	default:
		return newError(codeTooMany, "TOO_MANY_SIMULTANEOUS_QUERIES", "%d queries are running and %d are waiting; try again later",
			cap(g.slots), cap(g.waiting))
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer sends a result.
func (g *Gate) answer(w *counter, r *http.Request, q request, format string, body io.Reader) error {
	h := w.Header()
	h.Set("Content-Type", formats[format])
	h.Set("X-ClickHouse-Format", format)
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(g.cfg.Time + 10*time.Second)) // where there is one
	var out io.Writer = w.wire()
	flush := func() error { return nil }
	blocks := q.compress
	switch {
	case blocks:
		packed, err := newBlockWriter(out, q.method)
		if err != nil {
			return err
		}
		out, flush = packed, packed.Close
	case acceptsGzip(r, r.URL.Query().Get("enable_http_compression")):
		h.Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(out)
		out, flush = packed, packed.Close
	}
	_, err := io.Copy(client{io.MultiWriter(out, w)}, body)
	switch {
	case errors.Is(err, errClient):
		return err
	case err != nil && !w.wrote:
		return err // no status has been sent yet
	case err != nil && blocks:
		// The driver looks for the frame in what it receives, before decompression.
		return errors.Join(err, flush(), frame(w.wire(), asCoded(err)))
	case err != nil:
		return errors.Join(err, frame(out, asCoded(err)), flush())
	}
	if err := flush(); err != nil {
		return errors.Join(errClient, err)
	}
	return nil
}

// frame writes an error that occurs after a 200 and some data, as ClickHouse does.
func frame(w io.Writer, c coded) error {
	const tag = "retrialsqlgate00" // 16 bytes; any will do, drivers look for the frame
	text := c.Error()
	_, err := fmt.Fprintf(w, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", tag, text, len(text)+1, tag)
	return err
}

// client marks errors of writing, to distinguish them from errors of reading.
type client struct{ io.Writer }

func (c client) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if err != nil {
		err = errors.Join(errClient, err)
	}
	return n, err
}

// counter counts an answer's bytes before compression, and records whether any were sent.
type counter struct {
	http.ResponseWriter
	bytes int64
	wrote bool
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) { c.bytes += int64(len(p)); return len(p), nil }

// wire returns a writer to the caller.
func (c *counter) wire() io.Writer { return wire{c} }

type wire struct{ c *counter }

func (w wire) Write(p []byte) (int, error) {
	w.c.wrote = true
	return w.c.ResponseWriter.Write(p)
}

// caller refuses requests without authentication, and those from pages of other sites: with
// these a browser would send the password it remembers.
func (g *Gate) caller(r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead {
		return newError(codeBadArguments, "BAD_ARGUMENTS", "send GET or POST")
	}
	user, password, ok := r.BasicAuth()
	if u := r.Header.Get("X-ClickHouse-User"); u != "" {
		if ok {
			return newError(codeAuthentication, "AUTHENTICATION_FAILED", "authenticate in one way only")
		}
		user, password = u, r.Header.Get("X-ClickHouse-Key")
	}
	got := secret(user, password)
	if subtle.ConstantTimeCompare(got[:], g.secret[:]) != 1 {
		return newError(codeAuthentication, "AUTHENTICATION_FAILED", "authentication failed: "+
			"send the user and the password, as Basic or as X-ClickHouse-User and X-ClickHouse-Key")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); r.Header.Get("Origin") != "" || site != "" && site != "none" {
		return denied("requests from web pages are refused")
	}
	return nil
}

// read returns the query of a request.
func (g *Gate) read(r *http.Request) (request, error) {
	args, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return request{}, newError(codeBadArguments, "BAD_ARGUMENTS", "the arguments cannot be read: %s", err)
	}
	header(r, args, "X-ClickHouse-Database", "database")
	header(r, args, "X-ClickHouse-Format", "default_format")
	q := request{
		sql: args.Get("query"), format: args.Get("default_format"), queryID: args.Get("query_id"),
		compress: args.Get("compress") == "1", method: args.Get("network_compression_method"),
	}
	if int64(len(q.sql)) > g.cfg.QueryBytes {
		return request{}, newError(codeBadArguments, "BAD_ARGUMENTS", "the query is longer than %d bytes", g.cfg.QueryBytes)
	}
	text, err := body(r, args.Get("decompress") == "1", g.cfg.QueryBytes)
	if err != nil {
		return q, err
	}
	switch {
	case q.sql == "":
		q.sql = string(text)
	case len(text) > 0:
		q.sql += "\n" + string(text)
	}
	q.format = cmp.Or(q.format, "TabSeparated")
	if q.settings, err = settingsOf(args, g.limits); err != nil {
		return q, err
	}
	if db := args.Get("database"); db != "" && db != "default" && db != g.cfg.Database {
		return q, newError(81, "UNKNOWN_DATABASE", "the database %q is not offered; use %q", db, g.cfg.Database)
	}
	if rev := args.Get("client_protocol_version"); rev != "" {
		if q.revision, err = strconv.Atoi(rev); err != nil || q.revision < 0 {
			return q, newError(codeBadArguments, "BAD_ARGUMENTS", "invalid client_protocol_version %q: want a number", rev)
		}
	}
	for name, values := range args {
		if p, ok := strings.CutPrefix(name, "param_"); ok {
			q.params = append(q.params, [2]string{p, values[0]})
		}
	}
	return q, nil
}
