package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay/release"
)

// TestEmulation: a server that emulates an older version has that one's gates, and the rules and
// words of its own release.
func TestEmulation(t *testing.T) {
	for name, tc := range map[string]struct {
		version, more string
		minor, rules  int
		constrains    bool
	}{
		"itself":                  {"1.37", "", 37, 37, true},
		"an older one":            {"1.37", "--emulated-version=1.35", 35, 37, false},
		"its own version":         {"1.37", "--emulated-version=kube=1.37", 37, 37, true},
		"of an unknown version":   {"", "--emulated-version=1.35", 35, 35, false},
		"another component alone": {"1.37", "--emulated-version=scheduler=1.35", 37, 37, true},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"kube-apiserver.flags": whole + tc.more}
			if tc.version != "" {
				files["server.yaml"] = "kubernetesVersion: '" + tc.version + "'"
			}
			a, _, err := Read(folder(files), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if a.Minor != tc.minor || a.Release().Minor != tc.rules || a.Enabled("ConstrainedImpersonation") != tc.constrains {
				t.Errorf("gates of 1.%d, rules of %v, constrained impersonation %v", a.Minor, a.Release(),
					a.Enabled("ConstrainedImpersonation"))
			}
		})
	}
}

// TestListsAreOfOldFlags: what the tables of releases have is not said twice.
func TestListsAreOfOldFlags(t *testing.T) {
	for _, name := range append(slices.Clone(switches), harmless...) {
		if _, _, known := release.FlagSpan(name); known && whatItSpeaksOf(name) == nothingThatDecides {
			t.Errorf("--%s is in the tables", name)
		}
	}
	for name, want := range map[string]bool{"peer-ca-file": false, "anonymous-auth": true, "one-output": true,
		"emulation-forward-compatible": true, "v": false, "feature-gates": false} {
		if isSwitch(name) != want {
			t.Errorf("--%s is a switch: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{"peer-ca-file": true, "event-ttl": true, "ssh-user": true, "vendor-thing": false,
		"authentication-something": false, "kubelet-https": true} {
		if isHarmless(name) != want {
			t.Errorf("--%s is harmless: %v", name, !want)
		}
	}
}

// TestFlagsOfTheRelease: a flag, a feature gate and a configuration file are those of the
// version the server says it is; what it would not start with is refused, with version and
// place.
func TestFlagsOfTheRelease(t *testing.T) {
	const (
		authn = "--authentication-config=/etc/authn.yaml\n--service-account-issuer=https://sa.example.com\n"
		v1    = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
		beta  = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"
	)
	for name, tc := range map[string]struct {
		version, more, file string
		want                []string // none: it is taken
	}{
		"a flag of 1.32 in 1.28": {"1.28", "--requestheader-uid-headers=X-Remote-Uid", "",
			[]string{"kube-apiserver.flags:2: --requestheader-uid-headers", "Kubernetes 1.28", "came with 1.32", "server.yaml"}},
		"it in 1.32":                   {"1.32", "--requestheader-uid-headers=X-Remote-Uid", "", nil},
		"it where no version is known": {"", "--requestheader-uid-headers=X-Remote-Uid", "", nil},
		"a flag that decides nothing, later": {"1.28", "--emulation-forward-compatible", "",
			[]string{"Kubernetes 1.28", "came with 1.33"}},
		"a flag that is gone": {"1.33", "--cloud-provider=external", "", []string{"kube-apiserver.flags:2: " +
			"--cloud-provider", "last in 1.32"}},
		"a flag of ours in an old release": {"1.17", "--authorization-config=/a", "",
			[]string{"Kubernetes 1.17", "came with 1.29"}},
		"an old flag in an old release":  {"1.17", "--anonymous-auth=false", "", nil},
		"a release there is no table of": {"1.99", "--anonymous-auth=false", "", nil},
		"a vendor's flag":                {"1.30", "--vendor-thing=x", "", nil},
		"flags stay those of the binary": {"1.33", "--emulated-version=1.31\n--emulation-forward-compatible", "", nil},
		"a locked gate": {"1.34", "--feature-gates=AuthorizeNodeWithSelectors=false", "",
			[]string{"--feature-gates", "AuthorizeNodeWithSelectors is locked to true in Kubernetes 1.34"}},
		"a locked gate left as it is": {"1.34", "--feature-gates=AuthorizeNodeWithSelectors=true", "", nil},
		"a gate not there yet": {"1.30", "--feature-gates=AuthorizeNodeWithSelectors=true", "",
			[]string{"1.30 has no feature gate AuthorizeNodeWithSelectors", "came with 1.31"}},
		"a gate that is gone": {"1.37", "--feature-gates=AuthorizeNodeWithSelectors=true", "",
			[]string{"1.37 has no feature gate", "last in 1.36"}},
		"a gate nobody knows": {"1.36", "--feature-gates=AllAlpha=true,VendorGate=true", "", nil},
		"a gate of an emulated version": {"1.37", "--emulated-version=1.35\n--feature-gates=AuthorizeNodeWithSelectors=true", "",
			nil},
		"a file of a later version": {"1.33", authn, v1,
			[]string{"authn.yaml", "apiserver.config.k8s.io/v1",
				"Kubernetes 1.33 reads AuthenticationConfiguration in [v1alpha1 v1beta1]"}},
		"a file of its version": {"1.33", authn, beta, nil},
		"anonymous before it could be limited": {"1.30", authn, beta + "anonymous: {enabled: true}\n",
			[]string{"authn.yaml", "anonymous", "AnonymousAuthConfigurableEndpoints=true"}},
		"anonymous in 1.32": {"1.32", authn, beta + "anonymous: {enabled: true}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"kube-apiserver.flags": whole + tc.more}
			if tc.version != "" {
				files["server.yaml"] = "kubernetesVersion: '" + tc.version + "'"
			}
			if tc.file != "" {
				files["authn.yaml"] = tc.file
			}
			_, _, err := ReadHistory(folder(files))
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %q in it", err, want)
				}
			}
		})
	}
}
