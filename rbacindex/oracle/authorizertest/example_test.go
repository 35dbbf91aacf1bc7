package authorizertest

import (
	"errors"
	"log"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	kubeinformers "k8s.io/client-go/informers"

	"github.com/retrial-io/retrial/rbacindex/authorizer"
)

// An apiserver built on k8s.io/apiserver takes the authorizer in its configuration, where the
// RBAC authorizer would stand. The factory is the one whose informers the server starts.
func Example() {
	var (
		cfg     *genericapiserver.Config
		factory kubeinformers.SharedInformerFactory
	)

	rbac, err := authorizer.New(authorizer.Config{Informers: factory.Rbac().V1()})
	if err != nil {
		log.Fatal(err)
	}
	cfg.Authorization.Authorizer = union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), rbac)
	cfg.RuleResolver = rbac
	cfg.ReadyzChecks = append(cfg.ReadyzChecks, healthz.NamedCheck("rbac-synced", func(*http.Request) error {
		if !rbac.HasSynced() {
			return errors.New("roles and bindings are not listed yet")
		}
		return nil
	}))

	server, err := cfg.Complete(factory).New("example", genericapiserver.NewEmptyDelegate())
	if err != nil {
		log.Fatal(err)
	}
	server.RegisterDestroyFunc(rbac.Close)
}
