package main

import (
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
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
)

// socketName is the local API's unix socket in the data directory. Who can open it may do
// everything; it is created with mode 0600.
const socketName = "retrial.sock"

// apiClient talks to a running serve, by its unix socket or by --server URL.
type apiClient struct {
	http  *http.Client
	base  *url.URL
	local bool // the data directory's own server, or this process
}

// errNoServer says that no serve answers at the data directory's socket.
var errNoServer = errors.New("no server is running")

// errElsewhere says that the process asked only receives events.
var errElsewhere = errors.New("answered elsewhere")

// dial returns a client of the server named by the URL, or of the one that serves dataDir.
func dial(ctx context.Context, server, dataDir string) (*apiClient, error) {
	if server != "" {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" {
			return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("--server %q: write a URL such as http://127.0.0.1:8080", server))
		}
		return &apiClient{http: &http.Client{}, base: u}, nil
	}
	socket := filepath.Join(dataDir, socketName)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("data directory %s belongs to another user: %w; run this as that user", dataDir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w for %s (start one with: retrial serve --data-dir %s)", errNoServer, dataDir, dataDir)
	}
	_ = conn.Close()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     time.Minute,
	}
	return &apiClient{http: &http.Client{Transport: transport}, base: &url.URL{Scheme: "http", Host: "localhost"}, local: true}, nil
}

// get asks the API and decodes the JSON answer into v.
func (c *apiClient) get(ctx context.Context, path string, query url.Values, v any) error {
	return c.do(ctx, http.MethodGet, path, query, v)
}

// post asks the API for what changes something, as get does.
func (c *apiClient) post(ctx context.Context, path string, query url.Values, v any) error {
	return c.do(ctx, http.MethodPost, path, query, v)
}

func (c *apiClient) do(ctx context.Context, method, path string, query url.Values, v any) error {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/api/v1/" + path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return err
	}
	if token := os.Getenv("RETRIAL_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		err = fmt.Errorf("ask %s: %w", c.base.Redacted(), err)
		if dialing := (*net.OpError)(nil); errors.As(err, &dialing) && dialing.Op == "dial" {
			err = fmt.Errorf("%w; is the server running, and its page listening there (--ui-listen)? Without --server the data directory's own is asked", err)
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
			return fmt.Errorf("%w: %s", errElsewhere, text)
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
