package registry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilopenapi "k8s.io/apiserver/pkg/util/openapi"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// server is Kubernetes' registry behind the handlers of a generic API server, with its audit.
type server struct {
	handler http.Handler
	etcd    *etcd
	audit   *auditing
}

// newServer makes a server that logs by the policy of a file.
func newServer(policyFile string) (*server, error) {
	text, err := os.ReadFile(policyFile)
	if err != nil {
		return nil, err
	}
	shipped, err := policy.LoadPolicyFromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", policyFile, err)
	}
	s := &server{etcd: newEtcd(), audit: &auditing{shipped: policy.NewPolicyRuleEvaluator(shipped)}}
	c := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.ExternalAddress = "127.0.0.1:443"
	c.LoopbackClientConfig = &restclient.Config{}
	c.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	definitions := utilopenapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(legacyscheme.Scheme))
	c.SkipOpenAPIInstallation, c.EnableProfiling, c.EnableMetrics = true, false, false
	c.Authentication.Authenticator = authenticator.RequestFunc(userOf)
	c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	c.AuditBackend, c.AuditPolicyRuleEvaluator = s.audit, s.audit
	generic, err := c.Complete(nil).New("oracle", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	groups, err := s.groups()
	if err != nil {
		return nil, err
	}
	for name, storages := range groups {
		info := genericapiserver.NewDefaultAPIGroupInfo(name, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
		info.VersionedResourcesStorageMap["v1"] = storages
		info.PrioritizedVersions = []schema.GroupVersion{{Group: name, Version: "v1"}}
		if name == "" {
			err = generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &info)
		} else {
			err = generic.InstallAPIGroup(&info)
		}
		if err != nil {
			return nil, fmt.Errorf("install group %q: %w", name, err)
		}
	}
	s.handler = generic.Handler
	return s, nil
}

// ask sends a request and returns the answer.
func (s *server) ask(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// GetRESTOptions implements generic.RESTOptionsGetter: the generic registry on the etcd3 store,
// as the apiserver has it without a watch cache.
func (s *server) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	codec := legacyscheme.Codecs.LegacyCodec(schema.GroupVersion{Group: resource.Group, Version: "v1"})
	return generic.RESTOptions{
		StorageConfig:           storagebackend.NewDefaultConfig("/registry", codec).ForResource(resource),
		Decorator:               s.storage,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          "/" + resource.String(),
	}, nil
}

// storage implements generic.StorageDecorator.
func (s *server) storage(
	c *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
	newObject, newList func() runtime.Object,
	_ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(s.etcd.client(), nil, c.Codec, newObject, newList, c.Prefix, resourcePrefix, c.GroupResource,
		identity.NewEncryptCheckTransformer(), c.LeaseManagerConfig, etcd3.NewDefaultDecoder(c.Codec, versioner), versioner)
	return store, func() {}, err
}

const headerUser = "X-Oracle-User"

// userOf believes who a request says it is of.
func userOf(r *http.Request) (*authenticator.Response, bool, error) {
	name := r.Header.Get(headerUser)
	groups := []string{user.AllAuthenticated}
	switch {
	case strings.HasPrefix(name, "system:serviceaccount:"):
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+strings.Split(name, ":")[2])
	case strings.HasPrefix(name, "system:node:"):
		groups = append(groups, "system:nodes")
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: groups}}, true, nil
}

// level is how much is logged of requests: by the shipped policy, or the same of all.
type level string

const (
	levelShipped         level = "shipped"
	levelMetadata        level = "Metadata"
	levelRequest         level = "Request"
	levelRequestResponse level = "RequestResponse"
)

// auditing is the audit of a server: its policy and the backend.
type auditing struct {
	shipped audit.PolicyRuleEvaluator

	mu     sync.Mutex
	level  level
	logged [][]byte
}

// begin sets what is logged from now on.
func (a *auditing) begin(l level) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.level, a.logged = l, nil
}

// take returns what was logged since it was last called: lists of events, as the webhook posts
// them.
func (a *auditing) take() [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.logged
	a.logged = nil
	return out
}

// EvaluatePolicyRule implements audit.PolicyRuleEvaluator.
func (a *auditing) EvaluatePolicyRule(attributes authorizer.Attributes) audit.RequestAuditConfig {
	c := a.shipped.EvaluatePolicyRule(attributes)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.level != levelShipped {
		c.Level = auditinternal.Level(a.level)
	}
	return c
}

var auditCodec = audit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion)

// ProcessEvents implements audit.Backend.
func (a *auditing) ProcessEvents(events ...*auditinternal.Event) bool {
	list := &auditinternal.EventList{}
	for _, e := range events {
		list.Items = append(list.Items, *e)
	}
	post, err := runtime.Encode(auditCodec, list)
	if err != nil {
		panic(fmt.Sprintf("encode an audit event: %v", err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.logged = append(a.logged, post)
	return true
}

// Run implements audit.Backend.
func (*auditing) Run(<-chan struct{}) error { return nil }

// Shutdown implements audit.Backend.
func (*auditing) Shutdown() {}

// String implements audit.Backend.
func (*auditing) String() string { return "oracle" }
