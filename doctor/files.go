package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/deploy"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/config"
)

// Names of the files connect writes. Scripts read them: they do not change.
const (
	FilePolicy     = "audit-policy.yaml"
	FileKubeconfig = "webhook.kubeconfig"
	FileFlags      = "flags" // only flags, one a line
	FileSteps      = "steps.txt"
	FileWatchRBAC  = "watch-rbac.yaml"
	FileStrategic  = "patches/kube-apiserver+strategic.yaml"
	FileJSONPatch  = "patches/kube-apiserver+json.yaml"
	FileClusterCfg = "cluster-configuration.yaml"
	FileDropIn     = "config.yaml.d/90-retrial.yaml"
	FileFollowUnit = "retrial-follow.service"
	FileMetrics    = "metrics-rbac.yaml"
)

const (
	// VolumeName is the name of the static pod's volume for the files.
	VolumeName = "retrial-audit"
	// LogVolumeName is that of the audit log.
	LogVolumeName = "retrial-audit-log"
	// batchWait is how long an apiserver collects events. Its default of 30 s saves nothing, costs timeliness, and a crash loses more.
	batchWait = "5s"
	// logSize, in megabytes, and logFiles bound the disk that the audit log takes. What the
	// follower has not read by then is lost to it.
	logSize, logFiles = "100", "5"
)

// Plan is what the files and the steps are generated from.
type Plan struct {
	Cluster, APIServer string
	Host, Port         string // apiservers reach the receiver by
	Dir                string // written here
	Install            string // found here by kube-apiserver
	Log                string // audit log that is written and followed; empty: none
	Metrics            bool   // its counters are read
	Policy             Policy
	Form               Form

	Fresh    bool   // registered by this run
	Expires  string // the certificate's last day
	Kept     []string
	Loopback bool // the address is this machine alone
	// ListensLocally: the receiver's listener is on loopback, the address is not.
	ListensLocally bool
	NotCovered     bool // the receiver's certificate does not name the host

	Config config.Config
}

// Server returns the receiver's URL.
func (p *Plan) Server() string { return "https://" + net.JoinHostPort(p.Host, p.Port) }

type apiserverFlag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (f apiserverFlag) String() string { return "--" + f.Name + "=" + f.Value }

// Flags returns the flags for kube-apiserver. All others keep their defaults: format Version
// audit.k8s.io/v1, mode batch (requests never wait for it), 400 events a batch, a buffer of 10,000,
// and no truncation, which would cut off the bodies of large roles.
func (p *Plan) Flags() []apiserverFlag {
	flags := []apiserverFlag{
		{"audit-policy-file", path.Join(p.Install, FilePolicy)},
		{"audit-webhook-config-file", path.Join(p.Install, FileKubeconfig)},
		{"audit-webhook-batch-max-wait", batchWait},
	}
	if p.Log != "" {
		flags = append(flags, apiserverFlag{"audit-log-path", p.Log}, apiserverFlag{"audit-log-maxsize", logSize},
			apiserverFlag{"audit-log-maxbackup", logFiles})
	}
	return flags
}

// File is one file to write.
type File struct {
	Name    string // below the output folder
	Content []byte
	Mode    os.FileMode
	Keep    bool // if it was changed by hand
}

// Files makes all files but the steps.
func (p *Plan) Files(cred identity.Credentials) ([]File, error) {
	kubeconfig, err := identity.WebhookConfig(p.Server(), p.APIServer, cred, "")
	if err != nil {
		return nil, err
	}
	var flags strings.Builder
	for _, f := range p.Flags() {
		fmt.Fprintln(&flags, f)
	}
	files := []File{
		{Name: FileKubeconfig, Content: kubeconfig, Mode: 0o600},
		{Name: FilePolicy, Content: p.Policy.text, Mode: 0o644, Keep: true},
		{Name: FileFlags, Content: []byte(flags.String()), Mode: 0o644},
		{Name: FileWatchRBAC, Content: deploy.WatchRBAC, Mode: 0o644},
	}
	if p.Log != "" {
		files = append(files, File{Name: FileFollowUnit, Content: p.followUnit(), Mode: 0o644})
	}
	if p.Metrics {
		files = append(files, File{Name: FileMetrics, Content: deploy.MetricsRBAC, Mode: 0o644})
	}
	for _, d := range p.documents() {
		text, err := yaml.Marshal(d.doc)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", d.name, err)
		}
		files = append(files, File{Name: d.name, Content: append([]byte(d.head+"\n"), text...), Mode: 0o644})
	}
	return files, nil
}

// connectDocument is a file of YAML with a comment before it.
type connectDocument struct {
	name, head string
	doc        any
}

// documents returns the files that give kube-apiserver its flags, by the way it is run.
func (p *Plan) documents() []connectDocument {
	switch {
	case p.Form.name == formKubeadm:
		return []connectDocument{
			{FileStrategic, "# The volumes and their mounts, as a strategic merge patch: applying it twice changes nothing.",
				p.strategicPatch()},
			{FileJSONPatch, "# The flags, as a JSON patch: a list of words cannot be merged, so each is appended.\n# A flag given twice " +
				"counts as given last.", p.jsonPatch()},
			{FileClusterCfg, "# The same for kubeadm's own configuration, so that `kubeadm upgrade` keeps it: merge this\n# into " +
				"ClusterConfiguration (ConfigMap kube-system/kubeadm-config), or use the patches, not both.", p.clusterConfiguration()},
		}
	case p.Form.dropIns != "":
		return []connectDocument{{FileDropIn, "# The flags, in addition to those of config.yaml and of files before this " +
			"one: \"+\" adds to " +
			"them.\n# A flag given twice counts as given last.", p.rancherConfig()}}
	}
	return nil
}

// volumes returns what a static pod mounts: the files, and the folder of the log.
func (p *Plan) volumes() []extraVolume {
	list := []extraVolume{{VolumeName, p.Install, p.Install, true, "Directory"}}
	if p.Log != "" {
		folder := path.Dir(p.Log)
		list = append(list, extraVolume{LogVolumeName, folder, folder, false, "DirectoryOrCreate"})
	}
	return list
}

type object = map[string]any

// PatchOperation is an operation of a JSON patch.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

func (p *Plan) strategicPatch() object {
	var mounts, volumes []object
	for _, v := range p.volumes() {
		mounts = append(mounts, object{"name": v.Name, "mountPath": v.MountPath, "readOnly": v.ReadOnly})
		volumes = append(volumes, object{"name": v.Name, "hostPath": object{"path": v.HostPath, "type": v.PathType}})
	}
	return object{"spec": object{"containers": []object{{"name": "kube-apiserver", "volumeMounts": mounts}}, "volumes": volumes}}
}

func (p *Plan) jsonPatch() []PatchOperation {
	var ops []PatchOperation
	for _, f := range p.Flags() {
		ops = append(ops, PatchOperation{"add", "/spec/containers/0/command/-", f.String()})
	}
	return ops
}

// What is set of kubeadm's ClusterConfiguration.
type (
	ClusterConfiguration struct {
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

func (p *Plan) clusterConfiguration() ClusterConfiguration {
	return ClusterConfiguration{
		APIVersion: "kubeadm.k8s.io/v1beta4", Kind: "ClusterConfiguration",
		APIServer: apiServerChanges{ExtraArgs: p.Flags(), ExtraVolumes: p.volumes()},
	}
}

// Reach finds what keeps apiservers from reaching the receiver by the planned address.
func (p *Plan) Reach(a *identity.Authority) error {
	p.Loopback = config.Loopback(net.JoinHostPort(p.Host, p.Port))
	p.ListensLocally = config.Loopback(p.Config.Webhook.Listen) && !p.Loopback
	covered, err := a.ServerCovers(p.Host)
	p.NotCovered = !covered
	return err
}

// CheckFolder creates a folder, readable by its owner only, if it does not exist, and checks that
// files can be written into it.
func CheckFolder(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".retrial-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("output folder: %w; choose another with --output", err)
	}
	return nil
}

// WriteFolder writes files into a folder, each atomically. Those to Keep that differ were changed by hand and stay; it returns their names.
func WriteFolder(dir string, files []File) (kept []string, err error) {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return kept, fmt.Errorf("output folder: %w", err)
		}
		if f.Keep {
			old, err := os.ReadFile(path)
			if err == nil && !bytes.Equal(old, f.Content) {
				kept = append(kept, f.Name)
				continue
			}
		}
		if err := atomicfile.Write(path, f.Content, f.Mode); err != nil {
			return kept, fmt.Errorf("output folder: %w", err)
		}
	}
	return kept, nil
}
