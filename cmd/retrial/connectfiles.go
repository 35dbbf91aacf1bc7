package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/deploy"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/config"
)

// Names of the files connect writes. Scripts read them: they do not change.
const (
	filePolicy     = "audit-policy.yaml"
	fileKubeconfig = "webhook.kubeconfig"
	fileFlags      = "flags" // one flag a line and nothing else
	fileSteps      = "steps.txt"
	fileWatchRBAC  = "watch-rbac.yaml"
	fileStrategic  = "patches/kube-apiserver+strategic.yaml"
	fileJSONPatch  = "patches/kube-apiserver+json.yaml"
	fileClusterCfg = "cluster-configuration.yaml"
)

const (
	// kubeadmInstall is where the files lie on a control-plane node. kubeadm mounts nothing
	// of /etc/kubernetes but pki, so it is mounted by itself.
	kubeadmInstall = "/etc/kubernetes/retrial"
	// volumeName is the static pod's volume.
	volumeName = "retrial-audit"
	// batchWait is how long an apiserver collects events before it posts them. Its default of
	// 30 s saves nothing and costs timeliness, and what is lost with a crash.
	batchWait = "5s"
)

// connectPlan is all that the files and the steps are made of.
type connectPlan struct {
	Cluster, APIServer string
	Host, Port         string // apiservers reach the receiver by
	Dir                string // written here
	Install            string // found here by kube-apiserver
	Kubeadm            bool

	Fresh    bool   // registered by this run
	Expires  string // the certificate's last day
	Kept     []string
	Loopback bool // the address is this machine alone
	// ListensLocally: the receiver's listener is on loopback, the address is not.
	ListensLocally bool
	NotCovered     bool // the receiver's certificate does not name the host

	cfg config.Config
}

// Server is the receiver's URL.
func (p *connectPlan) Server() string { return "https://" + net.JoinHostPort(p.Host, p.Port) }

// apiserverFlag is one flag of kube-apiserver.
type apiserverFlag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (f apiserverFlag) String() string { return "--" + f.Name + "=" + f.Value }

// Flags are what kube-apiserver is to be started with. All else stays at its default: format
// version audit.k8s.io/v1, mode batch (requests never wait for it), 400 events a batch, a
// buffer of 10,000, and no truncation, which would cut off the bodies of large roles.
func (p *connectPlan) Flags() []apiserverFlag {
	return []apiserverFlag{
		{"audit-policy-file", path.Join(p.Install, filePolicy)},
		{"audit-webhook-config-file", path.Join(p.Install, fileKubeconfig)},
		{"audit-webhook-batch-max-wait", batchWait},
	}
}

// connectFile is one file to write.
type connectFile struct {
	name    string // below the output folder
	content []byte
	mode    os.FileMode
	keep    bool // when somebody has changed it
}

// files makes all files but the steps.
func (p *connectPlan) files(cred identity.Credentials) ([]connectFile, error) {
	kubeconfig, err := identity.WebhookConfig(p.Server(), p.APIServer, cred, "")
	if err != nil {
		return nil, err
	}
	var flags strings.Builder
	for _, f := range p.Flags() {
		fmt.Fprintln(&flags, f)
	}
	files := []connectFile{
		{name: fileKubeconfig, content: kubeconfig, mode: 0o600},
		{name: filePolicy, content: deploy.AuditPolicy, mode: 0o644, keep: true},
		{name: fileFlags, content: []byte(flags.String()), mode: 0o644},
		{name: fileWatchRBAC, content: deploy.WatchRBAC, mode: 0o644},
	}
	if !p.Kubeadm {
		return files, nil
	}
	for _, f := range []struct {
		name, head string
		doc        any
	}{
		{fileStrategic, "# The volume and its mount, as a strategic merge patch: applying it twice changes nothing.", p.strategicPatch()},
		{fileJSONPatch, "# The flags, as a JSON patch: a list of words cannot be merged, so each is appended.\n# A flag given twice counts as given last.", p.jsonPatch()},
		{fileClusterCfg, "# The same for kubeadm's own configuration, so that `kubeadm upgrade` keeps it: merge this\n# into ClusterConfiguration (ConfigMap kube-system/kubeadm-config), or use the patches, not both.", p.clusterConfiguration()},
	} {
		text, err := yaml.Marshal(f.doc)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
		files = append(files, connectFile{name: f.name, content: append([]byte(f.head+"\n"), text...), mode: 0o644})
	}
	return files, nil
}

// The parts of a static pod that are patched.
type (
	podPatch struct {
		Spec podPatchSpec `json:"spec"`
	}
	podPatchSpec struct {
		Containers []containerPatch `json:"containers"`
		Volumes    []volumePatch    `json:"volumes"`
	}
	containerPatch struct {
		Name         string       `json:"name"`
		VolumeMounts []mountPatch `json:"volumeMounts"`
	}
	mountPatch struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
		ReadOnly  bool   `json:"readOnly"`
	}
	volumePatch struct {
		Name     string        `json:"name"`
		HostPath hostPathPatch `json:"hostPath"`
	}
	hostPathPatch struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	patchOperation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
)

func (p *connectPlan) strategicPatch() podPatch {
	return podPatch{podPatchSpec{
		Containers: []containerPatch{{"kube-apiserver", []mountPatch{{volumeName, p.Install, true}}}},
		Volumes:    []volumePatch{{volumeName, hostPathPatch{p.Install, "Directory"}}},
	}}
}

func (p *connectPlan) jsonPatch() []patchOperation {
	var ops []patchOperation
	for _, f := range p.Flags() {
		ops = append(ops, patchOperation{"add", "/spec/containers/0/command/-", f.String()})
	}
	return ops
}

// What is set of kubeadm's ClusterConfiguration.
type (
	clusterConfiguration struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		APIServer  apiServerChanges `json:"apiServer"`
	}
	apiServerChanges struct {
		ExtraArgs    []apiserverFlag `json:"extraArgs"`
		ExtraVolumes []extraVolume   `json:"extraVolumes"`
	}
	extraVolume struct {
		Name      string `json:"name"`
		HostPath  string `json:"hostPath"`
		MountPath string `json:"mountPath"`
		ReadOnly  bool   `json:"readOnly"`
		PathType  string `json:"pathType"`
	}
)

func (p *connectPlan) clusterConfiguration() clusterConfiguration {
	return clusterConfiguration{
		APIVersion: "kubeadm.k8s.io/v1beta4", Kind: "ClusterConfiguration",
		APIServer: apiServerChanges{
			ExtraArgs:    p.Flags(),
			ExtraVolumes: []extraVolume{{volumeName, p.Install, p.Install, true, "Directory"}},
		},
	}
}

// stateListing lists what requests are judged against, once.
const stateListing = "kubectl get clusterroles,clusterrolebindings,roles,rolebindings,namespaces,serviceaccounts,pods,nodes,persistentvolumes,volumeattachments,certificatesigningrequests -A -o json > state.json"

// steps words what a person has to do, numbered.
func (p *connectPlan) steps() []byte {
	w := &stepWriter{}
	fmt.Fprintf(w, "Cluster %s will post its audit events to %s.\n", p.Cluster, p.Server())
	registered := "is registered already and keeps its certificate"
	if p.Fresh {
		registered = "is registered"
	}
	fmt.Fprintf(w, "It %s (in %s), valid until %s.\n", registered, absolute(p.cfg.DataDir), p.Expires)
	fmt.Fprintf(w, "Files: %s (%s holds a key: keep it secret)\n", p.Dir, fileKubeconfig)
	for _, name := range p.Kept {
		fmt.Fprintf(w, "%s was changed by hand and stays as it is; delete it and run this again for the one that is shipped.\n", name)
	}
	p.reachStep(w)
	if p.Kubeadm {
		p.kubeadmSteps(w)
	} else {
		p.genericSteps(w)
	}
	p.stateStep(w)
	p.undoStep(w)
	return w.Bytes()
}

// reachStep says what is to be done at this end; nothing when all is well.
func (p *connectPlan) reachStep(w *stepWriter) {
	serve := "retrial serve --webhook-listen 0.0.0.0:" + p.Port + " --webhook-advertise " + p.Host + p.dataDir()
	switch {
	case p.ListensLocally && p.NotCovered:
		w.step("Let apiservers reach the receiver. It listens on loopback, and its certificate does not name %s. Restart it with", p.Host)
		w.command(serve)
	case p.ListensLocally:
		w.step("Let apiservers reach the receiver, which listens on loopback by default. Restart it with (unless it listens elsewhere already)")
		w.command(serve)
	case p.NotCovered:
		w.step("Have the receiver's certificate name %s. Restart it with", p.Host)
		listen := p.cfg.Webhook.Listen
		if host, port, err := net.SplitHostPort(listen); err == nil && net.ParseIP(host).IsUnspecified() {
			listen = "0.0.0.0:" + port // as people write it; the socket's own name for it is [::]
		}
		w.command("retrial serve --webhook-listen " + listen + " --webhook-advertise " + p.Host + p.dataDir())
	case p.Loopback:
		fmt.Fprintf(w, "\n%s is this machine alone. For an apiserver elsewhere: --advertise-address HOST[:PORT]\n", p.Host)
	}
}

// dataDir is the flag that names the data directory, when it is not the default.
func (p *connectPlan) dataDir() string { return site{cfg: p.cfg}.dataDir() }

func (p *connectPlan) genericSteps(w *stepWriter) {
	if p.Install != p.Dir {
		w.step("Put the files where kube-apiserver reads them, on its machine")
		p.installCommands(w)
	} else {
		w.step("Let kube-apiserver read the files: run it on this machine as a user who may, or choose another place with --install-dir")
	}
	w.step("Start kube-apiserver with these flags as well, one a line in %s. It has one audit policy: if it is given one already, compare the two", fileFlags)
	for _, f := range p.Flags() {
		w.command("--" + f.Name + "=" + shellWord(f.Value))
	}
	p.more(w)
}

func (p *connectPlan) kubeadmSteps(w *stepWriter) {
	const manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	w.step("Copy the folder to the control-plane node and put the files in place, there and as root")
	p.installCommands(w)
	w.step("On the node, patch the static pod. The kubelet restarts kube-apiserver by itself when the file is replaced, which takes\n   about a minute. Keep copies outside of manifests: the kubelet runs whatever lies in it. If there is an audit policy already\n   (--audit-policy-file in the manifest), compare the two first: there can be one")
	before, after := p.Install+"/kube-apiserver.before.yaml", p.Install+"/kube-apiserver.after.yaml"
	w.command("cp -p " + manifest + " " + shellWord(before))
	w.command("kubectl patch --local -f " + manifest + " --type strategic --patch-file " + fileStrategic + " -o yaml |")
	w.command("  kubectl patch --local -f - --type json --patch-file " + fileJSONPatch + " -o yaml > " + shellWord(after))
	w.command("diff " + shellWord(before) + " " + shellWord(after))
	w.command("cp " + shellWord(after) + " " + manifest)
	fmt.Fprintf(w, "   What it changes, for those who rather edit: a volume and a mount of %s, and to the command\n", p.Install)
	for _, f := range p.Flags() {
		w.command("- " + f.String())
	}
	w.step("Keep it at the next `kubeadm upgrade`: merge %s into ClusterConfiguration", fileClusterCfg)
	w.command("kubectl -n kube-system edit configmap kubeadm-config")
	fmt.Fprintf(w, "   or give every kubeadm init, join and upgrade --patches with the folder patches.\n")
	p.more(w)
}

// installCommands put the two files where kube-apiserver reads them.
func (p *connectPlan) installCommands(w *stepWriter) {
	w.command("install -d -m 700 " + shellWord(p.Install))
	w.command("install -m 600 " + fileKubeconfig + " " + filePolicy + " " + shellWord(p.Install))
}

// more tells of further apiservers of the cluster.
func (p *connectPlan) more(w *stepWriter) {
	if p.APIServer == "" {
		fmt.Fprintf(w, "   Several apiservers: the same for each; to tell them apart, run this again for each with --apiserver NAME --output DIR.\n")
	}
}

func (p *connectPlan) stateStep(w *stepWriter) {
	w.step("Tell the state before the log began; changes after that are read from the log. Secrets are never needed. Once:")
	w.command(stateListing)
	w.command("retrial import --cluster " + p.Cluster + " --state state.json" + p.dataDir())
	fmt.Fprintf(w, "   or let the server follow the cluster, with a kubeconfig of an account that may list and watch what it is judged by and no more\n")
	w.command("kubectl apply -f " + fileWatchRBAC + "    # docs/connect.md makes the kubeconfig")
	w.command("retrial serve --watch-clusters " + p.Cluster + "=" + p.Cluster + ".kubeconfig" + p.dataDir())
}

func (p *connectPlan) undoStep(w *stepWriter) {
	fmt.Fprintf(w, "\nTo undo it: ")
	if p.Kubeadm {
		fmt.Fprintf(w, "on the node, cp %s/kube-apiserver.before.yaml /etc/kubernetes/manifests/kube-apiserver.yaml, and\nin ClusterConfiguration take out what was merged. ", p.Install)
	} else {
		fmt.Fprintf(w, "start kube-apiserver without the flags. ")
	}
	fmt.Fprintf(w, "`retrial cluster revoke %s` refuses what is still posted; what came in stays.\n", p.Cluster)
}

// stepWriter collects text and counts its steps.
type stepWriter struct {
	bytes.Buffer
	n int
}

// step begins a numbered step.
func (w *stepWriter) step(format string, args ...any) {
	w.n++
	fmt.Fprintf(w, "\n%d. %s\n", w.n, fmt.Sprintf(format, args...))
}

// command writes a line to be copied.
func (w *stepWriter) command(line string) { fmt.Fprintf(w, "     %s\n", line) }
