// Package request rebuilds what a kube-apiserver's authorizers were asked from what an audit
// event keeps of a request: its verb and its URI. It mirrors RequestInfoFactory of
// k8s.io/apiserver and the options decoding behind it.
//
// The package is pure.
package request

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/verdict"
)

// ErrNoResource is returned by Of for a URI the apiserver itself cannot turn into
// a request: a special verb prefix ("/api/v1/watch") with nothing behind it.
var ErrNoResource = errors.New("no resource behind the verb prefix")

// Verbs of Kubernetes API requests, as RequestInfo computes them.
const (
	VerbCreate           = "create"
	VerbGet              = "get"
	VerbList             = "list"
	VerbWatch            = "watch"
	VerbUpdate           = "update"
	VerbPatch            = "patch"
	VerbDelete           = "delete"
	VerbDeleteCollection = "deletecollection"
	VerbProxy            = "proxy"
)

// maxSegments is the number of leading path segments RequestInfo looks at: prefix, group,
// version, verb prefix, "namespaces", namespace, resource, name, subresource.
const maxSegments = 9

// Of rebuilds the authorization attributes of a request from its recorded verb
// and request URI, the way k8s.io/apiserver's request.RequestInfoFactory builds them from
// the HTTP request. The HTTP method is not recorded; it is inferred from the verb, and
// where the verb does not tell (a verb prefix in the path, an unknown method) RequestInfo
// does not depend on it.
//
// The verb of the result is recomputed from method and URI. A recorded verb that differs
// from it contradicts the URI; the caller compares.
//
// Strings of the result alias requestURI and verb where they can. Path is set for
// non-resource requests only. An error means that an apiserver could not have handled the
// request: an unparsable URI, or ErrNoResource.
func Of(verb, requestURI string) (verdict.Attributes, error) {
	path, query, err := splitURI(requestURI)
	if err != nil {
		return verdict.Attributes{}, fmt.Errorf("parse request uri: %w", err)
	}

	var segs [maxSegments]string
	n := segments(path, &segs)
	if n < 3 || (segs[0] != "api" && segs[0] != "apis") || (segs[0] == "apis" && n < 4) {
		return verdict.Attributes{Verb: strings.ToLower(verb), Path: path}, nil
	}

	a := verdict.Attributes{ResourceRequest: true}
	rest := segs[1:min(n, maxSegments)]
	if segs[0] == "apis" {
		a.APIGroup, rest = rest[0], rest[1:]
	}
	a.APIVersion, rest = rest[0], rest[1:]

	prefixed := rest[0] == VerbWatch || rest[0] == VerbProxy
	if prefixed {
		if len(rest) < 2 {
			return verdict.Attributes{}, fmt.Errorf("resolve %q: %w", path, ErrNoResource)
		}
		a.Verb, rest = rest[0], rest[1:]
	} else {
		a.Verb = methodVerb(verb)
	}

	if rest[0] == "namespaces" && len(rest) > 1 {
		a.Namespace = rest[1]
		// "status" and "finalize" are subresources of the namespace itself; everything
		// else below a namespace is a resource in it.
		if len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
			rest = rest[2:]
		}
	}

	a.Resource = rest[0]
	if len(rest) > 1 {
		a.Name = rest[1]
	}
	if len(rest) > 2 && a.Verb != VerbProxy {
		a.Subresource = rest[2]
	}

	if a.Name == "" {
		switch a.Verb {
		case VerbGet:
			a.Verb, a.Name = listAttributes(query)
		case VerbDelete:
			a.Verb = VerbDeleteCollection
		}
	}
	if !prefixed && query != "" && (a.Verb == VerbList || a.Verb == VerbWatch || a.Verb == VerbDeleteCollection) {
		a.FieldSelector, _ = queryValue(query, "fieldSelector")
		a.LabelSelector, _ = queryValue(query, "labelSelector")
	}
	return a, nil
}

// methodVerb returns what RequestInfo makes of the HTTP method behind a recorded verb,
// before it looks at names. Verbs no known method leads to give "", as an unknown method
// does.
func methodVerb(verb string) string {
	switch verb {
	case VerbGet, VerbList, VerbWatch:
		return VerbGet
	case VerbDelete, VerbDeleteCollection:
		return VerbDelete
	case VerbCreate, VerbUpdate, VerbPatch:
		return verb
	}
	return ""
}

// splitURI returns the decoded path and the raw query of a request URI. It agrees with
// url.ParseRequestURI and allocates only for URIs that need decoding.
func splitURI(uri string) (path, query string, err error) {
	if plainURI(uri) {
		path, query, _ = strings.Cut(uri, "?")
		return path, query, nil
	}
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return "", "", err
	}
	return u.Path, u.RawQuery, nil
}

// plainURI reports whether a URI is an absolute path that url.ParseRequestURI would leave
// as it is: no escape in the path, no control byte anywhere.
func plainURI(uri string) bool {
	if uri == "" || uri[0] != '/' {
		return false
	}
	inPath := true
	for i := 0; i < len(uri); i++ {
		switch c := uri[i]; {
		case c < ' ' || c == 0x7f:
			return false
		case c == '?':
			inPath = false
		case c == '%' && inPath:
			return false
		}
	}
	return true
}

// segments splits a path at slashes, leading and trailing ones dropped, inner empty
// segments kept. It stores the first maxSegments and returns how many there are in all.
func segments(path string, out *[maxSegments]string) int {
	path = strings.Trim(path, "/")
	if path == "" {
		return 0
	}
	n := 0
	for {
		seg, rest, more := strings.Cut(path, "/")
		if n < maxSegments {
			out[n] = seg
		}
		n++
		if !more {
			return n
		}
		path = rest
	}
}

// LongRunning reports whether a request is one the apiserver does not expect to end soon:
// the end of such a request is not a bound for when it was authorized.
func LongRunning(a *verdict.Attributes) bool {
	if !a.ResourceRequest {
		return strings.HasPrefix(a.Path, "/debug/pprof/")
	}
	switch a.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return a.Verb == VerbWatch || a.Verb == VerbProxy
}

// listAttributes decides what a GET without a name is: the verb (list or watch), and the
// name a field selector on metadata.name pins it to.
//
// RequestInfo decodes the whole of ListOptions for this. Only three things of it matter:
// the watch parameter, the selector, and whether anything fails to decode, in which case
// the name stays empty and the verb does not change.
func listAttributes(query string) (verb, name string) {
	verb = VerbList
	if v, ok := queryValue(query, "watch"); ok && v != "0" && !strings.EqualFold(v, "false") {
		verb = VerbWatch
	}
	sel, ok := queryValue(query, "fieldSelector")
	if !ok || !strings.Contains(sel, "metadata.name") {
		return verb, ""
	}
	if name, ok := plainNameSelector(query, sel); ok {
		return verb, name
	}
	return verb, decodedName(query)
}

// plainNameSelector recognises the one selector clients really send, metadata.name=x and
// nothing else, in a query whose other options certainly decode.
func plainNameSelector(query, sel string) (string, bool) {
	name, ok := strings.CutPrefix(sel, "metadata.name=")
	if !ok {
		return "", false
	}
	name = strings.TrimPrefix(name, "=")
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `=!\,/%`) || strings.TrimSpace(name) != name {
		return "", false
	}
	for _, key := range [...]string{"labelSelector", "shardSelector"} {
		if _, ok := queryValue(query, key); ok {
			return "", false
		}
	}
	for _, key := range [...]string{"limit", "timeoutSeconds"} {
		v, ok := queryValue(query, key)
		if !ok {
			continue
		}
		if v == "" || len(v) > 18 || strings.Trim(v, "0123456789") != "" {
			return "", false
		}
	}
	return name, true
}

// decodedName returns the general case: the apiserver's own codec.
func decodedName(query string) string {
	values, _ := url.ParseQuery(query) // the apiserver works with whatever did parse
	var opts metainternalversion.ListOptions
	if err := metainternalscheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, &opts); err != nil {
		return ""
	}
	if opts.FieldSelector == nil {
		return ""
	}
	name, ok := opts.FieldSelector.RequiresExactMatch("metadata.name")
	if !ok || name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return ""
	}
	return name
}

// queryValue returns the first value of a query parameter, as url.Values.Get would after
// url.ParseQuery: pairs with a semicolon or a broken escape do not exist.
func queryValue(query, key string) (string, bool) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" || strings.IndexByte(pair, ';') >= 0 {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		if k != key {
			if strings.IndexByte(k, '%') < 0 && strings.IndexByte(k, '+') < 0 {
				continue
			}
			dk, err := url.QueryUnescape(k)
			if err != nil || dk != key {
				continue
			}
		}
		if strings.IndexByte(v, '%') < 0 && strings.IndexByte(v, '+') < 0 {
			return v, true
		}
		dv, err := url.QueryUnescape(v)
		if err != nil {
			continue
		}
		return dv, true
	}
	return "", false
}
