package controlplane

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	tokens "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// Controllers runs those of kube-controller-manager that make pods of workloads, tokens in
// Secrets and certificates of approved requests, until the test ends. They are its own code
// in the test's process; each acts as its own service account, under the roles the apiserver
// brings along for it.
func (c *Cluster) Controllers(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	var running sync.WaitGroup
	admin := clientset(t, c.Admin(t))
	shared := informers.NewSharedInformerFactory(admin, 0)
	t.Cleanup(func() {
		cancel()
		running.Wait()
		shared.Shutdown()
	})
	as := func(account string) kubernetes.Interface {
		cfg := c.Admin(t)
		cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + metav1.NamespaceSystem + ":" + account}
		return clientset(t, cfg)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	core, apps, batch := shared.Core().V1(), shared.Apps().V1(), shared.Batch().V1()

	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(),
		as("deployment-controller"))
	must(err)
	daemons, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(),
		as("daemon-set-controller"),
		flowcontrol.NewBackOff(time.Second, time.Minute))
	must(err)
	jobs, err := job.NewController(ctx, as("job-controller"), core.Pods(), batch.Jobs(), nil, nil)
	must(err)
	crons, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), as("cronjob-controller"))
	must(err)
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(c.dir, "sa.key"))
	must(err)
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	must(err)
	secrets, err := tokens.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), admin,
		tokens.TokensControllerOptions{TokenGenerator: generator, RootCA: c.ca.pem})
	must(err)
	certificates, err := signer.NewKubeAPIServerClientCSRSigningController(ctx, as("certificate-controller"),
		shared.Certificates().V1().CertificateSigningRequests(),
		filepath.Join(c.dir, "ca.crt"), write(t, filepath.Join(c.dir, "ca.key"), keyPEM(t, c.ca.key)), time.Hour)
	must(err)

	for _, run := range []func(context.Context, int){
		deployments.Run, daemons.Run, jobs.Run, crons.Run, secrets.Run, certificates.Run,
		replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), as("replicaset-controller"), replicaset.BurstReplicas).Run,
		replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), as("replication-controller"),
			replication.BurstReplicas).Run,
		statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
			apps.ControllerRevisions(), as("statefulset-controller")).Run,
	} {
		running.Go(func() { run(ctx, 1) })
	}
	shared.Start(ctx.Done())
}

func clientset(t testing.TB, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
