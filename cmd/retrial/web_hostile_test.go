package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// hostileText is a string as clients may choose it, and how it must read on the page.
type hostileText struct{ name, raw, shown string }

// hostile are those that every page is shown.
var hostile = []hostileText{
	{name: "script", raw: `<script>window.pwned=1</script>`},
	{name: "image", raw: `<img src=x onerror="window.pwned=1">`},
	{name: "out of an attribute", raw: `"><svg onload=window.pwned=1>`},
	{name: "event handler", raw: `' onmouseover='window.pwned=1' autofocus onfocus='window.pwned=1`},
	{name: "script URL", raw: `javascript:window.pwned=1//`},
	{name: "data URL", raw: `data:text/html,<script>opener.pwned=1</script>`},
	{name: "template", raw: "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}`"},
	{name: "frame", raw: `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`},
	{name: "style", raw: `</style><style>*{display:none}</style>`},
	{name: "terminal", raw: "\x1b[31mred\x1b[0m\x1b]8;;http://x\x07", shown: `\u001b[31mred\u001b[0m\u001b]8;;http://x\u0007`},
	{name: "override of direction", raw: "user\u202egnp.nimda", shown: `user\u202egnp.nimda`},
	{name: "isolates", raw: "\u2066admin\u2069", shown: `\u2066admin\u2069`},
	{name: "zero width", raw: "ad\u200bmin\ufeff", shown: `ad\u200bmin\ufeff`},
	{name: "tag characters", raw: "admin\U000e0041", shown: `admin\u{e0041}`},
	{name: "odd space", raw: "system:\u00a0masters\u3164", shown: `system:\u00a0masters\u3164`},
	{name: "lines", raw: "one\ntwo\tthree\r", shown: `one\ntwo\tthree\u000d`},
	{name: "NUL", raw: "ad\x00min", shown: `ad\u0000min`},
	{name: "an escape that was in the text", raw: `user\u202egnp`, shown: `user\u202egnp`},
	{name: "an escape beside a real one", raw: "\\u0041\u202e", shown: `\\u0041\u202e`},
	{name: "right to left", raw: "שלום-עולם", shown: "שלום-עולם"},
	{name: "picture", raw: "🙂 crab 🦀", shown: "🙂 crab 🦀"},
	{name: "formula", raw: `=cmd|' /C calc'!A0`},
	{name: "quotes", raw: `"';--\`},
	{name: "path", raw: `../..//etc/passwd?a=b&c=d#frag%00%2f+`},
	{name: "prototype", raw: `__proto__`},
	{name: "long", raw: "long-" + strings.Repeat("x", 5000), shown: "long-" + strings.Repeat("x", 40)},
}

// hostileEvents puts each of the strings into every place of an event a client can reach,
// and an audit ID that two requests share.
func hostileEvents(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	add := func(i int, id, s string) {
		at := time.Date(2026, 11, 19, 10, 0, i, 0, time.UTC).Format(time.RFC3339Nano)
		line, err := json.Marshal(map[string]any{
			"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": id, "stage": "ResponseComplete",
			"requestURI": "/api/v1/namespaces/default/configmaps/" + s, "verb": s, "sourceIPs": []string{s}, "userAgent": s,
			"user": map[string]any{"username": s, "uid": s, "groups": []string{s, "system:authenticated"},
				"extra": map[string][]string{s: {s}}},
			"objectRef":      map[string]string{"resource": s, "namespace": s, "name": s, "apiVersion": s, "apiGroup": s},
			"responseStatus": map[string]any{"code": 403, "status": "Failure", "message": s, "reason": s},
			"requestObject":  map[string]any{"kind": s, s: s}, s: s,
			"requestReceivedTimestamp": at, "stageTimestamp": at,
			"annotations": map[string]string{"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": s, s: s},
		})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	for i, h := range hostile {
		add(i, h.raw, h.raw)
	}
	add(40, "used/again", "first")
	add(41, "used/again", "second")
	return out.Bytes()
}

// hostileState binds each of the strings, as user and as group, to a role of that name that
// allows verbs and resources of that name.
func hostileState(t *testing.T) []byte {
	t.Helper()
	const group = "rbac.authorization.k8s.io"
	items := []object{}
	for i, h := range hostile {
		meta := object{"name": h.raw, "uid": fmt.Sprintf("uid-%d", i), "resourceVersion": fmt.Sprint(100 + i),
			"creationTimestamp": "2026-11-19T00:00:00Z"}
		items = append(items,
			object{"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": meta,
				"rules": []object{{"verbs": []string{h.raw, "get"}, "apiGroups": []string{""}, "resources": []string{h.raw, "secrets"},
					"resourceNames": []string{h.raw}}}},
			object{"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": meta,
				"subjects": []object{{"kind": "User", "apiGroup": group, "name": h.raw}, {"kind": "Group", "apiGroup": group,
					"name": h.raw}}, "roleRef": object{"apiGroup": group, "kind": "ClusterRole", "name": h.raw}})
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// hostileTexts are the strings alone.
func hostileTexts() []string {
	texts := make([]string, len(hostile))
	for i, h := range hostile {
		texts[i] = h.raw
	}
	return texts
}

// read is how a string has to read on the page.
func (h hostileText) read() string {
	if h.shown == "" {
		return h.raw
	}
	return h.shown
}

// unharmed: no string became markup, code, or a way out of the page.
const unharmed = `window.pwned === undefined && ` +
	`document.querySelectorAll('iframe, object, embed, style, [onerror], [onload], [onmouseover], [onfocus], [srcdoc]').length === 0 && ` +
	`[...document.scripts].every(s => s.src.startsWith(location.origin + '/assets/')) && ` +
	`[...document.images].every(i => i.src === location.origin + '/icon.svg') && ` +
	`[...document.querySelectorAll('a')].every(a => (a.getAttribute('href') ?? '#').startsWith('#'))`

// innocent fails the test where a hostile string became more than text.
func (b *browser) innocent(t *testing.T, what string) {
	t.Helper()
	if !value[bool](t, b, what, unharmed) {
		t.Errorf("%s: a string became markup, code, or a way out of the page", what)
	}
}

// readable fails the test where one of the hostile strings is not in a part of the page, or does not read as what it is.
func (b *browser) readable(t *testing.T, what, selector string) {
	t.Helper()
	for _, h := range hostile {
		if !value[bool](t, b, h.name, readsIn(selector, h.read())) {
			t.Errorf("%s: %s is not in %s, or does not read %.100q", what, h.name, selector, h.read())
		}
	}
}

// hostile opens every page about a cluster whose every name is hostile: what a client put into its requests is text, everywhere, and it
// reads as what it is.
func (w *web) hostile(t *testing.T) {
	s, b := w.s, w.b
	const of = "cluster=hostile"
	b.load(t, s.ui+"#/explore?"+of)
	b.until(t, "the requests are there", settled)
	b.readable(t, "requests", "[role=row] [href*='/subjects/']")
	b.visit(t, "#/subjects?system=yes&"+of)
	b.until(t, "the rights are weighed", settled)
	b.readable(t, "subjects", "#main [role=row]")
	for _, page := range []string{"#/?", "#/explore?cols=time,subject,request,class,authorizer,stage,id&",
		"#/explore?cols=subject,uri,verb,name,agent,address&",
		"#/findings?", "#/subjects?system=yes&", "#/access?verb=get&resource=secrets&", "#/access?verb=get&resource=secrets&view=map&",
		"#/changes?", "#/trust?"} {
		b.visit(t, page+of)
		b.innocent(t, page)
		b.holds(t, page+of)
	}
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			b.visit(t, "#/events/"+url.PathEscape(h.raw)+"?"+of)
			b.until(t, "its request", `[...document.querySelectorAll('#main dl bdi')].filter(e => e.textContent.includes(`+
				quoteJS(h.read())+`)).length >= 5`)
			b.innocent(t, "request")
			b.visit(t, "#/explore?"+url.Values{"cluster": {"hostile"}, "subject": {h.raw}, "verb": {h.raw}, "resource": {h.raw}}.Encode())
			b.until(t, "filters find it", settled+` && document.querySelectorAll('#main [role=row] [href*="why="]').length === 1`)
			b.innocent(t, "filters")
			b.visit(t, "#/subjects/"+url.PathEscape(h.raw)+"?"+of)
			b.until(t, "its subject", settled+" && "+readsIn("h1", h.read()))
			b.innocent(t, "subject")
			if !strings.ContainsAny(h.raw, "\n\r\x00") { // to the server such a name is several, or none
				asked := url.Values{"cluster": {"hostile"}, "verb": {"get"}, "resource": {"secrets"}, "name": {h.raw}}
				b.visit(t, "#/access?"+asked.Encode())
				b.until(t, "who can", settled+` && `+readsIn(`[aria-label="Who can"][role=table]`, h.read()))
				b.innocent(t, "holders")
			}
			b.until(t, "the title is text", `!/[\u202e\u0000\u2066]/.test(document.title)`)
		})
	}
	t.Run("an audit ID used again", func(t *testing.T) {
		b.visit(t, "#/events/"+url.PathEscape("used/again")+"?"+of)
		b.until(t, "both requests are there", readsIn("#main", "2 requests carry this audit ID"))
	})
	b.excuse()
	b.blameless(t)
}
