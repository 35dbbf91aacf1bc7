// Package apimetrics reads from a kube-apiserver's own metrics what became of its audit events: how many it made, and its backends lost.
//
// An apiserver's answer is megabytes of text; it is parsed as it streams, few lines are kept. Credentials are files, reread on change.
package apimetrics

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Target is one apiserver to read from.
type Target struct {
	Cluster, APIServer string
	// URL of its metrics, https, or http on loopback; without a path it means /metrics.
	URL string
	// The credentials, and what the server's certificate is verified by; each may be empty. Without CAFile the system's roots count.
	TokenFile, CAFile, CertFile, KeyFile string
}

// Reading is what an apiserver reported: counters since Started.
type Reading struct {
	Taken time.Time // by this machine's clock
	// Earliest and Latest bound the moment of the reading by the apiserver's clock.
	Earliest, Latest time.Time
	Started          time.Time // of its process
	Events           int64     // apiserver_audit_event_total
	WebhookErrors    int64     // apiserver_audit_error_total by plugin
	BufferErrors     int64
	LogErrors        int64
	Rejected         int64 // apiserver_audit_requests_rejected_total
}

const (
	// maxBody bounds an answer, in bytes; a large apiserver's is about 20 MB.
	maxBody = 256 << 20
	// maxLine bounds one line of it.
	maxLine = 1 << 20
	timeout = 25 * time.Second
)

// Check returns an error for a target that cannot be read.
func (t Target) Check() error {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("invalid URL %q: want http or https, and a host", t.URL)
	case u.User != nil:
		return errors.New("the URL holds a user or password: name a token file instead")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return fmt.Errorf("%s: plain http is allowed to an apiserver on this machine only: use https", u.Redacted())
	case (t.CertFile == "") != (t.KeyFile == ""):
		return errors.New("a client certificate needs its key, and a key its certificate")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Reader reads one apiserver's metrics. It is safe for use by several goroutines.
type Reader struct {
	target Target
	url    string
	now    func() time.Time

	mu     sync.Mutex
	client *http.Client
	stamp  string // of the files the client was made from
	offset [2]time.Duration
	known  bool // whether offset is
}

// New returns a reader; now is its clock, nil is time.Now. Files are first read by Read: they
// may appear later.
func New(t Target, now func() time.Time) (*Reader, error) {
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", t.name(), err)
	}
	if now == nil {
		now = time.Now
	}
	u, _ := url.Parse(t.URL) // as Check did
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	return &Reader{target: t, url: u.String(), now: now}, nil
}

func (t Target) name() string {
	return strings.TrimSuffix(t.Cluster+"/"+t.APIServer, "/")
}

// Read reads the metrics once. Errors contain neither the token nor the answer.
func (r *Reader) Read(ctx context.Context) (Reading, error) {
	out, err := r.read(ctx)
	if err != nil {
		return out, fmt.Errorf("metrics of %s: %w", r.target.name(), err)
	}
	return out, nil
}

func (r *Reader) read(ctx context.Context) (Reading, error) {
	client, err := r.connect()
	if err != nil {
		return Reading{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return Reading{}, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	req.Header.Set("User-Agent", "retrial")
	if r.target.TokenFile != "" {
		token, err := os.ReadFile(r.target.TokenFile)
		if err != nil {
			return Reading{}, fmt.Errorf("token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	requested := r.now()
	res, err := client.Do(req)
	if err != nil {
		return Reading{}, err
	}
	defer res.Body.Close()
	answered := r.now()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return Reading{}, errors.New("401: the apiserver does not accept the credential")
	case http.StatusForbidden:
		return Reading{}, errors.New(
			"403: the credential needs permission to get the non-resource URL /metrics (ClusterRole system:monitoring)",
		)
	default:
		return Reading{}, fmt.Errorf("answered %s", res.Status)
	}
	out, err := parse(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return Reading{}, err
	}
	out.Taken = answered.UTC()
	out.Earliest, out.Latest = r.bound(requested, answered, res.Header.Get("Date"))
	if out.Started.IsZero() {
		return Reading{}, errors.New("the answer has no process_start_time_seconds: is it a kube-apiserver?")
	}
	return out, nil
}

// bound returns the times of the server's clock between which the counters were read. The
// answer has that clock in whole seconds; over several answers the offset of the two clocks is
// bounded to milliseconds. If a clock was set, the bounds start over.
func (r *Reader) bound(requested, answered time.Time, header string) (earliest, latest time.Time) {
	date, err := http.ParseTime(header)
	if err != nil {
		return requested.UTC(), answered.UTC()
	}
	// The date was written between request and answer.
	low, high := date.Sub(answered), date.Add(time.Second).Sub(requested)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known && low <= r.offset[1] && high >= r.offset[0] {
		low, high = max(low, r.offset[0]), min(high, r.offset[1])
	}
	// Clocks drift: the bounds widen a little each time.
	const drift = 2 * time.Millisecond
	r.offset, r.known = [2]time.Duration{low - drift, high + drift}, true
	return requested.Add(low).UTC(), answered.Add(high).UTC()
}

func (r *Reader) connect() (*http.Client, error) {
	t := r.target
	var stamp strings.Builder
	for _, file := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(&stamp, file, info.Size(), info.ModTime().UnixNano())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil && r.stamp == stamp.String() {
		return r.client, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if r.client != nil {
		r.client.CloseIdleConnections()
	}
	r.client = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, IdleConnTimeout: 2 * time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server
	}
	r.stamp = stamp.String()
	return r.client, nil
}

// Close ends the connections.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		r.client.CloseIdleConnections()
	}
}

// parse reads the wanted lines of Prometheus' text format.
func parse(body io.Reader) (Reading, error) {
	var out Reading
	found := false
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_audit_") && !strings.HasPrefix(line, "process_start_time_seconds") {
			continue
		}
		name, labels, value, ok := split(line)
		if !ok {
			continue
		}
		n := int64(value)
		switch name {
		case "apiserver_audit_event_total":
			out.Events += n
			found = true
		case "apiserver_audit_requests_rejected_total":
			out.Rejected += n
		case "process_start_time_seconds":
			out.Started = time.UnixMicro(int64(value * 1e6)).UTC()
		case "apiserver_audit_error_total":
			switch {
			case strings.Contains(labels, `plugin="webhook"`):
				out.WebhookErrors += n
			case strings.Contains(labels, `plugin="buffered"`):
				out.BufferErrors += n
			case strings.Contains(labels, `plugin="log"`):
				out.LogErrors += n
			}
		}
	}
	if err := lines.Err(); err != nil {
		return out, fmt.Errorf("read the answer: %w", err)
	}
	if !found {
		return out, errors.New("the answer has no apiserver_audit_event_total: is auditing on, and is it a kube-apiserver?")
	}
	return out, nil
}

// split parses a sample into name, text of its labels and value; a timestamp is ignored.
func split(line string) (name, labels string, value float64, ok bool) {
	rest := line
	if i := strings.IndexByte(line, '{'); i >= 0 {
		j := strings.LastIndexByte(line, '}')
		if j < i {
			return "", "", 0, false
		}
		name, labels, rest = line[:i], line[i+1:j], line[j+1:]
	} else if name, rest, ok = strings.Cut(line, " "); !ok {
		return "", "", 0, false
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil && value >= 0
}
