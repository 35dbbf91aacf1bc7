package event

// Keys of what authenticators add to a user.
const (
	ExtraCredentialID = "authentication.kubernetes.io/credential-id"
	ExtraPodName      = "authentication.kubernetes.io/pod-name"
	ExtraPodUID       = "authentication.kubernetes.io/pod-uid"
	ExtraNodeName     = "authentication.kubernetes.io/node-name"
	ExtraNodeUID      = "authentication.kubernetes.io/node-uid"

	// Of the tokens that an apiserver issues for its admission webhooks, since 1.37.
	ExtraValidatingName = "authentication.kubernetes.io/validatingwebhookconfiguration-name"
	ExtraValidatingUID  = "authentication.kubernetes.io/validatingwebhookconfiguration-uid"
	ExtraMutatingName   = "authentication.kubernetes.io/mutatingwebhookconfiguration-name"
	ExtraMutatingUID    = "authentication.kubernetes.io/mutatingwebhookconfiguration-uid"
	ExtraAttestedGroups = "attestation.authentication.kubernetes.io/admissionReviewAPIGroups"
)
