package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// Import imports recorded audit logs, and the state of their cluster: through the running server, or one opened for as long as it takes.
//
//	FILE… ─▶ ingest/importer ─▶ data/retrial.sock of a running serve ─▶ the same receiver as webhooks
//	   └▶ none running: the engines are opened here, and closed when all is stored
type Import struct {
	Config             config.Config
	Cluster, APIServer string
	Logs               []string  // files, - for standard input
	State              string    // file, "" for none
	Wait               bool      // until everything is replayed and stored, not only accepted
	Err                io.Writer // shows the progress
}

// Imported is the result of an import.
type Imported struct {
	importer.Summary
	Own       bool // no server was running
	Elsewhere bool // nobody waited: other processes replay
}

// StateText returns what became of the state, for people; "" if none was imported now.
func (i *Imported) StateText() (string, error) {
	if len(i.State) == 0 {
		return "", nil
	}
	var taken takenState
	if err := json.Unmarshal(i.State, &taken); err != nil {
		return "", fmt.Errorf("read the answer to the state: %w", err)
	}
	return taken.String(), nil
}

// Run imports; the result has what was accepted before an error.
func (im Import) Run(ctx context.Context) (out Imported, err error) {
	c := importer.Config{
		Target:   importer.Target{BaseURL: "http://retrial", Cluster: im.Cluster, APIServer: im.APIServer},
		Position: PositionFile(im.Config, im.Cluster), SpoolDir: im.Config.DataDir,
	}
	for _, path := range im.Logs {
		f, err := importer.OpenFile(path)
		if err != nil {
			return out, cli.ExitWith(cli.ExitUsage, err)
		}
		c.Files = append(c.Files, f)
	}
	if im.State != "" {
		f, err := importer.OpenFile(im.State)
		if err != nil {
			return out, cli.ExitWith(cli.ExitUsage, err)
		}
		c.State = &f
	}
	show := cli.NewProgress(im.Err)
	defer show.Close()
	out.Own, err = withServer(ctx, im.Config, func(socket string, judge judging) (err error) {
		c.Client = importer.SocketClient(socket)
		c.Progress = func(x importer.Progress) {
			show.At(string(x.Pass)+" "+filepath.Base(x.File), x.Read, x.Size, true)
		}
		if out.Summary, err = importer.Import(ctx, c); err != nil || !im.Wait {
			return err
		}
		if err = judge.wait(ctx, out.Events, show); errors.Is(err, apiclient.ErrElsewhere) {
			out.Elsewhere, err = true, nil
		}
		return err
	})
	return out, err
}

// judging is what judges what an import brings in.
type judging struct {
	drained func(context.Context) error          // waits until all is stored
	behind  func(context.Context) (int64, error) // how many events are not
}

// judgedEvery is how often it is asked how much is judged.
const judgedEvery = 500 * time.Millisecond

// wait waits until everything is judged and stored, and shows how many events of an import are.
func (j judging) wait(ctx context.Context, events int64, show *cli.Progress) error {
	watched, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for sleep.For(watched, judgedEvery) == nil {
			if behind, err := j.behind(watched); err == nil {
				show.At("judged", max(0, events-behind), events, false)
			}
		}
	})
	err := j.drained(ctx)
	stop()
	watching.Wait()
	return err
}

// withServer calls use with the socket of the running server, or of its own for as long as that takes.
func withServer(ctx context.Context, cfg config.Config, use func(socket string, judge judging) error) (own bool, err error) {
	socket := filepath.Join(cfg.DataDir, apiclient.SocketName)
	client, err := apiclient.Dial(ctx, "", cfg.DataDir)
	if err == nil {
		return false, use(socket, judging{
			drained: func(ctx context.Context) error {
				_, err := apiclient.Ask(ctx, client, query.DrainedRequest{})
				return err
			},
			behind: func(ctx context.Context) (int64, error) {
				status, err := apiclient.Ask(ctx, client, query.StatusRequest{})
				return status.Lag, err
			},
		})
	}
	if !errors.Is(err, apiclient.ErrNoServer) {
		return false, err
	}
	sys, err := openSystem(ctx, cfg, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		return true, err
	}
	var group run.Group
	running, stop := context.WithCancel(ctx)
	defer stop()
	group.Add(func() error { return sys.runner.Run(running) }, func(error) { stop() })
	questions, _ := newAPI(sys)
	if _, err := listenLocally(sys, questions, &group); err != nil {
		return true, errors.Join(err, sys.close())
	}
	judge := judging{
		drained: func(ctx context.Context) error {
			if err := sys.runner.WaitDrained(ctx); err != nil {
				return err
			}
			return sys.detect.finish(ctx)
		},
		behind: func(context.Context) (int64, error) { return sys.runner.Lag().Events, nil },
	}
	group.Add(func() error { return use(socket, judge) }, func(error) { stop() })
	return true, errors.Join(group.Run(), sys.close())
}

// importSample posts the bundled recording through the local socket, as an import would. A later start finds it done.
func importSample(ctx context.Context, sys *system, addr addresses, out io.Writer) error {
	file := func(name string, content []byte) importer.File {
		return importer.File{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}}
	}
	st := file(sample.StateName, sample.StateZstd())
	sum, err := importer.Import(ctx, importer.Config{
		Target: importer.Target{Client: importer.SocketClient(addr.socket), BaseURL: "http://retrial", Cluster: "sample", Log: sys.log},
		Files:  []importer.File{file(sample.AuditLogName, sample.AuditLogZstd())}, State: &st,
		Position: PositionFile(sys.cfg, "sample"), SpoolDir: sys.cfg.DataDir,
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
