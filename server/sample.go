package server

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/sample"
)

// importSample posts the bundled recording through the local socket, as an import would. A
// later start finds it done.
func importSample(ctx context.Context, sys *system, addr addresses, out io.Writer) error {
	file := func(name string, content []byte) importer.File {
		return importer.File{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}}
	}
	st := file(sample.StateName, sample.StateZstd())
	sum, err := importer.Import(ctx, importer.Config{
		Client: importer.SocketClient(addr.socket), BaseURL: "http://retrial", Cluster: "sample",
		Files: []importer.File{file(sample.AuditLogName, sample.AuditLogZstd())}, State: &st,
		Position: PositionFile(sys.cfg, "sample"), SpoolDir: sys.cfg.DataDir, Log: sys.log,
	})
	if err != nil {
		return err
	}
	if err := sys.runner.WaitDrained(ctx); err != nil {
		return err
	}
	what := "from an earlier start"
	if sum.Events > 0 {
		what = fmt.Sprintf("%d events of a real audit log, replayed", sum.Events)
	}
	fmt.Fprintf(out, "  The sample is in: %s. Open %s#/?cluster=sample\n\n", what, addr.ui)
	return nil
}
