// Package deploy holds the files that install Retrial and connect clusters to it; its tests parse
// every one of them strictly, and compare them with the code that they describe.
//
//	audit-policy.yaml  for kube-apiserver's --audit-policy-file; retrial connect writes it
//	audit-policy-patch-metadata.yaml  the same without bodies of PATCH, beside list and watch
//	metrics-rbac.yaml  the account that reads kube-apiservers' counters
//	watch-rbac.yaml    the account that follows a cluster
//	Containerfile      the image
//	serve.yaml         one pod with everything embedded, for evaluation
//	ingest.yaml        pods that receive, beside a Kafka
//	replay.yaml        pods that judge, beside it and a ClickHouse
package deploy
