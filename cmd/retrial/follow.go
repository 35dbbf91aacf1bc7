package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	apiclient "github.com/retrial-io/retrial/query/client"
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
	s.StringVar(&f.webhookConfig, "webhook-config", "", "with --follow: post as the apiserver does, by its --audit-webhook-config-file, which names cluster and receiver")
	s.StringVar(&f.delay, "delay", "", "with --follow: how long a line waits, so that the apiserver's webhook comes first (default: 45s with --webhook-config, else 0s)")
	s.StringVar(&f.server, "server", "", "with --follow: URL of the webhook's listener (default: the local socket)")
	s.StringVar(&f.certificate, "client-certificate", "", "with --server: file of the cluster's client certificate")
	s.StringVar(&f.key, "client-key", "", "with --server: file of its key")
	s.StringVar(&f.caBundle, "certificate-authority", "", "with --server: file of the authority of the listener's certificate")
	s.StringVar(&f.position, "position", "", "with --follow: file that says what is acknowledged (default: in the data directory, by cluster and path)")
}

// destination is where followed logs are posted to.
type destination struct {
	client             *http.Client
	base               string
	cluster, apiserver string
}

// destination reads the flags. cluster and apiserver are those of the command line.
func (f *followFlags) destination(ctx context.Context, cfg config.Config, cluster, apiserver string) (destination, error) {
	d := destination{cluster: cluster, apiserver: apiserver}
	usage := func(format string, args ...any) (destination, error) {
		return d, cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	var rc *rest.Config
	switch {
	case f.webhookConfig != "" && f.server != "":
		return usage("--webhook-config names the server: leave --server out")
	case f.webhookConfig != "":
		var err error
		if rc, err = clientcmd.BuildConfigFromFlags("", f.webhookConfig); err != nil {
			return usage("--webhook-config: %w", err)
		}
		named, err := parseEndpoint(rc.Host)
		if err != nil {
			return usage("--webhook-config %s: %w", f.webhookConfig, err)
		}
		if cluster != "" && cluster != named.cluster || apiserver != "" && apiserver != named.apiserver {
			return usage("--webhook-config %s posts as cluster %s %s: leave --cluster and --apiserver out", f.webhookConfig, named.cluster, named.apiserver)
		}
		d.base, d.cluster, d.apiserver = named.base, named.cluster, named.apiserver
	case f.server != "":
		if _, err := identity.Endpoint(f.server, cluster, apiserver); err != nil {
			return usage("--server: %w", err)
		}
		d.base = strings.TrimSuffix(f.server, "/")
		rc = &rest.Config{Host: f.server, TLSClientConfig: rest.TLSClientConfig{CertFile: f.certificate, KeyFile: f.key, CAFile: f.caBundle}}
	case f.certificate != "" || f.key != "" || f.caBundle != "":
		return usage("--client-certificate, --client-key and --certificate-authority are for --server")
	default:
		if _, err := apiclient.Dial(ctx, "", cfg.DataDir); err != nil {
			return d, fmt.Errorf("%w; or post to one elsewhere with --webhook-config or --server", err)
		}
		d.base = "http://retrial"
		d.client = importer.SocketClient(filepath.Join(cfg.DataDir, apiclient.SocketName))
		return d, nil
	}
	rc.Timeout = 2 * time.Minute // a body of some megabytes on a slow line
	var err error
	if d.client, err = rest.HTTPClientFor(rc); err != nil {
		return usage("credentials: %w", err)
	}
	return d, nil
}

// parseEndpoint takes apart the URL that identity.Endpoint makes.
func parseEndpoint(server string) (destination, error) {
	u, err := url.Parse(server)
	if err != nil {
		return destination{}, err
	}
	base, path, ok := strings.Cut(u.Path, "/v1/clusters/")
	parts := strings.Split(path, "/")
	d := destination{base: u.Scheme + "://" + u.Host + base, cluster: parts[0]}
	switch {
	case ok && len(parts) == 2 && parts[1] == "audit":
	case ok && len(parts) == 4 && parts[1] == "apiservers" && parts[3] == "audit":
		d.apiserver = parts[2]
	default:
		return d, fmt.Errorf("its server %q is no receiver's: it must end in /v1/clusters/NAME/audit", server)
	}
	return d, nil
}

// run follows the logs until the command is interrupted, which is how it ends well.
func (f *followFlags) run(ctx context.Context, s cli.Streams, output string, cfg config.Config, cluster, apiserver string, paths []string) error {
	if len(paths) == 0 {
		return cli.ExitWith(cli.ExitUsage, errors.New("name the log to follow: what kube-apiserver's --audit-log-path names"))
	}
	if f.position != "" && len(paths) > 1 {
		return cli.ExitWith(cli.ExitUsage, errors.New("--position is for one log; several have one each in the data directory"))
	}
	delay, err := f.lineDelay()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	to, err := f.destination(ctx, cfg, cluster, apiserver)
	if err != nil {
		return err
	}
	status := newFollowStatus(s.Err)
	sums := make([]importer.Followed, len(paths))
	group, gctx := errgroup.WithContext(ctx)
	for i, path := range paths {
		if path == "-" {
			return cli.ExitWith(cli.ExitUsage, errors.New("standard input cannot be followed: name the file"))
		}
		position := f.position
		if position == "" {
			position = followPosition(cfg, to.cluster, path)
		}
		group.Go(func() (err error) {
			sums[i], err = importer.Follow(gctx, importer.FollowConfig{
				Client: to.client, BaseURL: to.base, Cluster: to.cluster, APIServer: to.apiserver, Delay: delay,
				Path: path, Position: position, Progress: func(done importer.Followed) { status.tell(path, done) },
			})
			return err
		})
	}
	err = group.Wait()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	if output == "json" {
		return errors.Join(cli.PrintAs(s.Out, output, sums), err)
	}
	for i, path := range paths {
		fmt.Fprintf(s.Out, "%s: %s\n", safe.Text(path), followedText(sums[i]))
	}
	return err
}

// besideWebhook is how long a line waits beside a webhook at its defaults, which holds a batch
// for up to 30 s.
const besideWebhook = 45 * time.Second

// lineDelay is how long a line waits.
func (f *followFlags) lineDelay() (time.Duration, error) {
	if f.delay == "" {
		if f.webhookConfig != "" {
			return besideWebhook, nil
		}
		return 0, nil
	}
	d, err := time.ParseDuration(f.delay)
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("invalid --delay %q: want a duration from 0s to 1h, such as 45s", f.delay)
	}
	return d, nil
}

// followPosition is where the position of a log lies: two logs of one name are two.
func followPosition(cfg config.Config, cluster, path string) string {
	sum := sha256.Sum256([]byte(config.Absolute(path)))
	return server.PositionFile(cfg, cluster+"-follow-"+hex.EncodeToString(sum[:6]))
}

func followedText(d importer.Followed) string {
	text := fmt.Sprintf("%s acknowledged, %s behind", phrase.Count(d.Events, "event"), doctor.Size(d.Behind))
	for _, more := range []struct {
		n    int64
		what string
	}{{d.Malformed, "line that is no event"}, {d.Rotations, "rotation"}, {d.Truncations, "truncation"}} {
		switch {
		case more.n == 0:
		case more.what == "line that is no event" && more.n > 1:
			text += fmt.Sprintf(", %d lines that are no events", more.n)
		default:
			text += ", " + phrase.Count(more.n, more.what)
		}
	}
	return text
}

// followStatus tells now and then how far the followed logs are.
type followStatus struct {
	mu   sync.Mutex
	out  io.Writer
	last map[string]time.Time
	told map[string]int64
}

// followEvery is how often progress is told, when there is any.
const followEvery = 30 * time.Second

func newFollowStatus(out io.Writer) *followStatus {
	return &followStatus{out: out, last: map[string]time.Time{}, told: map[string]int64{}}
}

func (f *followStatus) tell(path string, done importer.Followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, told := f.last[path]
	if told && (time.Since(at) < followEvery || f.told[path] == done.Events) {
		return
	}
	f.last[path], f.told[path] = time.Now(), done.Events
	fmt.Fprintf(f.out, "%s %s: %s\n", time.Now().UTC().Format(time.TimeOnly), safe.Text(path), followedText(done))
}
