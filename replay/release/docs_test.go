package release

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables into docs/versions.md")

const (
	docs  = "../../docs/versions.md"
	begin = "<!-- tables, written by make golden -->\n"
	end   = "<!-- end of tables -->\n"
)

// TestDocs: docs/versions.md shows the tables as they are.
func TestDocs(t *testing.T) {
	raw, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("docs/versions.md lacks the lines %q and %q", begin, end)
	}
	want := before + begin + shown() + end + after
	if *update {
		if err := os.WriteFile(docs, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Error("docs/versions.md shows other tables: run make golden and read the difference")
	}
}

// shown returns the tables for people: the sources, the gates that decide, and the flags that not
// every release has.
func shown() string {
	var b strings.Builder
	b.WriteString("### Sources\n\n| release | modules read |\n| --- | --- |\n")
	for _, r := range All() {
		fmt.Fprintf(&b, "| %v | %s |\n", r, strings.Join(r.Modules, ", "))
	}
	b.WriteString("\n### Feature gates that decide\n\n| gate | changes |")
	rule := "\n| --- | --- |"
	for _, r := range All() {
		fmt.Fprintf(&b, " %v |", r)
		rule += " --- |"
	}
	b.WriteString(rule + "\n")
	for _, f := range deciding {
		fmt.Fprintf(&b, "| `%s` | %s |", f.gate, f.changes)
		for _, r := range All() {
			fmt.Fprintf(&b, " %s |", worded(r, f.gate))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n### Flags that not every release has\n\n| flag | first | last | declared in |\n| --- | --- | --- | --- |\n")
	oldest, newest := All()[0], All()[len(All())-1]
	for _, r := range All() {
		for _, name := range slices.Sorted(maps.Keys(r.flags)) {
			first, last, _ := FlagSpan(name)
			if last != r || first == oldest && last == newest {
				continue
			}
			f, _ := r.Flag(name)
			fmt.Fprintf(&b, "| `--%s` | %v | %v | %s |\n", name, first, last, f.Source)
		}
	}
	b.WriteString("\n### What no table of the sources holds\n\n| since | an apiserver | says |\n| --- | --- | --- |\n")
	for _, f := range facts {
		since := fmt.Sprintf("1.%d", f.Since)
		if f.Always > f.Since {
			since += fmt.Sprintf(" (late patch releases), 1.%d", f.Always)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", since, f.Text, f.Source)
	}
	return b.String()
}

// worded returns a gate in a release: "–" before there was one, "on" or "off", bold where it cannot
// be set, in brackets where there is no gate any more.
func worded(r *Release, gate string) string {
	value := map[bool]string{true: "on", false: "off"}[r.Enabled(gate, nil)]
	g, has := r.Gate(gate)
	first, _, _ := GateSpan(gate)
	switch {
	case !has && r.Minor < first.Minor:
		return "–"
	case !has:
		return "(" + value + ")"
	case g.Locked:
		return "**" + value + "**"
	}
	return value
}

// TestDecidingGatesExist: a gate that is misspelt, or that no release has, decides nothing.
func TestDecidingGatesExist(t *testing.T) {
	for _, f := range deciding {
		if _, _, ok := GateSpan(f.gate); !ok {
			t.Errorf("no release has the gate %s", f.gate)
		}
	}
}

// feature is a feature gate that changes a decision, an identity or what is recorded, with what it changes.
type feature struct{ gate, changes string }

// deciding are the feature gates the replica looks at, by the room of replay that does.
var deciding = []feature{
	{"AnonymousAuthConfigurableEndpoints", "whether the authentication file may say who is anonymous, and for which paths"},
	{"StructuredAuthenticationConfiguration", "whether `--authentication-config` is read"},
	{"StructuredAuthorizationConfiguration", "whether `--authorization-config` is read"},
	{"AllowParsingUserUIDFromCertAuth", "a client certificate may carry a uid"},
	{"AuthorizeWithSelectors", "authorizers see field and label selectors"},
	{"AuthorizeNodeWithSelectors", "nodes read their own node, pods and resource slices alone"},
	{"KubeletServiceAccountTokenForCredentialProviders", "nodes read the service accounts of their pods"},
	{"PodCertificateRequest", "nodes make and read certificate requests of their pods"},
	{"ClusterTrustBundle", "nodes read trust bundles"},
	{"ConstrainedImpersonation", "impersonation is checked by `impersonate:<mode>` and `impersonate-on:<mode>:<verb>` first"},
	{"AuthorizePodWebsocketUpgradeCreatePermission", "exec, attach and port-forward by websocket need create"},
	{"ServiceAccountNodeAudienceRestriction", "a node's token request for an audience its pod does not mount is checked"},
	{"DRAResourceClaimGranularStatusAuthorization", "writing a resource claim's status is checked by what changes"},
	{"AllowUnsafeMalformedObjectDeletion", "a delete that ignores read errors is checked"},
}

// facts are all facts, in the order in which docs/versions.md lists them.
var facts = []Fact{
	LoopbackAuthenticated, NodeSlices, NodeSliceCollections, CertificateID, NodeEphemeral, NodeAccounts, NodeEvents, NamedReasons,
	NodeVolumeHealth,
}
