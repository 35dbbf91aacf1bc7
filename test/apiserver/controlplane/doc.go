// Package controlplane runs a real etcd and a real kube-apiserver for a test, on loopback and
// in the test's own folder, with certificates made for it.
//
//	Start(t, audit flags) ─▶ etcd ─▶ kube-apiserver ─▶ /readyz ok
//	      Cluster.Admin, .User, .ServiceAccount, .Anonymous ─▶ *rest.Config
//
// Both end with the test; nothing else of a cluster is there: no controllers (no default
// service accounts, no aggregated roles, no namespace clean-up), no scheduler, no kubelet.
// Cluster.Controllers runs some controllers, Cluster.Kubelet and Cluster.Node stand in for a
// kubelet. Cluster.ControllerManager, Cluster.Scheduler and Cluster.Join run the real ones.
package controlplane
