package apiserver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/retrial-io/retrial/test/kafkatest"
)

// busyRequests is how many requests the people of TestBusy make, all together.
const busyRequests = 4000

// TestBusy: people make thousands of requests at once, allowed and refused, while Retrial,
// on a real Kafka, is stopped and killed and started again, and Kafka under it. As many
// events are stored as the apiserver counted, each request is found again, and every
// decision is the one the apiserver took.
func TestBusy(t *testing.T) {
	t.Parallel()
	kafka := kafkatest.Run(t, kafkatest.Config{})
	flags := append(kafka.SASL("SCRAM-SHA-256").Flags(), "--kafka-replication", "1", "--kafka-partitions", "4")
	l := connect(t, flags...)
	l.tell(t)
	l.objects.mustPut(t, decode(t, []byte(policy)))
	l.settled(t)

	people := []*person{
		newPerson(t, l.ledger, "alice", l.User(t, "alice")), newPerson(t, l.ledger, "bob", l.User(t, "bob", "team:a", "org:readers")),
		newPerson(t, l.ledger, "carol", l.User(t, "carol")), newPerson(t, l.ledger, "dave", l.User(t, "dave")),
		newPerson(t, l.ledger, "robot", l.ServiceAccount(t, l.admin, "team-b", "robot")), newPerson(t, l.ledger, "mallory",
			l.User(t, "mallory")),
	}
	disturbances := []func(){
		func() { l.restart(t, flags...) },
		func() { kafka.Nodes[0].Kill(); kafka.Nodes[0].Restart(t) },
		func() { l.server.Kill(); l.again(t, flags...) },
		func() { kafka.Nodes[0].Restart(t) },
	}
	// One after the other, when so many requests have been made.
	step := int64(busyRequests / (len(disturbances) + 1))
	next := make(chan func(), len(disturbances))
	var made atomic.Int64
	var group sync.WaitGroup
	for i, p := range people {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 9))
			for range busyRequests / len(people) {
				if t.Failed() {
					return
				}
				p.anything(t, rnd)
				if n := made.Add(1); n%step == 0 && n/step <= int64(len(disturbances)) {
					next <- disturbances[n/step-1]
				}
			}
		})
	}
	go func() { group.Wait(); close(next) }()
	for disturb := range next {
		disturb()
	}
	ours := l.ledger.all()
	l.arrived(t)
	l.judged(t, ours)
}

// anything is one request of any kind, whatever its answer.
func (p *person) anything(t testing.TB, rnd *rand.Rand) {
	t.Helper()
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	namespace := pick("team-a", "team-a", "team-b", "team-b", "kube-system", "default", "nowhere")
	name := fmt.Sprintf("%s-%d", p.name, rnd.IntN(40))
	at := "/api/v1/namespaces/" + namespace
	line, body := "", ""
	switch rnd.IntN(12) {
	case 0:
		line, body = "POST "+at+"/pods", pod(name)
	case 1:
		line = "GET " + at + "/pods/" + name + pick("", "/log", "/status", "/proxy/x")
	case 2:
		line = "GET " + at + "/" + pick("pods", "services", "configmaps", "secrets", "endpoints", "serviceaccounts") +
			pick("", "?limit=2", "?labelSelector=app%3Dx")
	case 3:
		line, body = "POST "+at+"/configmaps", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":%q}}`,
			name, strings.Repeat("x", rnd.IntN(3000)))
	case 4:
		line, body = "PATCH "+at+"/configmaps/"+name, `application/merge-patch+json {"data":{"m":"`+fmt.Sprint(rnd.IntN(1000))+`"}}`
	case 5:
		line = "DELETE " + at + "/" + pick("pods/", "configmaps/") + name
	case 6:
		line = "GET /apis/apps/v1/namespaces/" + namespace + "/deployments" + pick("", "/"+name, "/"+name+"/scale")
	case 7:
		line, body = "POST /apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases",
			fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q}}`, name)
	case 8:
		line = "GET " + pick("/metrics", "/debug/pprof/", "/api/v1/nodes", "/api/v1/pods?limit=3", "/api/v1/namespaces",
			"/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1")
	case 9:
		line = "GET " + pick("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/livez")
	case 10:
		line, body = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			fmt.Sprintf(`{"spec":{"resourceAttributes":{"verb":%q,"resource":"pods","namespace":%q}}}`, pick("get", "list", "delete"),
				namespace)
	default:
		line = "GET " + at + "/secrets/" + pick("registry", "other")
	}
	p.do(t, ask{line: line, body: body, want: anyStatus})
}

// anyStatus are the answers of an apiserver that is well.
var anyStatus = []int{200, 201, 202, 400, 403, 404, 409, 422, 500, 503}
