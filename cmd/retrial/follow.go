package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/server"
)

// followFlags are those of `retrial import --follow`.
//
//	audit.log, and what it was rotated into ─▶ ingest/importer.Follow ─▶ data/retrial.sock
//	                                                      └ or ─▶ the webhook's listener, as an apiserver posts to it
type followFlags struct {
	on                         bool
	webhookConfig, position    string
	delay                      string
	server                     string
	certificate, key, caBundle string
}

func (f *followFlags) bind(c *cobra.Command) {
	s := c.Flags()
	s.BoolVar(&f.on, "follow", false, "go on with what is written to the logs, through every rotation, until interrupted")
	s.StringVar(&f.webhookConfig, "webhook-config", "",
		"with --follow: post as the apiserver does, by its --audit-webhook-config-file, which names cluster and receiver")
	s.StringVar(&f.delay, "delay", "",
		"with --follow: how long a line waits, so that the apiserver's webhook comes first (default: 45s with --webhook-config, else 0s)")
	s.StringVar(&f.server, "server", "", "with --follow: URL of the webhook's listener (default: the local socket)")
	s.StringVar(&f.certificate, "client-certificate", "", "with --server: file of the cluster's client certificate")
	s.StringVar(&f.key, "client-key", "", "with --server: file of its key")
	s.StringVar(&f.caBundle, "certificate-authority", "", "with --server: file of the authority of the listener's certificate")
	s.StringVar(&f.position, "position", "",
		"with --follow: file that says what is acknowledged (default: in the data directory, by cluster and path)")
}

// run follows the logs until the command is interrupted, which is not an error.
func (f *followFlags) run(ctx context.Context, s cli.Streams, output string, cfg config.Config, cluster, apiserver string,
	paths []string) error {
	if len(paths) == 0 {
		return cli.ExitWith(cli.ExitUsage, errors.New("name the log to follow: what kube-apiserver's --audit-log-path names"))
	}
	if f.position != "" && len(paths) > 1 {
		return cli.ExitWith(cli.ExitUsage, errors.New("--position is for one log; several have one each in the data directory"))
	}
	if slices.Contains(paths, "-") {
		return cli.ExitWith(cli.ExitUsage, errors.New("standard input cannot be followed: name the file"))
	}
	sums, err := server.Follow{
		Config: cfg, Cluster: cluster, APIServer: apiserver, Delay: f.delay, Position: f.position,
		WebhookConfig: f.webhookConfig, URL: f.server, Certificate: f.certificate, Key: f.key, CABundle: f.caBundle,
	}.Run(ctx, paths, tellFollowed(s.Err))
	if err != nil && sums == nil {
		return err
	}
	return errors.Join(cli.Show(s, output, cli.Kinded{Kind: "FollowedList", Answer: sums}, func(p *cli.Page) {
		p.Named(paths...)
		for i, path := range paths {
			p.Printf("%s: %s\n", path, followedText(sums[i]))
		}
	}), err)
}

func followedText(d server.Followed) string {
	text := fmt.Sprintf("%s acknowledged, %s behind", phrase.Count(d.Events, "event"), doctor.Size(d.Behind))
	for _, more := range []struct {
		n    int64
		what string
	}{{d.Malformed, "malformed line"}, {d.Rotations, "rotation"}, {d.Truncations, "truncation"}} {
		if more.n != 0 {
			text += ", " + phrase.Count(more.n, more.what)
		}
	}
	return text
}

// followEvery is how often progress is printed, if there is any.
const followEvery = 30 * time.Second

// tellFollowed returns a function that prints from time to time how far a followed log is.
func tellFollowed(out io.Writer) func(path string, done server.Followed) {
	type status struct {
		at     time.Time
		events int64
	}
	var mu sync.Mutex
	last := map[string]status{}
	return func(path string, done server.Followed) {
		mu.Lock()
		defer mu.Unlock()
		before, told := last[path]
		if told && (time.Since(before.at) < followEvery || before.events == done.Events) {
			return
		}
		last[path] = status{time.Now(), done.Events}
		fmt.Fprintf(out, "%s %s: %s\n", time.Now().UTC().Format(time.TimeOnly), safe.Text(path), followedText(done))
	}
}
