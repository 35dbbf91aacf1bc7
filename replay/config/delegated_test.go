package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDelegated reads flags of aggregated API servers by the door for one configuration.
func TestDelegated(t *testing.T) {
	parent := &APIServer{Authentication: Authentication{ClientCA: true,
		RequestHeader: &RequestHeader{AllowedNames: []string{"proxy"}, UsernameHeaders: []string{"X-User"}}}}
	for name, tc := range map[string]struct {
		flags  string
		parent *APIServer
		check  func(t *testing.T, a *APIServer)
	}{
		"what it was not given comes from the cluster": {"--secure-port=443", parent, func(t *testing.T, a *APIServer) {
			if h := a.Authentication.RequestHeader; !a.Authentication.ClientCA || h == nil || h.AllowedNames[0] != "proxy" ||
				a.Authentication.Unknown != "" {
				t.Errorf("%+v", a.Authentication)
			}
			if !slices.Equal(a.Authorization.AlwaysAllowPaths, []string{"/healthz", "/readyz", "/livez"}) || !a.Authorization.Delegated ||
				!a.Authentication.Anonymous.Enabled {
				t.Errorf("%+v", a.Authorization)
			}
		}},
		"its own go first": {"--requestheader-client-ca-file=/p.crt --requestheader-allowed-names=own", parent,
			func(t *testing.T, a *APIServer) {
				h := a.Authentication.RequestHeader
				if h.AllowedNames[0] != "own" || h.UsernameHeaders[0] != "x-remote-user" || h.GroupHeaders[0] != "x-remote-group" ||
					h.ExtraPrefixes[0] != "x-remote-extra-" || len(h.UIDHeaders) > 0 {
					t.Errorf("%+v", h)
				}
				if !a.Authentication.ClientCA {
					t.Error("the clients' CA was not looked up")
				}
			}},
		"nothing is looked up when that is off": {"--authentication-skip-lookup=true --authentication-token-webhook-cache-ttl=1m", parent,
			func(t *testing.T, a *APIServer) {
				if a.Authentication.ClientCA || a.Authentication.RequestHeader != nil || a.Authentication.Unknown != "" ||
					a.Authentication.Webhook.CacheTTL != time.Minute {
					t.Errorf("%+v", a.Authentication)
				}
			}},
		"without the kube-apiserver's it is unknown": {"--secure-port=443", nil, func(t *testing.T, a *APIServer) {
			if a.Authentication.Unknown == "" || a.Authorization.Unknown != "" || len(a.Unknown) != 1 {
				t.Errorf("%+v", a)
			}
		}},
		"an unknown kube-apiserver's is unknown": {"--secure-port=443", Unknown("the file x"), func(t *testing.T, a *APIServer) {
			if !strings.Contains(a.Authentication.Unknown, "the file x") {
				t.Errorf("%+v", a.Authentication)
			}
		}},
		"a flag of its own about users": {"--tenant-user-header=X --client-ca-file=/c --requestheader-client-ca-file=/p", parent,
			func(t *testing.T, a *APIServer) {
				if !strings.Contains(a.Authentication.Unknown, "--tenant-user-header") {
					t.Errorf("%+v", a.Authentication)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			a, report, err := Read(folder(map[string]string{"shop.flags": tc.flags}), Options{Source: "shop", Parent: tc.parent})
			if err != nil {
				t.Fatal(err)
			}
			if a.Source != "shop" || report.Versions[0].Server != "shop" || report.Complete() != (len(a.Unknown) == 0) {
				t.Errorf("source %q, unknown %q, complete %v", a.Source, a.Unknown, report.Complete())
			}
			tc.check(t, a)
		})
	}
	if _, _, err := Read(folder(map[string]string{"shop.flags": "--authentication-skip-lookup=perhaps"}),
		Options{Source: "shop"}); err == nil {
		t.Error("perhaps is a boolean")
	}
}

func TestReadOne(t *testing.T) {
	files := map[string]string{"kube-apiserver.flags": whole + "--authorization-config=/z.yaml", "z.yaml": authzHead}
	if a, report, err := Read(folder(files), Options{}); err == nil || a != nil || len(report.Versions) != 1 {
		t.Errorf("a broken file was taken: %v, %v, %v", a, report, err)
	}
	files["z.yaml"] = authzHead + webhookEntry + "- {type: ABAC, name: abac}"
	if _, _, err := Read(folder(files), Options{}); err == nil || !strings.Contains(err.Error(), "ABAC needs --authorization-policy-file") {
		t.Errorf("ABAC without a file: %v", err)
	}
	files["kube-apiserver.flags"] += "\n--authorization-policy-file=/p.jsonl"
	a, report, err := Read(folder(files), Options{Minor: 35})
	if err != nil || report.Complete() || a.Minor != 35 || a.Authorization.Authorizers[1].Unknown == "" ||
		a.Authorization.Authorizers[1].Policy != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	files["p.jsonl"] = `{"user":"bob"}`
	if a, _, err = Read(folder(files), Options{}); err != nil || len(a.Authorization.Authorizers[1].Policy.Lines) != 1 ||
		len(a.Unknown) != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if a.Authorization.Authorizers[0].Webhook.FailurePolicy != "Deny" {
		t.Errorf("%+v", a.Authorization.Authorizers[0])
	}
	if a, _, err := Read(folder(nil), Options{}); err == nil || a != nil {
		t.Error("an empty folder was taken")
	}
}
