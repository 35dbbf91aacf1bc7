package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// knock makes a handshake with what a webhook configuration holds, and has the certificate
// judged as a request would: nil when both sides are content.
func knock(t *testing.T, a *Authority, cred Credentials) error {
	t.Helper()
	pair, err := tls.X509KeyPair(cred.Cert, cred.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cred.CA)
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	server := tls.Server(here, a.ServerTLS())
	client := tls.Client(
		there,
		&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "localhost", Time: a.cfg.Now},
	)
	done := make(chan error, 1)
	go func() { done <- client.Handshake() }()
	if err := server.Handshake(); err != nil {
		here.Close()
		<-done
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	_, err = a.Registry().Certificate(server.ConnectionState().VerifiedChains[0][0])
	return err
}

// TestRotateAuthority: at every step, what an apiserver was given before and what it is given
// now both work, until the change is finished; then only the new.
func TestRotateAuthority(t *testing.T) {
	now := &clock{now: start}
	a := open(t, Config{Now: now.Now, Names: []string{"retrial.example"}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	works := func(cred Credentials, names ...string) {
		t.Helper()
		if err := knock(t, a, cred); err != nil {
			t.Errorf("%v: %v", names, err)
		}
	}
	old, err := a.Registry().Add("prod")
	must(err)
	works(old, "before")
	if err := a.FinishRotation(0, true); !errors.Is(err, ErrNotRotating) {
		t.Errorf("%v", err)
	}
	now.set(start.Add(time.Minute))
	r, err := a.BeginRotation()
	must(err)
	if r.Old.Equal(r.New) || !r.Begun.Equal(start.Add(time.Minute)) {
		t.Errorf("%+v", r)
	}
	if _, err := a.BeginRotation(); !errors.Is(err, ErrRotating) {
		t.Errorf("%v", err)
	}
	works(old, "old credentials, change begun")
	if err := a.FinishRotation(time.Minute, false); !errors.Is(err, ErrInUse) {
		t.Errorf("finished with nobody changed over: %v", err)
	}
	now.set(start.Add(time.Hour))
	fresh, err := a.Registry().Rotate("prod", false)
	must(err)
	if parse(t, fresh.Cert).CheckSignatureFrom(r.New) != nil {
		t.Error("the new client certificate is not of the new authority")
	}
	must(a.RenewServer()) // stays with the old one: not everybody trusts the other
	works(old, "old credentials, both out")
	if err := a.FinishRotation(time.Minute, false); !errors.Is(err, ErrInUse) {
		t.Errorf("finished before the new certificate was used: %v", err)
	}
	works(old, "used again")
	works(fresh, "new credentials, both out")
	if err := a.FinishRotation(time.Minute, false); !errors.Is(err, ErrInUse) {
		t.Errorf("finished while the old certificate is in use: %v", err)
	}
	if err := a.AbortRotation(false); !errors.Is(err, ErrInUse) {
		t.Errorf("given up with certificates out: %v", err)
	}
	now.set(start.Add(2 * time.Hour))
	works(fresh, "later")
	must(a.FinishRotation(time.Minute, false))
	works(fresh, "new credentials, finished")
	if err := knock(t, a, old); err == nil {
		t.Error("the old credentials still work")
	}
	ca, server, err := a.Certificates()
	must(err)
	if !ca.Equal(r.New) || server.CheckSignatureFrom(ca) != nil || server.VerifyHostname("retrial.example") != nil {
		t.Error("what the receiver has is not of the new authority, or lost a name")
	}
	if left, err := a.Rotation(); left != nil || err != nil {
		t.Errorf("%v %v", left, err)
	}
	next, err := a.Registry().Add("dev")
	must(err)
	works(next, "a cluster added after")
	again := open(t, Config{Dir: a.cfg.Dir, Now: now.Now})
	if err := knock(t, again, fresh); err != nil {
		t.Errorf("opened again: %v", err)
	}
}

// TestRotateCrash: whatever a crash leaves of a beginning or an end, another try goes on, and
// apiservers that were content stay so.
func TestRotateCrash(t *testing.T) {
	for _, step := range []string{"note", "bundle", "key renamed", "server issued"} {
		t.Run(step, func(t *testing.T) {
			now := &clock{now: start}
			a := open(t, Config{Now: now.Now})
			before, err := a.Registry().Add("prod")
			now.set(start.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := a.CABundle()
			if err != nil {
				t.Fatal(err)
			}
			if _, err = a.BeginRotation(); err != nil {
				t.Fatal(err)
			}
			switch step {
			case "note", "bundle":
				must(t, os.Remove(a.path(nextKeyFile)))
				if step == "note" {
					must(t, os.WriteFile(a.path(caCertFile), bundle, 0o644))
				}
				if err := knock(t, a, before); err != nil {
					t.Error(err)
				}
				must(t, a.AbortRotation(false))
				if _, err = a.BeginRotation(); err != nil {
					t.Fatal(err)
				}
			}
			now.set(start.Add(time.Hour))
			fresh, err := a.Registry().Rotate("prod", false)
			if err != nil {
				t.Fatal(err)
			}
			switch step {
			case "key renamed", "server issued":
				must(t, os.Rename(a.path(nextKeyFile), a.path(caKeyFile)))
				if step == "server issued" {
					must(t, a.RenewServer())
				}
			}
			if err := knock(t, a, fresh); err != nil {
				t.Error(err)
			}
			must(t, a.FinishRotation(0, true))
			if err := knock(t, a, fresh); err != nil {
				t.Error(err)
			}
			if knock(t, a, before) == nil {
				t.Error("the old credentials still work")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFinishCluster: the other certificates of a cluster are refused once the newest is in use
// and they are not.
func TestFinishCluster(t *testing.T) {
	now := &clock{now: start}
	a := open(t, Config{Now: now.Now})
	old, err := a.Registry().Add("prod")
	must(t, err)
	must(t, knock(t, a, old))
	now.set(start.Add(time.Minute))
	fresh, err := a.Registry().Rotate("prod", false)
	must(t, err)
	if err := a.Registry().Finish("prod", 10*time.Minute, false); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
	must(t, knock(t, a, fresh))
	if err := a.Registry().Finish("prod", 10*time.Minute, false); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
	now.set(start.Add(time.Hour))
	must(t, a.Registry().Finish("prod", 10*time.Minute, false))
	if err := knock(t, a, old); !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
	must(t, knock(t, a, fresh))
	if used := a.Registry().Used("prod"); len(used) != 2 || !used[fresh.Serial].Equal(start.Add(time.Hour)) {
		t.Errorf("%v", used)
	}
}

// TestWebhookFiles: the files beside a configuration are found by it, wherever they lie.
func TestWebhookFiles(t *testing.T) {
	a := open(t, Config{})
	cred, err := a.Registry().Add("prod")
	must(t, err)
	files, err := WebhookFiles("https://retrial.example:9443", "api-1", cred)
	must(t, err)
	dir := t.TempDir()
	for _, f := range files {
		must(t, os.WriteFile(filepath.Join(dir, f.Name), f.Content, f.Mode))
	}
	rc, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, FileWebhookConfig))
	must(t, err)
	if rc.Host != "https://retrial.example:9443/v1/clusters/prod/apiservers/api-1/audit" ||
		rc.CertFile != filepath.Join(dir, "client.crt") ||
		rc.CAFile != filepath.Join(dir, "ca.crt") ||
		len(rc.CertData) > 0 {
		t.Errorf("%+v", rc)
	}
	if files[len(files)-1].Name != FileWebhookConfig {
		t.Error("the configuration is written before what it names")
	}
}
