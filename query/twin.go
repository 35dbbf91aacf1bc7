package query

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
)

// KubeAPIServer is what the kube-apiserver is called when its endpoint has no name for it.
const KubeAPIServer = "kube-apiserver"

// twins names, for a request that went through an aggregated API server, the server that
// recorded it too.
func (a *Service) twins(w *WhyAnswer) {
	if len(w.Requests) < 2 || a.Apiserver == nil {
		return
	}
	engine := replay.New(replay.Config{Version: a.Version, Apiserver: a.Apiserver})
	for i := range w.Requests {
		back := &w.Requests[i]
		if !engine.Aggregated(back.Cluster, back.APIServer) {
			continue
		}
		for j := range w.Requests {
			front := &w.Requests[j]
			if front.Cluster != back.Cluster || engine.Aggregated(front.Cluster, front.APIServer) || !sameTarget(front, back) {
				continue
			}
			front.Twin, back.Twin = back.APIServer, front.APIServer
			if back.Twin == "" {
				back.Twin = KubeAPIServer
			}
			break
		}
	}
}

func sameTarget(a, b *Request) bool {
	x, errX := event.Decode(a.Event)
	y, errY := event.Decode(b.Event)
	return errX == nil && errY == nil && authn.SameTarget(x.RequestURI, y.RequestURI)
}
