package webhook

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// planted is what must not be found anywhere: a Secret's value in its forms, a bearer
// token, a token in a URL, an argument of exec.
const (
	plantedValue = "hunter2-swordfish-value"
	plantedJWT   = "eyJhbGciOiJSUzI1NiIsImtpZCI6InBsYW50ZWQifQ.eyJzdWIiOiJwbGFudGVkLXN1YmplY3QifQ.cGxhbnRlZC1zaWduYXR1cmUtcGxhbnRlZA"
	plantedQuery = "query-t0ken-planted-abcdef"
	plantedArg   = "exec-argument-planted"
)

func plantedNeedles() []string {
	return []string{
		plantedValue, base64.StdEncoding.EncodeToString([]byte(plantedValue)), base64.RawURLEncoding.EncodeToString([]byte(plantedValue)),
		plantedJWT, strings.Split(plantedJWT, ".")[1], strings.Split(plantedJWT, ".")[2], plantedQuery, plantedArg,
	}
}

func secretEvents() []string {
	event := func(verb, uri, rest string) string {
		return `{"level":"RequestResponse","auditID":"s","stage":"ResponseComplete","verb":"` + verb + `","requestURI":"` + uri + `",` +
			`"user":{"username":"jane"},"responseStatus":{"metadata":{},"code":200},` + rest + at + `}`
	}
	value := base64.StdEncoding.EncodeToString([]byte(plantedValue))
	secret := `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","annotations":{` +
		`"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Secret\",\"stringData\":{\"p\":\"` + plantedValue + `\"}}"}},` +
		`"data":{"p":"` + value + `"},"stringData":{"p":"` + plantedValue + `"}}`
	return []string{
		event("create", "/api/v1/namespaces/x/secrets", `"objectRef":{"resource":"secrets","namespace":"x","apiVersion":"v1"},`+
			`"requestObject":`+secret+`,"responseObject":`+secret+`,`),
		event("create", "/api/v1/namespaces/x/serviceaccounts/a/token",
			`"objectRef":{"resource":"serviceaccounts","subresource":"token","namespace":"x","name":"a","apiVersion":"v1"},`+
				`"responseObject":{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"`+plantedJWT+`"}},`),
		event("create", "/apis/authentication.k8s.io/v1/tokenreviews",
			`"objectRef":{"resource":"tokenreviews","apiGroup":"authentication.k8s.io","apiVersion":"v1"},`+
				`"requestObject":{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"`+plantedJWT+`"}},`),
		event("get", "/api/v1/namespaces/x/pods/p/exec?command=mysql&command="+plantedArg+"&access_token="+plantedQuery,
			`"objectRef":{"resource":"pods","subresource":"exec","namespace":"x","name":"p","apiVersion":"v1"},`),
		event("get", "/api/v1/namespaces/x/pods?token="+plantedQuery, ``),
	}
}

func TestSecretsGoNowhere(t *testing.T) {
	events := secretEvents()
	broken := make([]string, len(events)) // items that are JSON but no events
	wrapped := make([]string, len(events))
	for i, e := range events {
		broken[i] = strings.Replace(e, `"auditID":"s"`, `"auditID":7`, 1)
		line, err := json.Marshal(e[:len(e)-2])
		if err != nil {
			t.Fatal(err)
		}
		wrapped[i] = string(line)
	}
	all := list(events...)
	for _, tc := range []struct {
		name, body string
		code       int
	}{
		{"events", all, 200},
		{"malformed items", list(broken...), 200},
		{"lines an import wrapped", list(wrapped...), 200},
		{"stripped events", list(strings.Replace(events[0], `"kind":"Secret"`, `"kind":"Secret","pad":"`+strings.Repeat("x", 20_000)+`"`,
			1)), 200},
		{"events too large without bodies", list(strings.Replace(events[3], `"jane"`, `"`+strings.Repeat("x", 20_000)+`"`, 1)), 200},
		{"truncated", all[:len(all)-3], 400},
		{"not a list", `{"kind":"SecretList","apiVersion":"v1","items":[` + events[0] + `]}`, 400},
		{"too large", list(append(events, strings.Repeat(read("a")+",", 200)+read("b"))...), 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := trusted(t, Config{MaxEvent: 10_000, MaxBody: 50_000})
			w := b.post(auditPath, tc.body)
			if w.Code != tc.code {
				t.Fatalf("answer %d %s", w.Code, w.Body)
			}
			out := b.producer.everything(t)
			if out == "" {
				t.Fatal("nothing was produced: the test would find no secret in anything")
			}
			for where, text := range map[string]string{"records": out, "logs": b.logged(), "answer": w.Body.String()} {
				for _, needle := range plantedNeedles() {
					if at := strings.Index(text, needle); at >= 0 {
						t.Errorf("%s in %s: …%.200s", needle, where, text[max(0, at-80):])
					}
				}
			}
		})
	}
}

func TestSecretsOfATruncatedBodyAtEveryByte(t *testing.T) {
	all := list(secretEvents()...)
	b := trusted(t, Config{})
	for cut := 1; cut < len(all)-1; cut++ {
		b.producer.calls = nil
		if w := b.post(auditPath, all[:cut]); w.Code != 400 {
			t.Fatalf("cut at %d: answer %d", cut, w.Code)
		}
		out := b.producer.everything(t)
		for _, needle := range plantedNeedles() {
			// Half a secret is one too.
			if part := needle[:min(len(needle), 14)]; strings.Contains(out, part) {
				t.Fatalf("cut at %d: %s in %s", cut, part, out)
			}
		}
	}
}
