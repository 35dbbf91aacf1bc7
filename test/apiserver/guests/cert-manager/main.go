// Command cert-manager is cert-manager's controller built from its Go module, for the tests of
// test/apiserver/life: the controllers that it runs by default, elected by its lease, nothing
// added. Those for Venafi are left out, whose client is a module that cannot be had. It takes
// those of its command's flags that the tests need.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/vault"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/vault"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// workers is how many items each controller handles at once.
const workers = 5

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the credentials")
	own := flag.String("cluster-resource-namespace", "kube-system", "namespace of the Secrets of ClusterIssuers")
	lease := flag.String("leader-election-namespace", "kube-system", "namespace of the lease")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, *kubeconfig, *own, *lease); err != nil {
		log.Fatal(err)
	}
}

// run waits for the lease and runs the controllers until ctx ends or the lease is lost.
func run(ctx context.Context, kubeconfig, own, lease string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: own, ClusterIssuerAmbientCredentials: true},
		ACMEOptions:        controller.ACMEOptions{DNS01CheckAuthoritative: true, DNS01CheckRetryPeriod: 10 * time.Second},
		IngressShimOptions: controller.IngressShimOptions{DefaultIssuerKind: "Issuer", DefaultIssuerGroup: "cert-manager.io",
			DefaultAutoCertificateAnnotations: []string{"kubernetes.io/tls-acme"}},
		CertificateOptions: controller.CertificateOptions{CopiedAnnotationPrefixes: []string{"*", "-kubectl.kubernetes.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour, CertificateRequestMaximumBackoffDuration: 32 * time.Hour},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: 60},
	})
	if err != nil {
		return err
	}
	elects, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, lease, "cert-manager-controller", elects.Client.CoreV1(),
		elects.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host, EventRecorder: elects.Recorder})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, Name: "cert-manager-controller", ReleaseOnCancel: true,
		LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 15 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer cancel()
				ended <- control(ctx, factory)
			},
			OnStoppedLeading: cancel,
		}})
	select {
	case err := <-ended:
		return err
	default: // the lease was lost first
		return ctx.Err()
	}
}

// control runs the controllers until ctx ends or one of them fails.
func control(ctx context.Context, factory *controller.ContextFactory) error {
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failed := make(chan error, len(controller.Known()))
	for name, build := range controller.Known() {
		c, err := build(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		running.Go(func() {
			if err := c.Run(workers, ctx); err != nil {
				failed <- fmt.Errorf("%s: %w", name, err)
				cancel()
			}
		})
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	running.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}
