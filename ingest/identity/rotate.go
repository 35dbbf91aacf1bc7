package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/atomicfile"
)

// Files of a change of authority, beside those of the package comment.
const (
	nextKeyFile  = "ca-next.key" // of the authority to come; signs client certificates already
	rotationFile = "rotation.json"
)

// Rotation is a change of authority that is under way. The receiver trusts both authorities,
// and every webhook configuration written names both; until the change is finished, the
// server's certificate is signed by the old one, which all apiservers trust.
type Rotation struct {
	Begun time.Time `json:"begun"`
	// Old and New are the authorities' certificates.
	Old *x509.Certificate `json:"-"`
	New *x509.Certificate `json:"-"`
}

// Errors of a rotation.
var (
	ErrRotating    = errors.New("a change of authority is under way")
	ErrNotRotating = errors.New("no change of authority is under way")
	// ErrInUse means that something to be refused is, or may be, still in use.
	ErrInUse = errors.New("still in use")
)

// Rotation returns the change of authority that is under way, nil if there is none.
func (a *Authority) Rotation() (*Rotation, error) {
	data, err := os.ReadFile(a.path(rotationFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the change of authority: %w", err)
	}
	var r Rotation
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read the change of authority: %s: %w", a.path(rotationFile), err)
	}
	if r.Old, _, err = a.loadCA(caKeyFile); err != nil {
		return nil, err
	}
	if r.New, _, err = a.loadCA(a.newestKey()); err != nil {
		return nil, err
	}
	return &r, nil
}

// newestKey returns the name of the key file that signs client certificates.
func (a *Authority) newestKey() string {
	if _, err := os.Stat(a.path(nextKeyFile)); err == nil {
		return nextKeyFile
	}
	return caKeyFile
}

// BeginRotation makes another authority, trusted beside the old: webhook configurations name both, client certificates are by the new.
func (a *Authority) BeginRotation() (Rotation, error) {
	fail := func(err error) (Rotation, error) {
		return Rotation{}, fmt.Errorf("begin a change of authority: %w", err)
	}
	unlock, err := lockDir(a.cfg.Dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if r, err := a.Rotation(); err != nil || r != nil {
		return fail(errors.Join(err, ErrRotating))
	}
	bundle, err := a.CABundle()
	if err != nil {
		return fail(err)
	}
	if _, _, err := a.loadCA(caKeyFile); err != nil {
		return fail(err)
	}
	keyPEM, certPEM, _, err := a.makeCA()
	if err != nil {
		return fail(err)
	}
	// The note first: a crash leaves a change that can be aborted. The key last: nothing is signed by what is not trusted yet.
	note, err := json.Marshal(Rotation{Begun: a.cfg.Now().UTC()})
	if err != nil {
		return fail(err)
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{rotationFile, append(note, '\n'), 0o600},
		{caCertFile, append(append(bytes.TrimRight(bundle, "\n"), '\n'), certPEM...), 0o644},
		{nextKeyFile, keyPEM, 0o600},
	} {
		if err := writeFile(a.path(f.name), f.data, f.mode); err != nil {
			return fail(err)
		}
	}
	r, err := a.Rotation()
	if err != nil {
		return fail(err)
	}
	a.log.Info("change of authority begun", zap.Time("expires", r.New.NotAfter))
	return *r, nil
}

// FinishRotation gives the server a certificate of the new authority and stops trusting the old one. Unless force is set, it returns
// [ErrInUse] while apiservers may use what the old one signed, by when certificates were used. After a crash it goes on.
func (a *Authority) FinishRotation(quiet time.Duration, force bool) error {
	fail := func(err error) error { return fmt.Errorf("finish the change of authority: %w", err) }
	r, err := a.Rotation()
	switch {
	case err != nil:
		return fail(err)
	case r == nil:
		return fail(ErrNotRotating)
	}
	clusters, err := a.registry.List()
	if err != nil {
		return fail(err)
	}
	var late []error
	for _, c := range clusters {
		if c.Revoked == nil && !force {
			late = append(late, a.registry.ready(c, r.Begun, quiet))
		}
	}
	if err := errors.Join(late...); err != nil {
		return fail(err)
	}
	for _, c := range clusters { // each takes the lock itself
		if err := a.registry.revokeBefore(c.Name, r.Begun); err != nil {
			return fail(err)
		}
	}
	unlock, err := lockDir(a.cfg.Dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	// First the key, then the server's certificate, then the old authority goes: at each step apiservers see one that both bundles trust.
	if _, err := os.Stat(a.path(nextKeyFile)); err == nil {
		if err := atomicfile.Rename(a.path(nextKeyFile), a.path(caKeyFile)); err != nil {
			return fail(err)
		}
	}
	if err := a.issueServer(true); err != nil {
		return fail(err)
	}
	if err := writeFile(a.path(caCertFile), encodeCert(r.New.Raw), 0o644); err != nil {
		return fail(err)
	}
	if err := os.Remove(a.path(rotationFile)); err != nil {
		return fail(err)
	}
	a.log.Info("change of authority finished", zap.Time("expires", r.New.NotAfter))
	return nil
}

// AbortRotation aborts a change of authority. It returns [ErrInUse] if a cluster has a certificate of the new one; force has that refused.
func (a *Authority) AbortRotation(force bool) error {
	fail := func(err error) error { return fmt.Errorf("abort the change of authority: %w", err) }
	r, err := a.Rotation()
	if err == nil && r == nil {
		err = ErrNotRotating
	}
	if err != nil {
		return fail(err)
	}
	clusters, err := a.registry.List()
	if err != nil {
		return fail(err)
	}
	var names []string
	for _, c := range clusters {
		if n := len(c.Certificates); n > 0 && c.Revoked == nil && !c.Certificates[n-1].Issued.Before(r.Begun) {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 && !force {
		return fail(
			fmt.Errorf(
				"%w: %s already have certificates of the new authority; finish the change instead",
				ErrInUse,
				strings.Join(names, ", "),
			),
		)
	}
	unlock, err := lockDir(a.cfg.Dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := os.Remove(a.path(nextKeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if err := writeFile(a.path(caCertFile), encodeCert(r.Old.Raw), 0o644); err != nil {
		return fail(err)
	}
	return os.Remove(a.path(rotationFile))
}

// RenewServer issues another server certificate by the same authority. Open connections keep the old one, new ones get the new.
func (a *Authority) RenewServer() error {
	return a.reissue(true)
}

// reissue is issueServer under the directory's lock.
func (a *Authority) reissue(always bool) error {
	unlock, err := lockDir(a.cfg.Dir)
	if err != nil {
		return fmt.Errorf("renew the server certificate: %w", err)
	}
	defer unlock()
	return a.issueServer(always)
}

// ready returns [ErrInUse] with the reason while apiservers of a cluster may use what was
// issued before the time.
func (r *Registry) ready(c Cluster, before time.Time, quiet time.Duration) error {
	late := func(format string, args ...any) error {
		return fmt.Errorf("cluster %s: %w: %s", c.Name, ErrInUse, fmt.Sprintf(format, args...))
	}
	if len(c.Tokens) > 0 {
		return late("its bearer token does not tell which authority its apiservers trust")
	}
	used, now := r.Used(c.Name), r.now()
	fresh := false
	for _, cert := range c.Certificates {
		at, ok := used[cert.Serial]
		switch {
		case cert.Revoked != nil || now.After(cert.Expires):
		case !cert.Issued.Before(before):
			fresh = fresh || ok
		case ok && now.Sub(at) < quiet:
			return late("certificate %s was used %s ago", cert.Serial, now.Sub(at).Round(time.Second))
		}
	}
	if !fresh {
		return late("no certificate issued since %s has been used: "+
			"`retrial cluster rotate %s` writes a webhook configuration with one", before.Format(time.RFC3339), c.Name)
	}
	return nil
}

// Finish refuses all but a cluster's newest certificate. Without force it returns [ErrInUse] if that was not used, or another in quiet.
func (r *Registry) Finish(name string, quiet time.Duration, force bool) error {
	c, err := r.Get(name)
	if err != nil {
		return fmt.Errorf("finish the rotation of cluster %s: %w", name, err)
	}
	n := len(c.Certificates)
	if n == 0 {
		return nil
	}
	newest := c.Certificates[n-1].Issued
	if !force {
		c.Tokens = nil // they stay
		if err := r.ready(c, newest, quiet); err != nil {
			return fmt.Errorf("finish the rotation: %w", err)
		}
	}
	return r.revokeBefore(name, newest)
}

func (r *Registry) revokeBefore(name string, before time.Time) error {
	_, err := r.change(name, "rotate", func(old *Cluster) (*Cluster, bool, error) {
		if old == nil {
			return nil, false, ErrUnknown
		}
		now := r.now().UTC()
		for i := range old.Certificates {
			if cert := &old.Certificates[i]; cert.Revoked == nil && cert.Issued.Before(before) {
				cert.Revoked = &now
			}
		}
		return old, false, nil
	})
	return err
}
