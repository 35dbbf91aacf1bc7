package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/retrial-io/retrial/storage/native"
)

// payloadKey is the context key of an INSERT's data.
type payloadKey struct{}

// withPayload makes the next statement run under ctx an INSERT of data, encoded in Native
// format. The driver sends the statement as it sends any other (address, authentication,
// settings, errors are its own); the transport below puts the data in. The data must not
// change until the statement has ended; after one that failed it may still be being read.
func withPayload(ctx context.Context, data *native.Payload) context.Context {
	return context.WithValue(ctx, payloadKey{}, data)
}

// payloads is the round tripper between the driver and the store.
type payloads struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t payloads) RoundTrip(req *http.Request) (*http.Response, error) {
	data, ok := req.Context().Value(payloadKey{}).(*native.Payload)
	if !ok || req.Body == nil {
		return t.next.RoundTrip(req)
	}
	query, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	req = req.Clone(req.Context())
	if !bytes.HasPrefix(query, []byte("INSERT")) { // the driver's own question on a new connection
		req.Body = io.NopCloser(bytes.NewReader(query))
		return t.next.RoundTrip(req)
	}
	args := req.URL.Query()
	args.Set("query", string(query))
	args.Set("wait_end_of_query", "1") // the status is then that of the whole insert
	req.URL.RawQuery = args.Encode()
	req.Body = io.NopCloser(data.Reader())
	req.ContentLength = int64(data.Size())
	req.GetBody = nil // never sent twice behind our back
	return t.next.RoundTrip(req)
}
