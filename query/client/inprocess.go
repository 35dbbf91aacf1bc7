package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/retrial-io/retrial/query/api"
)

// InProcess returns a client that asks a handler of this process.
func InProcess(h http.Handler) *Client {
	return &Client{http: &http.Client{Transport: handlerTransport{h}}, base: &url.URL{Scheme: "http", Host: "localhost"}, local: true}
}

// handlerTransport answers requests by a handler in this process.
type handlerTransport struct{ handler http.Handler }

func (p handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := answerWriter{header: http.Header{}, code: http.StatusOK}
	who := api.Caller{Door: "direct", Name: api.UserName(os.Getuid())}
	p.handler.ServeHTTP(&w, r.WithContext(context.WithValue(r.Context(), api.CallerKey{}, who)))
	return &http.Response{StatusCode: w.code, Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)),
		Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

// answerWriter keeps an answer whole.
type answerWriter struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(code int) { w.code = code }

func (w *answerWriter) Write(p []byte) (int, error) { return w.body.Write(p) }
