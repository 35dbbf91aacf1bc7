package authn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
)

// kind is what a user name claims to be.
type kind uint8

const (
	kindUser kind = iota
	kindNobody
	kindAnonymous
	kindLoopback
	kindAccount // system:serviceaccount:…, malformed when name is empty
	kindNode
	kindBootstrap
	kindSystem // any other name under system:
)

// subject is a recorded user taken apart once for all questions.
type subject struct {
	e     *event.Event
	u     *event.User
	at    time.Time
	minor int // of the apiserver, 0 for a current one
	cfg   *config.APIServer
	lag   time.Duration
	// proxied: the server is an aggregated one. Whoever comes through the kube-apiserver comes
	// by the front proxy's headers, with the extra of what it came with there.
	proxied bool
	home    string // the one address the server listens on, "" for any
	// unchecked: legacy tokens are taken without a look at their account and Secret.
	unchecked bool

	kind            kind
	namespace, name string // of a service account; name alone: of a node, a bootstrap token's id

	authenticated     int // how often system:authenticated
	unauthenticated   bool
	masters, nodes    bool
	credentials       []string // values of the credential id
	jti, fingerprint  bool     // credentials is one value of this form
	podName, podUID   string
	nodeName, nodeUID string
	foreign           bool // extra beyond what service account tokens carry
	legacy            bool // the annotation of a legacy token
	legacySecret      string
}

// subjectOf takes the user of an event apart. It allocates nothing.
func subjectOf(e *event.Event, cfg *config.APIServer, minor int, lag time.Duration) subject {
	u := &e.User
	x := subject{e: e, u: u, at: e.RequestReceivedTimestamp, minor: minor, lag: lag, proxied: cfg != nil && cfg.Source != ""}
	if cfg != nil {
		x.cfg = cfg
		if cfg.Minor != 0 {
			x.minor = cmp.Or(cfg.Binary, cfg.Minor)
		}
		x.home = cfg.Authentication.BindAddress
		x.unchecked = cfg.Authentication.ServiceAccount.Enabled && !cfg.Authentication.ServiceAccount.Lookup
	}
	for _, g := range u.Groups {
		switch g {
		case GroupAuthenticated:
			x.authenticated++
		case GroupUnauthenticated:
			x.unauthenticated = true
		case GroupMasters:
			x.masters = true
		case GroupNodes:
			x.nodes = true
		}
	}
	for i := range u.Extra {
		values := u.Extra[i].Values
		first := ""
		if len(values) == 1 {
			first = values[0]
		}
		switch u.Extra[i].Key {
		case event.ExtraCredentialID:
			x.credentials = values
		case event.ExtraPodName:
			x.podName = first
		case event.ExtraPodUID:
			x.podUID = first
		case event.ExtraNodeName:
			x.nodeName = first
		case event.ExtraNodeUID:
			x.nodeUID = first
		case event.ExtraValidatingName, event.ExtraValidatingUID, event.ExtraMutatingName, event.ExtraMutatingUID,
			event.ExtraAttestedGroups:
			x.foreign = x.foreign || !x.since(37)
		default:
			x.foreign = true
		}
	}
	if len(x.credentials) == 1 {
		x.jti, x.fingerprint = credentialForm(x.credentials[0])
	}
	for i := range e.Annotations {
		switch e.Annotations[i].Key {
		case AnnotationLegacyToken:
			x.legacy = true
		case AnnotationLegacyAuto, AnnotationLegacyManual:
			x.legacySecret = e.Annotations[i].Value
		}
	}

	rest, system := strings.CutPrefix(u.Username, "system:")
	switch {
	case u.Username == "":
		x.kind = kindNobody
	case !system:
	case rest == "anonymous":
		x.kind = kindAnonymous
	case rest == "apiserver":
		x.kind = kindLoopback
	case strings.HasPrefix(rest, "serviceaccount:"):
		x.kind = kindAccount
		x.namespace, x.name, _ = kubenames.SplitServiceAccount(u.Username)
	case strings.HasPrefix(rest, "node:"):
		x.kind, x.name = kindNode, rest[len("node:"):]
	case strings.HasPrefix(rest, "bootstrap:"):
		x.kind, x.name = kindBootstrap, rest[len("bootstrap:"):]
	default:
		x.kind = kindSystem
	}
	return x
}

// credential names what the user came with, as far as the event tells.
func (x *subject) credential() string {
	switch {
	case x.jti || x.fingerprint:
		return x.credentials[0]
	case x.legacySecret != "" && x.namespace != "":
		return PrefixSecret + x.namespace + "/" + x.legacySecret
	}
	return ""
}

// since reports whether the apiserver is of a minor version or later.
func (x *subject) since(minor int) bool { return x.minor == 0 || x.minor >= minor }

// enabled reports whether the apiserver has a feature on.
func (x *subject) enabled(feature string) bool {
	switch {
	case x.cfg == nil:
		return release.Of(x.minor).Enabled(feature, nil)
	case x.cfg.Minor == 0:
		return release.Of(x.minor).Enabled(feature, x.cfg.Gates)
	}
	return x.cfg.Enabled(feature)
}

// credentialForm tells the two forms of a credential id apart; neither is malformed.
func credentialForm(v string) (jti, fingerprint bool) {
	if hex, ok := strings.CutPrefix(v, PrefixX509); ok {
		return false, len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.HasPrefix(v, PrefixJTI) && len(v) > len(PrefixJTI), false
}

// plain reports whether the identity carries nothing but name, uid and groups.
func (x *subject) plain() bool {
	return len(x.u.Extra) == 0 && !x.legacy
}

// groupsAre reports whether the recorded groups are those an authenticator gave, with what the
// apiserver adds. Since 1.10 it adds system:authenticated only to who has neither special
// group; 1.5 always did; in between either may be.
func (x *subject) groupsAre(given []string) bool {
	added := !x.since(10)
	kept := x.since(6)
	got := x.u.Groups
	if len(got) == len(given)+1 && got[len(given)] == GroupAuthenticated && slices.Equal(got[:len(given)], given) {
		return added || !special(given)
	}
	return kept && special(given) && slices.Equal(got, given)
}

// adderPassed reports whether some given groups lead to the recorded ones.
func (x *subject) adderPassed() bool {
	if !x.since(10) && x.minor < 6 {
		n := len(x.u.Groups)
		return n > 0 && x.u.Groups[n-1] == GroupAuthenticated
	}
	return x.authenticated > 0 || x.unauthenticated
}

func special(groups []string) bool {
	return slices.Contains(groups, GroupAuthenticated) || slices.Contains(groups, GroupUnauthenticated)
}

// accountGroups reports whether the groups are exactly those of a service account token, in the
// order in which the apiserver puts them.
func (x *subject) accountGroups() bool {
	g := x.u.Groups
	return len(g) == 3 && g[0] == GroupServiceAccounts && g[2] == GroupAuthenticated && ServiceAccountGroups(g, x.namespace)
}

// fromLoopback reports whether the peer is the apiserver itself: it comes from the loopback
// interface, or from the one address that it listens on.
func (x *subject) fromLoopback() bool {
	ip, ok := peer(x.e)
	return ok && (ip.IsLoopback() || x.home != "" && ip.String() == x.home)
}

// peer returns the address the request came from by the apiserver's own observation, the last of
// the recorded ones: the others are the client's word.
func peer(e *event.Event) (netip.Addr, bool) {
	if len(e.SourceIPs) == 0 {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(e.SourceIPs[len(e.SourceIPs)-1])
	return ip.Unmap(), err == nil
}

// shape checks that the recorded user has the form of what a kube-apiserver's authenticators
// produce: names, groups and extra have fixed shapes for the identities Kubernetes itself
// issues. It looks at the event alone.
func (x *subject) shape(out []Contradiction) []Contradiction {
	if len(x.credentials) > 0 && !x.jti && !x.fingerprint && x.kind != kindNobody {
		out = append(out, Contradiction{ContradictionCredentialFormat, fmt.Sprintf("credential id is %q", x.credentials)})
	}
	switch x.kind {
	case kindNobody:
		return x.nobody(out)
	case kindAnonymous:
		if x.u.UID != "" || len(x.u.Groups) != 1 || !x.unauthenticated {
			out = append(out, Contradiction{ContradictionAnonymous, fmt.Sprintf("%s has groups %q and uid %q; it has the group %s alone",
				UserAnonymous, x.u.Groups, x.u.UID, GroupUnauthenticated)})
		}
		return out
	case kindLoopback:
		if !x.loopbackShaped() && !x.proxied {
			out = append(out, Contradiction{ContradictionLoopback, fmt.Sprintf("%s has uid %q, groups %q, credential id %q and comes "+
				"from %q; it has a uid, the groups %s (since 1.29 to 1.32) and %s in that order, no credential id, and "+
				"comes from its own host",
				UserLoopback, x.u.UID, x.u.Groups, x.credentials, last(x.e.SourceIPs), GroupAuthenticated, GroupMasters)})
		}
		return out
	case kindAccount:
		out = x.accountShape(out)
	case kindNode:
		if !x.nodes || x.name == "" {
			out = append(out, Contradiction{ContradictionNodeMalformed,
				fmt.Sprintf("user %q has groups %q; a node has a name and the group %s", x.u.Username, x.u.Groups, GroupNodes)})
		}
	case kindBootstrap:
		if !bootstrapGroups(x.u.Groups) {
			out = append(out, Contradiction{ContradictionBootstrapGroups,
				fmt.Sprintf("groups %q; a bootstrap token has %s, groups below it, and %s", x.u.Groups, GroupBootstrappers,
					GroupAuthenticated)})
		}
	case kindSystem:
		if !componentName(x.u.Username) {
			out = append(out, Contradiction{ContradictionReservedName, fmt.Sprintf("user %q is none of Kubernetes' own", x.u.Username)})
		}
	}
	if x.nodes && x.kind != kindNode {
		out = append(out, Contradiction{
			ContradictionNodeMalformed, fmt.Sprintf("user %q has the group %s but is not a node", x.u.Username, GroupNodes)})
	}
	if x.masters && len(x.credentials) > 0 {
		out = append(out, Contradiction{ContradictionMastersExternal, fmt.Sprintf("%s has the group %s by %s", x.u.Username, GroupMasters,
			x.credentials[0])})
	}
	switch {
	case x.authenticated > 0 && x.unauthenticated:
		out = append(out, Contradiction{ContradictionGroupBoth, fmt.Sprintf("groups %q", x.u.Groups)})
	case x.authenticated == 0 && !x.unauthenticated:
		out = append(out, Contradiction{ContradictionGroupMissing, fmt.Sprintf("groups %q", x.u.Groups)})
	case x.authenticated > 1 && x.since(10):
		out = append(out, Contradiction{ContradictionGroupDuplicate, fmt.Sprintf("groups %q", x.u.Groups)})
	}
	return out
}

// nobody: an empty user is recorded of requests that did not get past authentication, and of
// those alone.
func (x *subject) nobody(out []Contradiction) []Contradiction {
	if len(x.u.Groups) > 0 || x.u.UID != "" {
		return append(out, Contradiction{ContradictionEmptyUser, fmt.Sprintf("no name with uid %q and groups %q", x.u.UID, x.u.Groups)})
	}
	code := x.e.Code()
	if !x.since(10) || code == 401 || code == 400 || code == 0 || x.e.Stage == event.StageRequestReceived {
		return out // before 1.10 the port without authentication recorded nobody
	}
	return append(out, Contradiction{ContradictionEmptyUser, fmt.Sprintf("nobody was authenticated, yet the answer is %d", code)})
}

func (x *subject) accountShape(out []Contradiction) []Contradiction {
	if x.name == "" {
		return append(out, Contradiction{ContradictionSAMalformed, fmt.Sprintf("user %q", x.u.Username)})
	}
	if !ServiceAccountGroups(x.u.Groups, x.namespace) {
		out = append(out, Contradiction{ContradictionSAGroups, fmt.Sprintf("groups %q; a token of namespace %s gives %s, %s:%s and %s",
			x.u.Groups, x.namespace, GroupServiceAccounts, GroupServiceAccounts, x.namespace, GroupAuthenticated)})
	}
	if (x.podName == "") != (x.podUID == "") {
		out = append(out, Contradiction{ContradictionSAPodPartial, fmt.Sprintf("pod name %q, pod uid %q", x.podName, x.podUID)})
	}
	if x.legacy {
		out = append(out, Contradiction{ContradictionSALegacyToken, fmt.Sprintf("token of Secret %s/%s", x.namespace, x.legacySecret)})
	}
	if stale, ok := x.e.Annotations.Get(AnnotationStaleToken); ok {
		out = append(out, Contradiction{ContradictionStaleToken, stale})
	}
	if !x.legacy && len(x.credentials) == 0 && x.since(32) {
		// Credential ids came with 1.32; before, a token left no trace.
		out = append(out, Contradiction{ContradictionSANoCredential, fmt.Sprintf("neither a credential id nor the annotation of a legacy "+
			"token, uid %q", x.u.UID)})
	}
	return out
}

// loopbackShaped reports whether system:apiserver is as the apiserver's own token has it: some
// releases put it into system:masters alone.
func (x *subject) loopbackShaped() bool {
	g, r := x.u.Groups, release.Of(x.minor)
	return (len(g) == 1 && g[0] == GroupMasters && (x.minor == 0 || r.MayLack(release.LoopbackAuthenticated)) ||
		len(g) == 2 && g[0] == GroupAuthenticated && g[1] == GroupMasters && r.Has(release.LoopbackAuthenticated)) &&
		x.u.UID != "" && len(x.u.Extra) == 0 && x.fromLoopback()
}

// bootstrapGroups: system:bootstrappers, any number below it, and system:authenticated.
func bootstrapGroups(groups []string) bool {
	return slices.Contains(groups, GroupBootstrappers) && !slices.ContainsFunc(groups, func(g string) bool {
		return g != GroupBootstrappers && g != GroupAuthenticated && !strings.HasPrefix(g, GroupBootstrappers+":")
	})
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// componentName lists the user names under "system:" that Kubernetes' own bootstrap policy
// and the usual control-plane components use.
func componentName(username string) bool {
	return slices.Contains([]string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kube-dns", "volume-scheduler", "monitoring",
		"aggregator", "kube-aggregator", "cloud-controller-manager", "konnectivity-server", "konnectivity-agent", "unsecured", "admin",
	}, strings.TrimPrefix(username, "system:"))
}
