package request

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/retrial-io/retrial/verdict"
)

func TestAttributesOf(t *testing.T) {
	res := func(verb, group, version, ns, resource, sub, name string) verdict.Attributes {
		return verdict.Attributes{Verb: verb, ResourceRequest: true, APIGroup: group, APIVersion: version,
			Namespace: ns, Resource: resource, Subresource: sub, Name: name}
	}
	with := func(a verdict.Attributes, field, label string) verdict.Attributes {
		a.FieldSelector, a.LabelSelector = field, label
		return a
	}
	cases := []struct {
		name, verb, uri string
		want            verdict.Attributes
		err             error
	}{
		{"name from field selector", "list", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx",
			with(res("list", "", "v1", "default", "pods", "", "x"), "metadata.name=x", ""), nil},
		{"undecodable limit drops the name", "list", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx&limit=abc",
			with(res("list", "", "v1", "default", "pods", "", ""), "metadata.name=x", ""), nil},
		{"undecodable limit keeps watch", "watch", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx&limit=abc&watch=1",
			with(res("watch", "", "v1", "default", "pods", "", ""), "metadata.name=x", ""), nil},
		{"undecodable label selector drops the name", "list", "/api/v1/pods?fieldSelector=metadata.name%3Dx&labelSelector=a+b",
			with(res("list", "", "v1", "", "pods", "", ""), "metadata.name=x", "a b"), nil},
		{"label selector beside the name", "list", "/api/v1/pods?fieldSelector=metadata.name%3Dx&labelSelector=a%3Db",
			with(res("list", "", "v1", "", "pods", "", "x"), "metadata.name=x", "a=b"), nil},
		{"dot dot is not a name", "list", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3D..",
			with(res("list", "", "v1", "default", "pods", "", ""), "metadata.name=..", ""), nil},
		{"name among several requirements", "list", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1%2Cmetadata.name%3D%3Dx",
			with(res("list", "", "v1", "", "pods", "", "x"), "spec.nodeName=n1,metadata.name==x", ""), nil},
		{"unequal is not a name", "list", "/api/v1/pods?fieldSelector=metadata.name!%3Dx",
			with(res("list", "", "v1", "", "pods", "", ""), "metadata.name!=x", ""), nil},
		{"watch without value", "watch", "/api/v1/pods?watch", res("watch", "", "v1", "", "pods", "", ""), nil},
		{"watch=yes", "watch", "/api/v1/pods?watch=yes", res("watch", "", "v1", "", "pods", "", ""), nil},
		{"watch=0", "list", "/api/v1/pods?watch=0", res("list", "", "v1", "", "pods", "", ""), nil},
		{"watch=FALSE", "list", "/api/v1/pods?watch=FALSE", res("list", "", "v1", "", "pods", "", ""), nil},
		{"first watch value counts", "list", "/api/v1/pods?watch=0&watch=1", res("list", "", "v1", "", "pods", "", ""), nil},
		{"pair with semicolon does not exist", "list", "/api/v1/pods?a=b;watch=1", res("list", "", "v1", "", "pods", "", ""), nil},
		{"encoded slash separates", "get", "/api/v1/namespaces/default/pods/a%2Fb", res("get", "", "v1", "default", "pods", "b", "a"), nil},
		{"outer slashes are trimmed", "list", "//api/v1/namespaces/default/pods/", res("list", "", "v1", "default", "pods", "", ""), nil},
		{"HEAD on a list", "list", "/api/v1/namespaces/default/pods", res("list", "", "v1", "default", "pods", "", ""), nil},
		{"unknown method has no verb", "", "/api/v1/namespaces/default/pods", res("", "", "v1", "default", "pods", "", ""), nil},
		{"watch prefix", "watch", "/api/v1/watch/namespaces/default/pods?labelSelector=a%3Db", res("watch", "", "v1", "default", "pods", "",
			""), nil},
		{"watch prefix with name and subresource", "watch", "/api/v1/watch/namespaces/default/pods/x/log", res("watch", "", "v1", "default",
			"pods", "log", "x"), nil},
		{"proxy prefix has no subresource", "proxy", "/api/v1/proxy/namespaces/d/pods/x/y", res("proxy", "", "v1", "d", "pods", "",
			"x"), nil},
		{"watch prefix alone", "watch", "/api/v1/watch", verdict.Attributes{}, ErrNoResource},
		{"namespace object", "get", "/api/v1/namespaces/default", res("get", "", "v1", "default", "namespaces", "", "default"), nil},
		{"namespace finalize", "update", "/api/v1/namespaces/default/finalize", res("update", "", "v1", "default", "namespaces", "finalize",
			"default"), nil},
		{"namespace status", "patch", "/api/v1/namespaces/default/status", res("patch", "", "v1", "default", "namespaces", "status",
			"default"), nil},
		{"namespaces", "list", "/api/v1/namespaces", res("list", "", "v1", "", "namespaces", "", ""), nil},
		{"namespaces in another group", "list", "/apis/shop.example.com/v1/namespaces/x/carts", res("list", "shop.example.com", "v1", "x",
			"carts", "", ""), nil},
		{"empty segment before namespaces", "get", "/api/v1//namespaces/x/pods", res("get", "", "v1", "", "", "x", "namespaces"), nil},
		{"empty namespace", "list", "/api/v1/namespaces//pods", res("list", "", "v1", "", "pods", "", ""), nil},
		{"group version is not a resource", "get", "/apis/apps/v1", verdict.Attributes{Verb: "get", Path: "/apis/apps/v1"}, nil},
		{"version is not a resource", "get", "/api/v1", verdict.Attributes{Verb: "get", Path: "/api/v1"}, nil},
		{"path without query", "get", "/healthz?x=1", verdict.Attributes{Verb: "get", Path: "/healthz"}, nil},
		{"path keeps its slashes", "get", "/metrics//", verdict.Attributes{Verb: "get", Path: "/metrics//"}, nil},
		{"path is decoded", "get", "/a%2Fb/c", verdict.Attributes{Verb: "get", Path: "/a/b/c"}, nil},
		{"head is a non-resource verb", "head", "/healthz?x=1", verdict.Attributes{Verb: "head", Path: "/healthz"}, nil},
		{"root", "get", "/", verdict.Attributes{Verb: "get", Path: "/"}, nil},
		{"options star", "options", "*", verdict.Attributes{Verb: "options", Path: "*"}, nil},
		{"deletecollection with selector", "deletecollection", "/api/v1/namespaces/d/pods?labelSelector=app%3Dx",
			with(res("deletecollection", "", "v1", "d", "pods", "", ""), "", "app=x"), nil},
		{"deletecollection takes no name", "deletecollection", "/api/v1/namespaces/d/pods?fieldSelector=metadata.name%3Dx",
			with(res("deletecollection", "", "v1", "d", "pods", "", ""), "metadata.name=x", ""), nil},
		{"parts after the subresource are ignored", "get", "/api/v1/namespaces/d/services/s:80/proxy/a/b/c",
			res("get", "", "v1", "d", "services", "proxy", "s:80"), nil},
		{"create", "create", "/apis/apps/v1/namespaces/d/deployments?fieldManager=x", res("create", "apps", "v1", "d", "deployments", "",
			""), nil},
		{"verb against the URI", "list", "/api/v1/namespaces/d/pods/x", res("get", "", "v1", "d", "pods", "", "x"), nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Of(tc.verb, tc.uri)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if got != tc.want {
				t.Fatalf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestAttributesOfUnparsable(t *testing.T) {
	for _, uri := range []string{"", "api/v1/pods", "/a%zz", "/a\x00b", "/a\nb?x"} {
		if a, err := Of("get", uri); err == nil {
			t.Errorf("%q: got %+v, want an error", uri, a)
		}
	}
}

// FuzzAttributesOf compares with k8s.io/apiserver: a method and a target become a request
// there, the verb RequestInfo computes and the URI the audit backend would write go
// through Of, and both must agree.
func FuzzAttributesOf(f *testing.F) {
	factory := &apirequest.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LIST"}
	for _, target := range []string{
		"/", "*", "//api/v1/pods/", "/api/v1//namespaces/x/pods", "/api/v1/watch", "/api/v1/watch/pods", "/api/v1/proxy/nodes/n/x",
		"/api/v1/namespaces/a/pods?watch=1", "/api/v1/pods?fieldSelector=metadata.name%3Dx&limit=5", "/apis/a/v1/namespaces/x/status/y",
		"/api/v1/pods?fieldSelector=metadata.name%3Dx%2Cspec.nodeName%3Dy&labelSelector=a", "/a%2Fb?%77atch=1", "/api/v1/pods?watch=fAlse",
		"/api/v1/pods?fieldSelector=metadata.name%3D%3Dx&timeoutSeconds=x", "/api/v1/pods?fieldSelector=metadata.name%3Da%5C%2Cb",
		"/api/v1/pods?fieldSelector=metadata.name%3D+x&resourceVersionMatch=1", "/api/v1/pods?fieldSelector=metadata.name+%3Dx",
		"/api/v1/pods?fieldSelector=metadata.name%3Dx&limit=99999999999999999999",
		"/api/v1/pods?shardSelector=x&fieldSelector=metadata.name%3Dx",
		"/api/v1/pods?a;b&fieldSelector=metadata.name=x", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
	} {
		for i := range methods {
			f.Add(uint8(i), target)
		}
	}
	f.Fuzz(func(t *testing.T, m uint8, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.Count(target, "&") > 1000 {
			t.Skip() // no HTTP server accepts it, or the parser's own limit is in play
		}
		method := methods[int(m)%len(methods)]
		info, err := factory.NewRequestInfo(&http.Request{Method: method, URL: u})
		uri := u.RequestURI()
		if back, perr := url.ParseRequestURI(uri); perr != nil || back.Path != u.Path || back.RawQuery != u.RawQuery {
			t.Skip() // opaque or authority forms whose rendering is not the target
		}
		if err != nil {
			if _, err := Of(info.Verb, uri); !errors.Is(err, ErrNoResource) {
				t.Fatalf("%s %s: error %v, want ErrNoResource", method, uri, err)
			}
			return
		}
		got, err := Of(info.Verb, uri)
		if err != nil {
			t.Fatalf("%s %s: %v", method, uri, err)
		}
		want := verdict.Attributes{
			Verb: info.Verb, ResourceRequest: info.IsResourceRequest, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
			Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
			LabelSelector: info.LabelSelector, FieldSelector: info.FieldSelector,
		}
		if !want.ResourceRequest {
			want.Path = info.Path
		}
		if got != want {
			t.Fatalf("%s %s\ngot  %+v\nwant %+v", method, uri, got, want)
		}
	})
}

func BenchmarkAttributesOf(b *testing.B) {
	cases := []struct{ name, verb, uri string }{
		{"get", "get", "/api/v1/namespaces/default/pods/web-0"},
		{"list", "list", "/apis/apps/v1/namespaces/default/deployments?limit=500&resourceVersion=0"},
		{"watch-name", "watch",
			"/api/v1/namespaces/default/configmaps?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dkube-root-ca.crt&" +
				"resourceVersion=1&timeoutSeconds=400&watch=true"},
		{"escaped", "get", "/api/v1/namespaces/default/pods/a%2Fb"},
	}
	for _, tc := range cases {
		b.Run("uri="+tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Of(tc.verb, tc.uri); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
