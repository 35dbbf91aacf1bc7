package queries

// notOwn leaves out Kubernetes' own subjects, as kubenames.Own tells them; whoever comes without credentials is not one.
const notOwn = "(NOT startsWith(subject, 'system:') OR subject = 'system:anonymous' OR startsWith(subject, 'system:serviceaccount:') " +
	"AND NOT startsWith(subject, 'system:serviceaccount:kube-'))"

// wasRefused selects requests that were refused: by the authorizers, by authentication, or by an admission plugin.
const wasRefused = "(recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected')"
