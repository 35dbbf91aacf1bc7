package requestinfo

import (
	"math/rand/v2"
	"net/url"
	"strings"
)

// generator makes request targets that are near to what RequestInfo tells apart: prefixes,
// groups, verb prefixes, namespaces, subresources, escapes, empty segments, and options that
// decode or do not.
type generator struct{ *rand.Rand }

func (g *generator) of(list ...string) string { return list[g.IntN(len(list))] }
func (g *generator) one(n int) bool           { return g.IntN(n) == 0 }

func (g *generator) method() string {
	if g.one(3) {
		return g.of("HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "LIST", "get")
	}
	return g.of("GET", "GET", "DELETE", "POST")
}

func (g *generator) segment() string {
	if g.one(12) {
		return g.of("", "namespaces", "watch", "proxy", "status", "finalize", "api", "apis", "v1")
	}
	s := g.of("pods", "nodes", "secrets", "x", "web-0", "kube-system", "system:node", "deployments", "a.b", "exec", "log", "scale", "é",
		"a b", "*", "..", ".")
	switch {
	case g.one(15):
		s += g.of("%2F", "%2f", "/", "%25", "%00", "%3F", "%20", "%7e", "+", ";", "=") + g.of("b", "", "log")
	case g.one(20):
		s = url.PathEscape(s)
	}
	return s
}

func (g *generator) path() string {
	var parts []string
	switch {
	case g.one(12):
		parts = append(parts, g.of("healthz", "metrics", "version", "openapi", "logs", "API", "apis", "api", ""))
	case g.one(2):
		parts = append(parts, "api", g.of("v1", "v1", "v2", ""))
	default:
		parts = append(parts, "apis", g.of("apps", "rbac.authorization.k8s.io", "metrics.k8s.io", ""), g.of("v1", "v1beta1"))
	}
	if g.one(8) {
		parts = append(parts, g.of("watch", "proxy", "watch", "redirect"))
	}
	if g.one(2) {
		parts = append(parts, "namespaces")
		if !g.one(6) {
			parts = append(parts, g.segment())
		}
	}
	for range g.IntN(5) {
		parts = append(parts, g.segment())
	}
	path := "/" + strings.Join(parts, "/")
	if g.one(12) {
		path = g.of("/", "//", "") + path + g.of("/", "//", "")
	}
	return path
}

func (g *generator) value(key string) string {
	switch key {
	case "watch", "allowWatchBookmarks", "sendInitialEvents":
		return g.of("", "0", "1", "true", "false", "FALSE", "yes", "no", "t", "F", "2")
	case "fieldSelector":
		field := g.of("metadata.name", "metadata.name", "metadata.name", "spec.nodeName", "metadata.namespace", "x", "")
		s := field + g.of("=", "==", "!=", "=", "") + g.of("x", "web-0", "", "..", ".", "a/b", "a%b", " x", "x ", `a\,b`, `a\=b`,
			`a\b`, "é")
		if g.one(3) {
			s += "," + g.of("metadata.name=y", "spec.nodeName=n", "", "status.phase!=Running", "metadata.name!=y")
		}
		return s
	case "labelSelector":
		return g.of("a=b", "a", "!a", "a in (b,c)", "a b", "a=b,c!=d", "", "a in (", "-x=1", "a=é")
	case "limit", "timeoutSeconds":
		return g.of("1", "500", "abc", "", "-1", "99999999999999999999", "1.5", " 1", "0x10")
	}
	return g.of("", "0", "1", "abc", "NotOlderThan", "Exact")
}

func (g *generator) query() string {
	if g.one(3) {
		return ""
	}
	var pairs []string
	for range 1 + g.IntN(4) {
		key := g.of("watch", "watch", "fieldSelector", "fieldSelector", "fieldSelector", "labelSelector", "limit", "timeoutSeconds",
			"resourceVersion",
			"resourceVersionMatch", "continue", "allowWatchBookmarks", "sendInitialEvents", "dryRun", "pretty", "Watch", "shardSelector")
		v := url.QueryEscape(g.value(key))
		switch {
		case g.one(15):
			v = g.value(key) // as it is
		case g.one(20):
			key = strings.Replace(key, "w", "%77", 1)
		}
		switch {
		case g.one(15):
			pairs = append(pairs, key)
		case g.one(25):
			pairs = append(pairs, key+"="+v+";x=1")
		default:
			pairs = append(pairs, key+"="+v)
		}
	}
	return "?" + strings.Join(pairs, "&")
}
