package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sourceOf returns a package of one file.
func sourceOf(t *testing.T, text string) *source {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pkg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pkg", "a.go"), []byte("package pkg\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parse(module{"example.com/m", "v1.2.3", dir}, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGates reads both forms of a table, and of several specifications the one in force.
func TestGates(t *testing.T) {
	s := sourceOf(t, `
const (
	Plain  featuregate.Feature = "PlainName"
	onNow = true
)
var one = map[featuregate.Feature]featuregate.FeatureSpec{
	Plain: {Default: onNow, PreRelease: featuregate.Beta},
	other.Foreign: {Default: false, PreRelease: featuregate.GA, LockToDefault: true},
	Bare: {Default: true},
}
var two = map[featuregate.Feature]featuregate.VersionedSpecs{
	Grown: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.33"), Default: true, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.36"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
	Waiting: {
		{Version: version.MustParse("1.35"), Default: false, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.Beta, MinCompatibilityVersion: version.MustParse("1.35")},
	},
	Later: {{Version: version.MustParse("1.40"), Default: true, PreRelease: featuregate.Beta}},
}
var noTable = map[string]int{"Another": 1}
`)
	for minor, want := range map[int]map[string]gate{
		35: {
			"PlainName": {"beta", true, false}, "Foreign": {"ga", false, true}, "Bare": {"ga", true, false},
			"Grown": {"beta", true, false}, "Waiting": {"beta", false, false},
		},
		36: {
			"PlainName": {"beta", true, false}, "Foreign": {"ga", false, true}, "Bare": {"ga", true, false},
			"Grown": {"ga", true, true}, "Waiting": {"beta", true, false},
		},
	} {
		got := map[string]gate{}
		if err := s.gates(minor, got); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Errorf("1.%d: %v, want %v", minor, got, want)
		}
	}
	broken := sourceOf(t, `var one = map[featuregate.Feature]featuregate.FeatureSpec{A: {Default: runtime.GOOS == "linux"}}`)
	if err := broken.gates(36, map[string]gate{}); err == nil || !strings.Contains(err.Error(), "example.com/m@v1.2.3/pkg/a.go: A") {
		t.Errorf("a default nobody can read: %v", err)
	}
}

// TestFlags reads every way in which flags are declared, and leaves those of other servers.
func TestFlags(t *testing.T) {
	s := sourceOf(t, `
const named = "named-flag"
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.A, "a-switch", false, "")
	fs.StringSliceVarP(&o.B, "a-list", "b", nil, "")
	fs.Int32SliceVar(&o.B, "numbers", nil, "")
	fs.Var(&o.C, named, "")
	fs.DurationVar(&o.D, fmt.Sprintf("audit-%s-wait", plugin), 0, "")
	fs.StringVar(&o.E, prefix+"made-up", "", "")
	fs.MarkDeprecated("a-list", "use another")
	globalflag.Register(fs, "registered")
	klog.Infof("Not a flag", "at all", 1)
}
func (o *DelegatingAuthorizationOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.A, "of-another-server", false, "")
}
var seconds = flag.Int64("global-flag", 300, "")
`)
	got := map[string]flag{}
	s.flags(got)
	want := map[string]flag{
		"a-switch": {kind: "bool"}, "a-list": {kind: "stringslice", deprecated: true}, "numbers": {kind: "int32slice"},
		"named-flag":     {kind: "value"},
		"audit-log-wait": {kind: "duration"}, "audit-webhook-wait": {kind: "duration"}, "registered": {kind: "value"},
		"global-flag": {kind: "int64"},
	}
	for name, f := range want {
		f.source = "example.com/m@v1.2.3/pkg/a.go"
		want[name] = f
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestReleases: the list is in order, and the table of a release reads as the product expects.
func TestReleases(t *testing.T) {
	list := releases()
	if !slices.IsSortedFunc(list, func(a, b release) int { return strings.Compare(a.minor, b.minor) }) || len(list) < 10 {
		t.Errorf("%v", list)
	}
	for _, r := range list {
		if !strings.HasPrefix(r.version, "v"+r.minor+".") || !strings.HasPrefix(r.asked, "v"+r.minor+".") {
			t.Errorf("%+v: another release's version", r)
		}
	}
	table := &table{
		release: list[0], modules: []module{{path: "k8s.io/kubernetes", version: "v1"}}, plugins: []plugin{{"First", true},
			{"Second", false}},
		gates: map[string]gate{"G": {"ga", true, true}}, flags: map[string]flag{"f": {"bool", true, "m@v1/a.go"}},
		configs: []configVersion{{"C", []string{"v1", "v2"}}},
	}
	_, text, _ := strings.Cut(string(table.text()), "\n")
	if want := "module k8s.io/kubernetes v1\ngate G ga on locked\nadmission First on\nadmission Second off\nconfig C v1 v2\nsource " +
		"m@v1/a.go\nflag f bool deprecated\n"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// TestSettings: a release is asked what it can be set to and is not already.
func TestSettings(t *testing.T) {
	table := &table{gates: map[string]gate{"On": {"beta", true, false}, "Off": {"alpha", false, false}, "Fixed": {"ga", true, true}}}
	for _, tc := range []struct {
		gates    map[string]bool
		possible bool
	}{
		{nil, true}, {map[string]bool{"On": false}, true}, {map[string]bool{"On": true}, false},
		{map[string]bool{"On": true, "Off": true}, true},
		{map[string]bool{"Fixed": true}, false}, {map[string]bool{"None": true}, false},
	} {
		if _, possible := settings(table, tc.gates); possible != tc.possible {
			t.Errorf("%v: %v", tc.gates, possible)
		}
	}
}
