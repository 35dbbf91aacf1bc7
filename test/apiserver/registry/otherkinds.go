package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/replay/state/kept"
)

// init adds the kinds whose life is most of what is kept of them.
func init() {
	kinds = append(kinds,
		&kind{resource: kept.Namespaces, kind: "Namespace", names: []string{"n1", "n2"}, content: empty, change: nothing,
			operation: `{"op":"remove","path":"/spec/finalizers"}`, special: []func(*generator, *step, string){finalize, finalize,
				namespaceStatus}},
		&kind{resource: kept.ServiceAccounts, kind: "ServiceAccount", namespaced: true, names: []string{"a", "b"}, content: empty,
			change:    automount,
			operation: `{"op":"add","path":"/automountServiceAccountToken","value":true}`},
		&kind{resource: kept.Secrets, kind: "Secret", namespaced: true, names: []string{"a", "b", "bootstrap-token-abcdef"},
			namespaces: []string{"n1", "kube-system"},
			content:    secret, change: secretData, operation: `{"op":"add","path":"/data","value":{}}`},
		&kind{resource: kept.Nodes, kind: "Node", names: []string{"m1", "m2"}, content: empty, change: unschedulable,
			operation: `{"op":"add","path":"/spec/unschedulable","value":true}`, special: []func(*generator, *step, string){nodeStatus}},
		&kind{resource: kept.PersistentVolumes, kind: "PersistentVolume", names: []string{"v1", "v2"}, content: volume, change: claim,
			operation: `{"op":"remove","path":"/spec/claimRef"}`, special: []func(*generator, *step, string){volumeStatus}},
		&kind{resource: kept.VolumeAttachments, kind: "VolumeAttachment", names: []string{"a", "b"}, content: attachment, change: nothing,
			operation: `{"op":"add","path":"/metadata/annotations","value":{"b":"1"}}`},
		&kind{resource: kept.ResourceSlices, kind: "ResourceSlice", names: []string{"a", "b"}, content: slice, change: nothing,
			operation: `{"op":"add","path":"/metadata/annotations","value":{"b":"1"}}`},
		&kind{resource: kept.CertificateSigning, kind: "CertificateSigningRequest", names: []string{"a", "b"},
			content: signing, change: nothing,
			operation: `{"op":"add","path":"/metadata/annotations","value":{"b":"1"}}`,
			special:   []func(*generator, *step, string){approve, sign}},
	)
}

// finalize writes a namespace's spec, as the namespace controller does when all is gone.
func finalize(g *generator, s *step, object string) {
	s.Method, s.Path, s.Edit = "PUT", object+"/finalize", true
	s.Body = `{"spec":{"finalizers":` + g.one("[]", "[]", `["kubernetes"]`, `["e.io/z"]`) + `}}`
	if g.chance(30) {
		s.Body = `{"metadata":{` + g.change() + `},"spec":{"finalizers":[]}}`
	}
}

// namespaceStatus writes a namespace's status.
func namespaceStatus(g *generator, s *step, object string) {
	s.Path = object + "/status"
	if g.chance(50) {
		s.Method, s.Edit, s.Body = "PUT", true, `{"status":{"conditions":[]}}`
		return
	}
	s.Method, s.Type, s.Body = "PATCH", "application/merge-patch+json", `{"metadata":{`+g.change()+`},"status":{"conditions":[]}}`
}

func automount(g *generator) string {
	return `"automountServiceAccountToken":` + g.one("true", "false")
}

// secret returns what a Secret holds: nothing of note, the token of an account, or a bootstrap token.
func secret(g *generator) string {
	switch g.IntN(3) {
	case 0:
		return `,"type":"kubernetes.io/service-account-token"`
	case 1:
		return `,"type":"bootstrap.kubernetes.io/token","data":` + bootstrapData(g)
	}
	return `,"type":"Opaque","data":{"k":"dg=="}`
}

func bootstrapData(g *generator) string {
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return `{"token-id":"` + encoded("abcdef") + `","token-secret":"` + encoded("0123456789abcdef") +
		`","usage-bootstrap-authentication":"` + encoded(g.one("true", "false")) + `","auth-extra-groups":"` +
		encoded("system:bootstrappers:x") + `"}`
}

// secretData returns a change of a Secret: its data, or the labels and annotations that are read.
func secretData(g *generator) string {
	switch g.IntN(3) {
	case 0:
		return `"metadata":{"labels":{"kubernetes.io/legacy-token-last-used":"` + g.one("2000-01-01", "2000-01-02") + `"}}`
	case 1:
		return `"metadata":{"annotations":{"kubernetes.io/service-account.name":"` + g.one("s1", "s2") +
			`","kubernetes.io/service-account.uid":"u"}}`
	}
	return `"data":` + g.one(`{"k":"dw=="}`, bootstrapData(g))
}

func unschedulable(g *generator) string {
	return `"spec":{"unschedulable":` + g.one("true", "false") + `}`
}

// nodeStatus writes a node's status, as its kubelet does all the time. Nobody is taken to write finalizers
// with it (docs/state.md).
func nodeStatus(g *generator, s *step, object string) {
	s.Method, s.Path, s.Type = "PATCH", object+"/status", "application/strategic-merge-patch+json"
	change := g.change()
	if strings.Contains(change, "finalizers") {
		change = `"annotations":{"a":"3"}`
	}
	s.Body = `{"metadata":{` + change + `},"status":{"phase":"` + g.one("Running", "Pending") + `"}}`
}

// volume returns a volume's spec.
func volume(g *generator) string {
	out := `,"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]`
	if g.chance(60) {
		out += "," + claimRef(g)
	}
	return out + `,"csi":{"driver":"d.io","volumeHandle":"h","nodePublishSecretRef":{"namespace":"n1","name":"` + g.one("x", "w") + `"}}}`
}

func claimRef(g *generator) string {
	return `"claimRef":{"namespace":"n1","name":"p","uid":"` + g.one("c1", "c2") + `"}`
}

// claim binds a volume to a claim, or takes it away.
func claim(g *generator) string { return `"spec":{` + g.one(claimRef(g), `"claimRef":null`) + `}` }

// volumeStatus writes a volume's status.
func volumeStatus(g *generator, s *step, object string) {
	s.Method, s.Path, s.Type = "PATCH", object+"/status", "application/strategic-merge-patch+json"
	s.Body = `{"metadata":{` + g.change() + `},"status":{"phase":"` + g.one("Bound", "Available") + `"}}`
}

func attachment(g *generator) string {
	return `,"spec":{"attacher":"d.io","nodeName":"` + g.one("m1", "m2") + `","source":{"persistentVolumeName":"v1"}}`
}

func slice(g *generator) string {
	return `,"spec":{"driver":"d.io","nodeName":"` + g.one("m1", "m2") +
		`","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"d1"}]}`
}

// signing returns a certificate signing request's spec.
func signing(g *generator) string {
	return `,"spec":{"signerName":"` + g.one("kubernetes.io/kube-apiserver-client", "e.io/s") + `","usages":["client auth"],"request":"` +
		papers().request + `"}`
}

// approve approves a certificate signing request.
func approve(g *generator, s *step, object string) {
	s.Method, s.Path, s.Edit = "PUT", object+"/approval", true
	s.Body = `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r"}]}}`
}

// sign issues the certificate.
func sign(g *generator, s *step, object string) {
	s.Method, s.Path, s.Edit, s.Body = "PUT", object+"/status", true, `{"status":{"certificate":"`+papers().certificate+`"}}`
}

// papers are a certificate signing request and a certificate, as objects hold them.
var papers = sync.OnceValue(func() (out struct{ request, certificate string }) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	name := pkix.Name{CommonName: "jane"}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: name}, key)
	if err != nil {
		panic(err)
	}
	born := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate := &x509.Certificate{Subject: name, SerialNumber: big.NewInt(1), NotBefore: born, NotAfter: born.AddDate(9, 0, 0)}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	if err != nil {
		panic(err)
	}
	text := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	out.request, out.certificate = text("CERTIFICATE REQUEST", request), text("CERTIFICATE", signed)
	return out
})
