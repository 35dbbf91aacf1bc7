package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/moment"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// Follow follows logs that are being written.
type Follow struct {
	Config                     config.Config
	Cluster, APIServer         string
	WebhookConfig              string // post by this webhook's configuration, which names cluster and receiver
	URL                        string // else to the webhook's listener at this URL, "" for the local socket
	Certificate, Key, CABundle string // files, for URL
	Delay                      string // how long a line waits, "" for what suits the way
	Position                   string // file, "" for one in the data directory
}

// Followed is how far a log was followed.
type Followed = importer.Followed

// Run follows the logs until ctx ends, which is not an error, and calls tell with their progress. It returns that; nil: none was followed.
func (f Follow) Run(ctx context.Context, paths []string, tell func(path string, done Followed)) ([]Followed, error) {
	delay, err := f.lineDelay()
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	to, err := f.destination(ctx)
	if err != nil {
		return nil, err
	}
	done := make([]Followed, len(paths))
	group, gctx := errgroup.WithContext(ctx)
	for i, path := range paths {
		position := f.Position
		if position == "" {
			position = followPosition(f.Config, to.cluster, path)
		}
		group.Go(func() (err error) {
			done[i], err = importer.Follow(gctx, importer.FollowConfig{
				Target: importer.Target{Client: to.client, BaseURL: to.base, Cluster: to.cluster, APIServer: to.apiserver}, Delay: delay,
				Path: path, Position: position, Progress: func(now Followed) { tell(path, now) },
			})
			return err
		})
	}
	err = group.Wait()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	return done, err
}

type destination struct {
	client             *http.Client
	base               string
	cluster, apiserver string
}

// destination returns where the logs are posted to, and by whom.
func (f Follow) destination(ctx context.Context) (destination, error) {
	cfg, cluster, apiserver := f.Config, f.Cluster, f.APIServer
	d := destination{cluster: cluster, apiserver: apiserver}
	usage := func(format string, args ...any) (destination, error) {
		return d, cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	var rc *rest.Config
	switch {
	case f.WebhookConfig != "" && f.URL != "":
		return usage("--webhook-config names the server: leave --server out")
	case f.WebhookConfig != "":
		var err error
		if rc, err = clientcmd.BuildConfigFromFlags("", f.WebhookConfig); err != nil {
			return usage("--webhook-config: %w", err)
		}
		named, err := parseEndpoint(rc.Host)
		if err != nil {
			return usage("--webhook-config %s: %w", f.WebhookConfig, err)
		}
		if cluster != "" && cluster != named.cluster || apiserver != "" && apiserver != named.apiserver {
			return usage("--webhook-config %s posts as cluster %s %s: leave --cluster and --apiserver out", f.WebhookConfig, named.cluster,
				named.apiserver)
		}
		d.base, d.cluster, d.apiserver = named.base, named.cluster, named.apiserver
	case f.URL != "":
		if _, err := identity.Endpoint(f.URL, cluster, apiserver); err != nil {
			return usage("--server: %w", err)
		}
		d.base = strings.TrimSuffix(f.URL, "/")
		rc = &rest.Config{Host: f.URL, TLSClientConfig: rest.TLSClientConfig{CertFile: f.Certificate, KeyFile: f.Key, CAFile: f.CABundle}}
	case f.Certificate != "" || f.Key != "" || f.CABundle != "":
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

// parseEndpoint parses a URL made by identity.Endpoint.
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
		return d, fmt.Errorf("its server %q is not a receiver's: want a URL that ends in /v1/clusters/NAME/audit", server)
	}
	return d, nil
}

// besideWebhook is how long a line waits for a webhook with default settings, which holds a batch for up to 30 s.
const besideWebhook = 45 * time.Second

func (f Follow) lineDelay() (time.Duration, error) {
	if f.Delay == "" {
		if f.WebhookConfig != "" {
			return besideWebhook, nil
		}
		return 0, nil
	}
	d, err := moment.Duration(f.Delay)
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("invalid --delay %q: want a duration from 0s to 1h, such as 45s", f.Delay)
	}
	return d, nil
}

// followPosition returns the file of a log's position: two logs of one name in different folders have two.
func followPosition(cfg config.Config, cluster, path string) string {
	sum := sha256.Sum256([]byte(config.Absolute(path)))
	return PositionFile(cfg, cluster+"-follow-"+hex.EncodeToString(sum[:6]))
}

// PositionFile returns the file in which an import notes what was acknowledged.
func PositionFile(cfg config.Config, cluster string) string {
	return filepath.Join(cfg.DataDir, "imports", cluster+".json")
}
