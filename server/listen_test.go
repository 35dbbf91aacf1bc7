package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiclient "github.com/retrial-io/retrial/query/client"
)

func TestListenUnix(t *testing.T) {
	dir, err := os.MkdirTemp("", "retrial") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, apiclient.SocketName)

	first, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket may be opened by others: %v, %v", info.Mode(), err)
	}
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a second server on the directory: got %v", err)
	}

	// A crash leaves the file behind.
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = first.Close()
	again, err := listenUnix(path)
	if err != nil {
		t.Fatalf("a socket left over from a crash: %v", err)
	}
	_ = again.Close()
}
