package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxRetryAfter bounds how long a receiver can make an import wait.
	maxRetryAfter = 30 * time.Second
	maxAnswer     = 1 << 20 // bytes of an answer that are read
)

// poster posts bodies until they are accepted. It may be used by several goroutines.
type poster struct {
	cfg     Config
	since   time.Time // of a state: when the log that comes with it begins; may be zero
	retries atomic.Int64
}

// response is an answer that settles a post.
type response struct {
	code   int
	header http.Header
	body   []byte
}

func (p *poster) endpoint(kind Pass) string {
	u := strings.TrimSuffix(p.cfg.BaseURL, "/") + "/v1/clusters/" + url.PathEscape(p.cfg.Cluster)
	if kind == PassState {
		if u += "/state"; !p.since.IsZero() {
			u += "?since=" + url.QueryEscape(p.since.Format(time.RFC3339Nano))
		}
		return u
	}
	if p.cfg.APIServer != "" {
		u += "/apiservers/" + url.PathEscape(p.cfg.APIServer)
	}
	return u + "/audit?" + map[Pass]string{PassFollow: "source=log", PassPolicy: "policy=only", PassEvents: "policy=done"}[kind]
}

// post posts the body, which it opens anew for each attempt, until the receiver answers anything
// but a push-back. Too large and malformed (413, 400) are answers; other refusals are errors,
// since they would hit every post alike. length is the body's, -1 if unknown.
func (p *poster) post(ctx context.Context, kind Pass, body func() (io.ReadCloser, error), length int64) (response, error) {
	backoff := firstBackoff
	var last error
	url := p.endpoint(kind)
	for attempt := range p.cfg.Attempts {
		resp, err := p.once(ctx, url, body, length)
		switch {
		case ctx.Err() != nil:
			return response{}, ctx.Err()
		case errors.Is(err, errBody):
			return response{}, err // the file's fault: a retry would fail alike
		case err != nil:
			last = err
		case resp.code >= 200 && resp.code < 300,
			resp.code == http.StatusRequestEntityTooLarge, resp.code == http.StatusBadRequest:
			return resp, nil
		case resp.code >= 500 || resp.code == http.StatusTooManyRequests || resp.code == http.StatusRequestTimeout:
			last = fmt.Errorf("%d: %s", resp.code, firstLine(resp.body))
		default:
			return response{}, fmt.Errorf("%w: %d: %s", ErrRefused, resp.code, firstLine(resp.body))
		}
		wait := jitter(backoff)
		backoff = min(2*backoff, maxBackoff)
		if resp.code == http.StatusTooManyRequests || resp.code == http.StatusServiceUnavailable {
			wait, backoff = retryAfter(resp.header), firstBackoff
		}
		if attempt == p.cfg.Attempts-1 {
			break
		}
		p.retries.Add(1)
		if attempt == 0 {
			p.cfg.Log.Info("receiver does not accept a post, trying again", zap.Error(last))
		}
		if err := p.cfg.Sleep(ctx, wait); err != nil {
			return response{}, err
		}
	}
	return response{}, fmt.Errorf("%w for %d attempts; run the same import again to continue: %w", ErrUnavailable, p.cfg.Attempts, last)
}

// errBody marks an error of the body's own reader, which a retry would hit again.
var errBody = errors.New("read body")

func (p *poster) once(ctx context.Context, url string, open func() (io.ReadCloser, error), length int64) (response, error) {
	body, err := open()
	if err != nil {
		return response{}, fmt.Errorf("%w: %w", errBody, err)
	}
	watched := &watchedBody{ReadCloser: body}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, watched)
	if err != nil {
		_ = body.Close()
		return response{}, fmt.Errorf("%w: %w", errBody, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.ContentLength = length
	resp, err := p.cfg.Client.Do(req)
	if rerr := watched.failed(); rerr != nil {
		if err == nil {
			_ = resp.Body.Close()
		}
		return response{}, fmt.Errorf("%w: %w", errBody, rerr)
	}
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return response{}, err
	}
	return response{resp.StatusCode, resp.Header, answer}, nil
}

// watchedBody keeps its reader's error: the transport reads on another goroutine and hides it.
type watchedBody struct {
	io.ReadCloser
	err atomic.Pointer[error]
}

func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		w.err.Store(&err)
	}
	return n, err
}

func (w *watchedBody) failed() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// sharedBody lets a transport close a body while another of its goroutines still reads.
type sharedBody struct {
	mu     sync.Mutex
	r      io.ReadCloser
	closed bool
}

func (s *sharedBody) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.EOF
	}
	return s.r.Read(p)
}

func (s *sharedBody) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.r.Close()
}

// retryAfter returns the answer's Retry-After, up to maxRetryAfter; one second if there is none.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || s < 0 {
		return time.Second
	}
	return min(time.Duration(s)*time.Second, maxRetryAfter)
}

// firstLine returns the beginning of an answer's text for an error message.
func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b[:min(len(b), 500)])), "\n")
	return line
}
