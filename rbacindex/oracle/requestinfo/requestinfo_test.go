package requestinfo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

var factory = &apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// rebuild is what is compared: request.Of, or a wrong twin of it.
type rebuild func(verb, uri string) (verdict.Attributes, error)

// compared counts what a run met.
type compared struct{ requests, resources, named, selected, refused int }

// TestMain silences Kubernetes' own line on every option that does not decode.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// number reads a setting of the environment.
func number(t *testing.T, name string, def uint64) uint64 {
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// run compares n generated requests and returns the first disagreement.
func run(n, seed uint64, of rebuild) (c compared, err error) {
	g := &generator{rand.New(rand.NewPCG(seed, 1))}
	for c.requests < int(n) {
		method, target := g.method(), g.path()+g.query()
		u, err := url.ParseRequestURI(target)
		if err != nil {
			continue // no server takes it
		}
		c.requests++
		// What the audit backend writes of the URL is what it renders as.
		uri := u.RequestURI()
		info, err := factory.NewRequestInfo(&http.Request{Method: method, URL: u})
		if err != nil {
			c.refused++
			if _, got := of(info.Verb, uri); !errors.Is(got, request.ErrNoResource) {
				return c, fmt.Errorf("%s %s: Kubernetes refuses it (%v), ours: %v", method, uri, err, got)
			}
			continue
		}
		want, err := attributes(info)
		if err != nil {
			return c, err
		}
		got, err := of(info.Verb, uri)
		if err != nil || got != want {
			return c, fmt.Errorf("%s %s\ngot  %+v (%v)\nwant %+v", method, uri, got, err, want)
		}
		if want.ResourceRequest {
			c.resources++
		}
		if want.Name != "" && (want.Verb == "list" || want.Verb == "watch") {
			c.named++
		}
		if want.FieldSelector != "" || want.LabelSelector != "" {
			c.selected++
		}
	}
	return c, nil
}

// attributes returns those the authorization filter would put to the authorizers.
func attributes(info *apirequest.RequestInfo) (verdict.Attributes, error) {
	ctx := apirequest.WithUser(apirequest.WithRequestInfo(context.Background(), info), &user.DefaultInfo{Name: "u"})
	a, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return verdict.Attributes{}, err
	}
	want := verdict.Attributes{
		Verb: a.GetVerb(), ResourceRequest: a.IsResourceRequest(), APIGroup: a.GetAPIGroup(), APIVersion: a.GetAPIVersion(),
		Resource: a.GetResource(), Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
		LabelSelector: info.LabelSelector, FieldSelector: info.FieldSelector,
	}
	if !want.ResourceRequest {
		want.Path = a.GetPath()
	}
	return want, nil
}

// TestRequestInfo compares ORACLE_REQUESTS generated requests (20000).
func TestRequestInfo(t *testing.T) {
	n, seed := number(t, "ORACLE_REQUESTS", 20_000), number(t, "ORACLE_SEED", 1)
	c, err := run(n, seed, request.Of)
	if err != nil {
		t.Fatal(err)
	}
	if c.resources < c.requests/3 || c.named < c.requests/200 || c.selected < c.requests/50 || c.refused == 0 {
		t.Fatalf("the generator has become tame: %+v", c)
	}
	t.Logf("requestinfo comparisons=%d disagreements=0 seed=%d (resource requests %d, named by a selector %d, with "+
		"selectors %d, refused %d)",
		c.requests, seed, c.resources, c.named, c.selected, c.refused)
}

// TestRequestInfoFindsMistakes shows that the generated requests tell mistakes apart: each
// of these twins is wrong in one rule.
func TestRequestInfoFindsMistakes(t *testing.T) {
	twins := map[string]rebuild{
		"the path is not decoded": func(verb, uri string) (verdict.Attributes, error) {
			return request.Of(verb, strings.ReplaceAll(uri, "%2F", "x"))
		},
		"an option that does not decode does not matter": func(verb, uri string) (verdict.Attributes, error) {
			return request.Of(verb, strings.ReplaceAll(uri, "limit=", "Limit="))
		},
		"watch=0 is a watch": func(verb, uri string) (verdict.Attributes, error) {
			return request.Of(verb, strings.ReplaceAll(uri, "watch=0", "watch=1"))
		},
		"the query belongs to the path": func(verb, uri string) (verdict.Attributes, error) {
			a, err := request.Of(verb, uri)
			if !a.ResourceRequest && err == nil {
				a.Path = uri
			}
			return a, err
		},
		"status of a namespace is a resource in it": func(verb, uri string) (verdict.Attributes, error) {
			return request.Of(verb, strings.ReplaceAll(uri, "/status", "/statuses"))
		},
		"a verb prefix has selectors": func(verb, uri string) (verdict.Attributes, error) {
			a, err := request.Of(verb, uri)
			if strings.Contains(uri, "/watch/") && a.Verb == "watch" && strings.Contains(uri, "labelSelector=a") {
				a.LabelSelector = "a"
			}
			return a, err
		},
	}
	for name, twin := range twins {
		t.Run(name, func(t *testing.T) {
			if c, err := run(200_000, 1, twin); err == nil {
				t.Fatalf("%d requests do not tell it from the real rule", c.requests)
			}
		})
	}
}
