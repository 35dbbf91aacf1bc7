package main

import "path"

// connectForm is a way kube-apiserver is run: where it finds its files, and how it is given
// flags.
type connectForm struct {
	choice
	install string // folder of the files; empty: the output folder
	log     string // audit log it writes; empty: in a folder log beside the files
	// dropIns is the folder whose files are merged into the configuration of a distribution
	// that starts kube-apiserver itself, and service the unit of it; empty: it is started in
	// another way.
	dropIns, service string
	// policyOption: the distribution has an option of its own for the audit policy, and a
	// policy that logs nothing when it is not used.
	policyOption bool
}

const (
	formGeneric = "generic"
	formKubeadm = "kubeadm"
	formK3s     = "k3s"
	formRKE2    = "rke2"
)

// connectForms are the values of --for. kubeadm mounts nothing of /etc/kubernetes but pki, so
// that the files have a volume of their own; rke2 mounts every file that a flag names, and the
// folder of its log, by itself.
var connectForms = []connectForm{
	{choice: choice{formGeneric, "flags alone"}},
	{choice: choice{formKubeadm, "a static pod"}, install: "/etc/kubernetes/retrial", log: "/var/log/kubernetes/audit/audit.log"},
	{choice: choice{formK3s, "within k3s"}, install: "/var/lib/rancher/k3s/server/retrial", log: "/var/lib/rancher/k3s/server/logs/audit.log",
		dropIns: "/etc/rancher/k3s/config.yaml.d", service: "k3s"},
	{choice: choice{formRKE2, "a static pod of rke2"}, install: "/etc/rancher/rke2/retrial", log: "/var/lib/rancher/rke2/server/logs/audit.log",
		dropIns: "/etc/rancher/rke2/config.yaml.d", service: "rke2-server", policyOption: true},
}

// rancherConfig is what k3s and rke2 are configured with beside what is set already: "+" adds
// to a list of config.yaml and of files before this one, in place of replacing it.
type rancherConfig struct {
	AuditPolicyFile string   `json:"audit-policy-file,omitempty"`
	APIServerArgs   []string `json:"kube-apiserver-arg+"`
}

func (p *connectPlan) rancherConfig() rancherConfig {
	var c rancherConfig
	for _, f := range p.Flags() {
		c.APIServerArgs = append(c.APIServerArgs, f.Name+"="+f.Value)
	}
	if p.Form.policyOption {
		c.AuditPolicyFile = path.Join(p.Install, filePolicy)
	}
	return c
}
