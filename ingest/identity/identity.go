// Package identity holds who may talk to the receiver: Retrial's own certificate
// authority, the receiver's server certificate, one client certificate and optionally one
// bearer token for each cluster, and the key that makes redacted values correlatable.
//
// Everything lives as plain files in one directory, so that it can be backed up, mounted
// from a secret or inspected with openssl:
//
//	ca.crt ca.key               the authority; ca.crt may hold several certificates, all are trusted
//	server.crt server.key       the receiver's certificate
//	clusters/NAME.yaml          the registry entry: accepted certificate serials, hashed tokens, revocation
//	clusters/NAME.used          when its certificates were last presented
//	ca-next.key rotation.json   while the authority changes: the next key, and since when
//	clusters/NAME.crt NAME.key  the client certificate an apiserver of the cluster presents
//
// A running receiver checks the files whenever it needs them (one stat a request or handshake), so what another process adds, rotates or
// revokes takes effect at once, without a restart. Only serials in the registry are accepted: the authority's signature alone proves
// nothing.
//
// Keys are ECDSA P-256 and written with mode 0600. Tokens are stored as salted hashes.
package identity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/retrial-io/retrial/internal/atomicfile"
)

// Config holds where identities are kept and how certificates are made.
type Config struct {
	// Dir is the directory of the authority and the registry. It is created with mode
	// 0700 if it does not exist. Required.
	Dir string
	// Names are the host names and addresses apiservers reach the receiver by. The server
	// certificate names them beside localhost, 127.0.0.1 and ::1, and is reissued when this
	// list gains a name that the current certificate lacks.
	Names []string
	// CALife is how long a new authority is valid; 0 is ten years.
	CALife time.Duration
	// LeafLife is how long server and client certificates are valid; 0 is one year. The server's is renewed when a third of that is left.
	LeafLife time.Duration
	// TokenFile is an operator's file of bearer tokens, one `cluster token` pair a line, beside the registry's; may be empty. It is reread.
	TokenFile string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

const (
	defaultCALife   = 10 * 365 * 24 * time.Hour
	defaultLeafLife = 365 * 24 * time.Hour
)

// Authority is the opened directory. It is safe for use by several goroutines, and by
// several processes on one directory.
type Authority struct {
	cfg Config
	log *zap.Logger

	mu     sync.Mutex // guards everything below
	server cachedPair
	roots  cachedPool

	registry *Registry
}

// Open opens the directory and first makes authority and server certificate. log and reg may be nil. Metrics:
// retrial_webhook_certificate_expiry_timestamp_seconds by certificate (ca, server, and client: the cluster certificate in force that
// expires first; 0 if there is none).
func Open(cfg Config, log *zap.Logger, reg prometheus.Registerer) (*Authority, error) {
	if cfg.Dir == "" {
		return nil, errors.New("open identity: no directory configured")
	}
	cfg.CALife = cmp.Or(cfg.CALife, defaultCALife)
	cfg.LeafLife = cmp.Or(cfg.LeafLife, defaultLeafLife)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if log == nil {
		log = zap.NewNop()
	}
	a := &Authority{cfg: cfg, log: log.Named("ingest.identity")}
	for _, dir := range []string{cfg.Dir, filepath.Join(cfg.Dir, clustersDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open identity: %w", err)
		}
	}
	a.registry = &Registry{
		dir:     filepath.Join(cfg.Dir, clustersDir),
		now:     cfg.Now,
		issuer:  a,
		entries: map[string]cachedEntry{},
		noted:   map[string]time.Time{},
	}

	if cfg.TokenFile != "" {
		a.registry.tokens = &tokenFile{path: cfg.TokenFile}
		if err := a.registry.tokens.reread(); err != nil { // the first time every mistake in it is an error
			return nil, fmt.Errorf("open identity: %w", err)
		}
	}

	// Two processes may start on a fresh directory at once (serve and cluster add): only
	// one may make the authority.
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open identity: %w", err)
	}
	defer unlock()
	if err = a.ensureCA(); err == nil {
		err = a.issueServer(false)
	}
	if err == nil && reg != nil {
		err = a.register(reg)
	}
	if err != nil {
		return nil, fmt.Errorf("open identity: %w", err)
	}
	return a, nil
}

// Registry returns the clusters that may post.
func (a *Authority) Registry() *Registry { return a.registry }

// CABundle returns the PEM of every certificate authority clients should trust.
func (a *Authority) CABundle() ([]byte, error) {
	pem, err := os.ReadFile(a.path(caCertFile))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	return pem, nil
}

func (a *Authority) path(name string) string { return filepath.Join(a.cfg.Dir, name) }

// register adds the expiry gauges. They are read at scrape time, so they follow what other
// processes write.
func (a *Authority) register(reg prometheus.Registerer) error {
	gauge := func(certificate string, expiry func() time.Time) error {
		return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "retrial_webhook_certificate_expiry_timestamp_seconds",
			Help: "When the certificate expires (Unix time); " +
				"client is the first to expire of the cluster certificates in force, 0 when there is none.",
			ConstLabels: prometheus.Labels{"certificate": certificate},
		}, func() float64 { return float64(max(0, expiry().Unix())) }))
	}
	return errors.Join(
		gauge("ca", func() time.Time { return certExpiry(a.path(caCertFile)) }),
		gauge("server", func() time.Time { return certExpiry(a.path(serverCertFile)) }),
		gauge("client", a.registry.firstExpiry),
	)
}

// certExpiry returns when the first certificate of a PEM file expires, zero if the file
// cannot be read: a metric has no better answer.
func certExpiry(path string) time.Time {
	cert, err := readCert(path)
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
}

// fileStamp identifies one state of a file: files are replaced by rename, so the
// modification time, the size or the inode changes.
type fileStamp struct{ info os.FileInfo }

// stampOf returns the stamp of path; all missing files have the same one.
func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return fileStamp{info}, err
}

func (s fileStamp) missing() bool { return s.info == nil }

func (s fileStamp) same(t fileStamp) bool {
	if s.info == nil || t.info == nil {
		return s.info == nil && t.info == nil
	}
	return os.SameFile(s.info, t.info) && s.info.ModTime().Equal(t.info.ModTime()) && s.info.Size() == t.info.Size()
}

// lockDir takes an advisory lock on dir for the duration of a change. The kernel drops it with the process, so a crash leaves none behind.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// writeFile replaces path with data so that a reader sees the whole old or the whole new
// file, even after a crash.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := atomicfile.Write(path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// usedEvery is the shortest interval at which the use of a certificate is recorded.
const usedEvery = 10 * time.Second

// usedFile returns the path of the file that records when certificates of a cluster were last presented, by serial. Every receiving process
// writes it, so that no rotation ends while an apiserver uses an old certificate. If it cannot be read or written, a rotation needs force.
func (r *Registry) usedFile(name string) string { return filepath.Join(r.dir, name+".used") }

// Used returns when the certificates of a cluster were last accepted, by serial, to within
// some seconds.
func (r *Registry) Used(name string) map[string]time.Time {
	out := map[string]time.Time{}
	if !ValidName(name) {
		return out
	}
	data, err := os.ReadFile(r.usedFile(name))
	if err != nil || json.Unmarshal(data, &out) != nil {
		return map[string]time.Time{}
	}
	return out
}

// note records that a certificate was accepted. It may fail: nothing depends on it.
func (r *Registry) note(name, serial string) {
	now := r.now().UTC()
	r.mu.Lock()
	if last, ok := r.noted[name+"/"+serial]; ok && now.Sub(last) < usedEvery && !now.Before(last) {
		r.mu.Unlock()
		return
	}
	r.noted[name+"/"+serial] = now
	r.mu.Unlock()

	known := r.Used(name)
	c, err := r.lookup(name)
	if err != nil {
		return
	}
	kept := map[string]time.Time{}
	for _, cert := range c.Certificates { // the registry no longer has the others
		if at, ok := known[cert.Serial]; ok {
			kept[cert.Serial] = at
		}
	}
	kept[serial] = now
	if data, err := json.Marshal(kept); err == nil {
		_ = writeFile(r.usedFile(name), append(data, '\n'), 0o600)
	}
}
