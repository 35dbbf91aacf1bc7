package node

import (
	"context"
	"fmt"
	"sync"

	certsv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	certsinformers "k8s.io/client-go/informers/certificates/v1beta1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	upstream "k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/retrial-io/retrial/verdict"
)

// feed stands in for an informer: it takes the handler the graph registers, and what is sent
// reaches it at once.
type feed struct {
	cache.SharedIndexInformer
	cache.ResourceEventHandler
}

// AddEventHandler is cache.SharedIndexInformer's.
func (f *feed) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.ResourceEventHandler = h
	return synced{}, nil
}

type synced struct {
	cache.ResourceEventHandlerRegistration
}

// HasSynced is true: there is nothing to wait for.
func (synced) HasSynced() bool { return true }

// Informers of one kind each.
type (
	pods struct {
		coreinformers.PodInformer
		feed *feed
	}
	volumes struct {
		coreinformers.PersistentVolumeInformer
		feed *feed
	}
	attachments struct {
		storageinformers.VolumeAttachmentInformer
		feed *feed
	}
	resourceSlices struct {
		resourceinformers.ResourceSliceInformer
		feed *feed
	}
	requests struct {
		certsinformers.PodCertificateRequestInformer
		feed *feed
	}
)

func (i pods) Informer() cache.SharedIndexInformer           { return i.feed }
func (i volumes) Informer() cache.SharedIndexInformer        { return i.feed }
func (i attachments) Informer() cache.SharedIndexInformer    { return i.feed }
func (i resourceSlices) Informer() cache.SharedIndexInformer { return i.feed }
func (i requests) Informer() cache.SharedIndexInformer       { return i.feed }

// Real is the node authorizer of Kubernetes with its graph.
type Real struct {
	authorizer *upstream.NodeAuthorizer
	feeds      [5]feed
}

// starting keeps the goroutines the real graph starts apart: each looks at registrations once.
var starting sync.Mutex

// NewReal returns the real authorizer with an empty graph and the feature gates as they are
// set now.
func NewReal() *Real {
	starting.Lock()
	defer starting.Unlock()
	r := &Real{}
	g := upstream.NewGraph()
	upstream.AddGraphEventHandlers(g, nil, pods{feed: &r.feeds[0]}, volumes{feed: &r.feeds[1]}, attachments{feed: &r.feeds[2]},
		resourceSlices{feed: &r.feeds[3]}, requests{feed: &r.feeds[4]})
	r.authorizer = upstream.NewAuthorizer(g, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
	return r
}

func (r *Real) feed(o any) *feed {
	switch o.(type) {
	case *corev1.Pod:
		return &r.feeds[0]
	case *corev1.PersistentVolume:
		return &r.feeds[1]
	case *storagev1.VolumeAttachment:
		return &r.feeds[2]
	case *resourcev1.ResourceSlice:
		return &r.feeds[3]
	case *certsv1beta1.PodCertificateRequest:
		return &r.feeds[4]
	}
	panic(fmt.Sprintf("no feed for %T", o))
}

// Write tells the graph what became of an object: before and after, nil where it was not there.
func (r *Real) Write(before, after any) {
	switch {
	case before == nil:
		r.feed(after).OnAdd(after, false)
	case after == nil:
		r.feed(before).OnDelete(before)
	default:
		r.feed(after).OnUpdate(before, after)
	}
}

// Authorize returns the real answer. The selectors are parsed as the authorization filter
// parses them.
func (r *Real) Authorize(username string, groups []string, a *verdict.Attributes) (allowed bool, reason string, err error) {
	attrs := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: username, Groups: groups}, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup,
		APIVersion: a.APIVersion, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest,
		Path: a.Path,
	}
	if a.FieldSelector != "" {
		if sel, err := fields.ParseSelector(a.FieldSelector); err != nil {
			attrs.FieldSelectorParsingErr = err
		} else {
			attrs.FieldSelectorRequirements = sel.Requirements()
		}
	}
	decision, reason, err := r.authorizer.Authorize(context.Background(), &attrs)
	if decision == authorizer.DecisionDeny {
		return false, "", fmt.Errorf("the real authorizer denies %s %s", a.Verb, a.Resource)
	}
	return decision == authorizer.DecisionAllow, reason, err
}
