package life

import (
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// suites are the parts of Kubernetes' end-to-end suite that run at the same time. What needs a process behind a container is left out;
// where that is not known, a spec fails, which does not matter here: what it asked the apiserver is in the log.
var suites = []string{`\[sig-auth\]`, `\[sig-api-machinery\]`, `\[sig-apps\] (Job|CronJob|StatefulSet)`, `\[sig-apps\] [A-BD-IK-RT-Z]`,
	`\[sig-cli\]`}

// skipped are specs that need processes in containers, or the cluster for themselves.
const skipped = `\[Slow\]|\[Serial\]|\[Disruptive\]|\[Flaky\]|\[Feature:|\[FeatureGate:|\[LinuxOnly\]|[Ww]ebhook|Aggregator|exec|` +
	`[Pp]ort.forward|proxy|logs|Guestbook|Update Demo|Simple pod|HTTP|` +
	`ServiceAccounts should mount|ServiceAccountIssuerDiscovery|NodeAuthenticator|token, root CA|Generated release|clean up the ` +
	`namespace|etcd|restart|crash|copy|[Ff]ail|successPolicy|adopt matching`

var ran = regexp.MustCompile(`(\d+) Passed.*?(\d+) Failed`)

// Suite runs Kubernetes' end-to-end suite until all of it has run, or for the given time, and returns how many specs passed.
func (c *Cluster) Suite(t testing.TB, most time.Duration) int {
	t.Helper()
	kubeconfig := filepath.Join(c.Folder(), "suite.kubeconfig")
	controlplane.Kubeconfig(t, kubeconfig, c.User(t, "olga"))
	passed := make([]int, len(suites))
	var all sync.WaitGroup
	for i, focus := range suites {
		p := controlplane.Run(t, c.Folder(), nil, controlplane.Binary(t, "e2e"), "--kubeconfig="+kubeconfig,
			"--kubectl-path="+controlplane.Binary(t, "kubectl"),
			"--provider=skeleton", "--dump-logs-on-failure=false", "--allowed-not-ready-nodes=-1", "--minStartupPods=-1",
			"--num-nodes="+strconv.Itoa(len(c.Nodes)),
			"--ginkgo.focus="+focus, "--ginkgo.skip="+skipped, "--ginkgo.timeout="+most.String(), "--ginkgo.succinct", "--ginkgo.no-color")
		all.Go(func() {
			p.Wait()
			m := ran.FindStringSubmatch(p.Output())
			if m == nil {
				t.Errorf("the suite %s ended without a count:\n%.2000s", focus, p.Output())
				return
			}
			passed[i], _ = strconv.Atoi(m[1])
			t.Logf("%s: %s", focus, m[0])
		})
	}
	all.Wait()
	sum := 0
	for _, n := range passed {
		sum += n
	}
	return sum
}
