// Package client asks the questions of package query: a running server by its socket or its URL, or a handler in this process.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// SocketName is the local API's unix socket in the data directory. Whoever can open it may do everything; its mode is 0600.
const SocketName = "retrial.sock"

// Client asks a running serve, by its unix socket or by --server URL.
type Client struct {
	http  *http.Client
	base  *url.URL
	local bool // the data directory's own server, or this process
}

// ErrNoServer says that no serve answers at the data directory's socket.
var ErrNoServer = errors.New("no server is running")

// ErrElsewhere says that the asked process only receives events.
var ErrElsewhere = errors.New("answered elsewhere")

// Dial returns a client of the server named by the URL, or of the one that serves dataDir.
func Dial(ctx context.Context, server, dataDir string) (*Client, error) {
	if server != "" {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" {
			return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --server %q: want a URL such as http://127.0.0.1:8080", server))
		}
		return &Client{http: &http.Client{}, base: u}, nil
	}
	socket := filepath.Join(dataDir, SocketName)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("data directory %s belongs to another user: %w; run this as that user", dataDir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w for %s (start one with: retrial serve --data-dir %s)", ErrNoServer, dataDir, dataDir)
	}
	_ = conn.Close()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     time.Minute,
	}
	return &Client{http: &http.Client{Transport: transport}, base: &url.URL{Scheme: "http", Host: "localhost"}, local: true}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask asks a question or an action, and returns the answer.
func Ask[A any](ctx context.Context, c *Client, request query.Request[A]) (answer A, err error) {
	method := http.MethodGet
	switch {
	case query.IsPosted(request):
		body, err := json.Marshal(request)
		if err != nil {
			return answer, fmt.Errorf("write the question: %w", err)
		}
		return answer, c.do(ctx, http.MethodPost, query.NameOf(request), nil, body, &answer)
	case query.IsAction(request):
		method = http.MethodPost
	}
	err = c.do(ctx, method, query.NameOf(request), params.Write(request), nil, &answer)
	return answer, err
}

// AskByName asks a question that changes nothing by its name, and returns the answer's JSON.
func (c *Client) AskByName(ctx context.Context, name string, parameters url.Values) (answer json.RawMessage, err error) {
	err = c.do(ctx, http.MethodGet, name, parameters, nil, &answer)
	return answer, err
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte, v any) error {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/api/v1/" + path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token := os.Getenv("RETRIAL_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		err = fmt.Errorf("ask %s: %w", c.base.Redacted(), err)
		if dialing := (*net.OpError)(nil); errors.As(err, &dialing) && dialing.Op == "dial" {
			err = fmt.Errorf("%w; is the server running, and its page listening there (--ui-listen)? Without --server the data "+
				"directory's own is asked", err)
		}
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		text := strings.TrimSpace(string(body))
		err := fmt.Errorf("ask %s: %s: %s", c.base.Redacted(), res.Status, text)
		switch res.StatusCode {
		case http.StatusBadRequest: // the question is wrong, whoever was asked
			return cli.ExitWith(cli.ExitUsage, errors.New(text))
		case http.StatusNotImplemented:
			return fmt.Errorf("%w: %s", ErrElsewhere, text)
		case http.StatusNotFound:
			if c.local { // otherwise the address may be wrong
				err = errors.New(text)
			}
			return cli.ExitWith(cli.ExitNoMatch, err)
		}
		return err
	}
	if err := json.NewDecoder(res.Body).Decode(v); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base.Redacted(), err)
	}
	return nil
}

// OneCluster returns the cluster a question is about: the one named, which must exist, or the only one.
func (c *Client) OneCluster(ctx context.Context, named string) (string, error) {
	answer, err := Ask(ctx, c, query.ClustersRequest{})
	if err != nil {
		return "", err
	}
	names := answer.Quiet
	for _, c := range answer.Clusters {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	switch known := strings.Join(names, ", "); {
	case len(names) == 0:
		return "", cli.ExitWith(cli.ExitNoMatch,
			errors.New("nothing is stored of any cluster yet: start with `retrial import` or `retrial connect`"))
	case named != "" && !slices.Contains(names, named):
		return "", cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("there is no cluster %s; known: %s", phrase.Shorten(named), known))
	case named != "":
		return named, nil
	case len(names) > 1:
		return "", cli.ExitWith(cli.ExitUsage, fmt.Errorf("there are several clusters: name one with --cluster: %s", known))
	}
	return names[0], nil
}

// InProcess returns a client that asks a handler of this process.
func InProcess(h http.Handler) *Client {
	return &Client{http: &http.Client{Transport: handlerTransport{h}}, base: &url.URL{Scheme: "http", Host: "localhost"}, local: true}
}

type handlerTransport struct{ handler http.Handler }

func (p handlerTransport) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		switch cut := recover(); cut {
		case nil:
		case http.ErrAbortHandler: //nolint:errorlint // the value itself is what handlers panic with
			res, err = nil, io.ErrUnexpectedEOF
		default:
			panic(cut)
		}
	}()
	w := answerWriter{header: http.Header{}, code: http.StatusOK}
	who := api.Caller{Door: "direct", Name: api.UserName(os.Getuid())}
	p.handler.ServeHTTP(&w, r.WithContext(context.WithValue(r.Context(), api.CallerKey{}, who)))
	return &http.Response{StatusCode: w.code, Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)),
		Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

type answerWriter struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(code int) { w.code = code }

func (w *answerWriter) Write(p []byte) (int, error) { return w.body.Write(p) }
