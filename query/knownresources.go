package query

import (
	"strings"
)

// builtins are the resources of Kubernetes' own API groups, and what only rules name, such as users,
// a group a line, core first. They exist in a cluster none of whose rules names them.
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

// shortNames are those kubectl knows of them.
const shortNames = `
cm configmaps, csr certificatesigningrequests, ctb clustertrustbundles, cj cronjobs, crd customresourcedefinitions, crds customresourcedefinitions, deploy deployments, ds daemonsets, ep endpoints,
ev events, hpa horizontalpodautoscalers, ing ingresses, limits limitranges, netpol networkpolicies, no nodes, ns namespaces, pc priorityclasses, pdb poddisruptionbudgets, po pods,
pv persistentvolumes, pvc persistentvolumeclaims, quota resourcequotas, rc replicationcontrollers, rs replicasets, sa serviceaccounts, sc storageclasses, sts statefulsets, svc services
`

// builtinGroups are the groups of Kubernetes' own resources; aliases what its short names mean.
var builtinGroups, aliases = readBuiltins()

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

// singular is the other number of a plural, as people and kinds write it.
func singular(plural string) string {
	for _, end := range [...][2]string{{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"s", ""}} {
		if stem, ok := strings.CutSuffix(plural, end[0]); ok {
			return stem + end[1]
		}
	}
	return plural
}
