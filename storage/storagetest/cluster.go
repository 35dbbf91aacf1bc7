package storagetest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
)

// Clustered names the environment variable that has the stores of all tests opened in the
// cluster form: what holds for one table must hold for Distributed tables over it.
const Clustered = "RETRIAL_TEST_CLUSTERED"

// ClusterName is that of the cluster of StartCluster.
const ClusterName = "main"

// ClusterConfig gives an engine a cluster that it is the only node of: by the port it would listen on, did it listen, it knows itself.
const ClusterConfig = `<clickhouse>
    <tcp_port>9000</tcp_port>
    <remote_servers><main><shard>
        <internal_replication>true</internal_replication>
        <replica><host>127.0.0.1</host><port>9000</port></replica>
    </shard></main></remote_servers>
</clickhouse>
`

// StartCluster opens a store in the cluster form on a cluster of one node, the embedded engine, and returns what closes it. The engine has
// no Keeper: ON CLUSTER and Replicated are taken out of the statements on their way; all else is as on a real cluster.
func StartCluster(t testing.TB, dir string) (*storage.Store, func()) {
	t.Helper()
	Need(t)
	engine := clusterEngine(t, dir, ClusterConfig)
	s, err := storage.Open(context.Background(), storage.Config{Transport: withoutKeeper{engine}, ClusterName: ClusterName})
	if err != nil {
		engine.Close()
		t.Fatal(err)
	}
	return s, func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TryCluster opens a store in the cluster form of a name on an engine with the given
// configuration, closes it, and returns the error of opening.
func TryCluster(t testing.TB, dir, name, config string) error {
	t.Helper()
	engine := clusterEngine(t, dir, config)
	defer engine.Close()
	s, err := storage.Open(context.Background(), storage.Config{Transport: withoutKeeper{engine}, ClusterName: name})
	if err == nil {
		err = s.Close()
	}
	return err
}

// clusterEngine opens an engine with a configuration beside its own, if there is one.
func clusterEngine(t testing.TB, dir, config string) *embedded.Engine {
	t.Helper()
	if config != "" {
		conf := filepath.Join(dir, "conf.d") // read by the engine beside its own
		if err := os.MkdirAll(conf, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(conf, "cluster.xml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	engine, err := embedded.Open(embedded.Config{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// withoutKeeper takes out of statements what an engine without Keeper cannot do.
type withoutKeeper struct{ engine http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w withoutKeeper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.URL.Query().Has("query") { // an INSERT with data
		return w.engine.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := req.Body.Close(); err != nil {
		return nil, err
	}
	sql := strings.ReplaceAll(strings.ReplaceAll(string(body), " ON CLUSTER `"+ClusterName+"`", ""), "ENGINE = Replicated", "ENGINE = ")
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader([]byte(sql))), int64(len(sql))
	return w.engine.RoundTrip(req)
}
