package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/inflate"
	"github.com/retrial-io/retrial/internal/sample"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/test/workload"
)

// benchLoad is everything that will be posted, made before the clock starts.
type benchLoad struct {
	posts []benchPost
	bytes int64
	// keys of the posted events by cluster; set when found in the store.
	keys map[string]map[event.Hash128]bool
	// alerts posts events as a cluster that is not counted; nil unless freshness is measured.
	alerts func(ctx context.Context, body string) error
}

type benchPost struct {
	client *http.Client
	url    string
	body   []byte
	events int
	turn   int    // index among its cluster's posts
	kind   string // of the body; empty: JSON
}

func (l *benchLoad) count() (n int64) {
	for _, keys := range l.keys {
		n += int64(len(keys))
	}
	return n
}

// prepare registers the clusters, posts their states and builds the bodies.
func (b *pipelineBench) prepare(cfg config.Config) (*benchLoad, error) {
	state, err := readAll(b.state, sample.OpenState)
	if err != nil {
		return nil, err
	}
	lines, err := readAll(b.events, sample.OpenAuditLog)
	if err != nil {
		return nil, err
	}
	authority, err := server.OpenIdentity(cfg)
	if err != nil {
		return nil, err
	}
	key, _, err := identity.KeyFile(cfg.KeyFile, cfg.DataDir)
	if err != nil {
		return nil, err
	}
	socket := importer.SocketClient(filepath.Join(cfg.DataDir, apiclient.SocketName))
	load := &benchLoad{keys: map[string]map[event.Hash128]bool{}}
	redactor := redact.New(key)
	for i := range b.repeat {
		cluster := "bench-" + strconv.Itoa(i+1)
		client, err := clusterClient(authority, cluster)
		if err != nil {
			return nil, err
		}
		if err := postState(socket, cluster, workload.Renumber(state, cluster)); err != nil {
			return nil, err
		}
		if err := load.add(client, server.ReceiverURL(cfg)+"/v1/clusters/"+cluster+"/audit", cluster, redactor, workload.Renumber(lines,
			cluster), b.batch); err != nil {
			return nil, err
		}
	}
	if b.freshness {
		client, err := clusterClient(authority, freshCluster)
		if err != nil {
			return nil, err
		}
		if err := postState(socket, freshCluster, workload.Renumber(state, freshCluster)); err != nil {
			return nil, err
		}
		url := server.ReceiverURL(cfg) + "/v1/clusters/" + freshCluster + "/audit"
		load.alerts = func(ctx context.Context, body string) error {
			return benchPost{client: client, url: url, body: []byte(body), events: 1}.send(ctx)
		}
	}
	if b.interleave {
		load.interleave()
	}
	return load, nil
}

// add cuts the lines into EventLists as an apiserver posts them.
func (l *benchLoad) add(client *http.Client, url, cluster string, redactor *redact.Redactor, lines []byte, batch int) error {
	keys := map[event.Hash128]bool{}
	l.keys[cluster] = keys
	var items [][]byte
	turn := 0
	flush := func() {
		if len(items) == 0 {
			return
		}
		body := []byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`)
		body = append(body, bytes.Join(items, []byte(","))...)
		body = append(body, "]}\n"...)
		l.posts = append(l.posts, benchPost{client: client, url: url, body: body, events: len(items), turn: turn})
		turn++
		l.bytes += int64(len(body))
		items = items[:0]
	}
	r := event.NewLines(bytes.NewReader(lines), 0)
	for {
		line, n, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		e, err := event.Decode(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		redactor.Redact(e)
		keys[event.EventKey(event.RequestKey(cluster, e), e)] = false
		if items = append(items, line); len(items) == batch {
			flush()
		}
	}
	flush()
	return nil
}

// interleave alternates the clusters' posts.
func (l *benchLoad) interleave() {
	slices.SortStableFunc(l.posts, func(a, b benchPost) int { return a.turn - b.turn })
}

// post sends everything in order, with a bound on concurrent posts and on events a second (0: no
// limit): the batches of a cluster overlap as an apiserver's do.
func (l *benchLoad) post(ctx context.Context, connections int, perSecond float64) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(connections)
	limit := rate.NewLimiter(rate.Inf, 0)
	if perSecond > 0 {
		largest := slices.MaxFunc(l.posts, func(a, b benchPost) int { return a.events - b.events })
		limit = rate.NewLimiter(rate.Limit(perSecond), largest.events)
	}
	for _, p := range l.posts {
		if err := limit.WaitN(ctx, p.events); err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error { return p.send(ctx) })
	}
	return g.Wait()
}

// send posts until it is taken: a receiver that pushes back is obeyed, as an apiserver does.
func (p benchPost) send(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(p.body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", cmp.Or(p.kind, "application/json"))
		res, err := p.client.Do(req)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		_ = res.Body.Close()
		switch res.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			return fmt.Errorf("post: %s: %s", res.Status, strings.TrimSpace(string(text)))
		}
	}
}

// clusterClient registers a cluster and returns a client with its certificate.
func clusterClient(a *identity.Authority, cluster string) (*http.Client, error) {
	cred, err := a.Registry().Add(cluster)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(cred.Cert, cred.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cred.CA)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64, // of a peer that speaks HTTP/1.1
	}}, nil
}

func postState(socket *http.Client, cluster string, state []byte) error {
	//nolint:noctx // set-up of a benchmark, on the local socket
	res, err := socket.Post("http://retrial/v1/clusters/"+cluster+"/state", "application/json", bytes.NewReader(state))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		return fmt.Errorf("post state: %s: %s", res.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

func readAll(path string, fallback func() (io.ReadCloser, error)) ([]byte, error) {
	open := fallback
	if path != "" {
		open = func() (io.ReadCloser, error) { return inflate.Open(path) }
	}
	r, err := open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func folderSize(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that went away while it was counted
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
