package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// payload is the data of an INSERT, encoded in Native format by this package. The driver
// sends the statement as it sends any other (address, authentication, settings, errors are
// its own); the transport below puts the data in.
type payload struct {
	data    []byte
	written int64 // rows the server says it wrote, views included; -1 when it does not say
}

type payloadKey struct{}

// withPayload makes the next statement run under ctx an INSERT of data.
func withPayload(ctx context.Context, p *payload) context.Context {
	return context.WithValue(ctx, payloadKey{}, p)
}

// payloads is the round tripper between the driver and the store.
type payloads struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t payloads) RoundTrip(req *http.Request) (*http.Response, error) {
	p, _ := req.Context().Value(payloadKey{}).(*payload)
	if p == nil || req.Body == nil {
		return t.next.RoundTrip(req)
	}
	query, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	if !bytes.HasPrefix(query, []byte("INSERT")) { // the driver's own questions on a new connection
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(query))
		return t.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	args := req.URL.Query()
	args.Set("query", string(query))
	args.Set("wait_end_of_query", "1") // the status is then that of the whole insert
	req.URL.RawQuery = args.Encode()
	req.Body = io.NopCloser(bytes.NewReader(p.data))
	req.ContentLength = int64(len(p.data))
	req.GetBody = nil // never sent twice behind our back
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	p.written = written(res.Header.Get("X-ClickHouse-Summary"))
	return res, nil
}

// written reads the rows written out of a summary header, -1 when it has none.
func written(summary string) int64 {
	var v struct {
		Rows string `json:"written_rows"`
	}
	if json.Unmarshal([]byte(summary), &v) != nil {
		return -1
	}
	n, err := strconv.ParseInt(v.Rows, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
