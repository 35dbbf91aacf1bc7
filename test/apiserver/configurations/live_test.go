package configurations

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
	"github.com/retrial-io/retrial/test/recording"
)

// live is a running server that apiservers post to, told their configuration by hand.
type live struct {
	*product.Install
	server *product.Server
}

// receive starts the server. flags are the kube-apiserver's, as far as it matters who is let
// in and what is allowed; the one behind it has those that every one has.
func receive(t *testing.T, flags []string) *live {
	t.Helper()
	in := product.New(t)
	dir := filepath.Join(in.Dir, "config")
	for path, text := range map[string]string{
		"kube-apiserver.flags":           strings.ReplaceAll(strings.Join(flags, "\n"), "=DIR/", "=") + "\n",
		"front-proxy-ca.crt":             "",
		"aggregated/wardle/wardle.flags": "--authentication-kubeconfig=kubeconfig\n--authorization-kubeconfig=kubeconfig\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &live{in, in.Serve(t, "127.0.0.1:0", "--apiserver-config", cluster+"="+dir)}
}

// posts returns the flags that make an apiserver post, as retrial connect prints them; the policy
// is another one.
func (l *live) posts(t *testing.T, apiserver string) []string {
	t.Helper()
	var args []string
	if apiserver != "" {
		args = []string{"--apiserver", apiserver}
	}
	var flags []string
	for _, f := range l.Connect(t, l.server, args...) {
		if strings.HasPrefix(f, "--audit-webhook") {
			flags = append(flags, f)
		}
	}
	return flags
}

// compare waits until everything has arrived and holds it against what the replica came to
// by the log files.
func (l *live) compare(t *testing.T, result *recording.Result) {
	t.Helper()
	controlplane.Poll(t, "everything to arrive", func(context.Context) (bool, string) {
		n := 0
		for _, m := range stored(t, l.Install) {
			n += m
		}
		return n >= result.Requests, fmt.Sprintf("%d of %d requests", n, result.Requests)
	})
	compare(t, l.Install, result)
}
