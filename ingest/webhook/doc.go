// Package webhook receives audit events: it is the endpoint that the audit webhook backend of
// a kube-apiserver posts to and, on a local listener, the one that `retrial import` posts to.
//
//	POST /v1/clusters/{cluster}/audit                     an EventList
//	POST /v1/clusters/{cluster}/apiservers/{name}/audit   the same, naming the apiserver
//	POST /v1/clusters/{cluster}/state                     objects as kubectl prints them; trusted listener only
//	GET  /healthz, /readyz
//
// The path of a body: authenticate, reserve memory, read, decode, redact, produce the copies
// of policy writes and wait for their acknowledgement, produce all events and wait, answer
// 200. Nothing leaves the package unredacted, and 200 means that Kafka has every record.
// For each body, events received = events acknowledged + items dead-lettered.
//
// # Answers
//
// What kube-apiserver does with an answer decides which one is given. Any 2xx is success.
// Everything else is retried: five attempts with growing pauses (at 0, 11, 28, 54 and 93
// seconds by default), then the batch is dropped and apiserver_audit_error_total{plugin=
// "webhook"} grows on the apiserver. 429 and 5xx with Retry-After stretch each attempt by up
// to ten more posts within 30 seconds, 4xx do not: told to come back after five seconds, an
// apiserver holds on to a batch for 230 seconds (docs/adr/0071-pushing-back.md). The apiserver
// waits 30 seconds for an answer and then posts the same batch again, so the receiver answers
// within [Config].Deadline.
//
//	200  every event is safe; malformed items of the list became dead letters
//	400  the body is not an EventList, or is not complete JSON: dead letter. The apiserver
//	     retries it and then drops it; it could do nothing better
//	401  no credential, or none that is accepted
//	403  the credential belongs to another cluster
//	404  no such path; or no such cluster, on a listener without authentication
//	405  not POST
//	408  the body did not arrive in time
//	413  the body is over the limit: dead letter (with the digest of what was read), then as 400
//	415  Content-Encoding: apiservers never compress
//	429  too many requests or bytes of bodies in flight, of the cluster or in total,
//	     Retry-After: 1; or no room in the log or the spool, Retry-After: 5
//	503  neither Kafka nor the spool took the events in time; Retry-After: 5
//
// # Fairness between clusters
//
// A cluster that floods leaves room for the others: it uses at most three times the memory for
// bodies that it leaves free, sends 256 requests at once, and waits its turn (see fairQueue) for
// a processor to decode on and for room in the producer.
//
// # What the receiver cannot see
//
// An apiserver whose batch holds an event that it cannot encode (a PATCH with an
// unparsable body, recorded at level Request or above, Kubernetes up to at least 1.36)
// drops the whole batch without posting it. So does one whose buffer is full. Nothing
// arrives here; only the apiserver's own apiserver_audit_error_total shows it, by plugin
// "webhook" and "buffered". retrial_webhook_last_body_timestamp_seconds is when the last
// body arrived.
package webhook
