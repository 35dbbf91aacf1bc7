package main

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/internal/linearscan"
	"github.com/retrial-io/retrial/rbacindex"
)

// upstream returns the authorizer of k8s.io/kubernetes over listers backed by the indexers an
// informer fills, as kube-apiserver sets it up.
func upstream(objects []any) (*rbac.RBACAuthorizer, error) {
	var indexers [4]cache.Indexer
	for i := range indexers {
		indexers[i] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	for _, o := range objects {
		at := 0
		switch o.(type) {
		case *rbacv1.RoleBinding:
			at = 1
		case *rbacv1.ClusterRole:
			at = 2
		case *rbacv1.ClusterRoleBinding:
			at = 3
		}
		if err := indexers[at].Add(o); err != nil {
			return nil, fmt.Errorf("fill the indexers: %w", err)
		}
	}
	return rbac.New(
		&rbac.RoleGetter{Lister: rbaclisters.NewRoleLister(indexers[0])},
		&rbac.RoleBindingLister{Lister: rbaclisters.NewRoleBindingLister(indexers[1])},
		&rbac.ClusterRoleGetter{Lister: rbaclisters.NewClusterRoleLister(indexers[2])},
		&rbac.ClusterRoleBindingLister{Lister: rbaclisters.NewClusterRoleBindingLister(indexers[3])},
	), nil
}

// records turns requests into what the authorizer takes.
func records(requests []rbacindex.Attributes) []authorizer.Attributes {
	out := make([]authorizer.Attributes, len(requests))
	for i := range requests {
		a := &requests[i]
		out[i] = authorizer.AttributesRecord{User: &user.DefaultInfo{Name: a.User, Groups: a.Groups}, Verb: a.Verb, Namespace: a.Namespace,
			APIGroup: a.APIGroup, APIVersion: "v1", Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
			ResourceRequest: a.ResourceRequest, Path: a.Path}
	}
	return out
}

// agree holds all three to the same decisions before anything is measured.
func agree(real *rbac.RBACAuthorizer, scan *linearscan.Scan, s *rbacindex.Snapshot, requests []rbacindex.Attributes) error {
	for i, r := range records(requests) {
		decision, _, _ := real.Authorize(context.Background(), r) // errors are of missing roles
		want := decision == authorizer.DecisionAllow
		if got := s.Authorize(&requests[i], nil).Allowed; got != want {
			return fmt.Errorf("%+v: allowed=%t, Kubernetes says %t", requests[i], got, want)
		}
		if got, err := scan.Allows(r); err != nil || got != want {
			return fmt.Errorf("%+v: linear scan: allowed=%t, %v; Kubernetes says %t", requests[i], got, err, want)
		}
	}
	return nil
}
