package chserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/retrial-io/retrial/storage/embedded"
)

// helloQuery is the first thing clickhouse-go asks on a connection; the engine's answer to it
// makes the driver read what the engine writes, see embedded.Engine.Hello.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

// insert runs an INSERT whose data is the body. As at a server, it is not ended because the
// client has gone once its data is there: only KILL QUERY does.
func (s *Server) insert(w http.ResponseWriter, r *http.Request, args url.Values, data io.Reader) error {
	return s.forward(w, r.WithContext(context.WithoutCancel(r.Context())), args, data)
}

// forward has the engine run a request on a pooled connection.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, args url.Values, in io.Reader) error {
	req := r.Clone(r.Context())
	req.URL.RawQuery = args.Encode()
	req.Body = io.NopCloser(in)
	res, err := s.engine.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, in) // a client that still writes would not read the answer
	}
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	if _, err := io.Copy(w, res.Body); err != nil {
		panic(http.ErrAbortHandler) // breaks the connection: an answer cut short must not look whole
	}
	return nil
}

// session runs a statement in a session of its own: with the rights and the settings of its
// user, in any format, packed or not.
func (s *Server) session(w http.ResponseWriter, r *http.Request, args url.Values, sql string, level int, pack bool) error {
	settings, params := embedded.Split(args)
	ordered := make([][2]string, 0, len(settings)+1)
	for k, v := range settings {
		ordered = append(ordered, [2]string{k, v})
	}
	slices.SortFunc(ordered, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	locked := [2]string{"readonly", strconv.Itoa(level)}
	var later [][2]string
	switch level {
	case 1:
		ordered, later = [][2]string{locked}, ordered // refused by the engine, one by one
	case 2:
		if n, err := strconv.Atoi(settings["readonly"]); err == nil && n == 1 {
			locked[1] = "1"
		}
		ordered = append(slices.DeleteFunc(ordered, func(kv [2]string) bool { return kv[0] == "readonly" }), locked)
	}
	db := args.Get("database")
	if db == "" {
		db = "default"
	}
	q, err := s.engine.Session(db, ordered)
	if err != nil {
		return err
	}
	defer q.Close()
	for _, kv := range later {
		if _, err := q.Query(r.Context(), "SET "+kv[0]+" = "+quote(kv[1]), nil, "Null"); err != nil {
			return err
		}
	}
	format := args.Get("default_format")
	if format == "" {
		format = "TabSeparated"
	}
	var out io.ReadCloser
	if revision, err := strconv.Atoi(args.Get("client_protocol_version")); err == nil && strings.TrimSpace(sql) == helloQuery &&
		format == "Native" {
		hello, err := s.engine.Hello(revision)
		if err != nil {
			return err
		}
		out = io.NopCloser(strings.NewReader(string(hello)))
	} else if out, err = q.Query(r.Context(), sql, params, format); err != nil {
		return err
	}
	defer out.Close()
	w.Header().Set("X-ClickHouse-Format", format)
	return send(w, out, pack, args.Get("network_compression_method"))
}

// quote makes a string literal.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// sendChunk is how much of an answer is packed at a time, in bytes.
const sendChunk = 1 << 20

// send writes an answer, in compressed blocks when asked to. An error of the engine in the
// middle follows the data in the frame ClickHouse uses for it.
func send(w http.ResponseWriter, out io.Reader, pack bool, method string) error {
	var packer *compress.Writer
	if pack {
		m := compress.LZ4
		if strings.EqualFold(method, "ZSTD") {
			m = compress.ZSTD
		}
		packer = compress.NewWriter(compress.LevelZero, m)
	}
	buf := make([]byte, sendChunk)
	for sent := false; ; sent = true {
		n, err := io.ReadFull(out, buf)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended && !sent && n == 0 {
			return err
		}
		data := buf[:n]
		if packer != nil && n > 0 {
			if err := packer.Compress(data); err != nil {
				panic(http.ErrAbortHandler)
			}
			data = packer.Data
		}
		if _, err := w.Write(data); err != nil {
			return clientGone(err)
		}
		switch {
		case ended:
			return nil
		case err != nil:
			_, text := describe(err)
			const tag = "chserverchserver" // 16 bytes; any will do, drivers look for the frame
			fmt.Fprintf(w, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", tag, text, len(text)+1, tag)
			return nil
		}
	}
}

// clientGone ends a request whose client does not read any more: nobody is left to be told.
func clientGone(err error) error {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// ClickHouse's numbers of the errors a server makes.
const (
	codeBadArguments   = 36
	codeAuthentication = 516
)

// failure is an error the server itself answers with.
type failure struct {
	code int
	text string
	name string
}

// Error renders it as ClickHouse does.
func (f failure) Error() string {
	return fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", f.code, f.text, f.name)
}

// Code is ClickHouse's number of the error.
func (f failure) Code() int { return f.code }

// describe returns ClickHouse's number and text of an error.
func describe(err error) (int, string) {
	var c interface {
		error
		Code() int
	}
	if errors.As(err, &c) {
		return c.Code(), c.Error()
	}
	f := failure{1002, err.Error(), "UNKNOWN_EXCEPTION"}
	return f.code, f.Error()
}

// refuse answers with an error: never packed, drivers read it either way.
func refuse(w http.ResponseWriter, err error) {
	code, text := describe(err)
	status := http.StatusInternalServerError
	switch code {
	case codeAuthentication, 164, 497:
		status = http.StatusForbidden
	case 202:
		status = http.StatusServiceUnavailable
	case 60, 81, 46, 47, 115:
		status = http.StatusNotFound
	case codeBadArguments, 62:
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that has gone is told nothing
}
