package deploy

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/config"
)

// objects decodes every document of a manifest, strictly: a member that does not exist or
// is there twice is an error.
func objects(t *testing.T, file string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		o, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, doc)
		}
		out = append(out, o)
	}
	return out
}

// of returns the objects of one type by name.
func of[T interface {
	runtime.Object
	v1.Object
}](all []runtime.Object) map[string]T {
	out := map[string]T{}
	for _, o := range all {
		if o, ok := o.(T); ok {
			out[o.GetName()] = o
		}
	}
	return out
}

// manifest is a file and the command of one of the workloads in it.
type manifest struct{ file, runs string }

var manifests = []manifest{{"serve.yaml", "serve"}, {"scale-out.yaml", "ingest"}, {"scale-out.yaml", "replay"}}

// workload is what the manifests have in common.
type workload struct {
	all      []runtime.Object
	replicas int32
	labels   map[string]string
	selector map[string]string
	pod      corev1.PodTemplateSpec
	claims   []string
}

// load returns a workload of a manifest with the objects that are its own, or everybody's.
func load(t *testing.T, m manifest) workload {
	t.Helper()
	var w workload
	all := objects(t, m.file)
	for _, o := range all {
		var of map[string]string
		switch o := o.(type) {
		case *corev1.Service:
			of = o.Spec.Selector
		case *networkingv1.NetworkPolicy:
			of = o.Spec.PodSelector.MatchLabels
		case *policyv1.PodDisruptionBudget:
			of = o.Spec.Selector.MatchLabels
		case *appsv1.StatefulSet:
			of = o.Spec.Template.Labels
		case *appsv1.Deployment:
			of = o.Spec.Template.Labels
		}
		component := of["app.kubernetes.io/component"]
		if component == "" || component == m.runs {
			w.all = append(w.all, o)
		} else if !slices.Contains(manifests, manifest{m.file, component}) {
			t.Errorf("%s: an object is of %q, which no test looks at", m.file, component)
		}
	}
	for _, s := range of[*appsv1.StatefulSet](w.all) {
		w.replicas, w.labels, w.selector, w.pod = *s.Spec.Replicas, s.Labels, s.Spec.Selector.MatchLabels, s.Spec.Template
		for _, c := range s.Spec.VolumeClaimTemplates {
			w.claims = append(w.claims, c.Name)
		}
		if of[*corev1.Service](w.all)[s.Spec.ServiceName] == nil {
			t.Errorf("the service %q is not there", s.Spec.ServiceName)
		}
	}
	for _, d := range of[*appsv1.Deployment](w.all) {
		w.replicas, w.labels, w.selector, w.pod = *d.Spec.Replicas, d.Labels, d.Spec.Selector.MatchLabels, d.Spec.Template
	}
	if len(w.pod.Spec.Containers) != 1 {
		t.Fatalf("%s: %d containers of %s", m.file, len(w.pod.Spec.Containers), m.runs)
	}
	return w
}

// TestManifestsHoldTogether: what one object names, another one is.
func TestManifestsHoldTogether(t *testing.T) {
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(read(t, "Containerfile"))
	for _, m := range manifests {
		t.Run(m.file+" "+m.runs, func(t *testing.T) {
			w, file := load(t, m), m.file
			spec, pod := w.pod.Spec, labels.Set(w.pod.Labels)
			for _, o := range w.all {
				o := o.(v1.Object)
				if ns := o.GetNamespace(); ns != "retrial" && (ns != "" || o.GetName() != "retrial") {
					t.Errorf("%s is in namespace %q", o.GetName(), ns)
				}
			}
			if !maps.Equal(w.selector, keep(pod, slices.Collect(maps.Keys(w.selector)))) {
				t.Errorf("the selector %v does not fit %v", w.selector, pod)
			}
			if of[*corev1.ServiceAccount](w.all)[spec.ServiceAccountName] == nil || spec.AutomountServiceAccountToken == nil ||
				*spec.AutomountServiceAccountToken {
				t.Errorf("service account %q, token mounted: %v", spec.ServiceAccountName, spec.AutomountServiceAccountToken)
			}
			if s := spec.SecurityContext; s.RunAsUser == nil || len(user) == 0 || strings.Join(user[1:], ":") != "65532:65532" ||
				*s.RunAsUser != 65532 || *s.FSGroup != 65532 {
				t.Errorf("runs as %v, the image's user is %v", s.RunAsUser, user)
			}

			ports := map[string]int32{}
			c := spec.Containers[0]
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				scheme := corev1.URIScheme("")
				if probe.HTTPGet.Port.StrVal == "webhook" {
					scheme = corev1.URISchemeHTTPS
				}
				if _, ok := ports[probe.HTTPGet.Port.StrVal]; !ok || probe.HTTPGet.Scheme != scheme ||
					!slices.Contains([]string{"/healthz", "/readyz"}, probe.HTTPGet.Path) {
					t.Errorf("probe %+v", probe.HTTPGet)
				}
			}
			for _, s := range of[*corev1.Service](w.all) {
				if !labels.SelectorFromSet(s.Spec.Selector).Matches(pod) {
					t.Errorf("service %s does not select the pods", s.Name)
				}
				for _, p := range s.Spec.Ports {
					if p.Port != ports[p.TargetPort.StrVal] {
						t.Errorf("service %s: port %d is %d in the pod", s.Name, p.Port, ports[p.TargetPort.StrVal])
					}
				}
			}
			for _, p := range of[*networkingv1.NetworkPolicy](w.all) {
				if !labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(pod) || len(p.Spec.PolicyTypes) != 2 {
					t.Errorf("network policy %s does not select the pods, or not both directions", p.Name)
				}
				for _, in := range p.Spec.Ingress {
					for _, port := range in.Ports {
						if _, ok := ports[port.Port.StrVal]; !ok {
							t.Errorf("network policy %s lets in to port %v, which nobody listens on", p.Name, port.Port)
						}
					}
				}
			}
			for _, b := range of[*policyv1.PodDisruptionBudget](w.all) {
				if !labels.SelectorFromSet(b.Spec.Selector.MatchLabels).Matches(pod) {
					t.Errorf("disruption budget %s does not select the pods", b.Name)
				}
			}

			volumes := slices.Clone(w.claims)
			for _, v := range spec.Volumes {
				volumes = append(volumes, v.Name)
				if v.ConfigMap != nil && of[*corev1.ConfigMap](w.all)[v.ConfigMap.Name] == nil {
					t.Errorf("the config map %q is not there", v.ConfigMap.Name)
				}
				if v.Secret != nil && (*v.Secret.DefaultMode != 0o440 || !strings.Contains(read(t, file), "create secret generic "+
					v.Secret.SecretName)) {
					t.Errorf("the secret %q has mode %o, or nobody says how it is made", v.Secret.SecretName, *v.Secret.DefaultMode)
				}
			}
			for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
				for _, m := range c.VolumeMounts {
					if !slices.Contains(volumes, m.Name) {
						t.Errorf("%s mounts %q, which is not a volume", c.Name, m.Name)
					}
				}
			}
		})
	}
	if w := load(t, manifests[0]); w.replicas != 1 || w.labels["retrial.io/purpose"] != "evaluation" || len(w.claims) != 1 {
		t.Errorf("the evaluation has %d replicas, labels %v and volumes %v", w.replicas, w.labels, w.claims)
	}
	for runs, claims := range map[string]int{"ingest": 1, "replay": 0} { // a spool has to stay
		if w := load(t, manifest{"scale-out.yaml", runs}); w.replicas < 2 || w.labels["retrial.io/purpose"] != "" ||
			len(w.claims) != claims {
			t.Errorf("%s has %d replicas, labels %v and volumes %v", runs, w.replicas, w.labels, w.claims)
		}
	}
	// They, and the one for watching, agree on the namespace.
	want := of[*corev1.Namespace](objects(t, "serve.yaml"))["retrial"]
	for _, file := range []string{"scale-out.yaml", "watch-rbac.yaml"} {
		if got := of[*corev1.Namespace](objects(t, file))["retrial"]; !maps.Equal(got.Labels, want.Labels) {
			t.Errorf("%s: the namespace's labels are %v, in serve.yaml %v", file, got.Labels, want.Labels)
		}
	}
	if level := want.Labels[api.EnforceLevelLabel]; level != string(api.LevelRestricted) {
		t.Errorf("the namespace enforces %q", level)
	}
}

// TestManifestsAreRestricted asks Pod Security admission's own code.
func TestManifestsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		pod := load(t, m).pod
		for _, r := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta,
			&pod.Spec) {
			if !r.Allowed {
				t.Errorf("%s: %s: %s: %s", m.file, m.runs, r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
	}
}

// TestManifestsAreConfigured: the flags exist, the configuration is one the binary takes, and
// every path in it lies where something is mounted.
func TestManifestsAreConfigured(t *testing.T) {
	kafka := map[string]config.Config{}
	for _, m := range manifests {
		t.Run(m.file+" "+m.runs, func(t *testing.T) {
			w, file := load(t, m), m.file
			c := w.pod.Spec.Containers[0]
			if len(c.Args) == 0 || c.Args[0] != m.runs || len(c.Command) != 0 {
				t.Fatalf("runs %v %v", c.Command, c.Args)
			}
			// The kubelet sets these for the Service "retrial"; none may mean something to us.
			links := map[string]string{"RETRIAL_SERVICE_HOST": "10.96.0.9", "RETRIAL_SERVICE_PORT": "9443",
				"RETRIAL_PORT": "tcp://10.96.0.9:9443", "RETRIAL_PORT_9443_TCP": "x", "RETRIAL_SERVICE_PORT_WEBHOOK": "9443"}
			defaults := config.Default()
			for _, f := range defaults.Fields() {
				if _, clash := links[f.Env]; clash {
					t.Errorf("%s is also a service's variable", f.Env)
				}
			}
			set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			config.Bind(set)
			if err := set.Parse(c.Args[1:]); err != nil {
				t.Fatalf("%v: %v", c.Args, err)
			}
			at, _ := set.GetString("config")
			if env := variable(c, "RETRIAL_CONFIG"); env != at {
				t.Errorf("commands run beside it read %q, it reads %q", env, at)
			}
			here := filepath.Join(t.TempDir(), "retrial.yaml")
			if err := os.WriteFile(here, []byte(mounted(t, w, c, at)), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, e := range c.Env {
				t.Setenv(e.Name, os.Expand(strings.NewReplacer("$(", "${", ")", "}").Replace(e.Value), func(name string) string {
					return links[name]
				}))
			}
			set = pflag.NewFlagSet("serve", pflag.ContinueOnError)
			flags := config.Bind(set)
			if err := set.Parse([]string{"--config", here}); err != nil {
				t.Fatal(err)
			}
			cfg, err := flags.Load()
			if err != nil {
				t.Fatal(err)
			}

			if before, ok := kafka[m.file]; ok && !reflect.DeepEqual(before.Kafka, cfg.Kafka) {
				t.Errorf("has Kafka as %+v, another workload of the file as %+v", cfg.Kafka, before.Kafka)
			}
			kafka[m.file] = cfg

			mount := func(p string) (corev1.VolumeMount, bool) {
				var best corev1.VolumeMount
				for _, m := range c.VolumeMounts {
					if (p == m.MountPath || strings.HasPrefix(p, m.MountPath+"/")) && len(m.MountPath) > len(best.MountPath) {
						best = m
					}
				}
				return best, best.MountPath != ""
			}
			if m, ok := mount(cfg.DataDir); !ok || m.ReadOnly {
				t.Errorf("the data directory %s is not on a volume that can be written", cfg.DataDir)
			}
			for what, p := range map[string]string{"key": cfg.KeyFile, "page's token": cfg.UI.TokenFile,
				"Kafka's password": cfg.Kafka.SASLPasswordFile, "ClickHouse's password": cfg.ClickHouse.PasswordFile} {
				if p == "" {
					continue
				}
				if m, ok := mount(p); !ok || m.Name == "config" || m.ReadOnly && !strings.Contains(read(t, file),
					"--from-literal="+path.Base(p)+"=") {
					t.Errorf("the %s %s is on no volume, or in no secret", what, p)
				}
			}
			if err := identity.CheckKeyPath(cfg.KeyFile, cfg.DataDir); err != nil {
				t.Error(err)
			}
			listens := []string{cfg.UI.Listen}
			if m.runs != "replay" {
				listens = append(listens, cfg.Webhook.Listen)
			}
			for _, listen := range listens {
				if config.Loopback(listen) {
					continue
				}
				if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
					return strings.HasSuffix(listen, ":"+itoa(p.ContainerPort))
				}) {
					t.Errorf("%s is not a port of the container", listen)
				}
			}
			if m.runs != "replay" && (config.Loopback(cfg.Webhook.Listen) || len(cfg.Webhook.Advertise) == 0 ||
				strings.Contains(strings.Join(cfg.Webhook.Advertise, " "), "$")) {
				t.Errorf("the webhook listens on %s and is advertised as %v", cfg.Webhook.Listen, cfg.Webhook.Advertise)
			}
			embedded := len(cfg.Kafka.Brokers) == 0 && cfg.ClickHouse.DSN == ""
			external := len(cfg.Kafka.Brokers) > 0 && (cfg.ClickHouse.DSN != "") == (m.runs == "replay")
			if (w.replicas == 1) != embedded || (w.replicas > 1) != external || w.replicas > 1 && cfg.Kafka.Partitions < int64(w.replicas) {
				t.Errorf("%d replicas with brokers %v (%d partitions) and store %q", w.replicas, cfg.Kafka.Brokers, cfg.Kafka.Partitions,
					cfg.ClickHouse.DSN)
			}
		})
	}
}

// TestScaleOutIdentity runs the init container's script on folders of its own: what an
// administrator hands out, without the authority's key, is what a replica serves with.
func TestScaleOutIdentity(t *testing.T) {
	dir := t.TempDir()
	admin, secret, data := filepath.Join(dir, "admin"), filepath.Join(dir, "identity"), filepath.Join(dir, "data")
	names := []string{"retrial.example"}
	a, err := identity.Open(identity.Config{Dir: admin, Names: names}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cred, err := a.Registry().Add("prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	text := read(t, "scale-out.yaml")
	for _, m := range regexp.MustCompile(`--from-file=(\S+?)=admin/pki/(\S+)`).FindAllStringSubmatch(text, -1) {
		b, err := os.ReadFile(filepath.Join(admin, m[2]))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(secret, m[1]), b, 0o440); err != nil {
			t.Fatal(err)
		}
	}
	script := load(t, manifest{"scale-out.yaml", "ingest"}).pod.Spec.InitContainers[0]
	if !slices.Equal(script.Command, []string{"/bin/sh", "-ec"}) {
		t.Fatalf("the init container runs %v", script.Command)
	}
	here := strings.NewReplacer("/var/lib/retrial/data", data, "/identity", secret).Replace(script.Args[0])
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-ec", here).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	replica, err := identity.Open(identity.Config{Dir: filepath.Join(data, "pki"), Names: names}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if covered, err := replica.ServerCovers("retrial.example"); err != nil || !covered {
		t.Errorf("the replica's certificate: %v %v", covered, err)
	}
	known, err := replica.Registry().Get("prod")
	if err != nil || len(known.Certificates) != 1 || known.Certificates[0].Serial != cred.Serial {
		t.Errorf("the replica knows %+v, %v", known, err)
	}
	if _, err := os.Stat(filepath.Join(data, "pki", "ca.key")); err == nil {
		t.Error("the authority's key was handed out")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mounted returns the content of a file in a container that comes from a config map.
func mounted(t *testing.T, w workload, c corev1.Container, file string) string {
	t.Helper()
	for _, m := range c.VolumeMounts {
		for _, v := range w.pod.Spec.Volumes {
			if v.Name == m.Name && v.ConfigMap != nil && m.MountPath == path.Dir(file) {
				return of[*corev1.ConfigMap](w.all)[v.ConfigMap.Name].Data[path.Base(file)]
			}
		}
	}
	t.Fatalf("%s is mounted from no config map", file)
	return ""
}

func variable(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func keep(set map[string]string, names []string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = set[n]
	}
	return out
}
