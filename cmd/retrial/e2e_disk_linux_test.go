package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDiskFull runs the server on a small file system until it is full: posts are refused
// with the request to come back, and the log says why. When there is room again everything
// goes on without help, and what was acknowledged is there, once, also after a crash.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	t.Run("log and store", func(t *testing.T) { diskFull(t, "0s") })
	if long() {
		t.Run("log alone", func(t *testing.T) { diskFull(t, "1h") }) // nothing is replayed meanwhile
	}
}

func diskFull(t *testing.T, hold string) {
	t.Helper()
	in := newInstall(t)
	if err := os.Mkdir(in.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", in.data(), "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI runs need to mount a file system: %v", err)
		}
		t.Skipf("NOT RUN: a small file system cannot be mounted: %v; run as root: go test -run TestDiskFull ./cmd/retrial", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(in.data(), syscall.MNT_DETACH) })

	s := in.serve(t, "--replay-hold", hold)
	to := s.addCluster(t, "prod")
	log := recorded(t)
	bodies := batches(log, 5)
	taken, refused := 0, posted{}
	for _, body := range bodies {
		a, err := to.post(t.Context(), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if a.code != http.StatusOK {
			refused = a
			break
		}
		taken++
	}
	if refused.code == 0 {
		t.Fatalf("all %d bodies fit", len(bodies))
	}
	if refused.code != http.StatusServiceUnavailable && refused.code != http.StatusTooManyRequests ||
		refused.header.Get("Retry-After") != "5" {
		t.Errorf("answer %d, Retry-After %q: %s", refused.code, refused.header.Get("Retry-After"), refused.text)
	}
	says(t, s.log.String(), "no space left on device")

	if err := syscall.Mount("tmpfs", in.data(), "tmpfs", syscall.MS_REMOUNT, "size=2g"); err != nil {
		t.Fatal(err)
	}
	to.deliver(t, bodies[taken])
	s.kill()
	s = in.serve(t)
	to = s.sender(t, filepath.Join(in.dir, "prod.kubeconfig"))
	for _, body := range bodies[taken+1:] {
		to.deliver(t, body)
	}
	s.drained(t)
	s.stop(t)
	at := filepath.Join(in.dir, "list")
	totals := inspect(t, inspection{Data: in.data(), Events: map[string]string{at: "prod"}})
	sameEvents(t, in, "prod", log, lines(t, at))
	if totals.Volume != totals.Events || totals.Rows != totals.Events {
		t.Errorf("totals do not add up: %+v", totals)
	}
}
