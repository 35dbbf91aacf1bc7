package life

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// Cluster is a running Kubernetes with two nodes.
type Cluster struct {
	*controlplane.Cluster
	Nodes    []*controlplane.Joined
	Admin    *kubernetes.Clientset // of a user with a binding of cluster-admin
	dynamic  *dynamic.DynamicClient
	metadata metadata.Interface
	own      string // folder of the audit log and of the front proxy's certificate
	scenes   []scene
	kubelets sync.Mutex // of who restarts one
}

// Flags returns what an apiserver whose nodes join by TLS bootstrap, and which has aggregated API
// servers, needs beside controlplane's own flags.
func Flags() []string {
	return []string{"--enable-bootstrap-token-auth=true", "--allow-privileged=true", "--enable-aggregator-routing=true",
		"--kubelet-preferred-address-types=InternalIP"}
}

// certificates is how long those of kubelets are good: the shortest time that makes them
// rotate within a recording, since the signer dates them five minutes back.
const certificates = 9 * time.Minute

// Start runs all of it until the test ends. extra are further flags of the apiserver, such as
// `retrial connect` prints; the audit policy must be among them. The log backend writes beside
// whatever else they name.
func Start(t testing.TB, extra ...string) *Cluster {
	t.Helper()
	c := &Cluster{own: t.TempDir(), scenes: scenes}
	flags := append(Flags(), "--audit-log-path="+c.log(), "--audit-log-maxsize=100000", controlplane.Tunnel(t))
	flags = append(flags, controlplane.FrontProxy(t, c.own)...)
	c.Cluster = controlplane.Start(t, append(flags, extra...)...)
	root, err := kubernetes.NewForConfig(c.Cluster.Admin(t))
	if err != nil {
		t.Fatal(err)
	}
	join := c.AllowJoining(t, root)
	if _, err := root.RbacV1().ClusterRoleBindings().Create(t.Context(), binding("operators", "cluster-admin", user("olga")),
		create); err != nil {
		t.Fatal(err)
	}
	operator := rest.CopyConfig(c.User(t, "olga"))
	operator.UserAgent, operator.WarningHandler = "operator/v1", rest.NoWarnings{}
	if c.Admin, err = kubernetes.NewForConfig(operator); err != nil {
		t.Fatal(err)
	}
	if c.dynamic, err = dynamic.NewForConfig(operator); err != nil {
		t.Fatal(err)
	}
	if c.metadata, err = metadata.NewForConfig(operator); err != nil {
		t.Fatal(err)
	}
	c.ControllerManager(t, certificates)
	c.Scheduler(t)
	ctx, cancel := context.WithCancel(t.Context())
	approves := make(chan error, 1)
	go func() { approves <- controlplane.ApproveServing(ctx, root) }()
	t.Cleanup(func() {
		cancel()
		if err := <-approves; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for _, name := range []string{"node-1", "node-2"} {
		c.Nodes = append(c.Nodes, c.Join(t, name, join))
	}
	for _, n := range c.Nodes {
		n.Ready(t, c.Admin)
	}
	c.flunders(t)
	return c
}

func (c *Cluster) log() string { return filepath.Join(c.own, "audit.log") }

// flunders runs sample-apiserver behind the aggregator: an API that who edits a namespace may
// write, and who views it may read.
func (c *Cluster) flunders(t testing.TB) {
	t.Helper()
	c.apply(t, controlplane.AggregatedAccount+`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flunders-edit, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
rules: [{apiGroups: [wardle.example.com], resources: [flunders], verbs: [create, update, patch, delete, deletecollection]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flunders-view, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [wardle.example.com], resources: [flunders], verbs: [get, list, watch]}]
`, "")
	// An older kube-apiserver does not have what these would watch. (An older sample-apiserver
	// promises protobuf, which it cannot write, and no namespace with flunders would end.)
	server := c.Aggregated(t, c.ServiceAccount(t, c.Admin, "wardle", "apiserver"), "--enable-priority-and-fairness=false",
		"--disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy")
	c.lead(t, "wardle", "api", server.Port)
	c.apply(t, server.APIService, "")
	c.available(t, flunderAPI.GroupVersion())
}

// Record stops the apiserver, so that all of the log is there, and writes the recording into a
// folder: audit.jsonl from the cluster's birth on, and config/ with the apiserver's flags.
func (c *Cluster) Record(t testing.TB) string {
	t.Helper()
	arguments := c.Apiserver().Arguments(t)
	for _, n := range c.Nodes {
		n.Kill()
	}
	c.Apiserver().Stop(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(c.log())
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, f := range arguments {
		if !strings.HasPrefix(f, "--audit") && !strings.HasPrefix(f, "--egress") {
			flags = append(flags, strings.NewReplacer(c.Folder(), "/etc/kubernetes", c.own, "/etc/kubernetes").Replace(f))
		}
	}
	for name, text := range map[string][]byte{"audit.jsonl": log, "config/kube-apiserver.flags": []byte(strings.Join(flags, "\n") + "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Requests returns the audit IDs in a log.
func Requests(t testing.TB, log []byte) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for line := range strings.Lines(string(log)) {
		var e struct{ AuditID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		all[e.AuditID] = true
	}
	return all
}
