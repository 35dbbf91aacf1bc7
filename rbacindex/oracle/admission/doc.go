// Package admission compares the admission plugins that the replica evaluates again with Kubernetes' own:
// the plugins of k8s.io/kubernetes are asked about generated objects, what they answer is recorded as an
// apiserver would, and the replica judges the record.
package admission
