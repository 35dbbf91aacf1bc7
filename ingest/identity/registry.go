package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Sentinels of the registry. They decide what a client is told.
var (
	// ErrName means that a cluster name is not a DNS-1123 label of up to 63 characters.
	ErrName    = errors.New("cluster name must be 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit")
	ErrUnknown = errors.New("unknown cluster")
	ErrExists  = errors.New("cluster is already registered")
	// ErrRevoked means that the credential, or every one of the cluster, was revoked.
	ErrRevoked = errors.New("revoked")
	ErrExpired = errors.New("certificate expired")
	// ErrCredential means that this registry did not issue the credential.
	ErrCredential = errors.New("credential not accepted")
)

// Cluster is a registry entry, one YAML file. It holds no secret.
type Cluster struct {
	APIVersion   string        `json:"apiVersion"` // retrial.io/v1alpha1
	Kind         string        `json:"kind"`       // Cluster
	Name         string        `json:"name"`
	Created      time.Time     `json:"created"`
	Revoked      *time.Time    `json:"revoked,omitempty"` // every credential is refused from then on
	Certificates []Certificate `json:"certificates,omitempty"`
	Tokens       []Token       `json:"tokens,omitempty"`
}

// Certificate is one client certificate issued to a cluster.
type Certificate struct {
	Serial  string     `json:"serial"` // hex
	Issued  time.Time  `json:"issued"`
	Expires time.Time  `json:"expires"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// Token is one bearer token of a cluster; only its salted hash is kept.
type Token struct {
	Hash  string    `json:"hash"`
	Added time.Time `json:"added"`
}

// Credentials are what an apiserver of a cluster needs to post, as PEM. Key is secret.
type Credentials struct {
	Cluster string
	Cert    []byte
	Key     []byte
	CA      []byte
	Serial  string
	Expires time.Time
}

const (
	entryAPIVersion = "retrial.io/v1alpha1"
	entryKind       = "Cluster"
	clusterURIHost  = "cluster"
	clusterURI      = "retrial"
)

// Registry is the set of clusters that may post. Several goroutines and processes may use it; any change takes effect with the next lookup.
type Registry struct {
	dir    string
	now    func() time.Time
	issuer *Authority
	tokens *tokenFile // nil if none is configured

	mu      sync.Mutex
	entries map[string]cachedEntry // by name, only clusters that exist
	noted   map[string]time.Time   // by name and serial, when its use was last recorded
}

type cachedEntry struct {
	stamp   fileStamp
	cluster *Cluster // never changed once cached
}

// ValidName reports whether name is a DNS-1123 label.
func ValidName(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// Add registers a cluster and issues its first client certificate. It returns [ErrExists]
// for a registered cluster, revoked ones included.
func (r *Registry) Add(name string) (Credentials, error) {
	return r.change(name, "add", func(old *Cluster) (*Cluster, bool, error) {
		if old != nil {
			return nil, false, fmt.Errorf("%w: `retrial cluster rotate %s` issues a new certificate, "+
				"`retrial connect %[2]s --apiserver NAME` connects another apiserver of it", ErrExists, name)
		}
		return &Cluster{APIVersion: entryAPIVersion, Kind: entryKind, Name: name, Created: r.now().UTC()}, true, nil
	})
}

// Rotate issues another client certificate for a registered cluster and lifts a
// revocation. Unless revokeOld is set, earlier certificates stay accepted until they expire,
// so that apiservers can be switched over one by one.
func (r *Registry) Rotate(name string, revokeOld bool) (Credentials, error) {
	return r.change(name, "rotate", func(old *Cluster) (*Cluster, bool, error) {
		if old == nil {
			return nil, false, fmt.Errorf("%w: `retrial cluster add %s` registers it", ErrUnknown, name)
		}
		now := r.now().UTC()
		for i := range old.Certificates {
			// What a revocation of the whole cluster covered stays refused.
			if c := &old.Certificates[i]; c.Revoked == nil && (revokeOld || old.Revoked != nil) {
				c.Revoked = &now
			}
		}
		if old.Revoked != nil {
			old.Tokens, old.Revoked = nil, nil
		}
		return old, true, nil
	})
}

// Revoke refuses every certificate and token of the cluster from now on, open connections
// included. What was received stays.
func (r *Registry) Revoke(name string) error {
	_, err := r.change(name, "revoke", func(old *Cluster) (*Cluster, bool, error) {
		if old == nil {
			return nil, false, ErrUnknown
		}
		if old.Revoked == nil {
			now := r.now().UTC()
			old.Revoked = &now
		}
		return old, false, nil
	})
	return err
}

// List returns every registered cluster by name.
func (r *Registry) List() ([]Cluster, error) {
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var clusters []Cluster
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".yaml")
		if !ok || !ValidName(name) {
			continue
		}
		c, err := r.Get(name)
		if errors.Is(err, ErrUnknown) { // removed in the meantime
			continue
		}
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	slices.SortFunc(clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters, nil
}

// Get returns the entry of one cluster, or [ErrUnknown].
func (r *Registry) Get(name string) (Cluster, error) {
	c, err := r.lookup(name)
	if err != nil {
		return Cluster{}, err
	}
	return *c.clone(), nil
}

// Known reports whether the cluster is registered, or named in Config.TokenFile, and not
// revoked.
func (r *Registry) Known(name string) bool {
	c, err := r.lookup(name)
	if errors.Is(err, ErrUnknown) {
		return r.tokens.of(name) != nil
	}
	return err == nil && c.Revoked == nil
}

// Certificate returns the cluster a client certificate belongs to. The TLS handshake must
// have verified it against the authority; Certificate decides whether it is still accepted:
// listed, not revoked, not expired since the connection was made.
func (r *Registry) Certificate(cert *x509.Certificate) (string, error) {
	name, ok := certificateCluster(cert)
	if !ok {
		return "", fmt.Errorf("%w: the certificate names no cluster", ErrCredential)
	}
	c, err := r.lookup(name)
	if err != nil {
		return name, fmt.Errorf("cluster %s: %w", name, err)
	}
	serial := serialText(cert.SerialNumber)
	for _, known := range c.Certificates {
		if known.Serial != serial {
			continue
		}
		switch {
		case c.Revoked != nil || known.Revoked != nil:
			return name, fmt.Errorf("cluster %s: certificate %s: %w", name, serial, ErrRevoked)
		case r.now().After(cert.NotAfter):
			return name, fmt.Errorf(
				"cluster %s: certificate %s: %w on %s",
				name,
				serial,
				ErrExpired,
				cert.NotAfter.UTC().Format(time.RFC3339),
			)
		}
		r.note(name, serial)
		return name, nil
	}
	return name, fmt.Errorf("cluster %s: certificate %s: %w", name, serial, ErrCredential)
}

// firstExpiry returns the earliest time a cluster's newest usable certificate expires; older ones of a rotated cluster do not matter.
func (r *Registry) firstExpiry() time.Time {
	clusters, err := r.List()
	if err != nil {
		return time.Time{}
	}
	var first time.Time
	for _, c := range clusters {
		var last time.Time
		for _, cert := range c.Certificates {
			if c.Revoked == nil && cert.Revoked == nil && cert.Expires.After(last) {
				last = cert.Expires
			}
		}
		if !last.IsZero() && (first.IsZero() || last.Before(first)) {
			first = last
		}
	}
	return first
}

// lookup returns the shared, read-only entry of name, rereading its file if that changed.
func (r *Registry) lookup(name string) (*Cluster, error) {
	if !ValidName(name) {
		return nil, ErrUnknown // and never becomes part of a path
	}
	path := filepath.Join(r.dir, name+".yaml")
	stamp, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if stamp.missing() {
		delete(r.entries, name)
		return nil, ErrUnknown
	}
	if e, ok := r.entries[name]; ok && e.stamp.same(stamp) {
		return e.cluster, nil
	}
	c, err := readEntry(path, name)
	if err != nil {
		return nil, err
	}
	r.entries[name] = cachedEntry{stamp, c}
	return c, nil
}

func readEntry(path, name string) (*Cluster, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	c := &Cluster{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("read cluster %s: %s: %w", name, path, err)
	}
	if c.APIVersion != entryAPIVersion || c.Kind != entryKind || c.Name != name {
		return nil, fmt.Errorf(
			"read cluster %s: %s: want %s %s of that name, have %s %s %q",
			name,
			path,
			entryAPIVersion,
			entryKind,
			c.APIVersion,
			c.Kind,
			c.Name,
		)
	}
	return c, nil
}

// change applies edit to the entry of name, which edit may change, under the directory's lock. If edit asks for a
// certificate, one is issued and entered; files are written before the entry that refers to
// them.
func (r *Registry) change(name, verb string, edit func(old *Cluster) (c *Cluster, issue bool, err error)) (Credentials, error) {
	fail := func(err error) (Credentials, error) {
		return Credentials{}, fmt.Errorf("%s cluster %s: %w", verb, name, err)
	}
	if !ValidName(name) {
		return Credentials{}, fmt.Errorf("%s cluster %q: %w", verb, name, ErrName)
	}
	unlock, err := lockDir(r.issuer.cfg.Dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()

	path := filepath.Join(r.dir, name+".yaml")
	old, err := readEntry(path, name)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return fail(err)
	}
	c, issue, err := edit(old)
	if err != nil {
		return fail(err)
	}
	var cred Credentials
	if issue {
		if cred, err = r.issueClient(c); err != nil {
			return fail(err)
		}
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return fail(err)
	}
	if err := writeFile(path, data, 0o600); err != nil {
		return fail(err)
	}
	return cred, nil
}

// issueClient makes the client certificate of c, writes it beside the entry and enters its
// serial in c.
func (r *Registry) issueClient(c *Cluster) (Credentials, error) {
	uri := &url.URL{Scheme: clusterURI, Host: clusterURIHost, Path: "/" + c.Name}
	certPEM, keyPEM, cert, err := r.issuer.issue(r.issuer.newestKey(), &x509.Certificate{
		Subject:     pkix.Name{CommonName: c.Name, Organization: []string{"retrial:clusters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, nil, uri)
	if err != nil {
		return Credentials{}, err
	}
	base := filepath.Join(r.dir, c.Name)
	if err := writePair(base+".crt", base+".key", certPEM, keyPEM); err != nil {
		return Credentials{}, err
	}
	ca, err := r.issuer.CABundle()
	if err != nil {
		return Credentials{}, err
	}
	serial := serialText(cert.SerialNumber)
	c.Certificates = append(c.Certificates, Certificate{Serial: serial, Issued: r.now().UTC(), Expires: cert.NotAfter.UTC()})
	return Credentials{Cluster: c.Name, Cert: certPEM, Key: keyPEM, CA: ca, Serial: serial, Expires: cert.NotAfter}, nil
}

// Credentials returns the files of the certificate last issued for a cluster, from which its
// webhook configuration can be written again.
func (r *Registry) Credentials(name string) (Credentials, error) {
	out, base := Credentials{Cluster: name}, filepath.Join(r.dir, name)
	_, err := r.lookup(name)
	if err == nil {
		out.Cert, err = os.ReadFile(base + ".crt")
	}
	if err == nil {
		out.Key, err = os.ReadFile(base + ".key")
	}
	var cert *x509.Certificate
	if err == nil {
		cert, err = readCert(base + ".crt")
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials of cluster %s: %w", name, err)
	}
	if out.CA, err = r.issuer.CABundle(); err != nil {
		return Credentials{}, err
	}
	out.Serial, out.Expires = serialText(cert.SerialNumber), cert.NotAfter
	return out, nil
}

// certificateCluster returns the cluster that a client certificate's URI names. The common
// name is for people and decides nothing.
func certificateCluster(cert *x509.Certificate) (string, bool) {
	for _, uri := range cert.URIs {
		if uri.Scheme == clusterURI && uri.Host == clusterURIHost {
			name := strings.TrimPrefix(uri.Path, "/")
			return name, ValidName(name)
		}
	}
	return "", false
}

func (c *Cluster) clone() *Cluster {
	d := *c
	d.Certificates, d.Tokens = slices.Clone(c.Certificates), slices.Clone(c.Tokens)
	return &d
}
