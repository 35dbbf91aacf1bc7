package admission

import "github.com/retrial-io/retrial/verdict"

// registry has the plugins that are evaluated again, in the order in which they are asked.
var registry = []registered{ //nolint:gochecknoglobals // constant table
	{evaluated: namespaceLifecycle{}},
	{evaluated: serviceAccount{}, behind: []string{verdict.PluginNamespaceLifecycle, "NamespaceAutoProvision", "LimitRanger"}},
	{evaluated: antiAffinity{}, validates: true},
	{evaluated: certificateSubject{}, validates: true},
	{evaluated: externalIPs{}, validates: true},
}

// wordedPlugins are in an order in which the first that fits is the one: texts that may stand
// anywhere in a message come behind those that begin it.
func wordedPlugins() []plugin {
	return []plugin{
		worded{"AdmissionWebhook", []text{
			{whole: `admission webhook "`, contains: `" denied the request`, ends: `"`},
			{code: 400, whole: `admission webhook "`, contains: `" does not support dry run`, ends: `"`},
			{code: 500, whole: `Internal error occurred: failed calling webhook "`, ends: `"`},
			{code: 403, inner: "expression '", contains: "resulted in error: "}, // match conditions
			{code: 403, whole: "expression '", contains: "resulted in error: "},
		}},
		worded{"MutatingAdmissionPolicy", []text{
			{whole: "policy '", contains: " denied request: ", ends: "'"},
			{whole: `policy "`, contains: " denied request: failed to configure policy: ", ends: `"`},
			{code: 503, whole: "Resource kind ", contains: "There can be a delay"},
			{inner: "policy '", contains: " denied request: ", ends: "'"},
		}},
		worded{"ValidatingAdmissionPolicy", []text{
			{whole: "ValidatingAdmissionPolicy '", contains: " denied request: ", ends: "'"},
			{inner: "ValidatingAdmissionPolicy '", contains: " denied request: ", ends: "'"},
		}},
		worded{"PodSecurity", []text{
			{code: 422, whole: `Namespace "`, contains: "metadata.labels[pod-security.kubernetes.io/"},
			{code: 403, inner: `violates PodSecurity "`, ends: `"`},
		}},
		worded{"PodTolerationRestriction", []text{
			{code: 500, whole: "pod tolerations (possibly merged with namespace default tolerations) conflict with its "},
			{inner: "pod tolerations (possibly merged with namespace default tolerations) conflict with its "},
		}},
		worded{"EventRateLimit", []text{{code: 429, whole: "Too many requests: limit reached on type "}}},
		worded{"ResourceQuota", []text{
			{code: 500, whole: "insufficient quota to match these scopes: "},
			{code: 500, whole: "resource quota evaluation timed out"},
			{code: 403, inner: "exceeded quota: ", ends: ", requested: "},
			{code: 403, inner: "failed quota: ", ends: ": "},
			{code: 403, inner: "status unknown for quota: ", ends: ", resources: "},
			{code: 403, inner: "insufficient quota to consume: "},
			{code: 403, inner: "quota usage is negative for resource(s): "},
		}},
		worded{"ImagePolicyWebhook", []text{
			{inner: "image policy webhook backend denied one or more images"},
			{inner: "one or more images rejected by webhook backend"},
		}},
		worded{"PodSecurityPolicy", []text{
			{code: 403, inner: "PodSecurityPolicy: unable to "},
			{code: 403, inner: "unable to validate against any pod security policy"},
		}},
		worded{"DenyEscalatingExec", []text{{code: 403, inner: "cannot exec into or attach to a "}}},
		worded{"SecurityContextDeny", []text{
			{code: 403, inner: "pod.Spec.SecurityContext."},
			{code: 403, inner: "SecurityContext."},
		}},
		worded{"PodNodeSelector", []text{
			{code: 403, inner: "pod node label selector conflicts with its namespace node label selector"},
			{code: 403, inner: "pod node label selector labels conflict with its namespace whitelist"},
		}},
		worded{"Priority", []text{
			{code: 403, inner: "no PriorityClass with name "},
			{code: 403, inner: "the integer value of priority ("},
			{code: 403, inner: "the string value of PreemptionPolicy ("},
			{code: 403, inner: "PriorityClass ", contains: " is already marked as default"},
		}},
		worded{"OwnerReferencesPermissionEnforcement", []text{
			{code: 403, inner: "cannot set an ownerRef on a resource you can't delete"},
			{code: 403, inner: "cannot set blockOwnerDeletion "},
		}},
		worded{"PersistentVolumeClaimResize", []text{
			{code: 403, inner: "Only bound persistent volume claims can be expanded"},
			{code: 403, inner: "only dynamically provisioned pvc can be resized"},
		}},
		worded{"RuntimeClass", []text{
			{code: 403, inner: `pod rejected: RuntimeClass "`},
			{code: 403, inner: "pod rejected: Pod's Overhead doesn't match "},
			{code: 403, inner: "pod rejected: Pod Overhead set without "},
			{code: 403, inner: "conflict: runtimeClass.scheduling.nodeSelector["},
		}},
		worded{"CertificateApproval", []text{{code: 403, inner: "user not permitted to approve requests with signerName "}}},
		worded{"CertificateSigning", []text{{code: 403, inner: "user not permitted to sign requests with signerName "}}},
		worded{"ClusterTrustBundleAttest", []text{{code: 403, inner: "user not permitted to attest for signerName "}}},
		worded{"PodGroupWorkloadExists", []text{{code: 403, inner: "PodGroup rejected: Workload "}}},
		worded{"NodeDeclaredFeatureValidator", []text{{code: 403, inner: "pod update requires features "}}},
		worded{"JobValidation", []text{{code: 403, inner: "cannot change parallelism for a Job referencing gang-scheduled PodGroup"}}},
		worded{"PodResizeValidator", []text{
			{code: 403, inner: "pod resize is only supported on linux nodes"},
			{code: 403, inner: "node didn't have enough allocatable resources: "},
		}},
		worded{"AlwaysDeny", []text{{code: 403, inner: "admission control is denying all modifications"}}},
		worded{"informers", []text{{code: 403, inner: "not yet ready to handle request"}}},
		worded{"LimitRanger", []text{
			{code: 403, inner: "minimum ", contains: " usage per "},
			{code: 403, inner: "maximum ", contains: " usage per "},
			{code: 403, contains: " max limit to request ratio per "},
		}},
		worded{"AlwaysPullImages", []text{{code: 500, contains: "imagePullPolicy: Unsupported value: "}}},
	}
}
