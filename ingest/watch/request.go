package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// errMalformed is wrapped by errors about answers that cannot be parsed.
var errMalformed = errors.New("malformed answer")

// statusError is a refusal by the apiserver: an answer that is not 200, or an error event
// of a watch.
type statusError struct {
	code       int
	reason     string        // Status.reason: "Expired", "Forbidden" …
	message    string        // Status.message, cut
	retryAfter time.Duration // 0 if there is none
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the apiserver answered %d %s: %s", e.code, e.reason, e.message)
}

func reasonOf(err error) string {
	var s *statusError
	switch {
	case errors.Is(err, ErrOtherCluster):
		return reasonOtherCluster
	case errors.Is(err, errMalformed):
		return reasonMalformed
	case !errors.As(err, &s):
		return reasonUnavailable
	case s.code == http.StatusGone || s.reason == "Expired" || s.reason == "Gone":
		return reasonGone
	case s.code == http.StatusForbidden:
		return reasonForbidden
	case s.code == http.StatusNotFound, s.code == http.StatusNotAcceptable:
		return reasonNotServed
	case s.code == http.StatusUnauthorized:
		return reasonUnauthorized
	}
	return reasonUnavailable
}

// get sends a GET and returns the body of a 200; anything else is an error.
func (w *Watcher) get(ctx context.Context, k Kind, query url.Values) (io.ReadCloser, error) {
	u := w.base.JoinPath(k.Path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	accept := "application/json"
	if k.MetadataOnly {
		accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		if query.Has("watch") {
			accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		}
	}
	req.Header.Set("Accept", accept)
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err // names method and URL, which holds nothing secret
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // use whatever arrived
	refusal := statusOf(body)
	refusal.code = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		refusal.retryAfter = min(time.Duration(n), 60) * time.Second
	}
	return nil, refusal
}

// statusOf reads raw as a metav1.Status, as far as it is one.
func statusOf(raw []byte) *statusError {
	var s struct {
		Code    int    `json:"code"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &s) // of a proxy's page only the code remains
	return &statusError{code: s.Code, reason: cut(s.Reason, 64), message: cut(s.Message, 256)}
}

// cut shortens a server's text for a log line.
func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// maxFrame is the largest watch event that is read: ten times what etcd stores.
const maxFrame = 16 << 20

type frame struct {
	kind    string // "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
	object  []byte
	arrived time.Time
	drained time.Time // nothing was in transit at this moment; zero if not known
	err     error     // of the last frame only: why there are no more; io.EOF at an orderly end
}

// frames reads a watch's body into a queue and closes that at the end. It reads ahead: arrival times reflect the network, not Kafka.
func (r *reflector) frames(ctx context.Context, body io.Reader, queue chan<- frame) {
	defer close(queue)
	now := r.w.cfg.Now
	in := &timedReader{r: body, now: now, quiet: delay}
	dec := json.NewDecoder(in)
	for {
		var raw struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		in.budget = maxFrame
		err := dec.Decode(&raw)
		var syntax *json.SyntaxError
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &mismatch) {
			err = errors.Join(errMalformed, err)
		}
		f := frame{kind: raw.Type, object: raw.Object, arrived: now(), drained: in.drained, err: err}
		select {
		case queue <- f:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		if raw.Type == "BOOKMARK" {
			in.live = true
		}
	}
}

// timedReader records when its source had nothing to read. If a read waited longer than an event is in transit, nothing was when it began.
type timedReader struct {
	r       io.Reader
	now     func() time.Time
	quiet   time.Duration
	budget  int  // bytes that may still be read for the current frame
	live    bool // the initial backlog of the watch has been read: a wait is meaningful
	drained time.Time
}

// Read implements io.Reader.
func (t *timedReader) Read(p []byte) (int, error) {
	if t.budget <= 0 {
		return 0, fmt.Errorf("%w: watch event of more than %d bytes", errMalformed, maxFrame)
	}
	p = p[:min(len(p), t.budget)]
	began := t.now()
	n, err := t.r.Read(p)
	t.budget -= n
	if t.live && t.now().Sub(began) >= t.quiet {
		t.drained = began
	}
	return n, err
}
