// Package life runs a whole Kubernetes on loopback, without containers, and lives in it:
//
//	Start ─▶ etcd, kube-apiserver, kube-controller-manager, kube-scheduler, two kubelets
//	   │     that joined by TLS bootstrap and rotate their certificates, sample-apiserver
//	   ├─▶ Cluster.Guests: published controllers under their published roles
//	   ├─▶ Cluster.Churn: namespaces with running pods come and go, for a seed
//	   ├─▶ Cluster.Suite: Kubernetes' own end-to-end suite
//	   └─▶ Cluster.Record: audit.jsonl and config/, as `retrial evaluate` reads them
//
// Every request in the log but those of Churn itself is made by Kubernetes' own programs and by
// the guests. All programs of a release lie in one folder, see controlplane.Binary;
// scripts/test-e2e.sh builds them for releases other than this module's.
package life
