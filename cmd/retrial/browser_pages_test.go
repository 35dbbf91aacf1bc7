package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
)

// drawn: the page has asked and shows what it was answered.
const drawn = `document.querySelector('main').children.length > 0 && !document.querySelector('.loading, .stale')`

// TestBrowserPages uses the pages of subjects, findings and access as people do: on an empty
// store, on the whole sample, and on a cluster whose every name is hostile.
func TestBrowserPages(t *testing.T) {
	needPage(t)
	in := newInstall(t)
	s := in.serve(t, "--replay-hold", "200ms")
	b := openBrowser(t, s.ui)

	t.Run("empty store", func(t *testing.T) {
		for _, hash := range []string{"#/", "#/subjects", "#/subject?subject=alice", "#/findings", "#/findings?finding=x", "#/access",
			"#/access?verb=get&resource=secrets"} {
			b.load(t, s.ui+hash)
			b.until(t, hash+" says what to do", `document.querySelector('main').innerText.includes('retrial connect NAME') && `+
				`document.querySelectorAll('#views a').length === 5`)
		}
	})
	t.Run("a registered cluster without events", func(t *testing.T) {
		s.addCluster(t, "live")
		b.load(t, s.ui+"#/findings?cluster=live")
		b.until(t, "how far it is, and what to do",
			`document.querySelectorAll('.step').length === 7 && document.querySelector('.step.is-done').innerText.includes('registered') `+
				`&& document.querySelector('.step pre').innerText.includes('kube-apiserver')`)
	})
	b.blameless(t)

	in.run(t, "import", "--cluster", "sample", "--state", in.file(t, sample.StateName, string(sample.StateZstd())),
		in.file(t, sample.AuditLogName, string(sample.AuditLogZstd()))).ok(t)
	in.importHostile(t)
	s.drained(t)
	b.load(t, s.ui+"#/findings?cluster=sample")
	b.until(t, "findings", `document.querySelectorAll('.findings tbody tr').length > 10`)

	t.Run("subject", func(t *testing.T) { subjectPage(t, s, b) })
	t.Run("subjects", func(t *testing.T) { subjectsPage(t, s, b) })
	t.Run("findings", func(t *testing.T) { findingsPage(t, s, b) })
	t.Run("access", func(t *testing.T) { accessPage(t, s, b) })
	t.Run("links", func(t *testing.T) { linksBetween(t, s, b) })
	t.Run("for all eyes and hands", func(t *testing.T) { accessible(t, s, b) })
	t.Run("hostile names", func(t *testing.T) { hostilePages(t, s, b) })
}

// sampleRange is the range the page asks for.
func sampleRange(t *testing.T, s *running) url.Values {
	t.Helper()
	var clusters struct {
		Clusters []query.Cluster `json:"clusters"`
	}
	s.get(t, "clusters", &clusters)
	for _, c := range clusters.Clusters {
		if c.Name == "sample" {
			return url.Values{"cluster": {"sample"}, "from": {c.First.Format("2006-01-02T15:04:05Z07:00")},
				"to": {c.Last.Format("2006-01-02T15:04:05Z07:00")}}
		}
	}
	t.Fatal("there is no sample")
	return nil
}

// with returns parameters with some more.
func with(q url.Values, more ...string) string {
	out := url.Values{}
	for k, v := range q {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out.Set(more[i], more[i+1])
	}
	return out.Encode()
}

func tile(title string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.tile')].find(e => e.querySelector('span').innerText === `+
		`%s).querySelector('b').innerText`, quoteJS(title))
}

func subjectPage(t *testing.T, s *running, b *browser) {
	var did query.Doings
	var best query.SuggestAnswer
	span := sampleRange(t, s)
	s.get(t, "subject?"+with(span, "subject", "carol"), &did)
	s.get(t, "suggest?"+with(span, "subject", "carol"), &best)
	own := best.Suggestions[0]
	if did.Requests == 0 || did.Forbidden == 0 || own.Excess.Before == 0 || len(own.Apply) == 0 || len(own.Remove) == 0 {
		t.Fatalf("carol is of no use here: %+v", own.Excess)
	}
	b.load(t, s.ui+"#/subject?cluster=sample&subject=carol")
	b.until(t, "it is drawn", drawn)
	for title, want := range map[string]int64{"Requests": did.Requests, "Forbidden": did.Forbidden, "Drift": 0,
		"Excess": int64(own.Excess.Before), "After the change": int64(own.Excess.After), "By groups": int64(own.Excess.Kept)} {
		if got := value[string](t, b, title, tile(title)); got != grouped(want) {
			t.Errorf("%s: %s, want %s", title, got, grouped(want))
		}
	}
	for selector, want := range map[string]string{
		"h1": "carol", ".who-is": "team:catalog", ".uses": "selfsubjectaccessreviews", ".rights": "ClusterRole/admin",
		".never": "never used", "[aria-label='What it never did']": own.Unused[0].Binding, ".sides": "holds", ".keeps": own.Keeps[0].Group,
		"[aria-label='Command']": "retrial suggest --cluster sample --subject carol -o yaml --force", ".next.warn": "It rests on 9 minutes",
	} {
		if !value[bool](t, b, selector, readsIn(selector, want)) {
			t.Errorf("%s does not show %q", selector, want)
		}
	}

	const block = `document.querySelector('.blocks pre').textContent`
	b.until(t, "what to apply", block+`.includes('kind: `+"Role"+`') && `+block+`.includes('# proof: holds')`)
	b.click(t, ".blocks button", "Remove")
	b.until(t, "the commands", `location.hash.includes('show=remove') && `+block+`.startsWith('kubectl ')`)
	if n := len(strings.Split(strings.TrimSpace(value[string](t, b, "commands", block)), "\n")); n != len(own.Remove) {
		t.Errorf("%d commands for %d removals", n, len(own.Remove))
	}
	b.click(t, ".blocks button", "Roll back")
	b.until(t, "the way back", `location.hash.includes('show=rollback') && `+block+`.includes('kind: ')`)
	b.run(t, "back", chromedp.NavigateBack())
	b.until(t, "the commands again", `location.hash.includes('show=remove') && `+block+`.startsWith('kubectl ')`)
	b.load(t, value[string](t, b, "address", `location.href`))
	b.until(t, "a link shows the same", `document.querySelector('h1')?.innerText === 'carol' && `+block+`.startsWith('kubectl ')`)

	b.click(t, ".blocks .acts button", "Copy")
	b.until(t, "it is copied, or chosen to be copied", `(said => said === 'Copied.' || said.startsWith('Selected') && `+
		`String(getSelection()).trim() === `+block+`.trim())(document.querySelector('.blocks [role=status]').innerText)`)
	saved := b.download(t, func() { b.click(t, ".blocks .acts button", "Download retrial-carol-remove.sh") })
	if want := value[string](t, b, "text", block); saved["retrial-carol-remove.sh"] != want {
		t.Errorf("saved %.300q, want %.300q", saved, want)
	}

	b.click(t, "main button", "What it never did")
	b.until(t, "it is on the screen",
		`(r => r.top >= 0 && r.top < innerHeight)(document.querySelector('[aria-label="What it never did"]').getBoundingClientRect())`)
	b.click(t, "a.button", "Show all")
	b.until(t, "all of its uses", fmt.Sprintf(`document.querySelectorAll('.uses tbody tr').length === %d`, len(did.Usage)))
	b.blameless(t)

	b.load(t, s.ui+"#/subject?cluster=sample&subject=nobody-at-all")
	b.until(t, "nobody is told as such", drawn+` && document.querySelector('main').innerText.includes('nobody-at-all') && `+
		`document.querySelector('[aria-label="What it did"]').innerText.includes('no request') && !document.querySelector('.failed')`)
	b.excuse()
}

func subjectsPage(t *testing.T, s *running, b *browser) {
	var all query.SuggestAnswer
	s.get(t, "suggest?"+with(sampleRange(t, s), "all", "true"), &all)
	b.load(t, s.ui+"#/subjects?cluster=sample")
	b.until(t, "the ranking", fmt.Sprintf(`document.querySelectorAll('.ranking tbody tr').length === %d`, len(all.Suggestions)))
	b.until(t, "the heaviest is first",
		fmt.Sprintf(`document.querySelector('.ranking tbody a').innerText === %s`, quoteJS(all.Suggestions[0].Subject)))
	b.until(t, "those never seen", fmt.Sprintf(`document.querySelectorAll('.unseen-list tbody tr').length === %d`, len(all.Unseen)))
	b.click(t, "button", "Kubernetes’ own")
	b.until(t, "also those of Kubernetes",
		fmt.Sprintf(`location.hash.includes('system=yes') && document.querySelectorAll('.ranking tbody tr').length > %d`,
			len(all.Suggestions)))
	b.do(t, `document.querySelector('#find').focus()`)
	b.run(t, "type", chromedp.KeyEvent("bob"))
	b.press(t, enterKey)
	b.until(t, "a subject by name", `location.hash.includes('subject=bob') && document.querySelector('h1')?.innerText === 'bob'`)
	b.blameless(t)
}

func findingsPage(t *testing.T, s *running, b *browser) {
	var all query.FindingsAnswer
	s.get(t, "findings?"+with(sampleRange(t, s), "limit", "500"), &all)
	var worst detect.Finding
	for _, raw := range all.Findings {
		var f detect.Finding
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		if f.Severity == "critical" {
			worst = f
		}
	}
	const rows = `[...document.querySelectorAll('.findings tbody tr')]`
	b.load(t, s.ui+"#/findings?cluster=sample")
	b.until(t, "a page of them", rows+`.length === 50 && document.querySelectorAll('.rules tbody tr').length > 15`)
	b.click(t, "a.button", "Older")
	b.until(t, "the next", `location.hash.includes('before=') && `+rows+`.length > 0 && document.querySelector('[data-k=newest]')`)
	b.run(t, "back", chromedp.NavigateBack())
	b.until(t, "the first", `!location.hash.includes('before=') && `+rows+`.length === 50 && !document.querySelector('[data-k=newest]')`)
	b.click(t, "button", "high and up")
	b.until(t, "the worse ones", `location.hash.includes('severity=high') && `+rows+`.length > 0 && `+rows+
		`.every(r => ['critical', 'high'].includes(r.cells[0].innerText))`)
	b.click(t, "button", "Clear filters")
	b.until(t, "all again", `!location.hash.includes('severity') && `+rows+`.length === 50`)
	b.click(t, ".rules a[data-k=rpod-exec]", "")
	b.until(t, "one rule", `location.hash.includes('rule=pod-exec') && `+rows+`.length > 0 && new Set(`+rows+
		`.map(r => r.querySelector('a').innerText)).size === 1 && document.querySelector('select[aria-label=Rule]').value === 'pod-exec'`)
	b.do(t, `(i => { i.value = 'nobody at all'; i.dispatchEvent(new Event('change')); })(document.querySelector('.filters input'))`)
	b.until(t, "nobody", readsIn("main", "No finding matches these filters"))
	b.load(t, s.ui+"#/findings?cluster=sample&from=2026-11-20T11:36:00.000Z&to=2026-11-20T11:36:00.001Z")
	b.until(t, "nothing found says what is looked for", readsIn("main", "Nothing was found in this range")+
		` && document.querySelectorAll('.rules tbody tr').length > 15 && document.querySelector('.rules').innerText.includes('audit ID')`)

	b.load(t, s.ui+"#/findings?cluster=sample&severity=critical")
	b.until(t, "the worst", rows+`.length > 0`)
	b.click(t, ".findings tbody tr", worst.Subject)
	b.until(t, "the finding", `location.hash.includes('finding=') && document.querySelectorAll('#drawer .evidence li').length > 0 && `+
		readsIn("#drawer", worst.ID))
	if text := b.look(`document.querySelector('#drawer').innerText`); !strings.Contains(text, worst.Attack[0]) ||
		!strings.Contains(text, worst.Rule) || !strings.Contains(text, worst.Subject) {
		t.Errorf("the finding lacks something: %s", text)
	}
	link := value[string](t, b, "address", `location.href`)
	b.click(t, "#drawer .evidence a", "")
	b.until(t, "why", `location.hash.includes('why=') && document.querySelector('#drawer .sides')`)
	b.click(t, "#drawer a", "Back to the finding")
	b.until(t, "the finding again", `!location.hash.includes('why=') && document.querySelector('#drawer .evidence')`)
	b.press(t, escapeKey)
	b.until(t, "it closes, and the focus comes back",
		`document.querySelector('#drawer').hidden && document.activeElement.closest('.findings')`)
	b.load(t, link)
	b.until(t, "its link opens it", `document.querySelector('#drawer .evidence') && document.activeElement.closest('#drawer')`)
	b.click(t, "#drawer a", "All about this subject")
	b.until(t, "its subject", `document.querySelector('#drawer').hidden && document.querySelector('h1')?.innerText === `+
		quoteJS(worst.Subject))
	b.load(t, s.ui+"#/findings?cluster=sample&finding=00000000000000000000000000000000")
	b.until(t, "an unknown one", readsIn("#drawer", "Not found"))
	b.blameless(t)
}

func accessPage(t *testing.T, s *running, b *browser) {
	span := sampleRange(t, s)
	holders := func(at string) (names []string) {
		var a query.WhoCanAnswer
		s.get(t, "who-can?"+
			url.Values{"cluster": {"sample"}, "verb": {"get"}, "resource": {"secrets"}, "allNamespaces": {"true"}, "at": {at}}.Encode(), &a)
		for _, h := range a.Subjects {
			names = append(names, h.Name)
		}
		return names
	}
	first, last := holders(span.Get("from")), holders(span.Get("to"))
	if slices.Equal(first, last) {
		t.Fatal("nothing changed in the sample: times cannot be told apart")
	}
	const rows = `document.querySelectorAll('.holders tbody tr').length`
	b.load(t, s.ui+"#/access?cluster=sample")
	b.until(t, "questions worth asking", `document.querySelectorAll('.asks a').length > 5 && document.querySelector('#ranges').hidden`)
	b.do(t, `document.querySelector('#ask-verb').focus()`)
	b.run(t, "type", chromedp.KeyEvent("get"))
	b.do(t, `document.querySelector('#ask-resource').focus()`)
	b.run(t, "type", chromedp.KeyEvent("secrets"))
	b.do(t, `document.querySelector('#ask-all').click()`)
	b.click(t, "form.ask button", "end of the log")
	b.press(t, enterKey)
	b.until(t, "who could at the end",
		fmt.Sprintf(`location.hash.includes('verb=get') && %s === %d && document.querySelector('.asof').innerText === 'As it stood at `+
			`2026-11-20 11:45:00 UTC'`, rows, len(last)))
	b.do(t, `(i => { i.value = '2026-11-20 11:36'; i.focus(); })(document.querySelector('.when input'))`)
	b.press(t, enterKey)
	b.until(t, "who could at the start",
		fmt.Sprintf(`%s === %d && document.querySelector('.asof').innerText === 'As it stood at 2026-11-20 11:36:00 UTC'`, rows,
			len(first)))
	b.run(t, "back", chromedp.NavigateBack())
	b.until(t, "at the end again",
		fmt.Sprintf(`%s === %d && document.querySelector('.when input').value.startsWith('2026-11-20T11:45')`, rows, len(last)))

	b.click(t, ".holders .through a", "ClusterRole/")
	b.until(t, "through one role alone", fmt.Sprintf(`location.hash.includes('via=') && %s > 0 && %s < %d`, rows, rows, len(last)))
	b.click(t, "#answer a", "only through")
	b.until(t, "all of them", fmt.Sprintf(`!location.hash.includes('via=') && %s === %d`, rows, len(last)))
	b.click(t, ".holders a.who", "team:catalog")
	b.until(t, "what a group can",
		`location.hash.includes('subject=group') && document.querySelector('.rights') && `+readsIn("#answer .said", "A member of"))
	b.load(t, s.ui+"#/access?cluster=sample&verb=get&resource=secrets")
	b.until(t, "cluster-wide", rows+` > 0 && `+readsIn("#answer", "more in single namespaces"))
	b.click(t, "#answer a", "more in single namespaces")
	b.until(t, "and in namespaces", `location.hash.includes('all=yes') && document.querySelector('#ask-all').checked && `+
		readsIn(".holders", "namespace"))

	b.load(t, s.ui+"#/access?cluster=sample&subject=carol&at=2026-11-20T11:40:00Z")
	b.until(t, "what somebody can", `document.querySelector('.rights') && document.querySelector('.asof').innerText.includes('11:40:00')`)
	b.click(t, "#answer .said a", "carol")
	b.until(t, "the subject", `document.querySelector('h1')?.innerText === 'carol'`)
	b.blameless(t)
	for hash, says := range map[string]string{
		"verb=get&resource=secrets&at=yesterday": "want RFC 3339", "verb=get": "name either a resource or a path",
		"verb=get&path=healthz": "must begin with a slash", "verb=get&resource=a/b/c": "is not RESOURCE",
	} {
		b.load(t, s.ui+"#/access?cluster=sample&"+hash)
		b.until(t, hash+" is refused with a reason", readsIn("#answer [role=alert]", says))
	}
	b.excuse()
}

func linksBetween(t *testing.T, s *running, b *browser) {
	b.load(t, s.ui+"#/?cluster=sample")
	b.until(t, "it is drawn", drawn+` && `+listed+`.length === 50`)
	b.click(t, "[aria-label=Findings] tbody td a", "A credential contradicts the cluster")
	b.until(t, "a finding from the first page", `document.querySelector('#drawer .evidence')`)
	b.press(t, escapeKey)
	b.until(t, "back", `document.querySelector('#drawer').hidden`)
	b.click(t, "#views a", "Findings")
	b.until(t, "the findings, with the focus on them", `document.title.startsWith('Findings') && document.activeElement.id === 'main' && `+
		`document.querySelector('#views [aria-current=page]').innerText === 'Findings'`)
	b.run(t, "back", chromedp.NavigateBack())

	b.load(t, s.ui+"#/?cluster=sample&subject=grace&decision=allow")
	b.until(t, "grace's requests", listed+`.length > 0 && document.querySelector('#requests [data-k=about]')`)
	b.click(t, "#requests tbody tr", " grants")
	b.until(t, "why", `document.querySelectorAll('#drawer a.node').length >= 6`)
	b.click(t, "#drawer a", "Who else could do this then?")
	b.until(t, "who else could, at that moment", `document.querySelector('#drawer').hidden && location.hash.includes('at=2026') && `+
		`document.querySelectorAll('.holders tbody tr').length > 1 && `+readsIn(".holders", "grace"))
	b.run(t, "back", chromedp.NavigateBack())
	b.until(t, "why again", `document.querySelectorAll('#drawer a.node').length >= 6`)
	b.click(t, "#drawer a.node", "bound by")
	b.until(t, "through that binding", `location.hash.includes('via=') && document.querySelectorAll('.holders tbody tr').length >= 1`)
	b.click(t, ".holders a.who", "")
	b.until(t, "a subject", `/subject|access/.test(location.hash) && `+drawn)

	// A request made as somebody else leads to both, and says which is which.
	lines := recorded(t)
	acted := slices.IndexFunc(lines,
		func(line []byte) bool { return bytes.Contains(line, []byte(`"impersonatedUser":{"username":"carol"`)) })
	b.load(t, s.ui+"#/?cluster=sample&why="+decoded(t, lines[acted]).AuditID)
	b.until(t, "both are named", readsIn("#drawer .onward", "All about audit-reader, who made it")+" && "+
		readsIn("#drawer .onward", "All about carol, whom they acted as"))
	b.click(t, "#drawer .onward a", "who made it")
	b.until(t, "who made it", `document.querySelector('#drawer').hidden && document.querySelector('h1')?.innerText === 'audit-reader'`)

	// An address that was kept when parameters had other names.
	b.load(t, s.ui+"#/?cluster=sample&user=grace&decision=allow")
	b.until(t, "grace's requests by an old address", listed+`.length > 0 && document.querySelector('#requests [data-k=about]')`)
	b.click(t, "#requests [data-k=about]", "")
	b.until(t, "grace by the name of today", `location.hash.includes('subject=grace') && !location.hash.includes('user=') && `+
		`document.querySelector('h1')?.innerText === 'grace'`)

	// One about whom there is something to suggest: a 404 would be an error on the console.
	b.load(t, s.ui+"#/?cluster=sample&range=15m&subject=carol")
	b.until(t, "the list", listed+`.length === 50`)
	b.click(t, "#requests a.who", "carol")
	b.until(t, "the subject, in the same range",
		`location.hash.startsWith('#/subject?') && location.hash.includes('range=15m') && document.querySelector('.uses')`)
	b.click(t, ".uses a", "")
	b.until(t, "who else can", `location.hash.startsWith('#/access?') && `+drawn+` && document.querySelector('#answer .said')`)
	b.blameless(t)
}

// accessible holds every page to what people without a mouse or without eyes need.
func accessible(t *testing.T, s *running, b *browser) {
	for _, hash := range []string{"#/?cluster=sample", "#/subjects?cluster=sample", "#/subject?cluster=sample&subject=carol",
		"#/findings?cluster=sample", "#/access?cluster=sample", "#/access?cluster=sample&verb=get&resource=secrets",
		"#/access?cluster=sample&subject=carol"} {
		b.load(t, s.ui+hash)
		b.until(t, hash+" is drawn", drawn)
		for what, js := range map[string]string{
			"one heading of the page": `document.querySelectorAll('h1').length === 1`,
			"every field has a name": `[...document.querySelectorAll('input, select')].every(e => e.getAttribute('aria-label') || ` +
				`e.labels?.length)`,
			"every card has a name": `[...document.querySelectorAll('section.card')].every(e => e.getAttribute('aria-label') || ` +
				`e.querySelector('h1, h2'))`,
			"every button has a name": `[...document.querySelectorAll('button')].every(e => e.innerText.trim() || ` +
				`e.getAttribute('aria-label'))`,
			"one place in the navigation":   `document.querySelectorAll('#views [aria-current=page]').length === 1`,
			"what takes the focus has keys": `[...document.querySelectorAll('main .body a, main .body button')].every(e => e.dataset.k)`,
			"keys name one thing each": `(k => new Set(k).size === k.length)([...document.querySelectorAll('main [data-k]')].map(e ` +
				`=> e.dataset.k))`,
			"columns have heads": `[...document.querySelectorAll('main table:not(.matrix)')].every(t => ` +
				`t.querySelectorAll('th[scope=col]').length === t.rows[1].cells.length)`,
		} {
			if !value[bool](t, b, what, js) {
				t.Errorf("%s: not so: %s", hash, what)
			}
		}
		b.run(t, "narrow", chromedp.EmulateViewport(390, 844))
		if over := value[float64](t, b, "width", `document.scrollingElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s is %v pixels wider than a narrow screen", hash, over)
		}
		b.run(t, "wide again", chromedp.EmulateViewport(1400, 1000))
	}
	b.blameless(t)
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

func hostilePages(t *testing.T, s *running, b *browser) {
	b.load(t, s.ui+"#/subjects?cluster=hostile")
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			b.do(t, "location.hash = "+quoteJS("#/subject?"+url.Values{"cluster": {"hostile"}, "subject": {h.raw}}.Encode()))
			b.until(t, "the subject", drawn+` && document.querySelector('.uses') && `+readsIn("h1", h.read())+` && `+
				readsIn(".rights", "ClusterRoleBinding/"+h.read()))
			if got := value[string](t, b, "requests", tile("Requests")); got != "1" {
				t.Errorf("%s requests", got)
			}
			b.until(t, "nothing became markup", unharmed)
			b.do(t, `location.hash = '#/access?' + new URLSearchParams({cluster: 'hostile', verb: 'get', resource: 'secrets', name: `+
				quoteJS(h.raw)+`})`)
			b.until(t, "who can", drawn+` && document.querySelector('.holders') && `+readsIn(".holders", h.read()))
			users := value[[]string](t, b, "links", `[...document.querySelectorAll('.holders a.who')].map(a => new `+
				`URLSearchParams(a.getAttribute('href').split(/\?(.*)/s)[1])).map(p => p.get('subject'))`)
			if !slices.Contains(users, h.raw) || !slices.Contains(users, "group:"+h.raw) {
				t.Errorf("its holders are %q", users)
			}
			b.until(t, "nothing became markup", unharmed)
			b.do(t, `location.hash = '#/findings?' + new URLSearchParams({cluster: 'hostile', subject: `+quoteJS(h.raw)+`})`)
			b.until(t, "findings", drawn+` && document.querySelector('.filters input').value === `+
				quoteJS(strings.NewReplacer("\n", "", "\r", "").Replace(h.raw))+` && document.querySelector('h1').innerText === 'Findings'`)
			b.until(t, "nothing became markup", unharmed)
		})
	}
	b.excuse() // a name with a line's end is none to the server: it reads several
	b.blameless(t)
}

// excuse forgets refused questions: they are errors on the console, as they should be.
func (b *browser) excuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = slices.DeleteFunc(b.faults, func(f string) bool {
		return strings.Contains(f, "Failed to load resource: the server responded with a status of 4")
	})
}

// download returns the files, by name, that were saved when what do does is done.
func (b *browser) download(t *testing.T, do func()) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var once sync.Once
	done := make(chan struct{})
	if err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*cdpbrowser.EventDownloadProgress); ok && e.State == cdpbrowser.DownloadProgressStateCompleted {
			once.Do(func() { close(done) })
		}
	}); err != nil {
		t.Fatal(err)
	}
	events := true
	b.run(t, "allow downloads",
		command(cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow,
			DownloadPath: dir, EventsEnabled: &events}))
	do()
	select {
	case <-done:
	case <-b.ctx.Done():
		t.Fatal("nothing was saved")
	}
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(body)
	}
	return out
}
