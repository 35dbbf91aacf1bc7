package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/deploy"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
)

// TestConnectKubeadm applies what is written to a static pod as kubeadm makes it, the way
// the printed commands do.
func TestConnectKubeadm(t *testing.T) {
	const kubeadmInstall, kubeadmLog = "/etc/kubernetes/retrial", "/var/log/kubernetes/audit"
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	code, text, errs := connectIn(t, dir, "prod", "--for", "kubeadm", "--advertise-address", "retrial.example", "--output", out)
	if code != cli.ExitOK {
		t.Fatal(errs)
	}
	says(t, text, "install -m 600 webhook.kubeconfig audit-policy.yaml /etc/kubernetes/retrial",
		"/etc/kubernetes/manifests/kube-apiserver.yaml",
		"The kubelet restarts kube-apiserver by itself", "kubeadm-config", "--patch-file patches/kube-apiserver+strategic.yaml",
		"--patch-file patches/kube-apiserver+json.yaml")
	flags := strings.Split(strings.TrimSpace(readFile(t, out, doctor.FileFlags)), "\n")

	var was, is, patch corev1.Pod
	before := []byte(readFile(t, "testdata", "kubeadm", "kube-apiserver.yaml"))
	if err := errors.Join(yaml.UnmarshalStrict(before, &was), yaml.UnmarshalStrict(before, &is),
		yaml.UnmarshalStrict([]byte(readFile(t, out, doctor.FileStrategic)), &patch)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is as once
		mergePod(t, &is, &patch)
	}
	var ops []doctor.PatchOperation
	if err := yaml.UnmarshalStrict([]byte(readFile(t, out, doctor.FileJSONPatch)), &ops); err != nil {
		t.Fatal(err)
	}
	var added []string
	for _, op := range ops {
		if op.Op != "add" || op.Path != "/spec/containers/0/command/-" {
			t.Errorf("operation %+v", op)
		}
		added = append(added, op.Value)
	}
	if !slices.Equal(added, flags) {
		t.Errorf("the patch adds %v, the flags are %v", added, flags)
	}
	c := is.Spec.Containers[0]
	mounts, volumes := was.Spec.Containers[0].VolumeMounts, was.Spec.Volumes
	if len(is.Spec.Containers) != 1 || !slices.Equal(c.Command, was.Spec.Containers[0].Command) || len(c.VolumeMounts) != len(mounts)+2 ||
		len(is.Spec.Volumes) != len(volumes)+2 {
		t.Fatalf("the pod became %+v", is.Spec)
	}
	i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == doctor.VolumeName })
	j := slices.IndexFunc(is.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == doctor.VolumeName })
	if i < 0 || j < 0 || !c.VolumeMounts[i].ReadOnly || c.VolumeMounts[i].MountPath != kubeadmInstall ||
		is.Spec.Volumes[j].HostPath.Path != kubeadmInstall || *is.Spec.Volumes[j].HostPath.Type != corev1.HostPathDirectory {
		t.Errorf("mounts %+v, volumes %+v", c.VolumeMounts, is.Spec.Volumes)
	}
	for i, folder := range map[int]string{0: kubeadmInstall, 1: kubeadmInstall, 3: kubeadmLog} {
		if _, file, _ := strings.Cut(flags[i], "="); filepath.Dir(file) != folder {
			t.Errorf("%s is not in the volume of %s", flags[i], folder)
		}
	}
	i = slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == doctor.LogVolumeName })
	j = slices.IndexFunc(is.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == doctor.LogVolumeName })
	if i < 0 || j < 0 || c.VolumeMounts[i].ReadOnly || c.VolumeMounts[i].MountPath != kubeadmLog ||
		is.Spec.Volumes[j].HostPath.Path != kubeadmLog || *is.Spec.Volumes[j].HostPath.Type != corev1.HostPathDirectoryOrCreate {
		t.Errorf("the log: mounts %+v, volumes %+v", c.VolumeMounts, is.Spec.Volumes)
	}

	var cfg doctor.ClusterConfiguration
	if err := yaml.UnmarshalStrict([]byte(readFile(t, out, doctor.FileClusterCfg)), &cfg); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, a := range cfg.APIServer.ExtraArgs {
		args = append(args, a.String())
	}
	if cfg.APIVersion != "kubeadm.k8s.io/v1beta4" || cfg.Kind != "ClusterConfiguration" || !slices.Equal(args, flags) ||
		len(cfg.APIServer.ExtraVolumes) != 2 ||
		cfg.APIServer.ExtraVolumes[0].HostPath != kubeadmInstall || cfg.APIServer.ExtraVolumes[1].HostPath != kubeadmLog ||
		cfg.APIServer.ExtraVolumes[1].ReadOnly {
		t.Errorf("kubeadm's configuration %+v", cfg)
	}
}

// TestConnectRancher: what is written for k3s and rke2 is one file that their configuration
// takes in beside what it says already, and names what is put in place.
func TestConnectRancher(t *testing.T) {
	for _, tc := range []struct{ form, install, log, service, policy string }{
		{doctor.FormK3s, "/var/lib/rancher/k3s/server/retrial", "/var/lib/rancher/k3s/server/logs/audit.log", "k3s", ""},
		{doctor.FormRKE2, "/etc/rancher/rke2/retrial", "/var/lib/rancher/rke2/server/logs/audit.log", "rke2-server",
			"/etc/rancher/rke2/retrial/audit-policy.yaml"},
	} {
		t.Run(tc.form, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			code, text, errs := connectIn(t, dir, "prod", "--for", tc.form, "--advertise-address", "retrial.example", "--output", out)
			if code != cli.ExitOK {
				t.Fatal(errs)
			}
			var got map[string]any
			if err := yaml.UnmarshalStrict([]byte(readFile(t, out, doctor.FileDropIn)), &got); err != nil {
				t.Fatal(err)
			}
			want := []any{"audit-policy-file=" + tc.install + "/audit-policy.yaml",
				"audit-webhook-config-file=" + tc.install + "/webhook.kubeconfig",
				"audit-webhook-batch-max-wait=5s", "audit-log-path=" + tc.log, "audit-log-maxsize=100", "audit-log-maxbackup=5"}
			if args, _ := got["kube-apiserver-arg+"].([]any); !slices.Equal(args, want) {
				t.Errorf("kube-apiserver-arg+ is %v, want %v", args, want)
			}
			policy, _ := got["audit-policy-file"].(string)
			if policy != tc.policy || len(got) > 2 {
				t.Errorf("the file says %v, want audit-policy-file %q", got, tc.policy)
			}
			// The configuration with it is one that is understood.
			if err := os.WriteFile(filepath.Join(out, "config.yaml"),
				[]byte("kube-apiserver-arg: [anonymous-auth=false, authorization-mode=RBAC]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, check, _ := commandLine(t, "", "config", "check", out)
			says(t, check, "config.yaml", "8 flags", "--anonymous-auth, --authorization-mode", "--audit-webhook-config-file")
			says(t, text, "install -m 600 webhook.kubeconfig audit-policy.yaml "+tc.install, "systemctl restart "+tc.service,
				"install -D -m 600 config.yaml.d/90-retrial.yaml /etc/rancher/"+tc.form+"/config.yaml.d/90-retrial.yaml",
				"rm /etc/rancher/"+tc.form+"/config.yaml.d/90-retrial.yaml", "--webhook-config "+tc.install+"/webhook.kubeconfig",
				tc.log+"\n")
			if strings.Contains(text, "kubeadm") {
				t.Errorf("kubeadm is spoken of:\n%s", text)
			}
		})
	}
}

// TestConnectFollower: the unit follows the log that the flags name, by the webhook's own file,
// and is one that systemd takes.
func TestConnectFollower(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	log := "/var/log/100% audit/audit.log"
	if code, _, errs := connectIn(t, dir, "prod", "--apiserver", "cp-1", "--advertise-address", "retrial.example", "--output", out,
		"--audit-log", log); code != cli.ExitOK {
		t.Fatal(errs)
	}
	if flags := readFile(t, out, doctor.FileFlags); !strings.Contains(flags, "--audit-log-path="+log+"\n") {
		t.Errorf("flags:\n%s", flags)
	}
	unit := readFile(t, out, doctor.FileFollowUnit)
	says(t, unit, "ExecStart=/usr/local/bin/retrial import --follow --webhook-config "+out+
		"/webhook.kubeconfig --delay 15s --position /var/lib/retrial-follow/prod-cp-1.json \"/var/log/100%% audit/audit.log\"\n",
		"Restart=always", "StartLimitIntervalSec=0", "StateDirectory=retrial-follow")
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT RUN: systemd-analyze is not here")
	}
	// It looks for the program, which is another machine's.
	file := filepath.Join(dir, doctor.FileFollowUnit)
	if err := os.WriteFile(file, []byte(strings.Replace(unit, doctor.BinaryPath, "/bin/true", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil ||
		strings.Contains(string(said), doctor.FileFollowUnit) {
		t.Errorf("%v: %s", err, said)
	}
}

// TestConnectDeclined: who wants neither log nor counters is told what that costs.
func TestConnectDeclined(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	code, text, errs := connectIn(t, dir, "prod", "--for", "kubeadm", "--advertise-address", "retrial.example", "--output", out,
		"--no-audit-log", "--no-metrics")
	if code != cli.ExitOK {
		t.Fatal(errs)
	}
	says(t, text, "The audit log is not followed (--no-audit-log): what the webhook drops", "is lost for good.",
		"counters are not read (--no-metrics): without them it is not known how many events are missing, and why.")
	for _, name := range []string{doctor.FileFollowUnit, doctor.FileMetrics} {
		if _, err := os.Stat(filepath.Join(out, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is written: %v", name, err)
		}
	}
	for _, name := range []string{doctor.FileFlags, doctor.FileStrategic, doctor.FileJSONPatch, doctor.FileClusterCfg} {
		if strings.Contains(readFile(t, out, name), "audit-log") {
			t.Errorf("%s speaks of a log", name)
		}
	}
}

// TestConnectPolicy: the variant is written, and asks for the watch that it needs.
func TestConnectPolicy(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	code, text, errs := connectIn(t, dir, "prod", "--policy", "patch-metadata", "--advertise-address", "retrial.example", "--output", out)
	if code != cli.ExitOK {
		t.Fatal(errs)
	}
	if got := readFile(t, out, doctor.FilePolicy); got != string(deploy.AuditPolicyPatchMetadata) {
		t.Error("the policy is not the variant of deploy")
	}
	says(t, text, "which this audit policy needs (--policy patch-metadata)", "retrial serve --watch-clusters prod=prod.kubeconfig")
	if strings.Contains(text, "retrial import --cluster prod --state") {
		t.Error("a state that would not be kept up is asked for")
	}
}
