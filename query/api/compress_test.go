package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// asking asks without the transparent decompression of Go's client.
func asking(t *testing.T, url, encoding string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	res, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestAnswersAreCompressed: an answer is the same with and without gzip, and shorter with it.
func TestAnswersAreCompressed(t *testing.T) {
	server := httptest.NewServer(api.New((&query.Service{}).Questions(), nil, zap.NewNop(), time.Minute))
	t.Cleanup(server.Close)
	for _, path := range []string{"classes", "openapi.json"} {
		plain, zipped := asking(t, server.URL+"/api/v1/"+path, "identity"), asking(t, server.URL+"/api/v1/"+path, "gzip")
		want, err := io.ReadAll(plain.Body)
		if err != nil || plain.Header.Get("Content-Encoding") != "" {
			t.Fatalf("%s: %v %v", path, plain.Header, err)
		}
		body, err := io.ReadAll(zipped.Body)
		if err != nil || zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("%s: %v %v", path, zipped.Header, err)
		}
		if len(body) > len(want)/3 {
			t.Errorf("%s: %d bytes of %d", path, len(body), len(want))
		}
		if got := unzipped(t, bytes.NewReader(body)); got != string(want) {
			t.Errorf("%s compressed is another answer", path)
		}
	}
	for _, path := range []string{"nothing", "events"} { // errors are for people, and short
		if res := asking(t, server.URL+"/api/v1/"+path, "gzip"); res.StatusCode < 400 || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/classes", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	server.Config.Handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), api.CallerKey{}, api.Caller{Door: "socket"})))
	if w.Header().Get("Content-Encoding") != "" {
		t.Error("an answer on the socket is compressed")
	}
}

// TestRowsAreCompressedAsTheyAreRead: compression holds no row back, and an answer that is cut off has no end.
func TestRowsAreCompressedAsTheyAreRead(t *testing.T) {
	const many = 20_000
	release := make(chan struct{})
	_, url := askRows(t, &rowsOf{n: many, last: func() { <-release }})
	res := asking(t, url, "gzip")
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 32<<10)
	if _, err := io.ReadFull(z, first); err != nil || !strings.Contains(string(first), `["\u003c1\u003e",1]`) {
		t.Fatalf("%.200s %v", first, err)
	}
	close(release)
	rest, err := io.ReadAll(z)
	if err != nil || !strings.HasSuffix(string(rest), "]}\n") {
		t.Fatalf("the end is %q, %v", rest[max(0, len(rest)-20):], err)
	}

	_, url = askRows(t, &rowsOf{n: many, err: errors.New("the store is gone")})
	if z, err = gzip.NewReader(asking(t, url, "gzip").Body); err != nil {
		t.Fatal(err)
	}
	if rest, err = io.ReadAll(z); err == nil {
		t.Errorf("a cut answer reads as whole: %q", rest[max(0, len(rest)-20):])
	}
}

func unzipped(t *testing.T, r io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
