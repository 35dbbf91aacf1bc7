package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

func newCluster(s cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Say which clusters may post audit events",
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := config.Bind(c.PersistentFlags())
	showFlags(c.PersistentFlags(), "config", "data-dir", "webhook-listen", "webhook-advertise")
	c.AddCommand(newClusterAdd(s, flags), newClusterList(s, flags), newClusterRotate(s, flags), newClusterRevoke(s, flags), newClusterScrape(s, flags))
	return c
}

// loadIdentity loads the configuration and opens its certificates and registry.
func loadIdentity(flags *config.Flags) (config.Config, *identity.Authority, error) {
	cfg, err := flags.Load()
	if err != nil {
		return cfg, nil, cli.ExitWith(cli.ExitUsage, err)
	}
	a, err := server.OpenIdentity(cfg)
	return cfg, a, err
}

// loadRegistry is loadIdentity for what needs a registry that is there already: asked in the
// wrong folder it must not make one.
func loadRegistry(flags *config.Flags) (*identity.Authority, error) {
	cfg, err := flags.Load()
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	if _, err := os.Stat(server.IdentityConfig(cfg).Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: `retrial cluster add NAME` registers one; another folder is named with --data-dir", errNoClusters, cfg.DataDir)
	}
	return server.OpenIdentity(cfg)
}

var errNoClusters = errors.New("no cluster is registered")

func newClusterAdd(s cli.Streams, flags *config.Flags) *cobra.Command {
	var k webhookKubeconfig
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Register a cluster and write the kubeconfig for its apiservers' --audit-webhook-config-file",
		Long: `Register a cluster. It gets a client certificate that may post for this cluster and no
other, and the kubeconfig that kube-apiserver's --audit-webhook-config-file wants is written
to --output (default: standard output). It is as secret as the key in it.

A running server accepts the certificate at once.`,
		Example: "  retrial cluster add prod --server https://retrial.example:9443 --output webhook.kubeconfig",
		Args:    cli.OneArg("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, a, err := loadIdentity(flags)
			if err != nil {
				return err
			}
			return k.write(s, a, cfg, args[0], a.Registry().Add)
		},
	}
	k.bind(c)
	c.Flags().BoolVar(&k.token, "token", false, "put a bearer token in the file in place of the certificate")
	return c
}

// webhookKubeconfig is the file for --audit-webhook-config-file that add and rotate write.
type webhookKubeconfig struct {
	server, apiserver, out, dir string
	token                       bool
}

func (k *webhookKubeconfig) bind(c *cobra.Command) {
	c.Flags().StringVar(&k.server, "server", "", "URL apiservers reach the receiver by (default: the first advertised name and the listener's port)")
	c.Flags().StringVar(&k.apiserver, "apiserver", "", "name of this apiserver, when the cluster has several: events do not say which one sent them")
	c.Flags().StringVarP(&k.out, "output", "o", "-", "file to write, - for standard output")
	c.Flags().StringVar(&k.dir, "output-dir", "", "folder to write it to, with certificates and key as files beside it, which an apiserver reads again while it runs")
}

// write issues credentials and writes the file. What can go wrong is tried first: nobody
// wants a cluster registered whose key is nowhere.
func (k *webhookKubeconfig) write(s cli.Streams, a *identity.Authority, cfg config.Config, cluster string, issue func(string) (identity.Credentials, error)) (err error) {
	receiver := k.server
	if receiver == "" {
		receiver = server.ReceiverURL(cfg)
	}
	if _, err := identity.Endpoint(receiver, cluster, k.apiserver); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	if k.dir != "" {
		return k.writeDir(s, a, cfg, receiver, cluster, issue)
	}
	write := s.Out.Write
	commit := func() error { return nil }
	if k.out != "-" {
		// A file of its own, renamed: what was there may be readable by others.
		f, createErr := atomicfile.Create(k.out, 0o600)
		if createErr != nil {
			return fmt.Errorf("write the webhook's kubeconfig: %w", createErr)
		}
		defer func() { err = errors.Join(err, f.Cleanup()) }()
		write, commit = f.Write, f.Commit
	}
	cred, err := issue(cluster)
	if err != nil {
		return err
	}
	var token string
	if k.token {
		if token, err = a.Registry().NewToken(cluster); err != nil {
			return err
		}
	}
	file, err := identity.WebhookConfig(receiver, k.apiserver, cred, token)
	if err != nil {
		return err
	}
	if _, err = write(file); err == nil {
		err = commit()
	}
	if err != nil {
		return fmt.Errorf("write the webhook's kubeconfig: %w", err)
	}
	valid := "its certificate is valid until " + cred.Expires.Format(time.DateOnly)
	if k.token {
		valid = "its token is valid until the cluster is revoked"
	}
	fmt.Fprintf(s.Err, "cluster %s may post to %s; %s\n", cluster, receiver, valid)
	if k.out != "-" {
		fmt.Fprintf(s.Err, "wrote %s; give kube-apiserver --audit-webhook-config-file=%s and an --audit-policy-file\n", k.out, k.out)
	}
	return adviseReach(s.Err, a, cfg, receiver)
}

// writeDir is write with credentials in files of their own.
func (k *webhookKubeconfig) writeDir(s cli.Streams, a *identity.Authority, cfg config.Config, server, cluster string, issue func(string) (identity.Credentials, error)) error {
	if k.token || k.out != "-" {
		return cli.ExitWith(cli.ExitUsage, errors.New("--output-dir takes the place of --output, and holds a certificate: leave --output and --token out"))
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("write the webhook's files: %w", err)
	}
	cred, err := issue(cluster)
	if err != nil {
		return err
	}
	files, err := identity.WebhookFiles(server, k.apiserver, cred)
	if err != nil {
		return err
	}
	if err := writeFiles(k.dir, files); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "cluster %s may post to %s; its certificate is valid until %s\nwrote %s; give kube-apiserver --audit-webhook-config-file=%s and an --audit-policy-file\n",
		cluster, server, cred.Expires.Format(time.DateOnly), k.dir, filepath.Join(k.dir, identity.FileWebhookConfig))
	return adviseReach(s.Err, a, cfg, server)
}

// adviseReach says what is still needed for apiservers to reach the server by its URL.
func adviseReach(w io.Writer, a *identity.Authority, cfg config.Config, server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" {
		return err
	}
	_, port, err := net.SplitHostPort(cfg.Webhook.Listen)
	if err != nil {
		return fmt.Errorf("webhook-listen: %w", err)
	}
	if config.Loopback(net.JoinHostPort(u.Hostname(), port)) {
		fmt.Fprintf(w, "note: %s is this machine alone; for apiservers elsewhere name the URL they reach it by: --server https://HOST:%s\n", u.Hostname(), port)
		return nil
	}
	covered, err := a.ServerCovers(u.Hostname())
	if err != nil || covered {
		return err
	}
	fmt.Fprintf(w, "note: the receiver's certificate does not name %s yet; start it with: retrial serve --webhook-listen 0.0.0.0:%s --webhook-advertise %s\n",
		u.Hostname(), port, u.Hostname())
	return nil
}

// registeredJSON is one cluster of `cluster list -o json`. Credentials are not in it.
type registeredJSON struct {
	Name         string     `json:"name"`
	Added        time.Time  `json:"added"`
	Certificates int        `json:"certificates"`
	Tokens       int        `json:"tokens"`
	Expires      *time.Time `json:"expires,omitempty"` // the last certificate
	Revoked      *time.Time `json:"revoked,omitempty"`
	Used         *time.Time `json:"used,omitempty"` // a certificate of it, last
	// Overlap is set while an earlier certificate than the newest is accepted.
	Overlap bool `json:"overlap,omitempty"`
}

// registeredRow makes the row of a cluster. Expires is of the newest certificate that is accepted.
func registeredRow(c identity.Cluster, used map[string]time.Time, now time.Time) registeredJSON {
	row := registeredJSON{Name: c.Name, Added: c.Created, Certificates: len(c.Certificates), Tokens: len(c.Tokens), Revoked: c.Revoked}
	accepted := 0
	for i := range c.Certificates {
		cert := &c.Certificates[i]
		if at, ok := used[cert.Serial]; ok && (row.Used == nil || at.After(*row.Used)) {
			row.Used = &at
		}
		if cert.Revoked == nil && cert.Expires.After(now) {
			accepted++
		}
		row.Expires = &cert.Expires
	}
	row.Overlap = accepted > 1 && c.Revoked == nil
	return row
}

func newClusterList(s cli.Streams, flags *config.Flags) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the registered clusters",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list := []registeredJSON{}
			a, err := loadRegistry(flags)
			switch {
			case errors.Is(err, errNoClusters):
				fmt.Fprintln(s.Err, err)
			case err != nil:
				return err
			default:
				clusters, err := a.Registry().List()
				if err != nil {
					return err
				}
				for _, c := range clusters {
					list = append(list, registeredRow(c, a.Registry().Used(c.Name), time.Now()))
				}
			}
			if output != "table" {
				return cli.PrintAs(s.Out, output, list)
			}
			return printClusters(s.Out, list)
		},
	}
	cli.AddOutput(c, &output, "table", "json", "yaml")
	return c
}

func printClusters(out io.Writer, list []registeredJSON) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tADDED\tCERTIFICATES\tTOKENS\tEXPIRES\tUSED\tSTATE")
	for _, c := range list {
		state, expires, used := "accepted", "-", "-"
		if c.Overlap {
			state = "accepted, earlier certificates too"
		}
		if c.Used != nil {
			used = c.Used.UTC().Format(time.RFC3339)
		}
		if c.Revoked != nil {
			state = "revoked " + c.Revoked.Format(time.DateOnly)
		}
		if c.Expires != nil {
			expires = c.Expires.Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.Name, c.Added.Format(time.DateOnly), c.Certificates, c.Tokens, expires, used, state)
	}
	return w.Flush()
}

func newClusterRevoke(s cli.Streams, flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Refuse everything the cluster posts from now on, open connections included",
		Args:  cli.OneArg("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := loadRegistry(flags)
			if err != nil {
				return err
			}
			if err := a.Registry().Revoke(args[0]); err != nil {
				return fmt.Errorf("%w; `retrial cluster list` shows them", err)
			}
			fmt.Fprintf(s.Err, "cluster %s is revoked; what it sent before stays\n", args[0])
			return nil
		},
	}
}
