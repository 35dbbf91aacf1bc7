package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/deploy"
	"github.com/retrial-io/retrial/internal/config"
)

// Form is a way to run kube-apiserver: where it finds its files, and how it gets its flags.
type Form struct {
	choice
	Install string // folder of the files; empty: the output folder
	Log     string // audit log it writes; empty: in a folder log beside the files
	// dropIns is the folder whose files are merged into the configuration of a distribution
	// that starts kube-apiserver itself, and service the unit of it; empty: it is started in
	// another way.
	dropIns, service string
	// policyOption: the distribution has its own option for the audit policy, and otherwise uses a
	// policy that logs nothing.
	policyOption bool
}

// Names of the ways a kube-apiserver is run.
const (
	FormGeneric = "generic"
	formKubeadm = "kubeadm"
	FormK3s     = "k3s"
	FormRKE2    = "rke2"
)

// Forms are the values of --for. kubeadm mounts nothing of /etc/kubernetes but pki, so the files
// get their own volume; rke2 itself mounts every file that a flag names, and the folder of its log.
var Forms = []Form{
	{choice: choice{FormGeneric, "flags alone"}},
	{choice: choice{formKubeadm, "a static pod"}, Install: "/etc/kubernetes/retrial", Log: "/var/log/kubernetes/audit/audit.log"},
	{choice: choice{FormK3s, "within k3s"}, Install: "/var/lib/rancher/k3s/server/retrial",
		Log:     "/var/lib/rancher/k3s/server/logs/audit.log",
		dropIns: "/etc/rancher/k3s/config.yaml.d", service: "k3s"},
	{choice: choice{FormRKE2, "a static pod of rke2"}, Install: "/etc/rancher/rke2/retrial",
		Log:     "/var/lib/rancher/rke2/server/logs/audit.log",
		dropIns: "/etc/rancher/rke2/config.yaml.d", service: "rke2-server", policyOption: true},
}

// rancherConfig adds to the configuration of k3s and rke2: "+" appends to a list of config.yaml and earlier files, instead of replacing it.
type rancherConfig struct {
	AuditPolicyFile string   `json:"audit-policy-file,omitempty"`
	APIServerArgs   []string `json:"kube-apiserver-arg+"`
}

func (p *Plan) rancherConfig() rancherConfig {
	var c rancherConfig
	for _, f := range p.Flags() {
		c.APIServerArgs = append(c.APIServerArgs, f.Name+"="+f.Value)
	}
	if p.Form.policyOption {
		c.AuditPolicyFile = path.Join(p.Install, FilePolicy)
	}
	return c
}

// choice is a value of a flag, with what it means in some words.
type choice struct{ name, what string }

func (c choice) chosen() choice { return c }

// choosable is something a flag selects: it embeds a choice.
type choosable interface{ chosen() choice }

// ChoiceNames lists the values.
func ChoiceNames[T choosable](from []T) []string {
	var names []string
	for _, c := range from {
		names = append(names, c.chosen().name)
	}
	return names
}

// ChoiceHelp words the values.
func ChoiceHelp[T choosable](from []T) string {
	var words []string
	for _, c := range from {
		words = append(words, c.chosen().name+" ("+c.chosen().what+")")
	}
	return strings.Join(words, ", ")
}

// Choose returns what has a name, false if nothing does.
func Choose[T choosable](from []T, name string) (T, bool) {
	for _, c := range from {
		if c.chosen().name == name {
			return c, true
		}
	}
	var none T
	return none, false
}

// Policy is an audit policy that connect can write.
type Policy struct {
	choice
	text []byte
	// needsWatch: the policy leaves out of the log what the replica then has to learn by list and
	// watch.
	needsWatch bool
}

// Names of the audit policies there are.
const (
	PolicyFull  = "full"
	policyPatch = "patch-metadata"
)

// Policies returns the values of --policy.
func Policies() []Policy {
	return []Policy{
		{choice: choice{PolicyFull, "the log carries the state"}, text: deploy.AuditPolicy},
		{choice: choice{policyPatch, "no bodies of PATCH, one of which can lose a batch; needs --watch-clusters"},
			text: deploy.AuditPolicyPatchMetadata, needsWatch: true},
	}
}

// Advertised returns the host and port apiservers use: those of the flag, else the first advertised name or the listener's own address.
func Advertised(address string, cfg config.Config) (host, port string, err error) {
	listenHost, listenPort, err := net.SplitHostPort(cfg.Webhook.Listen)
	if err != nil {
		return "", "", fmt.Errorf("webhook-listen: %w", err)
	}
	flag := "--advertise-address " + strconv.Quote(address)
	if address == "" {
		flag = "--advertise-address is missing, and webhook-listen " + cfg.Webhook.Listen
		if address = listenHost; len(cfg.Webhook.Advertise) > 0 {
			address = cfg.Webhook.Advertise[0]
		}
	}
	host, port = address, listenPort
	if addr, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		host = addr.String() // an IPv6 address has colons and no port
	} else if h, p, err := net.SplitHostPort(address); err == nil {
		host, port = h, p
	}
	if strings.Contains(address, "/") {
		return "", "", fmt.Errorf("%s: write HOST or HOST:PORT, without a scheme or a path", flag)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("%s: invalid port %q: want HOST:PORT, with a port from 1 to 65535", flag, port)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip.IsUnspecified(), host == "":
		return "", "", fmt.Errorf("%s is not an address that clients can reach: name one that apiservers can: "+
			"--advertise-address HOST[:PORT]", flag)
	case err == nil && ip.Zone() != "":
		return "", "", fmt.Errorf("%s: an address with a zone is only valid on this machine", flag)
	case err != nil && len(validation.IsDNS1123Subdomain(host)) > 0:
		return "", "", fmt.Errorf("%s: %q is neither an IP address nor a host name", flag, host)
	}
	return host, port, nil
}
