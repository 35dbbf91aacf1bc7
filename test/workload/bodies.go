package workload

import "fmt"

// containers returns what a pod template says; a deployment's changes rarely touch it.
func containers(w *workload) string {
	return fmt.Sprintf(`"containers":[{"name":"main","image":%q,"args":["--listen=:8080","--metrics=:9090","--log-format=json"],`+
		`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],`+
		`"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"CONFIG",`+
		`"value":"/etc/%s/config.yaml"}],"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"100m","memory":"256Mi"}},`+
		`"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/%s"}],"livenessProbe":{"httpGet":{"path":"/livez",`+
		`"port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10},"terminationMessagePath":"/dev/termination-log",`+
		`"terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"capabilities":{"drop":["ALL"]},`+
		`"runAsNonRoot":true,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}]`, w.image, w.name, w.name)
}

func (g *Generator) podBody(w *workload) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"%s-%s-","labels":{"app":%q,`+
		`"pod-template-hash":%q},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"%s-%s","uid":%q,`+
		`"controller":true,"blockOwnerDeletion":true}]},"spec":{"volumes":[{"name":"config","configMap":{"name":%q,"defaultMode":420}}],`+
		`%s,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":%q,`+
		`"securityContext":{"runAsUser":65532},"schedulerName":"default-scheduler","enableServiceLinks":true},"status":{}}`,
		w.name, w.hash, w.name, w.hash, w.name, w.hash, w.objects[1].uid, w.objects[0].name, containers(w), w.name)
}

func (g *Generator) jobBody(w *workload) []byte {
	return fmt.Appendf(nil, `{"kind":"Job","apiVersion":"batch/v1","metadata":{"generateName":"%s-","namespace":%q,"labels":{"app":%q,`+
		`"run":%q}},"spec":{"backoffLimit":3,"template":{"metadata":{"labels":{"app":%q}},"spec":{%s,"restartPolicy":"Never",`+
		`"serviceAccountName":%q}},"ttlSecondsAfterFinished":600},"status":{}}`,
		w.name, w.namespace, w.name, g.hex(12), w.name, containers(w), w.name)
}

// deploymentBody returns a change: another image, another time.
func (g *Generator) deploymentBody(w *workload) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{"deploy.example.com/commit":%q,"kubectl.kubernetes.io/restartedAt":%q}},`+
		`"spec":{"replicas":%d,"template":{"metadata":{"labels":{"app":%q,"version":"v1.%d.%d"}},"spec":{%s}}}}`,
		g.hex(40), g.now.Format("2006-01-02T15:04:05Z"), len(w.pods), w.name, g.rng.IntN(40), g.rng.IntN(10), containers(w))
}

func serviceBody(w *workload) []byte {
	return fmt.Appendf(nil, `{"metadata":{"labels":{"app":%q}},"spec":{"ports":[{"name":"http","port":80,"protocol":"TCP",`+
		`"targetPort":"http"}],"selector":{"app":%q}}}`, w.name, w.name)
}

// roleBody returns a role as it is read and written: nothing of it that grants changes.
func (g *Generator) roleBody(w *workload) []byte {
	return fmt.Appendf(nil, `{"kind":"Role","apiVersion":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d",`+
		`"creationTimestamp":"2026-03-01T08:00:00Z","labels":{"app":%q}},"rules":[{"verbs":["get","list","watch"],"apiGroups":[""],`+
		`"resources":["configmaps","pods","services","endpoints"]},{"verbs":["create"],"apiGroups":[""],"resources":["events"]}]}`,
		rbacGroup+"/v1", "app-"+w.name, w.namespace, w.objects[0].uid, g.revision-uint64(g.rng.IntN(100000)), w.name)
}
