// Package chserver serves the embedded ClickHouse engine over HTTP as a ClickHouse server
// would be: several processes can use one store, and tests reach it through everything that
// lies between a client and a real server: TLS, passwords, rights, compression, a connection
// that breaks.
//
//	clickhouse-go, curl ─HTTP(S)─▶ Server ─who? may he?─▶ engine (in this process)
//	                                 ├─ pooled connections: statements and inserts with all rights
//	                                 └─ a session of its own: read-only users, other formats
//
// What it answers is the engine's own: result, refusal of a write, error text. What a server
// adds around the engine (logging in, limits of simultaneous queries) is answered in the
// words of a ClickHouse server. It is a kit for tests and measurements: nothing of the
// product imports it.
package chserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/retrial-io/retrial/storage/embedded"
)

// User may log in.
type User struct {
	Name, Password string
	// ReadOnly is the setting readonly of the user's profile: 0 may write, 1 may neither write
	// nor change settings, 2 may change settings.
	ReadOnly int
}

// maxQueries is how many queries run at once; a server refuses more than that.
const maxQueries = 100

// maxStatement bounds what is read of a statement whose data is in its text, in bytes.
const maxStatement = 256 << 20

// Server answers ClickHouse's HTTP interface. It is an http.Handler, safe for concurrent use.
type Server struct {
	engine *embedded.Engine
	users  map[string]account
	slots  chan struct{} // one element per running query
}

type account struct {
	secret   [32]byte
	readOnly int
}

// New returns a server of the engine for the users; the engine stays the caller's to close,
// after the last request has ended.
func New(engine *embedded.Engine, users ...User) *Server {
	s := &Server{engine: engine, users: map[string]account{}, slots: make(chan struct{}, maxQueries)}
	for _, u := range users {
		s.users[u.Name] = account{sha256.Sum256([]byte(u.Password)), u.ReadOnly}
	}
	return s
}

// ServeHTTP implements http.Handler: /ping for anybody, everything else is a query of a user.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ping" {
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	w.Header().Set("X-ClickHouse-Server-Display-Name", "chserver")
	w.Header().Set("X-ClickHouse-Timezone", "UTC")
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		refuse(w, failure{202, fmt.Sprintf("Too many simultaneous queries. Maximum: %d", maxQueries), "TOO_MANY_SIMULTANEOUS_QUERIES"})
		return
	}
	if err := s.serve(w, r); err != nil {
		refuse(w, err)
	}
}

// serve runs one query. An error is returned as long as nothing was sent.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	args := r.URL.Query()
	who, err := s.login(r, args)
	if err != nil {
		return err
	}
	if db := r.Header.Get("X-ClickHouse-Database"); db != "" && !args.Has("database") {
		args.Set("database", db)
	}
	if format := r.Header.Get("X-ClickHouse-Format"); format != "" && !args.Has("default_format") {
		args.Set("default_format", format)
	}
	level := who.readOnly
	if r.Method != http.MethodPost && level == 0 {
		level = 2 // a GET must not change anything
	}
	in, err := body(r, args.Get("decompress") == "1")
	if err != nil {
		return err
	}
	pack := args.Get("compress") == "1"
	args.Del("decompress")
	args.Del("compress")
	if level == 0 && embedded.TakesData(args.Get("query")) {
		return s.insert(w, r, args, in)
	}
	sql, err := statement(args, in)
	if err != nil {
		return err
	}
	if strings.TrimSpace(sql) == "" {
		_, err := io.WriteString(w, "Ok.\n")
		return clientGone(err)
	}
	// A connection made read-only cannot be used for anything else again.
	if level == 0 && !pack && !args.Has("readonly") && args.Get("default_format") == "Native" {
		return s.forward(w, r, args, strings.NewReader(sql))
	}
	return s.session(w, r, args, sql, level, pack)
}

// login finds the user a request is from.
func (s *Server) login(r *http.Request, args url.Values) (account, error) {
	name, password, basic := r.BasicAuth()
	ways := 0
	if basic {
		ways++
	}
	if r.Header.Get("X-ClickHouse-User") != "" || r.Header.Get("X-ClickHouse-Key") != "" {
		name, password = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
		ways++
	}
	if args.Has("user") || args.Has("password") {
		name, password = args.Get("user"), args.Get("password")
		ways++
	}
	if ways > 1 {
		return account{}, failure{codeAuthentication, "Invalid authentication: it is not allowed to use different authentication methods " +
			"simultaneously", "AUTHENTICATION_FAILED"}
	}
	if name == "" {
		name = "default"
	}
	who, known := s.users[name]
	given := sha256.Sum256([]byte(password))
	if subtle.ConstantTimeCompare(given[:], who.secret[:]) != 1 || !known {
		return account{}, failure{codeAuthentication, name + ": Authentication failed: password is incorrect, or there is no user with " +
			"such name", "AUTHENTICATION_FAILED"}
	}
	return who, nil
}

// body returns a request's body unpacked as its headers and arguments say.
func body(r *http.Request, blocks bool) (io.Reader, error) {
	switch enc := r.Header.Get("Content-Encoding"); {
	case enc != "":
		return nil, failure{codeBadArguments, "chserver reads no body in encoding " + enc, "BAD_ARGUMENTS"}
	case strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/"):
		return nil, failure{codeBadArguments, "chserver takes no external tables", "BAD_ARGUMENTS"}
	case blocks:
		return upload{compress.NewReader(r.Body)}, nil
	}
	return upload{r.Body}, nil
}

// upload is a body whose whole end is the plain io.EOF readers look for, and whose early end
// is nothing a reader could take for it.
type upload struct{ io.Reader }

var errBrokenOff = errors.New("the client broke off amid the data")

func (u upload) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errBrokenOff
	case errors.Is(err, io.EOF):
		err = io.EOF
	}
	return n, err
}

// statement puts together what is in the address and what is in the body.
func statement(args url.Values, in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxStatement+1))
	if err != nil {
		return "", fmt.Errorf("read the statement: %w", err)
	}
	if len(b) > maxStatement {
		return "", failure{codeBadArguments, fmt.Sprintf("chserver takes statements of up to %d bytes", maxStatement), "BAD_ARGUMENTS"}
	}
	sql := args.Get("query")
	args.Del("query")
	if sql != "" && len(b) > 0 {
		sql += "\n"
	}
	return sql + string(b), nil
}
