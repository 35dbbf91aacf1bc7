// Package resource reads resources as people write them, in the words of a policy and of Kubernetes itself.
package resource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
)

// Word is a resource as people write it.
type Word struct {
	Name, Group, Sub string
	grouped          bool // the group was given, if only by a final dot
}

// Parse parses RESOURCE[.GROUP][/SUBRESOURCE], or RESOURCE/SUBRESOURCE.GROUP as rules
// and kubectl have it. A dot at the end is the core group.
func Parse(word string) (Word, error) {
	head, sub, slash := strings.Cut(word, "/")
	if slash && sub == "" || strings.Contains(sub, "/") {
		return Word{}, fmt.Errorf("%q is not RESOURCE, RESOURCE.GROUP or RESOURCE/SUBRESOURCE", word)
	}
	var r Word
	r.Name, r.Group, r.grouped = strings.Cut(head, ".")
	if r.Sub = sub; !r.grouped {
		r.Sub, r.Group, r.grouped = strings.Cut(sub, ".")
	}
	if r.Name == "" || slash && r.Sub == "" {
		return Word{}, errors.New("the resource before the group is missing")
	}
	return r, nil
}

// String returns the word in rules' notation, with its group.
func (r *Word) String() string {
	s := r.Name
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Sub != "" {
		s += "/" + r.Sub
	}
	return s
}

// inRules returns the resource as rules name it.
func (r *Word) inRules() string {
	if r.Sub != "" {
		return r.Name + "/" + r.Sub
	}
	return r.Name
}

// Names are the words that a policy's rules use, in place of asking the cluster what exists.
type Names struct {
	Resources map[string][]string // groups by resource, or resource/subresource
	Verbs     map[string]bool
	policy    *rbacindex.Snapshot
}

// NamedIn returns the words of all rules.
func NamedIn(policy *rbacindex.Snapshot) Names {
	n := Names{map[string][]string{}, map[string]bool{}, policy}
	policy.All(func(_ rbacindex.Key, object any) bool {
		rules, _ := rbacindex.RulesOf(object)
		for i := range rules {
			for _, v := range rules[i].Verbs {
				n.Verbs[v] = true
			}
			for _, r := range rules[i].Resources {
				groups := n.Resources[r]
				for _, g := range rules[i].APIGroups {
					if !slices.Contains(groups, g) {
						groups = append(groups, g)
					}
				}
				n.Resources[r] = groups
			}
		}
		return true
	})
	return n
}

// Understand completes a resource as it was written. A short name, a singular or a kind is read as the resource it means, as kubectl does,
// and read says so. Without a group it gets that of Kubernetes' own resource of the name, or the only one in which rules name it. What then
// is nothing anybody knows of is an error: the answer would be about another question than was meant.
func (r *Word) Understand(n Names) (read string, err error) {
	if r.grouped || r.Name == rbacv1.ResourceAll {
		return "", nil
	}
	written := r.String()
	if !n.has(r) {
		meant := n.meant(r.Name)
		if len(meant) != 1 {
			text := fmt.Sprintf("no rule names the resource %s, and Kubernetes has none of that name", written)
			if alike := n.near(r); len(alike) > 0 {
				return "", errors.New(text + phrase.DidYouMean("; ", alike))
			}
			return "", fmt.Errorf("%s: write it with its group, as widgets.example.com", text)
		}
		r.Name = meant[0]
		read = fmt.Sprintf("%s was read as %s", written, r.inRules())
	}
	return read, r.choose(n)
}

// has reports whether rules name a resource, or one of its subresources, or Kubernetes has it.
func (n *Names) has(r *Word) bool {
	_, builtin := Builtin[r.Name]
	return builtin || len(n.Resources[r.inRules()]) > 0 || len(n.Resources[r.Name]) > 0
}

// meant returns the resources that a short name, a singular or a kind stands for.
func (n *Names) meant(word string) []string {
	word = strings.ToLower(word)
	if full, ok := aliases[word]; ok {
		return []string{full}
	}
	var out []string
	add := func(plural string) {
		if (word == plural || word == singular(plural)) && !slices.Contains(out, plural) {
			out = append(out, plural)
		}
	}
	for plural := range Builtin {
		add(plural)
	}
	for plural := range n.Resources {
		if !strings.Contains(plural, "/") && plural != rbacv1.ResourceAll {
			add(plural)
		}
	}
	slices.Sort(out)
	return out
}

// choose fills in the group. Rules still name the group "extensions" for resources that moved long ago.
func (r *Word) choose(n Names) error {
	if group, ok := Builtin[r.Name]; ok {
		r.Group = group
		return nil
	}
	groups := n.Resources[r.inRules()]
	if len(groups) == 0 {
		groups = n.Resources[r.Name]
	}
	var others []string
	for _, g := range groups {
		switch g {
		case "":
			return nil
		case rbacv1.APIGroupAll, "extensions":
		default:
			others = append(others, r.Name+"."+g)
		}
	}
	if len(others) > 1 {
		slices.Sort(others)
		return fmt.Errorf("rules name %s in several groups: write %s", r.Name, strings.Join(others, " or "))
	}
	if len(others) == 1 {
		_, r.Group, _ = strings.Cut(others[0], ".")
	}
	return nil
}

// usualVerbs are the verbs of requests and rules, except those made up for one purpose.
var usualVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "bind",
	"escalate", "approve", "sign", "use", rbacv1.VerbAll}

// Verb checks that requests have a verb, or that rules name it. One that resembles such a verb is an error, any other unknown verb gets a
// hint.
func (n *Names) Verb(verb string, path bool) (hint string, err error) {
	if n.Verbs[verb] || slices.Contains(usualVerbs, verb) || path && slices.Contains([]string{"post", "put", "head", "options"}, verb) {
		return "", nil
	}
	known := slices.Clone(usualVerbs)
	for v := range n.Verbs {
		known = append(known, v)
	}
	hint = fmt.Sprintf("no rule names the verb %q", verb)
	if alike := near.Words(verb, known, 2); len(alike) > 0 {
		return "", errors.New(hint + ", and requests do not have it" + phrase.DidYouMean("; ", alike))
	}
	return hint, nil
}

// Hint returns a hint if no rule names a resource: only wildcards grant it, or its group is misspelt.
func (n *Names) Hint(r *Word) string {
	if r.Name == rbacv1.ResourceAll || r.Group == rbacv1.APIGroupAll || n.names(r) {
		return ""
	}
	text := fmt.Sprintf("no rule names the resource %s: only wildcards grant it", r)
	return text + phrase.DidYouMean("; ", n.near(r))
}

// names reports whether a rule names the resource in its group.
func (n *Names) names(r *Word) bool {
	list := []string{r.inRules()}
	if r.Sub != "" {
		list = append(list, "*/"+r.Sub)
	}
	return slices.ContainsFunc(list, func(word string) bool {
		return slices.Contains(n.Resources[word], r.Group) || slices.Contains(n.Resources[word], rbacv1.APIGroupAll)
	})
}

// near returns what may have been meant, as it should be written.
func (n *Names) near(r *Word) []string {
	withSub := func(list []string) []string {
		if r.Sub != "" {
			for i := range list {
				list[i] += "/" + r.Sub
			}
		}
		return list
	}
	if meant := n.meant(r.Name); len(meant) > 0 && meant[0] != r.Name {
		return withSub(meant)
	}
	// The same resource in another group.
	var out []string
	for _, g := range n.Resources[r.inRules()] {
		if g != r.Group && g != rbacv1.APIGroupAll && g != "extensions" {
			other := Word{Name: r.Name, Group: g, Sub: r.Sub}
			out = append(out, other.String())
		}
	}
	if len(out) > 0 {
		slices.Sort(out)
		return out
	}
	var known []string
	for word := range n.Resources {
		if word != rbacv1.ResourceAll && !strings.HasPrefix(word, "*/") {
			known = append(known, word)
		}
	}
	for _, word := range near.Words(r.inRules(), known, 3) {
		head, sub, _ := strings.Cut(word, "/")
		other := Word{Name: head, Sub: sub, grouped: true}
		groups := slices.Sorted(slices.Values(n.Resources[word]))
		for _, g := range groups {
			if g != "extensions" || len(groups) == 1 {
				other.Group = g
				break
			}
		}
		out = append(out, other.String())
	}
	return out
}

// builtins are the resources of Kubernetes' own API groups, and what only rules name, such as users, one group a line, core first. They
// exist even if no rule names them.
const builtins = `
. bindings componentstatuses configmaps endpoints events groups limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services users
admissionregistration.k8s.io mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations
apiextensions.k8s.io customresourcedefinitions
apiregistration.k8s.io apiservices
apps controllerrevisions daemonsets deployments replicasets statefulsets
authentication.k8s.io selfsubjectreviews tokenreviews uids userextras
authorization.k8s.io localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews
autoscaling horizontalpodautoscalers
batch cronjobs jobs
certificates.k8s.io certificatesigningrequests clustertrustbundles podcertificaterequests signers
coordination.k8s.io leases
discovery.k8s.io endpointslices
flowcontrol.apiserver.k8s.io flowschemas prioritylevelconfigurations
networking.k8s.io ingressclasses ingresses ipaddresses networkpolicies servicecidrs
node.k8s.io runtimeclasses
policy poddisruptionbudgets podsecuritypolicies
rbac.authorization.k8s.io clusterrolebindings clusterroles rolebindings roles
resource.k8s.io deviceclasses resourceclaims resourceclaimtemplates resourceslices
scheduling.k8s.io priorityclasses
storage.k8s.io csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses
`

// shortNames are kubectl's short names for them.
const shortNames = `
cm configmaps, csr certificatesigningrequests, ctb clustertrustbundles, cj cronjobs, crd customresourcedefinitions, crds customresourcedefinitions, deploy deployments, ds daemonsets, ep endpoints,
ev events, hpa horizontalpodautoscalers, ing ingresses, limits limitranges, netpol networkpolicies, no nodes, ns namespaces, pc priorityclasses, pdb poddisruptionbudgets, po pods,
pv persistentvolumes, pvc persistentvolumeclaims, quota resourcequotas, rc replicationcontrollers, rs replicasets, sa serviceaccounts, sc storageclasses, sts statefulsets, svc services
`

// Builtin has the groups of Kubernetes' own resources, aliases the meaning of their short names.
var Builtin, aliases = readBuiltins()

func readBuiltins() (groups, short map[string]string) {
	groups, short = map[string]string{}, map[string]string{}
	for line := range strings.Lines(builtins) {
		words := strings.Fields(line)
		for i, word := range words {
			if i > 0 {
				groups[word] = strings.TrimPrefix(words[0], ".")
			}
		}
	}
	for pair := range strings.SplitSeq(shortNames, ",") {
		words := strings.Fields(pair)
		short[words[0]] = words[1]
	}
	return groups, short
}

// singular returns the singular of a plural, as people and kinds write it.
func singular(plural string) string {
	for _, end := range [...][2]string{{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"s", ""}} {
		if stem, ok := strings.CutSuffix(plural, end[0]); ok {
			return stem + end[1]
		}
	}
	return plural
}
