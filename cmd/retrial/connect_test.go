package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retrial-io/retrial/deploy"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/cli"
)

// connectIn runs connect --no-wait with a data directory of its own.
func connectIn(t *testing.T, dir string, args ...string) (code int, out, err string) {
	t.Helper()
	return commandLine(t, "", append([]string{"connect", "--no-wait", "--data-dir", filepath.Join(dir, "data"), "--key-file",
		filepath.Join(dir, "key")}, args...)...)
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestConnectWritesWhatAnApiserverNeeds: the folder holds the files, nobody else may read
// the key, and the flags name them.
func TestConnectWritesWhatAnApiserverNeeds(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	code, text, errs := connectIn(t, dir, "prod", "--advertise-address", "10.1.2.3:7443", "--output", out)
	if code != cli.ExitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	for path, mode := range map[string]os.FileMode{
		"": 0o700 | os.ModeDir, doctor.FileKubeconfig: 0o600, doctor.FilePolicy: 0o644, doctor.FileFlags: 0o644, doctor.FileSteps: 0o644,
		doctor.FileWatchRBAC: 0o644, doctor.FileMetrics: 0o644, doctor.FileFollowUnit: 0o644,
	} {
		if info, err := os.Stat(filepath.Join(out, path)); err != nil || info.Mode() != mode {
			t.Errorf("%q has mode %v, want %v (%v)", path, info.Mode(), mode, err)
		}
	}
	want := "--audit-policy-file=" + out + "/audit-policy.yaml\n--audit-webhook-config-file=" + out +
		"/webhook.kubeconfig\n--audit-webhook-batch-max-wait=5s\n" +
		"--audit-log-path=" + out + "/log/audit.log\n--audit-log-maxsize=100\n--audit-log-maxbackup=5\n"
	if got := readFile(t, out, doctor.FileFlags); got != want {
		t.Errorf("the flags are\n%swant\n%s", got, want)
	}
	if got := readFile(t, out, doctor.FilePolicy); got != string(deploy.AuditPolicy) {
		t.Error("the policy is not the one of deploy")
	}
	if got := readFile(t, out, doctor.FileSteps); !strings.HasPrefix(text, got) || got == "" {
		t.Error("the steps in the folder are not those printed")
	}
	rc, err := clientcmd.BuildConfigFromFlags("", filepath.Join(out, doctor.FileKubeconfig))
	if err != nil || rc.Host != "https://10.1.2.3:7443/v1/clusters/prod/audit" || len(rc.CertData) == 0 || len(rc.KeyData) == 0 ||
		len(rc.CAData) == 0 {
		t.Errorf("the kubeconfig leads to %q with certificate, key, authority of %d, %d, %d bytes: %v", rc.Host, len(rc.CertData),
			len(rc.KeyData), len(rc.CAData), err)
	}
	says(t, text, "Cluster prod will post its audit events to https://10.1.2.3:7443", "It is registered", "\n1. ", "\n2. ", "\n3. ",
		"\n4. ",
		"retrial serve --webhook-listen 0.0.0.0:7443 --webhook-advertise 10.1.2.3 --data-dir "+filepath.Join(dir, "data"),
		"--audit-webhook-config-file="+out, "kubectl get clusterroles,", "retrial import --cluster prod --state state.json",
		"Secrets are never needed", "--watch-clusters", "To undo this",
		"systemctl enable --now retrial-follow", "kubectl apply -f metrics-rbac.yaml",
		"retrial cluster scrape prod --url https://ADDRESS:6443", "\n6. ",
		"retrial doctor prod --data-dir")
	if strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "kubeadm") {
		t.Errorf("printed is\n%s", text)
	}
}

// TestConnectAgain: a cluster that is registered keeps its certificate, what somebody
// changed in the policy stays, and the rest is written anew.
func TestConnectAgain(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if code, _, errs := connectIn(t, dir, "prod", "--advertise-address", "10.1.2.3", "--output", out); code != cli.ExitOK {
		t.Fatal(errs)
	}
	first := readFile(t, out, doctor.FileKubeconfig)
	mine := append([]byte("# ours\n"), deploy.AuditPolicy...)
	if err := os.WriteFile(filepath.Join(out, doctor.FilePolicy), mine, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, doctor.FileFlags), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text, errs := connectIn(t, dir, "prod", "--advertise-address", "10.1.2.3", "--output", out)
	if code != cli.ExitOK {
		t.Fatal(errs)
	}
	says(t, text, "registered already and keeps its certificate", "audit-policy.yaml was changed by hand and is kept")
	if readFile(t, out, doctor.FileKubeconfig) != first || readFile(t, out, doctor.FilePolicy) != string(mine) ||
		!strings.HasPrefix(readFile(t, out, doctor.FileFlags), "--audit-policy-file=") {
		t.Error("the certificate was replaced, or the policy, or the flags were not")
	}

	// Another apiserver of it: the same certificate, another path.
	cp2 := filepath.Join(dir, "cp2")
	if code, _, errs := connectIn(t, dir, "prod", "--advertise-address", "10.1.2.3", "--apiserver", "cp-2", "--output",
		cp2); code != cli.ExitOK {
		t.Fatal(errs)
	}
	a, err := clientcmd.LoadFromFile(filepath.Join(out, doctor.FileKubeconfig))
	b, err2 := clientcmd.LoadFromFile(filepath.Join(cp2, doctor.FileKubeconfig))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if !bytes.Equal(a.AuthInfos["prod"].ClientCertificateData, b.AuthInfos["prod"].ClientCertificateData) ||
		!strings.HasSuffix(b.Clusters["retrial"].Server, "/v1/clusters/prod/apiservers/cp-2/audit") {
		t.Errorf("the second apiserver posts to %s", b.Clusters["retrial"].Server)
	}
}

// TestConnectMistakes: what is wrong is told with what to do, and leaves nothing behind.
func TestConnectMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := []string{"--advertise-address", "10.1.2.3", "--output", filepath.Join(dir, "out")}
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no name":                 {nil, cli.ExitUsage, "NAME is missing; see retrial connect --help"},
		"a name no path can have": {[]string{"Prod/1"}, cli.ExitUsage, "lower-case letters, digits or '-'"},
		"an unknown kind of cluster": {append([]string{"prod", "--for", "eks"}, good...), cli.ExitUsage,
			`invalid --for "eks": want one of generic, kubeadm, k3s, rke2; generic writes flags for any kube-apiserver`},
		"a URL for an address": {[]string{"prod", "--advertise-address", "https://retrial.example"}, cli.ExitUsage,
			"write HOST or HOST:PORT, without a scheme"},
		"an invalid port": {[]string{"prod", "--advertise-address", "retrial.example:99999"}, cli.ExitUsage,
			`invalid port "99999"`},
		"port zero": {[]string{"prod", "--advertise-address", "retrial.example:0"}, cli.ExitUsage, `invalid port "0"`},
		"every address": {[]string{"prod", "--advertise-address", "0.0.0.0"}, cli.ExitUsage,
			"is not an address that clients can reach"},
		"no host name": {[]string{"prod", "--advertise-address", "no_host"}, cli.ExitUsage,
			"neither an IP address nor a host name"},
		"nothing to advertise": {[]string{"prod", "--webhook-listen", "0.0.0.0:9443"}, cli.ExitUsage,
			"--advertise-address is missing, and webhook-listen 0.0.0.0:9443 is not an address that clients can reach"},
		"an apiserver's name": {append([]string{"prod", "--apiserver", "a/b"}, good...), cli.ExitUsage, "--apiserver"},
		"a relative place": {append([]string{"prod", "--install-dir", "etc"}, good...), cli.ExitUsage,
			"needs an absolute path"},
		"a flag of two lines": {append([]string{"prod", "--install-dir", "/a\nb"}, good...), cli.ExitUsage, "control characters"},
		"a log of two lines":  {append([]string{"prod", "--audit-log", "/a\nb"}, good...), cli.ExitUsage, "control characters"},
		"an unknown policy": {append([]string{"prod", "--policy", "lean"}, good...), cli.ExitUsage,
			`invalid --policy "lean": want one of full, patch-metadata`},
		"a relative log": {append([]string{"prod", "--audit-log", "audit.log"}, good...), cli.ExitUsage,
			`--audit-log "audit.log": kube-apiserver needs an absolute path`},
		"a log and none": {append([]string{"prod", "--audit-log", "/a/audit.log", "--no-audit-log"}, good...), cli.ExitUsage,
			"exclude each other"},
		"a time below nothing": {append([]string{"prod", "--timeout", "-1s"}, good...), cli.ExitUsage, "must not be negative"},
		"a file in place of the folder": {[]string{"prod", "--advertise-address", "10.1.2.3", "--output", file}, cli.ExitError,
			"choose another with --output"},
		"a folder below a file": {[]string{"prod", "--advertise-address", "10.1.2.3", "--output", filepath.Join(file, "x")}, cli.ExitError,
			"not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := connectIn(t, dir, tc.args...)
			if code != tc.code || !strings.Contains(errs, tc.says) {
				t.Errorf("code %d: %s\nwant %d with %q", code, errs, tc.code, tc.says)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a mistake registered something: %v", err)
	}
}

// TestConnectTellsOfCredentialsThatNoLongerWork: they are not replaced without being asked.
func TestConnectTellsOfCredentialsThatNoLongerWork(t *testing.T) {
	for name, tc := range map[string]struct {
		harm func(t *testing.T, pki string)
		says string
	}{
		"revoked": {func(t *testing.T, pki string) {
			a, err := identity.Open(identity.Config{Dir: pki}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Registry().Revoke("prod"); err != nil {
				t.Fatal(err)
			}
		}, "revoked on "},
		"the key is gone": {func(t *testing.T, pki string) {
			if err := os.Remove(filepath.Join(pki, "clusters", "prod.key")); err != nil {
				t.Fatal(err)
			}
		}, "prod.key"},
		"the certificate is none": {func(t *testing.T, pki string) {
			if err := os.WriteFile(filepath.Join(pki, "clusters", "prod.crt"), []byte("no PEM"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"prod", "--advertise-address", "10.1.2.3", "--output", filepath.Join(dir, "out")}
			if code, _, errs := connectIn(t, dir, args...); code != cli.ExitOK {
				t.Fatal(errs)
			}
			tc.harm(t, filepath.Join(dir, "data", "pki"))
			code, _, errs := connectIn(t, dir, args...)
			if code != cli.ExitError {
				t.Errorf("code %d", code)
			}
			says(t, errs, tc.says, "`retrial cluster rotate prod --output FILE` issues another")
		})
	}
}

// TestConnectWaits: without a server the wait says how to start one; an interruption and a
// time-out leave everything and name what continues.
func TestConnectWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout string
		says    string
	}{"interrupted": {"0", "interrupted while waiting for: The server runs"},
		"timed out": {"1ns", "not connected after 1ns, waiting for: "}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var o, e bytes.Buffer
			// The first thing said about waiting is when the user has had enough.
			said := writerFunc(func(p []byte) (int, error) {
				if bytes.Contains(p, []byte("retrial serve --webhook-listen 0.0.0.0")) && name == "interrupted" &&
					bytes.HasPrefix(p, []byte("          ")) {
					stop()
				}
				return o.Write(p)
			})
			code := execute(ctx, []string{"connect", "prod", "--advertise-address", "10.1.2.3", "--output", out, "--timeout", tc.timeout,
				"--data-dir", filepath.Join(dir, "data"), "--key-file", filepath.Join(dir, "key")}, cli.Streams{In: strings.NewReader(""),
				Out: said, Err: &e})
			if code != cli.ExitError {
				t.Errorf("code %d", code)
			}
			says(t, e.String(), tc.says, "everything stays, and `retrial doctor prod --data-dir ")
			if readFile(t, out, doctor.FileFlags) == "" {
				t.Error("the flags are gone")
			}
		})
	}
}

// mergePod merges a patch into a pod by the keys a strategic merge has: containers and
// volumes by name, mounts by path.
func mergePod(t *testing.T, pod, patch *corev1.Pod) {
	t.Helper()
	for _, c := range patch.Spec.Containers {
		i := slices.IndexFunc(pod.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.Name })
		if i < 0 {
			t.Fatalf("there is no container %s", c.Name)
		}
		mounts := &pod.Spec.Containers[i].VolumeMounts
		for _, m := range c.VolumeMounts {
			*mounts = append(slices.DeleteFunc(*mounts, func(o corev1.VolumeMount) bool { return o.MountPath == m.MountPath }), m)
		}
	}
	for _, v := range patch.Spec.Volumes {
		pod.Spec.Volumes = append(slices.DeleteFunc(pod.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == v.Name }), v)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestStepsAreJSON(t *testing.T) {
	b, err := json.Marshal(doctor.ConnectionAnswer{Cluster: "c",
		Steps: []doctor.Step{{ID: doctor.StepState, Title: "t", State: doctor.StateDone, Text: "x"}}, Refused: []doctor.Refusal{}})
	if err != nil || string(b) != `{"cluster":"c","steps":[{"id":"state","title":"t","state":"done","text":"x"}],`+
		`"receiver":{"serving":false},"refused":[]}` {
		t.Errorf("%s %v", b, err)
	}
}
