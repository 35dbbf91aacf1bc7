package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// Config is what a recording is made of.
type Config struct {
	Name string // of the recording, a folder's
	// Flags for kube-apiserver, beside or in place of what any control plane has. DIR/ in
	// front of a file's name stands for the folder the files lie in.
	Flags []string
	// Files the flags name, by base name. Those in Recorded are kept with this other content
	// (credentials taken out); nil is not kept at all.
	Files    map[string][]byte
	Recorded map[string][]byte
	// Manifest keeps the flags as a static pod's manifest instead of a file of flags.
	Manifest bool
	// Late cuts the log: it begins when the state was taken, by State, instead of when the
	// apiserver started.
	Late bool
	// LogPolicy is the audit policy; empty: Policy.
	LogPolicy string
}

// Policy records every answer but those of kinds that hold credentials.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
  verbs: [get, list, watch]
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, configmaps, serviceaccounts/token]
- level: RequestResponse
`

// Generic is where the files of a recorded configuration seem to lie.
const Generic = "/etc/kubernetes"

// Recorder is a running control plane that is recorded.
type Recorder struct {
	*controlplane.Cluster
	Admin   *Actor
	Client  *kubernetes.Clientset // of Admin
	dynamic *dynamic.DynamicClient
	config  Config
	dir     string // files that the flags name, and the log

	mu        sync.Mutex
	scenarios []*Scenario
	label     string
	secrets   []string
	folders   []string // of this machine
	state     []byte
	from      int // where the log begins that is kept
	versions  []version
	servers   []backend
}

// version is a file that the apiserver read while the log was recorded.
type version struct {
	from time.Time
	of   string // authentication or authorization
	name string // in the recording
	text []byte
}

// Start runs the control plane.
func Start(t testing.TB, c Config) *Recorder {
	t.Helper()
	if c.LogPolicy == "" {
		c.LogPolicy = Policy
	}
	r := &Recorder{config: c, dir: t.TempDir(), label: "base"}
	for name, text := range c.Files {
		r.write(t, name, text)
	}
	r.write(t, "audit-policy.yaml", []byte(c.LogPolicy))
	flags := []string{"--audit-policy-file=" + r.file("audit-policy.yaml"), "--audit-log-path=" + r.file("audit.log")}
	for _, f := range c.Flags {
		flags = append(flags, strings.Replace(f, "=DIR/", "="+r.dir+"/", 1))
	}
	r.Cluster = controlplane.Start(t, flags...)
	var err error
	r.Admin = r.Actor(t, "kubernetes-super-admin", "x509", r.Cluster.Admin(t))
	r.Admin.findings = []string{"masters-external"}
	cfg := r.watch(r.Admin, r.Cluster.Admin(t))
	cfg.UserAgent = "recorder/v1"
	if r.Client, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if r.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Recorder) file(name string) string { return filepath.Join(r.dir, name) }

func (r *Recorder) write(t testing.TB, name string, text []byte) {
	t.Helper()
	// A file that names others says where they lie.
	text = bytes.ReplaceAll(text, []byte(" DIR/"), []byte(" "+r.dir+"/"))
	// Readers of a file that changes must find all of it or nothing.
	if err := os.WriteFile(r.file(name)+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.file(name)+".new", r.file(name)); err != nil {
		t.Fatal(err)
	}
}

// Replace writes another file of authenticators or of authorizers (of is authentication or
// authorization) while the apiserver runs, and waits until it is in force, or until the
// apiserver says that it does not take it: status is success or failure.
func (r *Recorder) Replace(t testing.TB, of, name string, text []byte, status string) {
	t.Helper()
	r.write(t, name, text)
	controlplane.Poll(t, "the file to be read", func(context.Context) (bool, string) {
		_, metrics := r.Admin.Do(t, "GET /metrics", &Scenario{})
		from, ok := reloaded(metrics, of, status)
		if ok {
			r.versions = append(r.versions, version{from, of, fmt.Sprintf("reload-%d-%s", len(r.versions)+1, name), text})
		}
		return ok, ""
	})
}

var reloads = regexp.MustCompile(`(?m)^apiserver_(\w+)_config_controller_automatic_reload_last_timestamp_seconds\{[^}` +
	`]*status="(\w+)"\} (\S+)$`)

// reloaded reads in the apiserver's metrics when it last took a file ("success"), or did not
// take one ("failure").
func reloaded(metrics, of, status string) (time.Time, bool) {
	for _, m := range reloads.FindAllStringSubmatch(metrics, -1) {
		if m[1] != of || m[2] != status {
			continue
		}
		seconds, err := strconv.ParseFloat(m[3], 64)
		if err == nil && seconds > 0 {
			return time.UnixMicro(int64(seconds * 1e6)), true
		}
	}
	return time.Time{}, false
}

// Scenario names what the requests that follow are about.
func (r *Recorder) Scenario(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.label = name
}

// Secret names a credential that must be in no recording.
func (r *Recorder) Secret(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = append(r.secrets, text)
}

// Hide names further folders that a recording must not know of.
func (r *Recorder) Hide(folders ...string) { r.folders = append(r.folders, folders...) }

// Log returns what the apiserver has logged so far.
func (r *Recorder) Log(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(r.file("audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Scenario is one request. What was meant is left out where a request was made to see what
// becomes of it.
type Scenario struct {
	AuditID     string              `json:"auditID"`
	T           time.Time           `json:"t"`
	Scenario    string              `json:"scenario"`
	ID          string              `json:"id"` // whose credential
	Impersonate map[string][]string `json:"impersonate,omitempty"`
	// Server is who was asked past the kube-apiserver.
	Server string `json:"server,omitempty"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Code   int    `json:"code"`
	// Expect is the decision that was meant: allow, forbid, or none (nobody was asked).
	Expect string `json:"expect,omitempty"`
	// Codes are the answers that were meant.
	Codes []int `json:"codes,omitempty"`
	// Authorizer is who was meant to decide, by its name in the configuration.
	Authorizer string `json:"authorizer,omitempty"`
	// Authenticator is what let the user in: x509, token-file, service-account, …
	Authenticator string `json:"authenticator,omitempty"`
	// Findings are those that the identity was meant to cause, if not with each request, then
	// with one of them.
	Findings []string `json:"findings,omitempty"`
}

// watch makes a client's requests scenarios of the recording.
func (r *Recorder) watch(a *Actor, cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tripper{r, a, next} })
	return cfg
}

type tripper struct {
	*Recorder
	actor *Actor
	next  http.RoundTripper
}

type meaning struct{}

// RoundTrip notes the request and the audit ID that the answer names.
func (w *tripper) RoundTrip(q *http.Request) (*http.Response, error) {
	s := &Scenario{T: time.Now().UTC(), ID: w.actor.name, Server: w.actor.server, Method: q.Method, Path: q.URL.RequestURI(),
		Authenticator: w.actor.authenticator, Findings: w.actor.findings}
	if m, ok := q.Context().Value(meaning{}).(*Scenario); ok {
		s.Expect, s.Codes, s.Authorizer = m.Expect, m.Codes, m.Authorizer
	}
	for name, values := range q.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			if s.Impersonate == nil {
				s.Impersonate = map[string][]string{}
			}
			s.Impersonate[name] = values
		}
	}
	res, err := w.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if s.AuditID, s.Code = res.Header.Get("Audit-Id"), res.StatusCode; s.Code == http.StatusUnauthorized {
		s.Authenticator, s.Findings = "", nil // nobody was let in
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Scenario = w.label
	w.scenarios = append(w.scenarios, s)
	return res, nil
}

// line is as much of an event as checks of a recording need.
type line struct {
	AuditID     string
	Stage       string
	RequestURI  string
	Annotations map[string]string
}

// check holds the log against what was meant: a recording that does not show what it says is
// of no use.
func (r *Recorder) check(t testing.TB, log []byte) {
	t.Helper()
	events := map[string]line{}
	for text := range strings.Lines(string(log)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in: %.300s", err, text)
		}
		events[l.AuditID] = l
	}
	missing := 0
	for _, s := range r.scenarios {
		if s.Expect == "" {
			continue
		}
		l, ok := events[s.AuditID]
		if !ok {
			missing++
			continue
		}
		got := l.Annotations["authorization.k8s.io/decision"]
		if got == "" {
			got = "none"
		}
		if got != s.Expect {
			t.Errorf("%s: %s %s %s: meant to be %s, was %s, %d, %q", s.Scenario, s.ID, s.Method, s.Path, s.Expect, got, s.Code,
				l.Annotations["authorization.k8s.io/reason"])
		}
	}
	if missing > 0 && !r.config.Late {
		t.Errorf("%d of %d requests are not in the log", missing, len(r.scenarios))
	}
}

var jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*`)

// redact takes tokens and the names of this machine's folders out.
func (r *Recorder) redact(text []byte) []byte {
	out := jwt.ReplaceAllString(string(text), "redacted.jwt")
	for _, s := range r.secrets {
		out = strings.ReplaceAll(out, s, "redacted")
	}
	for _, dir := range append([]string{r.dir, r.Folder()}, r.folders...) {
		out = strings.ReplaceAll(out, dir, Generic)
	}
	return []byte(out)
}

// sorted copies scenarios in the order of their requests.
func (r *Recorder) sorted() []*Scenario {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.scenarios)
	slices.SortStableFunc(all, func(a, b *Scenario) int { return a.T.Compare(b.T) })
	return all
}

func (r *Recorder) String() string {
	return fmt.Sprintf("%s: %d requests", r.config.Name, len(r.scenarios))
}
