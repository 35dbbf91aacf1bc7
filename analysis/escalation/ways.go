package escalation

import rbacv1 "k8s.io/api/rbac/v1"

// naming says which names a want takes.
type naming uint8

const (
	free   naming = iota // the request has no name, as on create
	chosen               // the subject chooses one name, the same in all wants of the way
	target               // the name of the account that is reached
	signer               // the signer of client certificates, or every signer of its domain
)

// reach says what a way leads to.
type reach uint8

const (
	toAccounts        reach = iota // service accounts of the namespace: their tokens
	toAllAccounts                  // those of all namespaces
	toAccountsAssumed              // service accounts, impersonated
	toUsersAssumed                 // users, impersonated
	toAnybody                      // a certificate for any user or group but system:masters
	toOther                        // computed where the edge is made
)

// want is a request a way takes: any one of the patterns.
type want struct {
	any  []ability
	name naming
}

// way is one way of an edge.
type way struct {
	edge     Edge
	wants    []want
	to       reach
	presumes string
	wide     bool // of resources without namespace
}

// What ways presume. The texts end sentences that begin with "presumes".
const (
	presumesPod       = "a running pod of that service account"
	presumesPort      = "a running pod of that service account, and a kubelet whose own port is reached"
	presumesSecret    = "a Secret with a token of that service account"
	presumesSigning   = "the controller manager signs for kubernetes.io/kube-apiserver-client"
	presumesMutating  = "a pod is created in that namespace, and the apiserver reaches the webhook"
	presumesWatching  = "a Secret with a token of that service account is written, and the apiserver reaches the webhook"
	presumesPolicy    = "a pod is created in that namespace"
	presumesPolicyNow = "a pod is created in that namespace, and the policy is bound"
	presumesAccount   = "somebody creates that service account, which does not exist"
	presumesThere     = "an object to change exists in that namespace"
)

const (
	groupApps      = "apps"
	groupBatch     = "batch"
	groupCerts     = "certificates.k8s.io"
	groupAdmission = "admissionregistration.k8s.io"
	signerClient   = "kubernetes.io/kube-apiserver-client"
	signerDomain   = "kubernetes.io/*"
)

// rights are the abilities that edges outside the rulebook take.
type rights struct {
	admin                             ability
	impUsers, impGroups, impAccounts  ability
	bindCluster, bindRole             ability // the verb bind
	escCluster, escRole               ability // the verb escalate
	crbCreate, crbUpdate, crbPatch    ability
	rbCreate, rbUpdate, rbPatch       ability
	crCreate, crUpdate, crPatch       ability
	roleCreate, roleUpdate, rolePatch ability
}

// rulebook is all ways and their patterns.
type rulebook struct {
	patterns
	ways  []way
	order map[Edge]int // in which paths prefer edges
	rights
	// Edges outside the rulebook; their wants are computed for each.
	bind, escalate, assumeGroup, adminToken, adminAssume, member int16
}

func newRulebook() *rulebook {
	b := &rulebook{order: map[Edge]int{}}
	for i, e := range Edges() {
		b.order[e] = i
	}
	w := func(name naming, p ...pattern) want {
		out := want{name: name}
		for _, of := range p {
			out.any = append(out.any, b.number(of))
		}
		return out
	}
	add := func(edge Edge, to reach, presumes string, wants ...want) {
		b.ways = append(b.ways, way{edge: edge, to: to, presumes: presumes, wants: wants, wide: to >= toAllAccounts &&
			to != toAccountsAssumed})
	}
	core := func(verb, resource string) pattern { return pattern{verb, "", resource, ""} }

	add(Impersonate, toUsersAssumed, "", w(target, core("impersonate", "users")))
	add(Impersonate, toAccountsAssumed, "", w(target, core("impersonate", "serviceaccounts")))
	add(TokenRequest, toAccounts, "", w(target, pattern{"create", "", "serviceaccounts", "token"}))

	// A token Secret is filled by its controller, and returned by every request that answers with
	// it.
	see := w(chosen, core("get", "secrets"), core("list", "secrets"), core("watch", "secrets"), core("patch", "secrets"))
	// With dryRun a deletecollection answers with all of them, and deletes none.
	seeAll := w(free, core("deletecollection", "secrets"))
	add(SecretToken, toAccounts, "", w(free, core("create", "secrets")), see)
	add(SecretToken, toAccounts, "", w(free, core("create", "secrets")), seeAll)
	add(SecretToken, toAccounts, "", w(chosen, core("create", "secrets")), w(chosen, core("patch", "secrets")))
	add(SecretToken, toAccounts, presumesSecret, see)
	add(SecretToken, toAccounts, presumesSecret, seeAll)

	// create makes one; apply makes one by a patch, which takes create by name as well;
	// change takes what is there.
	make := func(edge Edge, to reach, presumes, change string, p pattern) {
		verb := func(v string) pattern { p.verb = v; return p }
		add(edge, to, presumes, w(free, verb("create")))
		add(edge, to, presumes, w(chosen, verb("create")), w(chosen, verb("patch")))
		add(edge, to, change, w(chosen, verb("update"), verb("patch")))
	}
	make(PodCreate, toAccounts, "", presumesPod, core("", "pods"))
	b.ways[len(b.ways)-1].edge = WorkloadWrite // another image for a running pod
	for _, res := range []pattern{
		{"", groupApps, "deployments", ""}, {"", groupApps, "daemonsets", ""}, {"", groupApps, "statefulsets", ""},
		{"", groupApps, "replicasets", ""},
		{"", "", "replicationcontrollers", ""}, {"", groupBatch, "jobs", ""}, {"", groupBatch, "cronjobs", ""},
	} {
		make(WorkloadWrite, toAccounts, "", presumesThere, res)
	}
	add(PodExec, toAccounts, presumesPod, w(chosen, pattern{"create", "", "pods", "exec"}))
	add(PodExec, toAccounts, presumesPod, w(chosen, pattern{"update", "", "pods", "ephemeralcontainers"}, pattern{"patch", "", "pods",
		"ephemeralcontainers"}))
	add(NodeProxy, toAllAccounts, presumesPod, w(chosen, pattern{"create", "", "nodes", "proxy"}))
	add(NodeProxy, toAllAccounts, presumesPort, w(chosen, pattern{"get", "", "nodes", "proxy"}))

	csr := func(verb, sub string) pattern { return pattern{verb, groupCerts, "certificatesigningrequests", sub} }
	approval := w(chosen, csr("update", "approval"), csr("patch", "approval"))
	approve := w(signer, pattern{"approve", groupCerts, "signers", ""})
	add(CSRSign, toAnybody, presumesSigning, w(free, csr("create", "")), approval, approve)
	add(CSRSign, toAnybody, presumesSigning, w(chosen, csr("create", "")), w(chosen, csr("patch", "")), approval, approve)

	reg := func(verb, resource string) pattern { return pattern{verb, groupAdmission, resource, ""} }
	make(WebhookWrite, toAllAccounts, presumesMutating, presumesMutating, reg("", "mutatingwebhookconfigurations"))
	make(WebhookWrite, toAllAccounts, presumesWatching, presumesWatching, reg("", "validatingwebhookconfigurations"))
	const policies, policyBindings = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
	add(PolicyWrite, toAllAccounts, presumesPolicy, w(free, reg("create", policies)), w(free, reg("create", policyBindings)))
	add(PolicyWrite, toAllAccounts, presumesPolicyNow, w(chosen, reg("update", policies), reg("patch", policies)))

	rbac := func(verb, resource string) ability { return b.number(pattern{verb, rbacv1.GroupName, resource, ""}) }
	b.rights = rights{
		admin:    b.number(pattern{"*", "*", "*", ""}),
		impUsers: b.number(core("impersonate", "users")), impGroups: b.number(core("impersonate", "groups")),
		impAccounts: b.number(core("impersonate", "serviceaccounts")),
		bindCluster: rbac("bind", "clusterroles"), bindRole: rbac("bind", "roles"), escCluster: rbac("escalate", "clusterroles"),
		escRole:   rbac("escalate", "roles"),
		crbCreate: rbac("create", "clusterrolebindings"), crbUpdate: rbac("update", "clusterrolebindings"), crbPatch: rbac("patch",
			"clusterrolebindings"),
		rbCreate: rbac("create", "rolebindings"), rbUpdate: rbac("update", "rolebindings"), rbPatch: rbac("patch", "rolebindings"),
		crCreate: rbac("create", "clusterroles"), crUpdate: rbac("update", "clusterroles"), crPatch: rbac("patch", "clusterroles"),
		roleCreate: rbac("create", "roles"), roleUpdate: rbac("update", "roles"), rolePatch: rbac("patch", "roles"),
	}
	hand := func(edge Edge) int16 {
		b.ways = append(b.ways, way{edge: edge, to: toOther})
		return int16(len(b.ways) - 1)
	}
	b.bind, b.escalate, b.assumeGroup, b.adminToken, b.adminAssume, b.member = hand(Bind), hand(Escalate), hand(Impersonate),
		hand(TokenRequest), hand(Impersonate), hand("")
	return b
}
