package life

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// What the guests serve or act upon.
var (
	certificateAPI = schema.GroupVersion{Group: "cert-manager.io", Version: "v1"}
	monitoringAPI  = schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	podMetrics     = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}
)

// certificates are issued by an authority of the namespace, whose own certificate is issued by
// itself, and issued again when the Secret of one is gone.
func (s *stage) certificates() error {
	const key = `"privateKey":{"algorithm":"ECDSA","size":256}`
	issuers, certificates := certificateAPI.WithResource("issuers"), certificateAPI.WithResource("certificates")
	for _, o := range []struct {
		of               schema.GroupVersionResource
		kind, name, spec string
	}{
		{issuers, "Issuer", "itself", `{"selfSigned":{}}`},
		{certificates, "Certificate", "authority", `{"isCA":true,"commonName":"authority","secretName":"authority",` + key +
			`,"issuerRef":{"name":"itself"}}`},
		{issuers, "Issuer", "authority", `{"ca":{"secretName":"authority"}}`},
		{certificates, "Certificate", "site", `{"dnsNames":["site.example.com"],"secretName":"site",` + key +
			`,"issuerRef":{"name":"authority"}}`},
	} {
		if err := s.have(o.of, o.kind, o.name, o.spec); err != nil {
			return err
		}
	}
	issued := func() error {
		return s.until("a certificate to be issued", func() (bool, error) {
			o, err := s.custom.Resource(certificates).Namespace(s.ns).Get(s.ctx, "site", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if ready, _ := holds(o, "Ready"); !ready {
				return false, nil
			}
			_, err = s.developer.CoreV1().Secrets(s.ns).Get(s.ctx, "site", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
	}
	if err := issued(); err != nil {
		return err
	}
	if err := s.developer.CoreV1().Secrets(s.ns).Delete(s.ctx, "site", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err !=
		nil {
		return err
	}
	if err := issued(); err != nil {
		return err
	}
	return s.custom.Resource(certificates).Namespace(s.ns).Delete(s.ctx, pick(s, "site", "authority"),
		metav1.DeleteOptions{PropagationPolicy: s.propagation()})
}

// monitoring returns a Prometheus with what it is to read: the operator makes a StatefulSet and its
// configuration of that.
func (s *stage) monitoring() error {
	prometheuses := monitoringAPI.WithResource("prometheuses")
	for _, o := range []struct{ resource, kind, name, spec string }{
		{"servicemonitors", "ServiceMonitor", "web", `{"selector":{"matchLabels":{"app":"web"}},"endpoints":[{"port":"web"}]}`},
		{"prometheusrules", "PrometheusRule", "down", `{"groups":[{"name":"down","rules":[{"alert":"Down","expr":"up == 0"}]}]}`},
		{prometheuses.Resource, "Prometheus", "one", `{"replicas":1,"serviceAccountName":"worker","serviceMonitorSelector":{},` +
			`"ruleSelector":{}}`},
	} {
		if err := s.have(monitoringAPI.WithResource(o.resource), o.kind, o.name, o.spec); err != nil {
			return err
		}
	}
	made := func(replicas int32) error {
		return s.until(fmt.Sprintf("a StatefulSet of %d", replicas), func() (bool, error) {
			set, err := s.visitor.AppsV1().StatefulSets(s.ns).Get(s.ctx, "prometheus-one", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil && *set.Spec.Replicas == replicas, err
		})
	}
	if err := made(1); err != nil {
		return err
	}
	if _, err := s.custom.Resource(prometheuses).Namespace(s.ns).Patch(s.ctx, "one", types.MergePatchType,
		[]byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := made(2); err != nil {
		return err
	}
	return s.custom.Resource(prometheuses).Namespace(s.ns).Delete(s.ctx, "one", metav1.DeleteOptions{PropagationPolicy: s.propagation()})
}

// metrics are read by people and by the controller that scales a Deployment by them.
func (s *stage) metrics() error {
	if _, err := s.developer.AppsV1().Deployments(s.ns).Create(s.ctx, deployment("scaled", 1), create); err != nil {
		return err
	}
	scalers := s.developer.AutoscalingV2().HorizontalPodAutoscalers(s.ns)
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "scaled"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "scaled"},
			MaxReplicas:    3}}
	if _, err := scalers.Create(s.ctx, scaler, create); err != nil {
		return err
	}
	if _, err := s.custom.Resource(podMetrics).Namespace(s.ns).List(s.ctx, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := s.until("the scaler to have asked", func() (bool, error) {
		o, err := scalers.Get(s.ctx, "scaled", metav1.GetOptions{})
		return err == nil && len(o.Status.Conditions) > 1, err
	}); err != nil {
		return err
	}
	if _, err := s.custom.Resource(podMetrics).List(s.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("list of all pods' metrics: %w", errUnexpected)
	}
	node := s.Nodes[s.rng.IntN(len(s.Nodes))].Name
	if err := s.Admin.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("metrics", "resource").Do(s.ctx).
		Error(); err != nil {
		return err
	}
	return scalers.Delete(s.ctx, "scaled", metav1.DeleteOptions{PropagationPolicy: s.propagation()})
}
