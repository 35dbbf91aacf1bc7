package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/apimetrics"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// Clusters administers the clusters registered in a data directory. It prints messages to Streams.Err.
type Clusters struct {
	Config  config.Config
	Streams cli.Streams
}

// WebhookFile says which configuration of a cluster's webhook is written, and where to.
type WebhookFile struct {
	URL       string // that apiservers reach the receiver by, "" for ReceiverURL
	APIServer string // name of the apiserver, when the cluster has several
	Output    string // file, - for standard output
	Dir       string // folder, in place of a file, with certificates and key beside the configuration
	Token     bool   // a bearer token in place of the certificate
}

// CheckName returns an error unless a name can be a cluster's.
func CheckName(name string) error {
	if !identity.ValidName(name) {
		return identity.ErrName
	}
	return nil
}

// known is OpenIdentity for commands that need an existing registry: in the wrong folder they must not make one.
func (c Clusters) known() (*identity.Authority, error) {
	if _, err := os.Stat(IdentityConfig(c.Config).Dir); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: `retrial cluster add NAME` registers one; --data-dir names another folder", errNoClusters,
			c.Config.DataDir)
	}
	return OpenIdentity(c.Config)
}

var errNoClusters = errors.New("no cluster is registered")

// Add registers a cluster and writes the configuration of its webhook.
func (c Clusters) Add(name string, k WebhookFile) error {
	a, err := OpenIdentity(c.Config)
	if err != nil {
		return err
	}
	return c.write(k, a, name, a.Registry().Add)
}

// List returns the clusters that are registered, and those of which events or objects are stored, by their names. The running server is
// asked for the latter, or the store where none runs; if it does not answer, a hint says so and the registered ones are all there is.
func (c Clusters) List(ctx context.Context) ([]Registered, error) {
	list, err := c.registered()
	if none := errors.Is(err, errNoClusters); err != nil && !none {
		return nil, err
	}
	stored, failed := c.stored(ctx)
	for _, one := range stored.Clusters {
		row := rowOf(&list, one.Name)
		row.Events, row.First, row.Last = one.Events, &one.First, &one.Last
	}
	for _, name := range stored.Quiet {
		rowOf(&list, name)
	}
	switch {
	case failed != nil:
		fmt.Fprintf(c.Streams.Err, "hint: clusters that were only imported are not listed: %s\n", cli.SafeLines(failed.Error()))
	case err != nil && len(list) == 0:
		fmt.Fprintln(c.Streams.Err, err)
	}
	slices.SortFunc(list, func(a, b Registered) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// registered returns the rows of the registered clusters.
func (c Clusters) registered() ([]Registered, error) {
	list := []Registered{}
	a, err := c.known()
	if err != nil {
		return list, err
	}
	clusters, err := a.Registry().List()
	for _, one := range clusters {
		list = append(list, registeredRow(one, a.Registry().Used(one.Name), time.Now()))
	}
	return list, err
}

// stored returns the clusters of which something is stored; none where nothing is stored at all, or where this process only receives.
func (c Clusters) stored(ctx context.Context) (answer query.ClustersAnswer, err error) {
	client, done, err := Connect(ctx, "", c.Config)
	if errors.Is(err, apiclient.ErrNoServer) {
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	answer, err = apiclient.Ask(ctx, client, query.ClustersRequest{})
	if errors.Is(err, apiclient.ErrElsewhere) {
		err = nil
	}
	return answer, errors.Join(err, done())
}

// rowOf returns the row of a cluster, which it adds if there is none.
func rowOf(list *[]Registered, name string) *Registered {
	i := slices.IndexFunc(*list, func(r Registered) bool { return r.Name == name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, Registered{Name: name})
	}
	return &(*list)[i]
}

// Revoke refuses what a cluster posts from now on.
func (c Clusters) Revoke(name string) error {
	a, err := c.known()
	if err != nil {
		return err
	}
	if err := a.Registry().Revoke(name); err != nil {
		return fmt.Errorf("%w; `retrial cluster list` shows them", err)
	}
	return nil
}

// Registered is one cluster, without its credentials. One of which something is stored without its being registered has no Added.
type Registered struct {
	Name         string     `json:"name"`
	Added        time.Time  `json:"added,omitzero"`
	Certificates int        `json:"certificates"`
	Tokens       int        `json:"tokens"`
	Expires      *time.Time `json:"expires,omitempty"` // the last certificate
	Revoked      *time.Time `json:"revoked,omitempty"`
	Used         *time.Time `json:"used,omitempty"` // a certificate of it, last
	// Overlap is set while an earlier certificate than the newest is accepted.
	Overlap bool `json:"overlap,omitempty"`
	// Events counts those stored; First and Last are whole minutes that enclose them.
	Events int64      `json:"events"`
	First  *time.Time `json:"first,omitempty"`
	Last   *time.Time `json:"last,omitempty"`
}

// registeredRow returns the row of a cluster. Expires is that of the newest accepted certificate.
func registeredRow(c identity.Cluster, used map[string]time.Time, now time.Time) Registered {
	row := Registered{Name: c.Name, Added: c.Created, Certificates: len(c.Certificates), Tokens: len(c.Tokens), Revoked: c.Revoked}
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

// write issues credentials and writes the file. It tries first what can go wrong, so that no cluster is registered whose key is lost.
func (c Clusters) write(k WebhookFile, a *identity.Authority, cluster string,
	issue func(string) (identity.Credentials, error)) (err error) {
	s, cfg := c.Streams, c.Config
	receiver := cmp.Or(k.URL, ReceiverURL(cfg))
	if _, err := identity.Endpoint(receiver, cluster, k.APIServer); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	if k.Dir != "" {
		return c.writeDir(k, a, receiver, cluster, issue)
	}
	write := s.Out.Write
	commit := func() error { return nil }
	if k.Output != "-" {
		// A file of its own, renamed: what was there may be readable by others.
		f, createErr := atomicfile.Create(k.Output, 0o600)
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
	if k.Token {
		if token, err = a.Registry().NewToken(cluster); err != nil {
			return err
		}
	}
	file, err := identity.WebhookConfig(receiver, k.APIServer, cred, token)
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
	if k.Token {
		valid = "its token is valid until the cluster is revoked"
	}
	fmt.Fprintf(s.Err, "cluster %s may post to %s; %s\n", cluster, receiver, valid)
	if k.Output != "-" {
		fmt.Fprintf(s.Err, "wrote %s; give kube-apiserver --audit-webhook-config-file=%s and an --audit-policy-file\n", k.Output, k.Output)
	}
	return adviseReach(s.Err, a, cfg, receiver)
}

// writeDir is write with credentials in files of their own.
func (c Clusters) writeDir(k WebhookFile, a *identity.Authority, server, cluster string,
	issue func(string) (identity.Credentials, error)) error {
	s, cfg := c.Streams, c.Config
	if k.Token || k.Output != "-" {
		return cli.ExitWith(cli.ExitUsage,
			errors.New("--output-dir takes the place of --output, and holds a certificate: leave --output and --token out"))
	}
	fail := func(err error) error { return fmt.Errorf("write the webhook's files: %w", err) }
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return fail(err)
	}
	cred, err := issue(cluster)
	if err != nil {
		return err
	}
	files, err := identity.WebhookFiles(server, k.APIServer, cred)
	if err != nil {
		return err
	}
	for _, f := range files { // each is replaced whole, what is named before what names it
		if err := atomicfile.Write(filepath.Join(k.Dir, f.Name), f.Content, f.Mode); err != nil {
			return fail(err)
		}
	}
	fmt.Fprintf(s.Err, "cluster %s may post to %s; its certificate is valid until %s\nwrote %s; give kube-apiserver "+
		"--audit-webhook-config-file=%s and an --audit-policy-file\n",
		cluster, server, cred.Expires.Format(time.DateOnly), k.Dir, filepath.Join(k.Dir, identity.FileWebhookConfig))
	return adviseReach(s.Err, a, cfg, server)
}

// adviseReach prints what is still needed for apiservers to reach the server by its URL.
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
		fmt.Fprintf(w, "note: only this machine reaches %s; for apiservers elsewhere set the URL they use: --server https://HOST:%s\n",
			u.Hostname(), port)
		return nil
	}
	covered, err := a.ServerCovers(u.Hostname())
	if err != nil || covered {
		return err
	}
	fmt.Fprintf(w, "note: the receiver's certificate does not name %s yet; start it with: retrial serve --webhook-listen 0.0.0.0:%s "+
		"--webhook-advertise %s\n",
		u.Hostname(), port, u.Hostname())
	return nil
}

// Counters names an apiserver whose counters the server is to read.
type Counters struct {
	URL, APIServer    string
	TokenFile, CAFile string // are copied
	Remove            bool   // they are not to be read any more
}

// Scrape reads an apiserver's counters once, and registers them for the server to read from then on.
func (c Clusters) Scrape(ctx context.Context, cluster string, o Counters) error {
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	name := cluster
	switch {
	case !identity.ValidName(cluster):
		return usage("%q: %w", cluster, identity.ErrName)
	case o.APIServer != "" && len(validation.IsDNS1123Subdomain(o.APIServer)) > 0:
		return usage("invalid --apiserver %q: want lower case letters, digits, '-' and '.'", o.APIServer)
	case o.APIServer != "":
		name += "/" + o.APIServer
	}
	registry := doctor.ScrapeRegistryOf(c.Config)
	if o.Remove {
		if o.URL+o.TokenFile+o.CAFile != "" {
			return usage("--remove takes no --url, --token-file and --certificate-authority")
		}
		err := registry.Remove(cluster, o.APIServer)
		if errors.Is(err, os.ErrNotExist) {
			return cli.ExitWith(cli.ExitNoMatch,
				fmt.Errorf("the counters of %s are not read: %s does not name them", name, config.Absolute(c.Config.DataDir)))
		}
		if err == nil {
			fmt.Fprintf(c.Streams.Err, "the counters of %s are not read any more; what was read stays\n", name)
		}
		return err
	}
	if o.URL == "" || o.TokenFile == "" || o.CAFile == "" {
		return usage("--url, --token-file and --certificate-authority are all needed")
	}
	t := apimetrics.Target{Cluster: cluster, APIServer: o.APIServer, URL: o.URL, TokenFile: o.TokenFile, CAFile: o.CAFile}
	if err := t.Check(); err != nil {
		return usage("--url: %w", err)
	}
	if _, err := os.Stat(c.Config.DataDir); err != nil {
		return fmt.Errorf("data directory: %w; name the server's with --data-dir", err)
	}
	reader, err := apimetrics.New(t, nil)
	if err != nil {
		return err
	}
	defer reader.Close()
	got, err := reader.Read(ctx)
	if err != nil {
		return fmt.Errorf("%w; nothing is changed", err)
	}
	token, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(o.CAFile)
	if err != nil {
		return err
	}
	if err := registry.Save(cluster, o.APIServer, o.URL, token, ca); err != nil {
		return fmt.Errorf("register the counters: %w", err)
	}
	fmt.Fprintf(c.Streams.Err, "%s made %s since %s; its counters are read from now on (%s)\n", name,
		phrase.Count(got.Events, "audit event"), got.Started.UTC().Format(time.RFC3339),
		filepath.Join(string(registry), cluster))
	return nil
}
