package authz_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// releaseRecording is what make oracle-versions writes of a release.
type releaseRecording struct {
	Release string
	Version string // of the code that was asked, where the tables are of another
	Asked   []releaseAnswers
}

// releaseAnswers is what a release's own code says of itself under some settings of its feature
// gates, and what its Node and RBAC authorizers answered.
type releaseAnswers struct {
	Gates map[string]bool
	Self  struct {
		Gates               map[string]string
		Roles               []*rbacv1.Role
		RoleBindings        []*rbacv1.RoleBinding
		ClusterRoles        []*rbacv1.ClusterRole
		ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	}
	Reasons []string
	Answers []int // twice the index of the reason, and one more when allowed
}

// releaseLine is a line of the cases: a new cluster, a write, or a request.
type releaseLine struct {
	Cluster                                                                     bool
	Kind                                                                        string
	Before, After                                                               json.RawMessage
	User                                                                        string
	Groups                                                                      []string
	Verb, APIGroup, Resource, Subresource, Namespace, Name, Path, FieldSelector string
}

func unpack(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "releases", name))
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	if data, err = dec.DecodeAll(data, nil); err != nil {
		t.Fatal(err)
	}
	return data
}

// releaseCases returns the lines all releases were asked.
func releaseCases(t *testing.T) []releaseLine {
	t.Helper()
	var lines []releaseLine
	in := bufio.NewScanner(bytes.NewReader(unpack(t, "cases.jsonl.zst")))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var l releaseLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// recordedReleases returns all there are tables of; the ends of them in a short run.
func recordedReleases() []*release.Release {
	list := release.All()
	if testing.Short() {
		return []*release.Release{list[0], list[len(list)-1]}
	}
	return list
}

func recordingOf(t *testing.T, r *release.Release) *releaseRecording {
	t.Helper()
	rec := &releaseRecording{}
	if err := json.Unmarshal(unpack(t, r.String()+".json.zst"), rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestReleases holds the replica to each release's own authorizers: decision and reason, under
// the release's bootstrap policy and under several settings of its feature gates.
func TestReleases(t *testing.T) {
	lines := releaseCases(t)
	for _, r := range recordedReleases() {
		rec := recordingOf(t, r)
		for _, asked := range rec.Asked {
			t.Run(fmt.Sprintf("%v%v", r, asked.Gates), func(t *testing.T) {
				t.Parallel()
				differences, allowed := asked.differ(t, lines, r.Minor)
				for i, text := range differences {
					if i == 5 {
						t.Errorf("and more: %d of %d answers differ", len(differences), len(asked.Answers))
						break
					}
					t.Error(text)
				}
				if n := len(asked.Answers); n < 10_000 || allowed*10 < n {
					t.Errorf("%d of %d questions are allowed: they ask nothing", allowed, n)
				}
			})
		}
	}
}

// TestReleasesAreToldApart: judged as another release, each recording shows it.
func TestReleasesAreToldApart(t *testing.T) {
	lines, list := releaseCases(t), recordedReleases()
	for i, r := range list {
		for _, other := range list[max(0, i-1):min(len(list), i+2)] {
			if other == r || alike[[2]int{min(r.Minor, other.Minor), max(r.Minor, other.Minor)}] {
				continue
			}
			if differences, _ := recordingOf(t, r).Asked[0].differ(t, lines, other.Minor); len(differences) == 0 {
				t.Errorf("%v judged as %v differs in nothing", r, other)
			}
		}
	}
}

// alike are neighbours of which the authorizers decide and word alike by default.
var alike = map[[2]int]bool{{28, 29}: true, {35, 36}: true}

// differ says how the replica's answers by the rules of a release differ from the recorded ones,
// and how many of these allow.
func (asked *releaseAnswers) differ(t *testing.T, lines []releaseLine, minor int) (differences []string, allowed int) {
	t.Helper()
	c := newReleaseCluster(t, asked, &config.APIServer{Minor: minor, Gates: asked.Gates,
		Authorization: config.Authorization{Authorizers: []config.Authorizer{
			{Type: config.Node, Name: "node"}, {Type: config.RBAC, Name: "rbac"},
		}}})
	n := 0
	for i := range lines {
		if !c.line(t, &lines[i]) {
			continue
		}
		answer := asked.Answers[n]
		n++
		allowed += answer & 1
		if text := c.compare(&lines[i], answer&1 == 1, asked.Reasons[answer/2]); text != "" {
			differences = append(differences, fmt.Sprintf("line %d: %s", i+1, text))
		}
	}
	if n != len(asked.Answers) {
		t.Errorf("%d questions, %d answers", n, len(asked.Answers))
	}
	return differences, allowed
}

// TestReleaseGates: the tables of feature gates, read from sources, say what the releases' own
// code says when it runs.
func TestReleaseGates(t *testing.T) {
	for _, r := range recordedReleases() {
		rec, n := recordingOf(t, r), 0
		if rec.Version != "" {
			continue
		}
		for name, text := range rec.Asked[0].Self.Gates {
			if strings.HasPrefix(name, "All") {
				continue
			}
			g, ok := r.Gate(name)
			got := string(g.Stage) + map[bool]string{true: " on", false: " off"}[g.Default] + map[bool]string{true: " locked"}[g.Locked]
			if !ok || got != text {
				t.Errorf("%v %s: the table says %q, Kubernetes %q", r, name, got, text)
			}
			n++
		}
		if n < 100 {
			t.Errorf("%v tells of %d gates", r, n)
		}
	}
}

// releaseCluster is the replica's side of one cluster of a release.
type releaseCluster struct {
	minor int
	chain *authz.Chain
	view  *state.View
	graph *graph.Graph
	lives map[graph.Object][]graph.Step
	now   int64
}

func newReleaseCluster(t *testing.T, rec *releaseAnswers, cfg *config.APIServer) *releaseCluster {
	t.Helper()
	var changes []rbacindex.Change
	add := func(kind rbacindex.Kind, namespace, name string, o any) {
		changes = append(changes, rbacindex.Change{Key: rbacindex.Key{Kind: kind, Namespace: namespace, Name: name}, Object: o})
	}
	for _, o := range rec.Self.Roles {
		add(rbacindex.KindRole, o.Namespace, o.Name, o)
	}
	for _, o := range rec.Self.RoleBindings {
		add(rbacindex.KindRoleBinding, o.Namespace, o.Name, o)
	}
	for _, o := range rec.Self.ClusterRoles {
		add(rbacindex.KindClusterRole, "", o.Name, o)
	}
	for _, o := range rec.Self.ClusterRoleBindings {
		add(rbacindex.KindClusterRoleBinding, "", o.Name, o)
	}
	policy, err := rbacindex.Empty().Apply(changes...)
	if err != nil {
		t.Fatal(err)
	}
	return &releaseCluster{minor: cfg.Minor, chain: authz.New(cfg), view: &state.View{RBAC: policy}}
}

// line does what a line says; true for a question, which is left to ask.
func (c *releaseCluster) line(t *testing.T, l *releaseLine) bool {
	t.Helper()
	switch {
	case l.Cluster:
		c.graph, c.lives, c.now = graph.New(), map[graph.Object][]graph.Step{}, 0
		for _, k := range []graph.Kind{graph.Pod, graph.Volume, graph.Attachment, graph.Slice, graph.CertificateRequest} {
			c.graph.SetScope(k, "", []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
		}
		return false
	case l.Kind == "":
		return true
	}
	kind, ok := map[string]graph.Kind{"Pod": graph.Pod, "PersistentVolume": graph.Volume, "VolumeAttachment": graph.Attachment,
		"ResourceSlice": graph.Slice, "PodCertificateRequest": graph.CertificateRequest}[l.Kind]
	if !ok {
		t.Fatalf("no kind %s", l.Kind)
	}
	shown := l.After
	if len(shown) == 0 {
		shown = l.Before
	}
	var head struct {
		Metadata struct{ Namespace, Name, UID string }
	}
	if err := json.Unmarshal(shown, &head); err != nil {
		t.Fatal(err)
	}
	c.now++
	st := graph.Step{NotBefore: c.now, NotAfter: c.now, Known: graph.Absent}
	if len(l.After) > 0 {
		object := l.After
		if c.minor < 34 { // an apiserver drops what its API does not have
			object = bytes.ReplaceAll(object, []byte("extendedResourceClaimStatus"), []byte("dropped"))
		}
		content, err := graph.ContentOf(kind, object)
		if err != nil {
			t.Fatal(err)
		}
		st.Known, st.UID, st.Content = graph.Present, head.Metadata.UID, &content
	}
	o := graph.Object{Kind: kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	c.lives[o] = append(c.lives[o], st)
	c.graph.Set(o, c.lives[o])
	return false
}

// compare asks the replica; it returns how it differs, or "".
func (c *releaseCluster) compare(l *releaseLine, allowed bool, reason string) string {
	u := event.User{Username: l.User, Groups: l.Groups}
	a := verdict.Attributes{
		ResourceRequest: l.Resource != "", APIVersion: "v1", Verb: l.Verb, APIGroup: l.APIGroup, Resource: l.Resource,
		Subresource: l.Subresource,
		Namespace:   l.Namespace, Name: l.Name, Path: l.Path, FieldSelector: l.FieldSelector,
	}
	ans := c.chain.Authorize(&u, &a, &authz.Moment{At: time.Unix(0, c.now), View: c.view, Graph: node.Graph(c.graph)}, nil)
	want := verdict.DecisionForbid
	if allowed {
		want = verdict.DecisionAllow
	}
	if ans.Decision == want && ans.Gives(reason, nil) {
		return ""
	}
	return fmt.Sprintf("%s: %+v: ours %v (%q, lacks %v), Kubernetes %v %q", l.User, a, ans.Decision, ans.Refusal(), ans.Missing(), want,
		reason)
}
