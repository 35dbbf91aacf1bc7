package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestProfiles: profiles are served when they are asked for, to this machine's own programs, and
// one that is being taken is whole when the server stops.
func TestProfiles(t *testing.T) {
	seen, logs := observer.New(zap.InfoLevel)
	sys := &system{log: zap.New(seen), reg: prometheus.NewRegistry()}
	var none run.Group
	if err := listenDebug(t.Context(), sys, &none); err != nil || logs.Len() > 0 {
		t.Fatalf("without an address: %v, %d lines", err, logs.Len())
	}
	sys.cfg.Debug.Listen = "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	var group run.Group
	group.Add(func() error { <-ctx.Done(); return nil }, func(error) { stop() })
	if err := listenDebug(ctx, sys, &group); err != nil {
		t.Fatal(err)
	}
	url := logs.All()[0].ContextMap()["url"].(string)
	ended := make(chan error, 1)
	go func() { ended <- group.Run() }()
	get := func(path, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if code, body := get("goroutine?debug=1", ""); code != http.StatusOK || !strings.Contains(body, "goroutine profile: total") {
		t.Errorf("%d %.100s", code, body)
	}
	if code, _ := get("goroutine?debug=1", "rebound.example"); code != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %d", code)
	}
	if code, _ := get("../vars", ""); code != http.StatusNotFound {
		t.Errorf("beside the profiles: %d", code)
	}
	taken := make(chan string, 1)
	go func() {
		_, body := get("profile?seconds=3600", "")
		taken <- body
	}()
	for begun := false; !begun && t.Context().Err() == nil; {
		_, body := get("goroutine?debug=2", "")
		begun = strings.Contains(body, "net/http/pprof.sleep(")
	}
	stop()
	if body := <-taken; len(body) < 100 {
		t.Errorf("the profile has %d bytes", len(body))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
