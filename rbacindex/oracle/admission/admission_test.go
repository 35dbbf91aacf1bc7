package admission

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/plugin/pkg/admission/antiaffinity"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"

	ours "github.com/retrial-io/retrial/replay/admission"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// runs is how many objects a test generates.
func runs(t *testing.T) int {
	t.Helper()
	v := os.Getenv("ORACLE_ADMISSION")
	if v == "" {
		return 5000
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// known is the replica's state: the namespace is there, and the accounts.
type known map[string]bool

func (known) Namespace(string, time.Time, time.Time) state.NamespaceAnswer {
	return state.NamespaceActive
}

func (k known) ServiceAccountIn(_, name string, _, _ time.Time) (state.Known, bool) {
	if k[name] {
		return state.Present, false
	}
	return state.Absent, false
}

type instant struct{}

func (instant) Window() (from, to time.Time) { return time.Time{}, time.Time{} }

// plugin is what both passes of a real plugin are asked by.
type plugin interface {
	admission.Interface
	admission.ValidationInterface
}

// made is a create as an apiserver takes it: what it records of the body, what its plugins are asked.
type made struct {
	body  []byte
	attrs admission.Attributes
	of    verdict.Attributes
	codec runtime.Codec
	obj   runtime.Object
	code  int32 // where it is admitted
}

func create(t *testing.T, o runtime.Object, gvk schema.GroupVersionKind, resource string) made {
	t.Helper()
	m := made{code: 201, codec: legacyscheme.Codecs.LegacyCodec(gvk.GroupVersion())}
	sent, err := runtime.Encode(m.codec, o)
	if err != nil {
		t.Fatal(err)
	}
	if m.obj, err = runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), sent); err != nil { // with defaults
		t.Fatal(err)
	}
	if m.body, err = runtime.Encode(m.codec, m.obj); err != nil {
		t.Fatal(err)
	}
	m.of = verdict.Attributes{Verb: "create", ResourceRequest: true, APIGroup: gvk.Group, APIVersion: gvk.Version, Resource: resource}
	if gvk.Group == "" {
		m.of.Namespace = namespace
	}
	m.attrs = admission.NewAttributesRecord(m.obj, nil, gvk, m.of.Namespace, "x", gvk.GroupVersion().WithResource(resource), "",
		admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "u"})
	return m
}

// update turns a create into a change of an object that was there, by a whole object or by a patch.
func update(t *testing.T, r *rand.Rand, from, to runtime.Object, kind, resource string) made {
	t.Helper()
	gvk := corev1.SchemeGroupVersion.WithKind(kind)
	before, m := create(t, from, gvk, resource), create(t, to, gvk, resource)
	m.attrs = admission.NewAttributesRecord(m.obj, before.obj, gvk, m.of.Namespace, "x", gvk.GroupVersion().WithResource(resource), "",
		admission.Update, &metav1.UpdateOptions{}, false, &user.DefaultInfo{Name: "u"})
	m.of.Verb, m.of.Name, m.code = "update", "x", 200
	if r.IntN(2) == 0 {
		return m
	}
	m.of.Verb = "patch"
	var err error
	if m.body, err = strategicpatch.CreateTwoWayMergePatch(before.body, m.body, to); err != nil {
		t.Fatal(err)
	}
	return m
}

// jsonPatch makes a JSON patch that turns one list of external IPs into another.
func jsonPatch(t *testing.T, from, to []string) []byte {
	t.Helper()
	ops := []map[string]any{{"op": "test", "path": "/metadata/name", "value": "x"}}
	for range from {
		ops = append(ops, map[string]any{"op": "remove", "path": "/spec/externalIPs/0"})
	}
	if len(to) > 0 {
		ops = append(ops, map[string]any{"op": "add", "path": "/spec/externalIPs", "value": to})
	}
	body, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// ask runs a plugin as the chain does.
func ask(p plugin, m *made) error {
	ctx := context.Background()
	if x, ok := p.(admission.MutationInterface); ok && p.Handles(m.attrs.GetOperation()) {
		if err := x.Admit(ctx, m.attrs, nil); err != nil {
			return err
		}
	}
	return p.Validate(ctx, m.attrs, nil)
}

// judged is what the replica says of a plugin, where the answer was err.
func judged(t *testing.T, m *made, name string, in known, err error) verdict.AdmissionAnswer {
	t.Helper()
	q := &ours.Request{Attributes: &m.of, Body: m.body, Decision: verdict.DecisionAllow, Code: m.code, State: in, Window: instant{}}
	if err != nil {
		status := apierrors.APIStatus(nil)
		if s, ok := err.(apierrors.APIStatus); ok {
			status = s
		} else {
			t.Fatalf("not a status: %v", err)
		}
		q.Code, q.Message = status.Status().Code, status.Status().Message
	} else {
		written, err := runtime.Encode(m.codec, m.obj)
		if err != nil {
			t.Fatal(err)
		}
		q.Written = written
	}
	var adm verdict.Admission
	on := &config.APIServer{Admission: config.Admission{Enabled: []string{name}}}
	ours.New(on).Judge(q, &adm)
	if a := adm.Of(name); a != nil {
		return *a
	}
	return verdict.AdmissionAnswer{}
}

// forbidden is a refusal as plugins word it.
func forbidden(resource, why string) error {
	return apierrors.NewForbidden(schema.ParseGroupResource(resource), "x", errors.New(why))
}

// compare holds the replica to the plugin, for its answer and for the opposite one. open tells
// whether the replica may say of a refusal, or of its absence, that it does not know.
func compare(t *testing.T, p plugin, m *made, name string, in known, opposite error, open bool, count map[string]int) {
	t.Helper()
	err := ask(p, m)
	is := judged(t, m, name, in, err)
	want, other := verdict.PluginPass, opposite
	if err != nil {
		want, other = verdict.PluginMatch, nil
	}
	count[is.Outcome]++
	if is.Outcome != want && !(open && is.Outcome == verdict.PluginIndeterminate) {
		t.Fatalf("%s: %+v where the plugin says %v, of\n%s", name, is, err, m.body)
	}
	if is.Outcome == verdict.PluginIndeterminate {
		return
	}
	not := judged(t, m, name, in, other)
	if not.Outcome != verdict.PluginDrift && (err != nil || not.Outcome != verdict.PluginIndeterminate) {
		t.Fatalf("%s: %+v where the plugin says %v and the record %v, of\n%s", name, not, err, other, m.body)
	}
}

// TestServiceAccount compares with the plugin ServiceAccount.
func TestServiceAccount(t *testing.T) {
	real := serviceaccount.NewServiceAccount()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	real.SetExternalKubeClientSet(client)
	real.SetExternalKubeInformerFactory(factory)
	in := known{}
	for _, a := range accounts {
		if err := factory.Core().V1().ServiceAccounts().Informer().GetStore().Add(a); err != nil {
			t.Fatal(err)
		}
		in[a.Name] = true
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	count := map[string]int{}
	for range runs(t) {
		p := pod(r)
		m := create(t, p, corev1.SchemeGroupVersion.WithKind("Pod"), "pods")
		name := p.Spec.ServiceAccountName
		if name == "" {
			name = p.Spec.DeprecatedServiceAccount
		}
		if name == "" {
			name = "default"
		}
		_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
		opposite := forbidden("pods", `error looking up service account d/`+name+`: serviceaccount "`+name+`" not found`)
		compare(t, real, &m, "ServiceAccount", in, opposite, !mirror && in[name], count)
	}
	t.Log(count)
	for _, outcome := range []string{verdict.PluginPass, verdict.PluginMatch} {
		if count[outcome]*10 < runs(t) {
			t.Errorf("%s: %d of %d; the generator has lost its aim", outcome, count[outcome], runs(t))
		}
	}
	// One that is there for the replica alone.
	ghost := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace}, Spec: corev1.PodSpec{ServiceAccountName: "ghost"}}
	m := create(t, ghost, corev1.SchemeGroupVersion.WithKind("Pod"), "pods")
	if a := judged(t, &m, "ServiceAccount", known{"ghost": true}, ask(real, &m)); a.Outcome != verdict.PluginDrift {
		t.Errorf("an account that is missing for the plugin alone: %+v", a)
	}
}

// TestCertificateSubjectRestriction compares with the plugin CertificateSubjectRestriction.
func TestCertificateSubjectRestriction(t *testing.T) {
	real := subjectrestriction.NewPlugin()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s, err := newSignings(r)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for range runs(t) {
		csr := s.make(r)
		m := create(t, csr, csr.GroupVersionKind(), "certificatesigningrequests")
		opposite := forbidden("certificatesigningrequests.certificates.k8s.io",
			"use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed")
		compare(t, real, &m, "CertificateSubjectRestriction", nil, opposite, false, count)
	}
	t.Log(count)
	for _, outcome := range []string{verdict.PluginPass, verdict.PluginMatch} {
		if count[outcome]*10 < runs(t) {
			t.Errorf("%s: %d of %d; the generator has lost its aim", outcome, count[outcome], runs(t))
		}
	}
}

// TestDenyServiceExternalIPs compares with the plugin DenyServiceExternalIPs, which looks at changes too: of those
// that give external IPs the replica does not know which the service had.
func TestDenyServiceExternalIPs(t *testing.T) {
	const name = denyserviceexternalips.PluginName
	known := admission.NewPlugins()
	denyserviceexternalips.Register(known)
	x, err := known.InitPlugin(name, nil, admission.PluginInitializers{})
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	service := func() *corev1.Service {
		meta := metav1.ObjectMeta{Name: "x", Namespace: namespace, Labels: map[string]string{"l": pick(r, "a", "b")}}
		return &corev1.Service{ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Type: pick(r, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer),
				Ports:       []corev1.ServicePort{{Port: 80}},
				ExternalIPs: pick(r, nil, nil, []string{}, []string{"10.0.0.1"}, []string{"10.0.0.2", "10.0.0.1"}, []string{"10.0.0.2"})}}
	}
	count := map[string]int{}
	for range runs(t) {
		from, to := service(), service()
		var m made
		if r.IntN(2) == 0 {
			m = create(t, to, corev1.SchemeGroupVersion.WithKind("Service"), "services")
		} else {
			m = update(t, r, from, to, "Service", "services")
			if m.of.Verb == "patch" && r.IntN(2) == 0 {
				m.body = jsonPatch(t, from.Spec.ExternalIPs, to.Spec.ExternalIPs)
			}
		}
		opposite := forbidden("services", "Use of external IPs is denied by admission control")
		compare(t, x.(plugin), &m, name, nil, opposite, m.code == 200 && len(to.Spec.ExternalIPs) > 0, count)
	}
	t.Log(count)
	for _, outcome := range []string{verdict.PluginPass, verdict.PluginMatch} {
		if count[outcome]*10 < runs(t) {
			t.Errorf("%s: %d of %d; the generator has lost its aim", outcome, count[outcome], runs(t))
		}
	}
}

// TestLimitPodHardAntiAffinityTopology compares with the plugin LimitPodHardAntiAffinityTopology, which looks at changes
// too: of a patch that is refused the replica does not know the rest of the pod.
func TestLimitPodHardAntiAffinityTopology(t *testing.T) {
	const name = "LimitPodHardAntiAffinityTopology"
	real := antiaffinity.NewInterPodAntiAffinity()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	term := func() corev1.PodAffinityTerm {
		key := pick(r, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelHostname, "zone", "", "Kubernetes.io/hostname")
		return corev1.PodAffinityTerm{TopologyKey: key}
	}
	apart := func() *corev1.Pod {
		p := pod(r)
		p.Labels = map[string]string{"l": pick(r, "a", "b")}
		if r.IntN(8) == 0 {
			return p
		}
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term()}}}
		if r.IntN(8) == 0 {
			return p
		}
		anti := &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: term()}}}
		for range r.IntN(3) {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, term())
		}
		p.Spec.Affinity.PodAntiAffinity = anti
		return p
	}
	count := map[string]int{}
	for range runs(t) {
		m := create(t, apart(), corev1.SchemeGroupVersion.WithKind("Pod"), "pods")
		if r.IntN(2) == 0 {
			m = update(t, r, apart(), apart(), "Pod", "pods")
		}
		opposite := forbidden("pods", "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone "+
			"but only key kubernetes.io/hostname is allowed")
		compare(t, real, &m, name, nil, opposite, m.of.Verb == "patch" && ask(real, &m) != nil, count)
	}
	t.Log(count)
	for _, outcome := range []string{verdict.PluginPass, verdict.PluginMatch} {
		if count[outcome]*10 < runs(t) {
			t.Errorf("%s: %d of %d; the generator has lost its aim", outcome, count[outcome], runs(t))
		}
	}
}
