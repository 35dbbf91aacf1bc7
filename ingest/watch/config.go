// Package watch follows live clusters: it lists and watches the objects the replica keeps and sends what it sees to the policy topic, so
// that a cluster's state is known without an exported file and stays complete even if the audit policy records RBAC writes without bodies.
//
//	                 ┌ list, page by page ─▶ objects, then "complete" ─┐
//	kube-apiserver ──┤                                                 ├─ redact ─ Encoder ─▶ audit.policy
//	                 └ watch from the list's version ─▶ changes ───────┘
//	                        │ ends: again from the last version sent
//	                        │ 410, or interrupted for too long: "gap since …", list again
//
// Each kind has a loop of its own; a kind that may not be read does not stop the others.
//
// # Nothing is skipped
//
// A change counts as seen once the broker has acknowledged it; only then does the version
// from which the watch would resume advance. If it cannot resume, there is a gap: the kind is
// unknown from the last moment for which everything had been sent until the next complete
// listing. A Position outlives the process, so that a restart, too, resumes or leaves a gap.
//
// # Times
//
// A change became effective before it arrived. The other bound is the floor: the latest
// moment after which everything that arrives now is known to have been written. The start of
// a listing is one (the listing is consistent), a bookmark's arrival less delay is
// another, and so is the creation of an object that was just added. While changes queue up,
// here or on the way, the floor stays where it was. The server's own times in an object
// (creation, deletion, managed fields) narrow that object's bound down to the second.
//
// # Secrets
//
// Of Secrets only the metadata is requested, in a form in which the apiserver sends nothing
// else, and only where the credentials allow it; every object passes redact.Redactor before
// anything else is done with it. Only the current page and queue are kept in memory.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
)

// Kind is a kind of objects that is watched.
type Kind struct {
	Resource   string // group resource: "roles.rbac.authorization.k8s.io"
	Path       string // of the collection over all namespaces, without a leading slash
	APIVersion string
	Kind       string
	// Optional kinds make more answers certain. One that the cluster does not serve, or permit to read, is retried now and then.
	Optional bool
	// MetadataOnly requests nothing but the objects' metadata; no other answer is accepted.
	MetadataOnly bool
}

// Kinds returns the kinds that are watched: those the replica decides with and, where they may
// be read, those by which identities and the node authorizer are judged. Of Secrets only
// metadata is requested.
func Kinds() []Kind {
	const (
		rbac         = "rbac.authorization.k8s.io"
		storage      = "storage.k8s.io"
		devices      = "resource.k8s.io"
		certificates = "certificates.k8s.io"
	)
	return []Kind{
		{Resource: "roles." + rbac, Path: "apis/" + rbac + "/v1/roles", APIVersion: rbac + "/v1", Kind: "Role"},
		{Resource: "clusterroles." + rbac, Path: "apis/" + rbac + "/v1/clusterroles", APIVersion: rbac + "/v1", Kind: "ClusterRole"},
		{Resource: "rolebindings." + rbac, Path: "apis/" + rbac + "/v1/rolebindings", APIVersion: rbac + "/v1", Kind: "RoleBinding"},
		{Resource: "clusterrolebindings." + rbac, Path: "apis/" + rbac + "/v1/clusterrolebindings",
			APIVersion: rbac + "/v1", Kind: "ClusterRoleBinding"},
		namespaceKind(),
		{Resource: "serviceaccounts", Path: "api/v1/serviceaccounts", APIVersion: "v1", Kind: "ServiceAccount"},
		{Resource: "nodes", Path: "api/v1/nodes", APIVersion: "v1", Kind: "Node", Optional: true},
		{Resource: "secrets", Path: "api/v1/secrets", APIVersion: "v1", Kind: "Secret", Optional: true, MetadataOnly: true},
		{Resource: "persistentvolumes", Path: "api/v1/persistentvolumes", APIVersion: "v1", Kind: "PersistentVolume", Optional: true},
		{Resource: "volumeattachments." + storage, Path: "apis/" + storage + "/v1/volumeattachments",
			APIVersion: storage + "/v1", Kind: "VolumeAttachment", Optional: true},
		{Resource: "resourceslices." + devices, Path: "apis/" + devices + "/v1/resourceslices",
			APIVersion: devices + "/v1", Kind: "ResourceSlice", Optional: true},
		{Resource: "certificatesigningrequests." + certificates, Path: "apis/" + certificates + "/v1/certificatesigningrequests",
			APIVersion: certificates + "/v1", Kind: "CertificateSigningRequest", Optional: true},
		{Resource: "podcertificaterequests." + certificates, Path: "apis/" + certificates + "/v1/podcertificaterequests",
			APIVersion: certificates + "/v1", Kind: "PodCertificateRequest", Optional: true}, // since 1.37
		{Resource: "pods", Path: "api/v1/pods", APIVersion: "v1", Kind: "Pod", Optional: true},
	}
}

const namespaces = "namespaces"

func namespaceKind() Kind {
	return Kind{Resource: namespaces, Path: "api/v1/namespaces", APIVersion: "v1", Kind: "Namespace"}
}

// Object is one object as it was listed, or as a change left it.
type Object struct {
	Resource string // Kind.Resource
	JSON     []byte // redacted, with kind and apiVersion; of a deleted object its last content
	Listed   bool   // part of the listing taken in [NotBefore, NotAfter]; otherwise a change
	Deleted  bool
	// Unknown: JSON has kind, apiVersion, name, namespace, uid, resourceVersion and creationTimestamp alone: the content was too large.
	Unknown bool
	// NotBefore and NotAfter bound the moment a change became effective.
	NotBefore, NotAfter time.Time
}

// Encoder makes the values of the policy topic's records. It is called by several
// goroutines. The caller owns what it returns.
type Encoder interface {
	// Object encodes one object. An error means that the JSON is not such an object, a nil
	// slice that the change need not be sent.
	Object(o Object) ([]byte, error)
	// Complete encodes that the objects sent as listed in [began, ended] were all that existed.
	Complete(resource string, began, ended time.Time) []byte
	// Gap encodes that changes between from and to may have been missed.
	Gap(resource string, from, to time.Time) []byte
	// Check returns an error that wraps ErrOtherCluster if objects cannot be the cluster's: before each listing the namespace kube-system.
	Check(resource string, objects [][]byte) error
}

// ErrOtherCluster is wrapped by Encoder.Check's error.
var ErrOtherCluster = errors.New("the credentials lead to another cluster")

// Position is how far a kind has been sent.
type Position struct {
	ResourceVersion string    `json:"resourceVersion"`
	Good            time.Time `json:"good"` // everything written before has been sent
}

// Positions keeps positions across restarts. Each resource is loaded and saved by one
// goroutine. A position older than the newest is safe and costs repetition; a lost one hides
// that there was a gap.
type Positions interface {
	// Load returns the saved position; ok is false if none was ever saved.
	Load(resource string) (p Position, ok bool, err error)
	Save(resource string, p Position) error
}

// Config is what New needs. Cluster and one of REST and Kubeconfig are required; other fields state the default that a zero value selects.
type Config struct {
	Cluster    string       // name under which the records are filed
	REST       *rest.Config // how to reach the apiserver
	Kubeconfig string       // file to read REST from; its current context

	PageSize int // objects a page of a listing; 500
	// MinPause and MaxPause bound growing pauses; RefusedPause follows what only a person can lift. 500 ms, 30 s, 1 min; jittered.
	MinPause, MaxPause, RefusedPause time.Duration
	SaveEvery                        time.Duration // between saved positions; 10 s; negative: after every batch

	Now func() time.Time // nil: time.Now
	// Pause waits for d, or until ctx ends and then returns ctx's error. Nil: a timer.
	Pause func(ctx context.Context, d time.Duration) error

	Log        *zap.Logger           // nil: silent
	Registerer prometheus.Registerer // nil: metrics are kept but not exposed
}

// Watcher follows one cluster. Make one with New, run it once.
type Watcher struct {
	cfg       Config
	log       *zap.Logger
	client    *http.Client
	base      *url.URL // of the apiserver, with a trailing slash
	producer  stream.Appender
	redactor  *redact.Redactor
	encoder   Encoder
	positions Positions
	metrics   *metrics
}

// New returns a Watcher. It reads the kubeconfig and its files without connecting. positions may be nil: then every start is a first start.
func New(cfg Config, producer stream.Appender, redactor *redact.Redactor, encoder Encoder, positions Positions) (*Watcher, error) {
	if cfg.Cluster == "" {
		return nil, errors.New("watch: no cluster name")
	}
	fail := func(err error) (*Watcher, error) { return nil, fmt.Errorf("watch cluster %s: %w", cfg.Cluster, err) }
	rc := cfg.REST
	if rc == nil && cfg.Kubeconfig == "" {
		return fail(errors.New("no REST configuration and no kubeconfig"))
	}
	if rc == nil {
		var err error
		if rc, err = clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig); err != nil {
			return fail(err)
		}
	}
	rc = rest.CopyConfig(rc)
	rc.Timeout = 0 // watches are long; requests have their own deadlines
	if rc.UserAgent == "" {
		rc.UserAgent = "retrial-watch"
	}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return fail(err)
	}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return fail(err)
	}
	cfg = cfg.withDefaults()
	m, err := newMetrics(cfg.Registerer, cfg.Cluster)
	if err != nil {
		return fail(err)
	}
	return &Watcher{
		cfg: cfg, log: cfg.Log.With(zap.String("cluster", cfg.Cluster)), client: client, base: base.JoinPath("/"),
		producer: producer, redactor: redactor, encoder: encoder, positions: positions, metrics: m,
	}, nil
}

func (c Config) withDefaults() Config {
	c.PageSize = cmp.Or(c.PageSize, 500)
	c.MinPause, c.MaxPause = cmp.Or(c.MinPause, 500*time.Millisecond), cmp.Or(c.MaxPause, 30*time.Second)
	c.RefusedPause, c.SaveEvery = cmp.Or(c.RefusedPause, time.Minute), cmp.Or(c.SaveEvery, 10*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Pause == nil {
		c.Pause = sleep.For
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c
}

// Run follows the cluster until ctx ends and returns nil. It retries failures of cluster and stream, which show in logs and metrics.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.client.CloseIdleConnections()
	w.log.Info("watching cluster", zap.String("server", w.base.Host))
	var group sync.WaitGroup
	for _, k := range Kinds() {
		r := newReflector(w, k)
		group.Go(func() { r.run(ctx) })
	}
	group.Wait()
	return nil
}
