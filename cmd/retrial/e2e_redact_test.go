package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planter hands out secrets, each to be found again wherever it comes to light.
type planter struct{ planted []string }

// plain returns a new secret.
func (p *planter) plain() string {
	s := fmt.Sprintf("PLANTED%03dqVx7Kd2mZr9", len(p.planted))
	p.planted = append(p.planted, s)
	return s
}

// base64 returns a new secret as Secrets hold it.
func (p *planter) base64() string { return base64.StdEncoding.EncodeToString([]byte(p.plain())) }

// jwt returns a token as apiservers issue them, with a new secret for its signature.
func (p *planter) jwt() string {
	return "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+p.plain()+`"}`)) + "." + p.plain()
}

// found returns the secrets that a text holds, in any form they take.
func (p *planter) found(text []byte) []string {
	var out []string
	for _, s := range p.planted {
		for _, form := range []string{
			s, url.QueryEscape(s), // no character needs escaping, but a longer text around it may be
			strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(s)), "=")[:24],
			base64.StdEncoding.EncodeToString([]byte("\"" + s))[2:26],
			base64.StdEncoding.EncodeToString([]byte("\":" + s))[3:26],
		} {
			if bytes.Contains(text, []byte(form)) {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

// secret is a Secret full of secrets, with the copy that kubectl apply leaves.
func (p *planter) secret(name string) string {
	object := func(more string) string {
		return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `","namespace":"vault"` + more +
			`},"data":{"password":"` + p.base64() +
			`"},"stringData":{"token":"` + p.plain() + `"},"type":"Opaque"}`
	}
	return object(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + quoted(object("")) + `}`)
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) } // a string always encodes

// event is an audit event; more holds further members.
func plantedEvent(id, verb, uri, more string) []byte {
	return []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"planted-` + id +
		`","stage":"ResponseComplete","requestURI":` + quoted(uri) +
		`,"verb":"` + verb + `","user":{"username":"kubernetes-admin","groups":["system:masters","system:authenticated"]},` +
		`"sourceIPs":["10.0.0.1"],"userAgent":"kubectl"` +
		`,"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-20T11:40:00.000001Z",` +
		`"stageTimestamp":"2026-11-20T11:40:00.000900Z"` +
		`,"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}` + more + `}`)
}

// events plants secrets wherever an event can hold them.
func (p *planter) events(prefix string) [][]byte {
	secrets := "/api/v1/namespaces/vault/secrets"
	ev := func(id, verb, uri, more string) []byte { return plantedEvent(prefix+id, verb, uri, more) }
	return [][]byte{
		ev("create", "create", secrets, `,"requestObject":`+p.secret("a")+`,"responseObject":`+p.secret("a")),
		ev("list", "list", secrets+"?limit=500", `,"responseObject":{"kind":"SecretList","apiVersion":"v1","items":[`+p.secret("b")+`]}`),
		ev("patch", "patch", secrets+"/a", `,"requestObject":[{"op":"replace","path":"/data/password","value":"`+p.base64()+`"}]`),
		ev("apply", "patch", "/api/v1/namespaces/vault/configmaps/c?fieldManager=kubectl", `,"requestObject":{"kind":"ConfigMap",`+
			`"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+quoted(p.secret("c"))+`}}}`),
		ev("review", "create", "/apis/authentication.k8s.io/v1/tokenreviews", `,"requestObject":{"kind":"TokenReview","spec":{"token":"`+
			p.plain()+`"}},"responseObject":{"kind":"TokenReview","spec":{"token":"`+p.jwt()+`"},"status":{"authenticated":true}}`),
		ev("request", "create", "/api/v1/namespaces/vault/serviceaccounts/s/token",
			`,"responseObject":{"kind":"TokenRequest","status":{"token":"`+p.jwt()+`","expirationTimestamp":"2026-11-20T12:40:00Z"}}`),
		ev("query", "get", "/api/v1/pods?access_token="+p.plain()+"&limit=1", ""),
		ev("query-token", "get", "/apis/x.example/v1/y?token="+p.jwt(), ""),
		ev("exec", "create", "/api/v1/namespaces/vault/pods/db/exec?command=mysql&command=-p"+p.plain()+"&container=db&stdin=true", ""),
		ev("extra", "get", "/api", `,"impersonatedUser":{"username":"x","groups":["g"],"extra":{"access-token":["`+p.plain()+
			`"],"example.com/id":["`+p.jwt()+`"]}}`),
		bytes.Replace(ev("user-extra", "get", "/api", ""), []byte(`"groups":["system:masters"`),
			[]byte(`"extra":{"oidc.example/refresh-token":["`+p.plain()+`"],"k":["`+p.jwt()+`"]},"groups":["system:masters"`), 1),
		bytes.Replace(ev("agent", "get", "/api", ""), []byte(`"userAgent":"kubectl"`),
			[]byte(`"userAgent":"curl/8 Authorization: Bearer `+p.jwt()+`"`), 1),
		bytes.Replace(ev("message", "update", secrets+"/a", `,"requestObject":`+p.secret("d")), []byte(`"metadata":{},"code":200`),
			[]byte(`"metadata":{},"status":"Failure","message":"Secret \"d\" is invalid: data[x]: Invalid value: \"`+p.plain()+
				`\": no","code":422`), 1),
		ev("member", "get", "/api", `,"future":{"deep":["`+p.jwt()+`"]},"sessionToken":"`+p.plain()+`"`),
		// Policy writes are copied to a topic and a table of their own.
		ev("binding", "create", "/apis/rbac.authorization.k8s.io/v1/namespaces/vault/rolebindings",
			`,"responseObject":{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b`+prefix+
				`","namespace":"vault","uid":"u-`+prefix+
				`","resourceVersion":"999000","annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+
				quoted(`{"kind":"List","items":[`+p.secret("e")+`]}`)+
				`}},"subjects":[{"kind":"User","name":"u"}],"roleRef":{"kind":"Role","name":"r"}}`),
		ev("account", "patch", "/api/v1/namespaces/vault/serviceaccounts/s",
			`,"responseObject":{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"s","namespace":"vault","uid":"s-`+prefix+
				`","resourceVersion":"999001","annotations":{"deploy/token":"`+p.jwt()+`"}}}`),
		// Over the size of an event.
		ev("oversize", "create", secrets,
			`,"requestObject":{"kind":"Secret","data":{"a":"`+p.base64()+`","pad":"`+strings.Repeat("A", 300<<10)+`"}}`),
	}
}

// lines plants secrets in what is not an event.
func (p *planter) malformed(prefix string) [][]byte {
	return [][]byte{
		bytes.Replace(plantedEvent(prefix+"no-level", "create", "/api/v1/namespaces/vault/secrets", `,"requestObject":`+p.secret("m")),
			[]byte(`"level":"RequestResponse"`), []byte(`"level":7`), 1),
		[]byte(`{"requestURI":["/api/v1/secrets"],"requestObject":{"kind":"Secret","stringData":{"x":"` + p.plain() +
			`"}},"responseObject":{"status":{"token":"` + p.jwt() + `"}}}`),
		[]byte(`["Authorization: Bearer ` + p.jwt() + `","password=` + p.plain() + `"]`),
	}
}

// TestSecretsDoNotSurvive plants secrets in everything that comes in, by every door, and
// looks for them in every byte that is kept or printed: what Kafka held before it was
// consumed, every table, every file, the logs, the answers and the outputs of commands.
func TestSecretsDoNotSurvive(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	at := func(name string) string { return filepath.Join(in.dir, name) }
	var p planter
	limits := []string{"--webhook-max-body-bytes", "2MiB", "--webhook-max-event-bytes", "256KiB"}

	// Nothing is consumed as long as the replay is held back.
	s := in.serve(t, append(limits, "--replay-hold", "1h", "--log-level", "debug")...)
	to := s.addCluster(t, "prod")
	printed := map[string]string{}
	keep := func(name string, a posted, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		printed["answer to "+name] = a.text
	}
	post := func(name string, body []byte) {
		t.Helper()
		a, err := to.post(t.Context(), bytes.NewReader(body))
		keep(name, a, err)
	}
	posts := p.events("w-")
	post("events", eventList(posts))
	post("malformed items", eventList(append(p.malformed("w-"), posts[0])))
	whole := eventList(p.events("cut-"))
	post("a truncated body", whole[:len(whole)-310<<10])
	post("a text", []byte("password: "+p.plain()+"\ntoken: "+p.jwt()+"\n"))
	post("an oversize body", append(eventList(p.events("large-")), bytes.Repeat([]byte(" "), 2<<20)...))

	file := writeLog(t, at("audit.jsonl"), append(append(p.events("i-"), p.malformed("i-")...),
		[]byte(`{"kind":"Event","requestObject":{"kind":"Secret","data":{"a":"`+p.base64())))
	state := at("state.json")
	objects := []string{
		p.secret("s"),
		`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"x","namespace":"vault","uid":"1","resourceVersion":"5",` +
			`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + quoted(p.secret("t")) + `}}}`,
		`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"y","namespace":"vault","uid":"2",` +
			`"resourceVersion":"6","annotations":{"note":"Bearer ` + p.jwt() + `"}},"roleRef":{"kind":"Role","name":"r"},"subjects":[]}`,
	}
	if err := os.WriteFile(state, []byte(`{"kind":"List","apiVersion":"v1","items":[`+strings.Join(objects, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	note := func(name string, r result) { printed[name] = r.out + r.err }
	note("import", in.run(t, "import", "--cluster", "files", "--wait=false", "--state", state, file))
	note("import -",
		in.runWith(t, bytes.NewReader(bytes.Join(p.events("s-"), []byte("\n"))), "import", "--cluster", "stdin", "--wait=false", "-"))
	token := in.run(t, "cluster", "add", "tokens", "--token", "--server", s.webhook, "--output", at("token.kubeconfig")).ok(t)
	note("cluster add --token", token)
	holder := s.sender(t, at("token.kubeconfig"))
	a, err := holder.post(t.Context(), bytes.NewReader(eventList(p.events("t-"))))
	keep("a post with a token", a, err)
	p.planted = append(p.planted, bearerToken(t, at("token.kubeconfig")))
	wrong := p.plain()
	a, err = sender{holder.url, &http.Client{Transport: withToken{wrong, holder.client.Transport}}}.post(t.Context(), bytes.NewReader(nil))
	keep("a post with a wrong token", a, err)
	s.kill()
	printed["log while held back"] = s.log.String() + s.out.String()

	// What Kafka holds, before any of it is consumed.
	inspect(t, inspection{Data: in.data(), Kafka: at("kafka")})
	kafka, err := os.ReadFile(at("kafka"))
	if err != nil {
		t.Fatal(err)
	}
	printed["records in kafka"] = string(kafka)
	for _, id := range []string{"planted-w-create", "planted-i-binding", "planted-s-exec", "planted-t-query"} {
		if !bytes.Contains(kafka, []byte(id)) {
			t.Errorf("%s is not in Kafka: the test looks at nothing", id)
		}
	}

	s = in.serve(t, append(limits, "--log-level", "debug")...)
	s.drained(t)
	for _, o := range []string{"table", "json", "yaml"} {
		for _, id := range []string{"w-create", "w-exec", "i-query", "s-extra", "t-message", "w-oversize"} {
			note("why "+id+" -o "+o, in.run(t, "why", "planted-"+id, "-o", o).ok(t))
		}
	}
	for _, path := range []string{"clusters", "events?cluster=prod&limit=500", "events?cluster=files&limit=500", "status",
		"overview?cluster=prod&from=2026-11-20T11:00:00Z&to=2026-11-20T12:00:00Z"} {
		var v json.RawMessage
		s.get(t, path, &v)
		printed["api "+path] = string(v)
	}
	s.stop(t)
	printed["log"] = s.log.String() + s.out.String()

	queries := map[string]string{}
	for _, table := range append(slices.Clone(tables), "meta", "query_log") {
		queries[at(table+".dump")] = "SELECT * FROM retrial." + table + " FORMAT TSVRaw"
	}
	totals := inspect(t, inspection{Data: in.data(), Queries: queries})
	for file := range queries {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		printed["table "+filepath.Base(file)] = string(b)
	}
	if totals.Events != int64(5*len(posts)-len(posts)) || totals.DeadLetters < 10 {
		t.Errorf("%d events and %d dead letters", totals.Events, totals.DeadLetters)
	}
	if err := filepath.WalkDir(in.data(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		printed["file "+path] = string(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}

	for where, text := range printed {
		if leaked := p.found([]byte(text)); len(leaked) > 0 {
			for _, s := range leaked {
				t.Errorf("%s holds %s: %s", where, s, around(text, s))
			}
		}
	}
	if got := p.found(whole); len(got) == 0 {
		t.Error("the search finds nothing where the secrets are")
	}
}

// around shows where a text holds a secret.
func around(text, secret string) string {
	i := strings.Index(text, secret)
	if i < 0 {
		return "(encoded)"
	}
	return fmt.Sprintf("%q", text[max(0, i-200):min(len(text), i+60)])
}

// withToken sends a bearer token in place of the one a client has.
type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

// bearerToken returns the token in a kubeconfig.
func bearerToken(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "token: ")
	if !ok {
		t.Fatal("the kubeconfig holds no token")
	}
	token, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(token, `"`)
}
