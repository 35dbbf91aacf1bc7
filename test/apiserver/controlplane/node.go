package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Node stands in for a kubelet and its containers where all that matters of them is the
// service account's token in a pod. It has a node's identity and asks the apiserver for a
// pod's token as a kubelet does; the Node authorizer and NodeRestriction judge that. It serves
// exec with the kubelet's own streaming code, and run, to whom the apiserver allows that on
// nodes/proxy, as a kubelet does; the one command its containers know is cat of the token's
// file.
type Node struct {
	Name   string
	URL    string               // of the kubelet's port, for who reaches it directly
	client kubernetes.Interface // as system:node:NAME
}

// Node makes a node and serves its kubelet's port until the test ends, behind a Tunnel.
func (c *Cluster) Node(t testing.TB, admin kubernetes.Interface, name string) *Node {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.User(t, "system:node:"+name, "system:nodes"))
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Name: name, client: client}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.exec)
	mux.HandleFunc("POST /run/{namespace}/{pod}/{container}", n.run)
	n.URL = "https://" + c.serveNode(t, admin, name, tunnelled, n.authorized(mux)).String()
	return n
}

// authorized asks the apiserver whether who sends a request, by its certificate, may.
func (n *Node) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		who := r.TLS.PeerCertificates[0].Subject
		verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create"}[r.Method]
		answer, err := n.client.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: who.CommonName, Groups: append(who.Organization, "system:authenticated"),
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: "proxy",
					Name: n.Name}}}, metav1.CreateOptions{})
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !answer.Status.Allowed:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(schema.GroupResource{Resource: "nodes/proxy"}, n.Name,
				fmt.Errorf("user %q cannot %s", who.CommonName, verb)).Status())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// TokenFile is where a container finds its token.
const TokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// Token returns what a pod that the node runs reads from TokenFile: a token of the service account
// the pod names, bound to the pod.
func (n *Node) Token(ctx context.Context, namespace, pod string) (string, error) {
	p, err := n.client.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	wanted, err := projected(p)
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: wanted.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID},
	}}
	if wanted.Audience != "" {
		request.Spec.Audiences = []string{wanted.Audience}
	}
	answer, err := n.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, p.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// projected returns what the pod says it wants at TokenFile: the apiserver puts that into a pod
// when it is made.
func projected(p *corev1.Pod) (*corev1.ServiceAccountTokenProjection, error) {
	for _, c := range p.Spec.Containers {
		for _, m := range c.VolumeMounts {
			for _, v := range p.Spec.Volumes {
				if v.Name != m.Name || v.Projected == nil {
					continue
				}
				for _, s := range v.Projected.Sources {
					if s.ServiceAccountToken != nil && path.Join(m.MountPath, s.ServiceAccountToken.Path) == TokenFile {
						return s.ServiceAccountToken, nil
					}
				}
			}
		}
	}
	return nil, fmt.Errorf("pod %s/%s mounts no token", p.Namespace, p.Name)
}

// cat runs a command in a container.
func (n *Node) cat(ctx context.Context, namespace, pod string, command []string) (string, error) {
	if strings.Join(command, " ") != "cat "+TokenFile {
		return "", fmt.Errorf("no such command: %q", command)
	}
	return n.Token(ctx, namespace, pod)
}

// run answers a command with its output, as a kubelet does on /run.
func (n *Node) run(w http.ResponseWriter, r *http.Request) {
	out, err := n.cat(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), strings.Split(r.FormValue("cmd"), " "))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, out)
}

// exec streams a command's output, as a kubelet and its container runtime do.
func (n *Node) exec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, container{n, r.PathValue("namespace")}, r.PathValue("pod"), "", r.PathValue("container"),
		r.URL.Query()["command"], options, Patience, Patience, remotecommand.SupportedStreamingProtocols)
}

// container is the container runtime of the pods of one namespace.
type container struct {
	node      *Node
	namespace string
}

// ExecInContainer implements remotecommand.Executor.
func (c container) ExecInContainer(ctx context.Context, pod, _, _ string, command []string, _ io.Reader, out, errs io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	text, err := c.node.cat(ctx, c.namespace, pod, command)
	if err != nil {
		return err
	}
	if out == nil {
		return errors.New("standard output is not streamed")
	}
	_, err = io.WriteString(out, text)
	return err
}
