package release

import (
	"slices"
	"strings"
	"testing"
)

// TestTables: every release has its table, whole, and they follow each other.
func TestTables(t *testing.T) {
	list := All()
	if list[0].Minor != 28 || list[len(list)-1].Minor < 37 {
		t.Fatalf("tables of %v to %v", list[0], list[len(list)-1])
	}
	for i, r := range list {
		if r.Minor != list[0].Minor+i {
			t.Errorf("%v follows 1.%d", r, list[0].Minor+i-1)
		}
		if !strings.HasPrefix(r.Modules[0], "k8s.io/kubernetes@v"+r.String()+".") {
			t.Errorf("%v is read from %s", r, r.Modules[0])
		}
		if len(r.gates) < 140 || len(r.flags) < 150 || len(r.Plugins) < 30 {
			t.Errorf("%v has %d gates, %d flags, %d plugins", r, len(r.gates), len(r.flags), len(r.Plugins))
		}
		for name, f := range r.flags {
			if !strings.HasSuffix(f.Source, ".go") || !strings.Contains(f.Source, "@v") {
				t.Errorf("%v: --%s is of %q", r, name, f.Source)
			}
		}
		if !slices.ContainsFunc(r.Plugins, func(p Plugin) bool { return p.Name == "NamespaceLifecycle" && p.Default }) ||
			!slices.ContainsFunc(r.Plugins, func(p Plugin) bool { return p.Name == "NodeRestriction" && !p.Default }) {
			t.Errorf("%v: plugins %v", r, r.Plugins)
		}
	}
}

func TestOf(t *testing.T) {
	for minor, want := range map[int]int{0: Assumed, 5: 28, 28: 28, 33: 33, 37: 37, 99: All()[len(All())-1].Minor} {
		if got := Of(minor); got.Minor != want {
			t.Errorf("Of(%d) is %v, want 1.%d", minor, got, want)
		}
	}
}

// TestEnabled: defaults, locks, the gates for all of a stage, gates not there yet and gone.
func TestEnabled(t *testing.T) {
	off := func(names ...string) map[string]bool { return setTo(false, names) }
	on := func(names ...string) map[string]bool { return setTo(true, names) }
	for _, tc := range []struct {
		minor int
		name  string
		set   map[string]bool
		want  bool
	}{
		{30, "AuthorizeNodeWithSelectors", on("AuthorizeNodeWithSelectors"), false}, // not there yet
		{31, "AuthorizeNodeWithSelectors", nil, false},
		{31, "AuthorizeNodeWithSelectors", on("AuthorizeNodeWithSelectors"), true},
		{31, "AuthorizeNodeWithSelectors", on("AllAlpha"), true},
		{32, "AuthorizeNodeWithSelectors", nil, true},
		{32, "AuthorizeNodeWithSelectors", off("AllBeta"), false},
		{32, "AuthorizeNodeWithSelectors", map[string]bool{"AllBeta": false, "AuthorizeNodeWithSelectors": true}, true},
		{34, "AuthorizeNodeWithSelectors", off("AuthorizeNodeWithSelectors"), true}, // locked
		{37, "AuthorizeNodeWithSelectors", off("AuthorizeNodeWithSelectors"), true}, // gone, and on
		{35, "ConstrainedImpersonation", nil, false},
		{36, "ConstrainedImpersonation", nil, true},
		{37, "SecurityContextDeny", on("SecurityContextDeny"), false}, // gone, and off
		{36, "PodCertificateRequest", nil, false},
		{37, "PodCertificateRequest", nil, true},
		{36, "NoSuchGate", on("NoSuchGate"), false},
	} {
		if got := Of(tc.minor).Enabled(tc.name, tc.set); got != tc.want {
			t.Errorf("1.%d %s with %v: %v, want %v", tc.minor, tc.name, tc.set, got, tc.want)
		}
	}
}

func setTo(v bool, names []string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = v
	}
	return m
}

func TestSpans(t *testing.T) {
	newest := All()[len(All())-1].String()
	for name, want := range map[string]string{
		"requestheader-uid-headers": "1.32 " + newest, "authorization-config": "1.29 " + newest, "cloud-provider": "1.28 1.32",
		"anonymous-auth": "1.28 " + newest, "audit-log-mode": "1.28 " + newest,
	} {
		first, last, ok := FlagSpan(name)
		if !ok || first.String()+" "+last.String() != want {
			t.Errorf("--%s: %v to %v, want %s", name, first, last, want)
		}
	}
	if _, _, ok := FlagSpan("basic-auth-file"); ok {
		t.Error("--basic-auth-file was gone before 1.28")
	}
	if first, last, _ := GateSpan("AuthorizeNodeWithSelectors"); first.Minor != 31 || last.Minor != 36 {
		t.Errorf("AuthorizeNodeWithSelectors: %v to %v", first, last)
	}
	if f, _ := Of(36).Flag("enable-logs-handler"); !f.Deprecated || f.Type != "bool" {
		t.Errorf("--enable-logs-handler: %+v", f)
	}
}

// TestFacts: a fact holds from its release on, and may be lacking in early patch releases.
func TestFacts(t *testing.T) {
	for minor, want := range map[int][2]bool{28: {false, true}, 29: {true, true}, 31: {true, true}, 32: {true, false}, 0: {true, false}} {
		if r := Of(minor); r.Has(LoopbackAuthenticated) != want[0] || r.MayLack(LoopbackAuthenticated) != want[1] {
			t.Errorf("1.%d: %v %v, want %v", minor, r.Has(LoopbackAuthenticated), r.MayLack(LoopbackAuthenticated), want)
		}
	}
	for _, f := range facts {
		if f.Since <= 28 || f.Since > All()[len(All())-1].Minor || f.Text == "" || f.Source == "" {
			t.Errorf("%+v", f)
		}
	}
	if Of(36).Has(NamedReasons) || !Of(37).Has(NamedReasons) || Of(34).Has(NodeEvents) || Of(36).MayLack(NodeEvents) {
		t.Error("facts of other releases")
	}
}

func TestConfig(t *testing.T) {
	for minor, want := range map[int]string{28: "", 29: "v1alpha1", 30: "v1alpha1 v1beta1", 34: "v1 v1alpha1 v1beta1"} {
		if got := strings.Join(Of(minor).Config("AuthenticationConfiguration"), " "); got != want {
			t.Errorf("1.%d: %q, want %q", minor, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for file, text := range map[string]string{"x.txt": "", "1.40.txt": "gate OnlyAName\n", "1.41.txt": "flag before-its-source bool\n",
		"1.42.txt": "what is this\n"} {
		if _, err := parse(file, text); err == nil {
			t.Errorf("%s %q was taken", file, text)
		}
	}
}
