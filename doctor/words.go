package doctor

import (
	"bytes"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// Steps lists what a person has to do, numbered.
func (p *Plan) Steps() []byte {
	w := &stepWriter{}
	fmt.Fprintf(w, "Cluster %s will post its audit events to %s.\n", p.Cluster, p.Server())
	registered := "is registered already and keeps its certificate"
	if p.Fresh {
		registered = "is registered"
	}
	fmt.Fprintf(w, "It %s (in %s), valid until %s.\n", registered, config.Absolute(p.Config.DataDir), p.Expires)
	fmt.Fprintf(w, "Files: %s (%s holds a key: keep it secret)\n", p.Dir, FileKubeconfig)
	for _, name := range p.Kept {
		fmt.Fprintf(w, "%s was changed by hand and is kept; to get the shipped one, delete it and run this again.\n", name)
	}
	p.reachStep(w)
	switch {
	case p.Form.name == formKubeadm:
		p.kubeadmSteps(w)
	case p.Form.dropIns != "":
		p.rancherSteps(w)
	default:
		p.genericSteps(w)
	}
	p.followStep(w)
	p.metricsStep(w)
	p.stateStep(w)
	p.undoStep(w)
	return w.Bytes()
}

// reachStep returns what is to be done on this machine; nothing if all is well.
func (p *Plan) reachStep(w *stepWriter) {
	serve := "retrial serve --webhook-listen 0.0.0.0:" + p.Port + " --webhook-advertise " + p.Host + p.DataDir()
	switch {
	case p.ListensLocally && p.NotCovered:
		w.step("Let apiservers reach the receiver. It listens on loopback, and its certificate does not name %s. Restart it with", p.Host)
		w.command(serve)
	case p.ListensLocally:
		w.step("Let apiservers reach the receiver, which listens on loopback by default. Restart it with (unless it listens " +
			"elsewhere already)")
		w.command(serve)
	case p.NotCovered:
		w.step("Add %s to the receiver's certificate. Restart it with", p.Host)
		listen := p.Config.Webhook.Listen
		if host, port, err := net.SplitHostPort(listen); err == nil && net.ParseIP(host).IsUnspecified() {
			listen = "0.0.0.0:" + port // as people write it; the socket's own name for it is [::]
		}
		w.command("retrial serve --webhook-listen " + listen + " --webhook-advertise " + p.Host + p.DataDir())
	case p.Loopback:
		fmt.Fprintf(w, "\nOnly this machine reaches %s. For an apiserver elsewhere: --advertise-address HOST[:PORT]\n", p.Host)
	}
}

// DataDir returns the flag that names the data directory, when it is not the default.
func (p *Plan) DataDir() string { return Site{Config: p.Config}.DataDir() }

func (p *Plan) genericSteps(w *stepWriter) {
	if p.Install != p.Dir {
		w.step("Put the files where kube-apiserver reads them, on its machine")
		p.installCommands(w)
	} else {
		w.step("Let kube-apiserver read the files: run it on this machine as a user who may, or choose another place with --install-dir")
	}
	w.step("Start kube-apiserver with these flags as well, one a line in %s. It has one audit policy: if it is given one already, "+
		"compare the two", FileFlags)
	for _, f := range p.Flags() {
		w.command("--" + f.Name + "=" + phrase.ShellWord(f.Value))
	}
	p.more(w)
}

func (p *Plan) kubeadmSteps(w *stepWriter) {
	const manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	w.step("Copy the folder to the control-plane node and put the files in place, there and as root")
	p.installCommands(w)
	w.step("On the node, patch the static pod. The kubelet restarts kube-apiserver by itself when the file is replaced, which takes\n   " +
		"about a minute. Keep copies outside of manifests: the kubelet runs whatever lies in it. If there is an audit policy already\n   " +
		"(--audit-policy-file in the manifest), compare the two first: there can be one")
	before, after := p.Install+"/kube-apiserver.before.yaml", p.Install+"/kube-apiserver.after.yaml"
	w.command("cp -p " + manifest + " " + phrase.ShellWord(before))
	w.command("kubectl patch --local -f " + manifest + " --type strategic --patch-file " + FileStrategic + " -o yaml |")
	w.command("  kubectl patch --local -f - --type json --patch-file " + FileJSONPatch + " -o yaml > " + phrase.ShellWord(after))
	w.command("diff " + phrase.ShellWord(before) + " " + phrase.ShellWord(after))
	w.command("cp " + phrase.ShellWord(after) + " " + manifest)
	var mounted []string
	for _, v := range p.volumes() {
		mounted = append(mounted, v.HostPath)
	}
	fmt.Fprintf(w, "   What it changes, if you prefer to edit by hand: a volume and a mount of %s, and to the command\n",
		strings.Join(mounted, " and of "))
	for _, f := range p.Flags() {
		w.command("- " + f.String())
	}
	w.step("Keep it at the next `kubeadm upgrade`: merge %s into ClusterConfiguration", FileClusterCfg)
	w.command("kubectl -n kube-system edit configmap kubeadm-config")
	fmt.Fprintf(w, "   or give every kubeadm init, join and upgrade --patches with the folder patches.\n")
	p.more(w)
}

// rancherSteps are for distributions that start kube-apiserver themselves, and merge the files
// of a folder into their configuration.
func (p *Plan) rancherSteps(w *stepWriter) {
	w.step("Copy the folder to the server node and put the files in place, there and as root")
	p.installCommands(w)
	w.command("install -D -m 600 " + FileDropIn + " " + path.Join(p.Form.dropIns, path.Base(FileDropIn)))
	w.step("Restart %s on the node: it gives kube-apiserver the flags. If there is an audit policy already (audit-policy-file), "+
		"compare\n   the two first: there can be one", p.Form.name)
	w.command("systemctl restart " + p.Form.service)
	fmt.Fprintf(w, "   What is added to kube-apiserver's configuration:\n")
	for _, f := range p.Flags() {
		w.command("- " + f.String())
	}
	p.more(w)
}

// followStep is about the log, which has what the webhook loses.
func (p *Plan) followStep(w *stepWriter) {
	if p.Log == "" {
		fmt.Fprintf(w, "\nThe audit log is not followed (--no-audit-log): what the webhook drops, such as a batch that holds one event "+
			"it cannot encode, is lost for good.\n")
		return
	}
	w.step("Follow the audit log, on the machine of kube-apiserver and as root: the webhook alone loses events, whole batches of up "+
		"to\n   400 when one of them cannot be encoded, and the log has them. Put this retrial there as %s, then", BinaryPath)
	w.command("install -m 644 " + FileFollowUnit + " /etc/systemd/system/" + FileFollowUnit)
	w.command("systemctl daemon-reload && systemctl enable --now " + strings.TrimSuffix(FileFollowUnit, ".service"))
	fmt.Fprintf(w, "   It runs %s\n", shellLine(p.followCommand()))
}

// metricsStep is about the apiserver's counters, which show how much was sent.
func (p *Plan) metricsStep(w *stepWriter) {
	if !p.Metrics {
		fmt.Fprintf(w, "\nThe apiserver's counters are not read (--no-metrics): without them it is not known how many events are "+
			"missing, and why.\n")
		return
	}
	w.step("Let the server read the apiserver's counters: they alone say how many events were sent. In this folder, on the server's " +
		"machine,\n   with a kubectl that may make the account; ADDRESS is this apiserver's own, no load balancer's")
	for _, c := range (Site{Config: p.Config}).scrapeCommands(p.Cluster, p.APIServer) {
		w.command(c)
	}
}

// shellLine writes a command line as a shell reads it.
func shellLine(words []string) string {
	var out []string
	for i, w := range words {
		if i > 0 && !strings.HasPrefix(w, "--") {
			w = phrase.ShellWord(w)
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// installCommands put the two files where kube-apiserver reads them.
func (p *Plan) installCommands(w *stepWriter) {
	w.command("install -d -m 700 " + phrase.ShellWord(p.Install))
	w.command("install -m 600 " + FileKubeconfig + " " + FilePolicy + " " + phrase.ShellWord(p.Install))
}

// more explains what to do for further apiservers of the cluster.
func (p *Plan) more(w *stepWriter) {
	if p.APIServer == "" {
		fmt.Fprintf(w, "   Several apiservers: the same for each; to tell them apart, run this again for each with --apiserver "+
			"NAME --output DIR.\n")
	}
}

func (p *Plan) stateStep(w *stepWriter) {
	watch := func() {
		w.command("kubectl apply -f " + FileWatchRBAC + "    # docs/connect.md makes the kubeconfig")
		w.command("retrial serve --watch-clusters " + p.Cluster + "=" + p.Cluster + ".kubeconfig" + p.DataDir())
	}
	if p.Policy.needsWatch {
		w.step("Let the server follow the cluster, which this audit policy needs (--policy %s): with a kubeconfig of an account that may "+
			"list\n   and watch what requests are judged by and no more", p.Policy.name)
		watch()
		return
	}
	w.step("Tell the state before the log began; changes after that are read from the log. Secrets are never needed. Once:")
	w.command(query.StateListing)
	w.command("retrial import --cluster " + p.Cluster + " --state state.json" + p.DataDir())
	fmt.Fprintf(w, "   or let the server follow the cluster, with a kubeconfig of an account that may list and watch what it is "+
		"judged by and no more\n")
	watch()
}

func (p *Plan) undoStep(w *stepWriter) {
	fmt.Fprintf(w, "\nTo undo this: ")
	if p.Log != "" {
		fmt.Fprintf(w, "systemctl disable --now %s. ", strings.TrimSuffix(FileFollowUnit, ".service"))
	}
	switch {
	case p.Form.dropIns != "":
		fmt.Fprintf(w, "On the node, rm %s\nand systemctl restart %s. ", path.Join(p.Form.dropIns, path.Base(FileDropIn)), p.Form.service)
	case p.Form.name == formKubeadm:
		fmt.Fprintf(w, "On the node, cp %s/kube-apiserver.before.yaml /etc/kubernetes/manifests/kube-apiserver.yaml, and\nin "+
			"ClusterConfiguration take out what was merged. ", p.Install)
	default:
		fmt.Fprintf(w, "Start kube-apiserver without the flags. ")
	}
	fmt.Fprintf(w, "`retrial cluster revoke %s` refuses further posts; stored events stay.\n", p.Cluster)
}

type stepWriter struct {
	bytes.Buffer
	n int
}

func (w *stepWriter) step(format string, args ...any) {
	w.n++
	fmt.Fprintf(w, "\n%d. %s\n", w.n, fmt.Sprintf(format, args...))
}

// command writes a line to be copied.
func (w *stepWriter) command(line string) { fmt.Fprintf(w, "     %s\n", line) }
