package request

import (
	"net/url"
	"strings"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listAttributes decides what a GET without a name is: the verb (list or watch), and the
// name a field selector on metadata.name pins it to.
//
// RequestInfo decodes the whole of ListOptions for this. Only three things of it matter:
// the watch parameter, the selector, and whether anything fails to decode, in which case
// the name stays empty and the verb does not change.
func listAttributes(query string) (verb, name string) {
	if query == "" {
		return VerbList, ""
	}
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
		if v == "" || len(v) > 18 {
			return "", false
		}
		for i := 0; i < len(v); i++ {
			if v[i] < '0' || v[i] > '9' {
				return "", false
			}
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
