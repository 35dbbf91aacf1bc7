package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/test/recorded"
)

// What is planted: a password, a token as the apiserver issues them, a private key.
const (
	planted = "planted7Secret"
	jwt     = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.cGxhbnRlZFNpZ25hdHVyZQ"
	pem     = "-----BEGIN RSA PRIVATE KEY-----\nMIIplanted7Secret\n-----END RSA PRIVATE KEY-----\n"
)

var TestKey = []byte("0123456789abcdef0123456789abcdef")

// token returns a secret's replacement.
func (r *Redactor) token(secret []byte) string {
	p := r.begin()
	defer r.end(p)
	return p.token(secret)
}

// leaks returns what of the planted secrets a text still holds, in any of the forms they
// take in events.
func leaks(text []byte) []string {
	var out []string
	for _, secret := range []string{planted, jwt, "cGxhbnRlZFNpZ25hdHVyZQ", "MIIplanted7Secret"} {
		forms := []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
			strings.ReplaceAll(secret, "S", `\u0053`)}
		for _, form := range forms {
			if bytes.Contains(text, []byte(form)) {
				out = append(out, form)
			}
		}
	}
	return out
}

// plants are events with a secret each, and what must stay of them.
var plants = func() []struct{ name, event, keep string } {
	b64 := base64.StdEncoding.EncodeToString([]byte(planted))
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	secretURI := `"requestURI":"/api/v1/namespaces/n/secrets/x","verb":"update",`
	secret := `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"},"data":{"pw":"` + b64 + `"},"stringData":{"pw":"` + planted +
		`"},"type":"Opaque"}`
	return []struct{ name, event, keep string }{
		{"secret in request", `{` + secretURI + `"requestObject":` + secret + `}`, `"type":"Opaque"`},
		{"secret in response", `{` + secretURI + `"responseObject":` + secret + `}`, `"name":"x"`},
		{"secret, members escaped", `{` + secretURI + `"requestObject":{"k\u0069nd":"Secret","d\u0061ta":{"a":"` + b64 + `"}}}`, ``},
		{"secret without kind", `{` + secretURI + `"requestObject":{"metadata":{"name":"x"},"data":{"a":"` + b64 + `"}}}`, `"name":"x"`},
		{"secret list", `{` + secretURI + `"responseObject":{"kind":"SecretList","items":[{"metadata":{"name":"x"},"data":{"a":"` + b64 +
			`"}}]}}`, `"name":"x"`},
		{"list of secrets elsewhere", `{"requestURI":"/x","responseObject":{"kind":"List","items":[` + secret + `]}}`, `"name":"x"`},
		{"secret list elsewhere", `{"requestURI":"/x","responseObject":{"a":{"kind":"SecretList","items":[{"data":{"a":"` + b64 + `"}}]}}}`,
			``},
		{"deleted collection", `{` + secretURI + `"responseObject":{"kind":"List","items":[{"data":{"a":"` + b64 + `"}}]}}`, ``},
		{"watch event", `{` + secretURI + `"responseObject":{"type":"ADDED","object":` + secret + `}}`, `ADDED`},
		{"table", `{` + secretURI + `"responseObject":{"kind":"Table","rows":[{"cells":["x","Opaque",1],"object":` + secret + `}]}}`,
			`"cells":["x"`},
		{"partial metadata with data", `{` + secretURI + `"responseObject":{"kind":"PartialObjectMetadata","metadata":{"name":"x"},` +
			`"data":{"a":"` + planted + `"}}}`, `"name":"x"`},
		{"merge patch", `{` + secretURI + `"requestObject":{"data":{"a":"` + b64 + `","b":null}}}`, `"b":null`},
		{"strategic merge patch", `{` + secretURI + `"requestObject":{"$patch":"merge","stringData":{"a":"` + planted + `"}}}`,
			`"$patch":"merge"`},
		{"json patch of one key", `{` + secretURI + `"requestObject":[{"op":"replace","path":"/data/a","value":"` + b64 + `"}]}`,
			`"path":"/data/a"`},
		{"json patch, value first", `{` + secretURI + `"requestObject":[{"value":"` + planted + `","path":"/stringData/a","op":"test"}]}`,
			`"op":"test"`},
		{"json patch of data", `{` + secretURI + `"requestObject":[{"op":"add","path":"/data","value":{"a":"` + b64 + `"}}]}`,
			`"op":"add"`},
		{"json patch of all", `{` + secretURI + `"requestObject":[{"op":"add","path":"","value":` + secret + `}]}`, `"op":"add"`},
		{"json patch, escaped path", `{` + secretURI + `"requestObject":[{"op":"add","path":"\/d\u0061ta/a","value":"` + planted + `"}]}`,
			``},
		{"json patch of the copy", `{` + secretURI + `"requestObject":[{"op":"add",` +
			`"path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":` + quote(secret) + `}]}`, ``},
		{"json patch without path", `{` + secretURI + `"requestObject":[{"op":"add","value":"` + planted + `"}]}`, ``},
		{"json patch of labels", `{` + secretURI + `"requestObject":[{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"add",` +
			`"path":"/data/a","value":"` + planted + `"}]}`, `"value":"b"`},
		{"last-applied copy", `{` + secretURI + `"responseObject":{"kind":"Secret","metadata":{"name":"x",` +
			`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + quote(secret+"\n") + `}}}}`, `last-applied`},
		{"last-applied copy cut off", `{` + secretURI + `"responseObject":{"kind":"Secret",` +
			`"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + quote(secret[:len(secret)-20]) + `}}}}`, ``},
		{"last-applied copy, no JSON", `{` + secretURI + `"responseObject":{"kind":"Secret",` +
			`"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + planted + `"}}}}`, ``},
		{"last-applied copy elsewhere", `{"requestURI":"/x","requestObject":{"kind":"List",` +
			`"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + quote(secret) + `}}}}`, ``},
		{"copy within a copy", `{"requestURI":"/x","requestObject":{"a":` + quote(`{"b":`+quote(secret)+`}`) + `}}`, ``},
		{"unknown kind on secrets", `{` + secretURI + `"requestObject":{"kind":"Parcel","metadata":{"name":"x"},"spec":{"a":["` + planted +
			`"]}}}`, `"kind":"Parcel"`},
		{"text on secrets", `{` + secretURI + `"requestObject":"` + planted + `"}`, ``},
		{"unknown member of a secret", `{` + secretURI + `"requestObject":{"kind":"Secret","Data":{"a":"` + planted + `"}}}`, ``},
		{"lying kind", `{` + secretURI + `"requestObject":{"kind":"Status","data":{"a":"` + planted + `"}}}`, ``},
		{"odd URI", `{"requestURI":"/api/v1//namespaces/n/%73ecrets/x","requestObject":{"data":{"a":"` + planted + `"}}}`, ``},
		{"object reference only", `{"requestURI":"/strange","objectRef":{"resource":"secrets"},"requestObject":{"data":{"a":"` + planted +
			`"}}}`, ``},
		{"managed fields stay", `{` + secretURI + `"responseObject":{"kind":"Secret",` +
			`"metadata":{"managedFields":[{"fieldsV1":{"f:data":{".":{},"f:pw":{}}}}]},"data":{"pw":"` + b64 + `"}}}`,
			`"f:data":{".":{},"f:pw":{}}`},

		{"echo in the message", `{` + secretURI + `"requestObject":{"stringData":{"a":"` + planted +
			`"}},"responseStatus":{"metadata":{},"status":"Failure","message":"bad thing ` + planted + ` seen","code":422}}`, `bad thing`},
		{"echo in the response", `{` + secretURI + `"requestObject":{"data":{"a":"` + b64 + `"}},"responseObject":{"kind":"Status",` +
			`"message":"bad thing ` + planted + `","details":{"causes":[{"message":"` + planted + `"}]}}}`, `bad thing`},
		{"quoted value in the message", `{` + secretURI + `"responseStatus":{"metadata":{},` +
			`"message":"Secret \"x\" is invalid: data[a]: Invalid value: \"` + planted +
			`\": no","details":{"causes":[{"message":"Invalid value: \"` + planted + `\": no"}]},"code":422}}`, `: no`},
		{"map in the message", `{` + secretURI + `"responseStatus":{"metadata":{},"message":"map: map[data:map[a:` + planted +
			`]] no merge key","code":500}}`, ``},
		{"context in the message", `{` + secretURI + `"responseStatus":{"metadata":{},"message":"error found in #10 byte of ...|a\":\"` +
			planted + `|..., bigger context","code":400}}`, ``},
		{"token in the message", `{"requestURI":"/x","responseStatus":{"metadata":{},"message":"cannot use ` + jwt + ` here","code":400}}`,
			`cannot use hmac:`},
		{"password in the message", `{"requestURI":"/x","responseStatus":{"metadata":{},"message":"login failed: password=` + planted +
			`","code":400}}`, `login failed`},
		{"password in the response's message", `{"requestURI":"/x","responseStatus":{"metadata":{},"message":"no","code":400},` +
			`"responseObject":{"kind":"Status","message":"login failed: password=` + planted + `"}}`, `login failed`},
		{"argument in the answer to exec", `{"requestURI":"/api/v1/namespaces/n/pods/p/exec?command=a&command=` + planted +
			`","responseStatus":{"metadata":{},"message":"cannot run ` + planted + ` there","code":500}}`, `cannot run`},
		{"token in the path's namespace", `{"requestURI":"/api/v1/namespaces/` + jwt + `/pods","objectRef":{"resource":"pods",` +
			`"namespace":"` + jwt + `"}}`, `"resource":"pods"`},
		{"patch annotation", `{` + secretURI + `"annotations":{"patch.webhook.admission.k8s.io/round_0_index_0":` +
			quote(`{"configuration":"c","patch":[{"op":"add","path":"/data/a","value":"`+planted+`"}],"patchType":"JSONPatch"}`) + `}}`,
			`JSONPatch`},
		{"policy annotation", `{` + secretURI + `"annotations":{"my-policy/value":"` + planted + `"}}`, `my-policy/value`},
		{"token in an annotation", `{"requestURI":"/x","annotations":{"my-policy/value":"Bearer ` + jwt + `"}}`, `Bearer hmac:`},

		{"token review", `{"requestURI":"/apis/authentication.k8s.io/v1/tokenreviews","requestObject":{"kind":"TokenReview",` +
			`"spec":{"token":"` + planted + `","audiences":["a"]}}}`, `"audiences":["a"]`},
		{"token review by kind", `{"requestURI":"/x","responseObject":{"kind":"TokenReview","spec":{"token":"` + planted + `"}}}`, ``},
		{"token request", `{"requestURI":"/api/v1/namespaces/n/serviceaccounts/s/token","responseObject":{"spec":{"audiences":["a"]},` +
			`"status":{"token":"` + planted + `","expirationTimestamp":"2026"}}}`, `"expirationTimestamp":"2026"`},
		{"token request by kind", `{"requestURI":"/x","responseObject":{"kind":"TokenRequest","status":{"token":"` + planted + `"}}}`, ``},
		{"exec credential", `{"requestURI":"/x","responseObject":{"kind":"ExecCredential","status":{"clientKeyData":"` + planted + `"}}}`,
			``},

		{"access token in the URI", `{"requestURI":"/api/v1/pods?watch=1&access_token=` + planted + `&limit=5"}`, `&limit=5`},
		{"token parameter, encoded name", `{"requestURI":"/api/v1/pods?%74oken=` + planted + `"}`, `?%74oken=hmac:`},
		{"password behind a semicolon", `{"requestURI":"/x?a=b;password=` + planted + `"}`, `?a=b;password=hmac:`},
		{"token in any parameter", `{"requestURI":"/x?fieldManager=` + jwt + `&a=b"}`, `&a=b`},
		{"token in any parameter, encoded", `{"requestURI":"/x?q=` + strings.ReplaceAll(jwt, "e", "%65") + `"}`, ``},
		{"token as parameter name", `{"requestURI":"/x?` + jwt + `"}`, `/x?hmac:`},
		{"token in the path", `{"requestURI":"/api/v1/namespaces/n/pods/` + jwt + `","objectRef":{"resource":"pods","name":"` + jwt + `"}}`,
			`/pods/hmac:`},
		{"user in the URI", `{"requestURI":"https://jane:` + planted + `@host/api"}`, `@host/api`},
		{"exec", `{"requestURI":"/api/v1/namespaces/n/pods/p/exec?command=mysql&command=-p` + planted + `&container=c&command=` + planted +
			`&stdin=true"}`, `command=mysql&command=hmac:`},
		{"exec, one word", `{"requestURI":"/api/v1/namespaces/n/pods/p/exec?command=mysql+-p` + planted + `&container=c"}`,
			`command=mysql+hmac:`},
		{"exec, encoded", `{"requestURI":"/api/v1/namespaces/n/pods/p/%65xec?%63ommand=sh&%63ommand=` + planted + `"}`, `ommand=sh&`},
		{"attach", `{"requestURI":"/api/v1/namespaces/n/pods/p/attach?command=a&command=` + planted + `"}`, ``},
		{"kubelet run", `{"requestURI":"/api/v1/nodes/n/proxy/run/ns/pod/c?cmd=sh+-c+` + planted + `"}`, `cmd=sh+hmac:`},
		{"exec options", `{"requestURI":"/x","requestObject":{"kind":"PodExecOptions","command":["sh","-c","` + planted + `"]}}`, `"sh"`},

		{"extra by value", `{"user":{"username":"u","extra":{"example.com/k":["a","` + jwt + `"]}}}`, `"a"`},
		{"extra by name", `{"user":{"username":"u","extra":{"access-token":["` + planted + `"]}}}`, `access-token`},
		{"extra of the impersonated", `{"impersonatedUser":{"username":"u","extra":{"example.com/id_token":["` + planted + `"]}}}`,
			`id_token`},
		{"credential ID stays", `{"user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=a-b"],"k":["` + jwt + `"]}}}`,
			`JTI=a-b`},
		{"user name", `{"user":{"username":"` + jwt + `","groups":["g","` + jwt + `"]}}`, `"g"`},
		{"user agent with a header", `{"userAgent":"curl/8 Authorization: Basic ` + planted + `"}`, `curl/8`},
		{"user agent with a token", `{"userAgent":"app/1 (token=` + planted + `)"}`, `app/1`},
		{"user agent, bearer", `{"userAgent":"app/1 BEARER ` + planted + `9"}`, `app/1`},
		{"audit ID", `{"auditID":"` + jwt[:64] + `"}`, ``},
		{"unknown member", `{"future":{"deep":["` + jwt + `"]},"sessionToken":"` + planted + `"}`, `"future"`},
		{"unknown member of user", `{"user":{"password":{"a":"` + planted + `"}},"objectRef":{"x":"` + jwt + `"}}`, ``},

		{"key in a config map", `{"requestURI":"/api/v1/namespaces/n/configmaps","requestObject":{"kind":"ConfigMap","data":{"tls.key":` +
			quote("a\n"+pem+"b") + `,"plain":"stays"}}}`, `"plain":"stays"`},
		{"key without an end", `{"requestURI":"/x","requestObject":{"a":` + quote(pem[:len(pem)-20]) + `}}`, ``},
		{"key in base64", `{"requestURI":"/x","requestObject":{"client-key-data":"` + base64.StdEncoding.EncodeToString([]byte(pem)) +
			`"}}`, ``},
		{"kubeconfig", `{"requestURI":"/x","requestObject":{"data":{"config":` +
			quote("users:\n- user:\n    token: "+jwt+"\n    client-key-data: "+base64.StdEncoding.EncodeToString([]byte(pem))+"\n") + `}}}`,
			`users:`},
		{"token in base64", `{"requestURI":"/x","requestObject":{"a":"` + base64.StdEncoding.EncodeToString([]byte(jwt)) + `"}}`, ``},
		{"token with escapes", `{"requestURI":"/x","requestObject":{"a":"\u0065yJhbGciOiJSUzI1NiJ9.` + jwt[len("eyJhbGciOiJSUzI1NiJ9."):] +
			`"}}`, ``},
		{"probe header", `{"requestURI":"/x","requestObject":{"httpHeaders":[{"name":"Authorization","value":"Basic ` + planted + `"}]}}`,
			`httpHeaders`},
		{"header map", `{"requestURI":"/x","requestObject":{"headers":{"Authorization":"Basic ` + planted + `"}}}`, `headers`},
	}
}()

func TestRedact(t *testing.T) {
	r := New(TestKey)
	for _, c := range plants {
		t.Run(c.name, func(t *testing.T) {
			raw := []byte(c.event)
			before := bytes.Clone(raw)
			e, err := event.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			r.Redact(e)
			got := event.AppendJSON(nil, e)
			if found := leaks(got); found != nil {
				t.Errorf("%q left in %s", found, got)
			}
			if !bytes.Contains(got, []byte(tokenPrefix)) {
				t.Errorf("no replacement in %s", got)
			}
			if !bytes.Contains(got, []byte(c.keep)) {
				t.Errorf("%q gone from %s", c.keep, got)
			}
			if !bytes.Equal(raw, before) {
				t.Error("the buffer was written to")
			}
			again, err := event.Decode(got)
			if err != nil {
				t.Fatalf("redacted event cannot be read: %v\n%s", err, got)
			}
			if !reflect.DeepEqual(again, e) {
				t.Errorf("redacted event is not what it is written as\n%+v\n%+v", again, e)
			}
			r.Redact(again)
			if twice := event.AppendJSON(nil, again); !bytes.Equal(twice, got) {
				t.Errorf("redacting twice changes more\n%s\n%s", got, twice)
			}
			other, _ := event.Decode(before)
			New(TestKey).Redact(other)
			if !bytes.Equal(event.AppendJSON(nil, other), got) {
				t.Error("a repeated delivery is redacted differently")
			}
		})
	}
}

// TestRedactItems holds an item's own text, which is taken over where nothing was redacted, against the event that is encoded.
func TestRedactItems(t *testing.T) {
	r := New(TestKey)
	for _, c := range plants {
		t.Run(c.name, func(t *testing.T) {
			if err := event.DecodeList(recorded.List([]byte(c.event)), func(item event.Item) error {
				if item.Err != nil {
					return nil
				}
				if got, want := item.AppendJSON(nil), event.AppendJSON(nil, item.Event); !bytes.Equal(got, want) {
					t.Errorf("as it came\n got %s\nwant %s", got, want)
				}
				item.RedactWith(r)
				got := item.AppendJSON(nil)
				if want := event.AppendJSON(nil, item.Event); !bytes.Equal(got, want) || leaks(got) != nil {
					t.Errorf("%q left in\n got %s\nwant %s", leaks(got), got, want)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestRedactBytes(t *testing.T) {
	r := New(TestKey)
	for _, c := range plants {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(c.event, `{`, `{"level":7,`, 1)
			for cut := 1; cut <= len(wrong); cut++ {
				if found := leaks(r.RedactBytes([]byte(wrong[:cut]))); found != nil {
					t.Fatalf("%q left of %s", found, wrong[:cut])
				}
			}
			list := recorded.List([]byte(wrong), []byte(`{"kind":"Pod","spec":"`+planted+`"}`))
			if got := r.RedactBytes(list); leaks(got) != nil {
				t.Errorf("%q left in %s", leaks(got), got)
			}
		})
	}
}

func TestRedactBytesKeeps(t *testing.T) {
	r := New(TestKey)
	for _, c := range []struct{ name, in, want string }{
		{"event", `{"auditID":"a-1","verb":"get", "requestURI":"/api/v1/pods?limit=5","user":{"username":"jane","groups":["a","b"]},` +
			`"responseStatus":{"code":200}}`,
			`{"auditID":"a-1","verb":"get","requestURI":"/api/v1/pods?limit=5","user":{"username":"jane","groups":["a","b"]},` +
				`"responseStatus":{"code":200}}`},
		{"list", `{"kind":"EventList","items":[{"verb":"get"},{"verb":"li`, `{"kind":"EventList","items":[{"verb":"get"},{"verb":"` +
			r.token([]byte("li")) + `"`},
		{"body", `{"requestObject":{"a":1},"verb":"x"}`, `{"requestObject":"` + r.token([]byte(`{"a":1}`)) + `","verb":"x"}`},
		{"plain text", `hello`, `"` + r.token([]byte("hello")) + `"`},
		{"nothing", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(r.RedactBytes([]byte(c.in))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// bootstrapToken is one with a secret in the field that is for it, and in some that are not.
var bootstrapToken = `{"kind":"Secret","metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",` +
	`"data":{"token-id":"YWJjZGVm","token-secret":"` +
	base64.StdEncoding.EncodeToString([]byte(planted)) + `","expiration":"MjAyNi0wMS0wMlQwMzowNDowNVo=",` +
	`"usage-bootstrap-authentication":"dHJ1ZQ==","auth-extra-groups":"c3lzdGVtOmJvb3RzdHJhcHBlcnM6bGFi","usage-bootstrap-signing":"` +
	base64.StdEncoding.EncodeToString([]byte(planted)) + `","description":"` + base64.StdEncoding.EncodeToString([]byte(planted)) + `"}}`

// Of a bootstrap token everything stays but what is secret, or has not the form of what is
// public; of other Secrets nothing stays, whatever their fields are called.
func TestRedactBootstrapToken(t *testing.T) {
	r := New(TestKey)
	hidden := r.token([]byte(planted))
	redact := func(object string) string {
		e := &event.Event{Verb: "create", RequestURI: "/api/v1/namespaces/kube-system/secrets", ResponseObject: []byte(object)}
		r.Redact(e)
		r.Redact(e) // nothing more
		return string(e.ResponseObject)
	}
	coded := base64.StdEncoding.EncodeToString([]byte(planted))
	if got, want := redact(bootstrapToken), strings.ReplaceAll(bootstrapToken, coded, hidden); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	other := strings.Replace(bootstrapToken, `"bootstrap.kubernetes.io/token"`, `"Opaque"`, 1)
	for _, field := range []string{"YWJjZGVm", "dHJ1ZQ==", "MjAyNi0wMS0wMlQwMzowNDowNVo="} {
		if got := redact(other); strings.Contains(got, field) {
			t.Errorf("of another type stays %s: %s", field, got)
		}
	}
	for name, c := range map[string]struct {
		value string
		want  bool
	}{
		"token-id":                       {"abcdef", true},
		"token-id ":                      {"abcdef", false},
		"token-secret":                   {"0123456789abcdef", false},
		"expiration":                     {"2026-01-02T03:04:05+01:00", true},
		"usage-bootstrap-authentication": {planted, false},
		"auth-extra-groups":              {"system:bootstrappers:a,system:bootstrappers:b-c", true},
	} {
		if got := publicField(name, c.value); got != c.want {
			t.Errorf("%s %q: public %v", name, c.value, got)
		}
	}
	for _, bad := range [][2]string{{"token-id", "abcde"}, {"token-id", "ABCDEF"}, {"expiration", "0123456789012345678901"},
		{"auth-extra-groups", "system:masters"}, {"auth-extra-groups", "system:bootstrappers:" + planted}} {
		if publicField(bad[0], bad[1]) {
			t.Errorf("%s %q is public", bad[0], bad[1])
		}
	}
}

func TestRedactObject(t *testing.T) {
	r := New(TestKey)
	for _, c := range []struct{ name, resource, in, want string }{
		{"secret", "secrets", `{"kind":"Secret","metadata":{"name":"x"},"data":{"a":"` + planted + `"},"type":"T","foo":"` + planted + `"}`,
			`{"kind":"Secret","metadata":{"name":"x"},"type":"T"}`},
		{"secrets", "secrets", `{"kind":"List","items":[{"metadata":{"name":"x"},"data":{}},{"metadata":{"name":"y"}}]}`,
			`{"kind":"List","items":[{"metadata":{"name":"x"}},{"metadata":{"name":"y"}}]}`},
		{"bootstrap token", "secrets", bootstrapToken,
			`{"kind":"Secret","metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",` +
				`"data":{"token-id":"YWJjZGVm","expiration":"MjAyNi0wMS0wMlQwMzowNDowNVo=","usage-bootstrap-authentication":"dHJ1ZQ==",` +
				`"auth-extra-groups":"c3lzdGVtOmJvb3RzdHJhcHBlcnM6bGFi"}}`},
		{"no secrets", "secrets", `{"kind":"SecretList","items":[]}`, `{"kind":"SecretList","items":[]}`},
		{"no object", "secrets", `"` + planted + `"`, `null`},
		{"role", "roles.rbac.authorization.k8s.io", `{"kind":"Role","rules":[{"resources":["secrets"]}]}`, `{"kind":"Role",` +
			`"rules":[{"resources":["secrets"]}]}`},
		{"secret under another name", "things", `{"kind":"Secret","data":{"a":"` + base64.StdEncoding.EncodeToString([]byte(planted)) +
			`"}}`,
			`{"kind":"Secret","data":{"a":"` + r.token([]byte(planted)) + `"}}`},
		{"no JSON", "roles", `{"kind":"Role","x":"` + planted, `{"kind":"Role","` + r.token([]byte("x")) + `":"` +
			r.token([]byte(planted)) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(r.RedactObject(c.resource, []byte(c.in))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRedactLeavesAlone(t *testing.T) {
	r := New(TestKey)
	for _, raw := range []string{
		`{"requestURI":"/api/v1/namespaces/secrets/pods","requestObject":{"kind":"Pod","data":{"a":"b"}}}`,
		`{"requestURI":"/api/v1/namespaces/n/configmaps/c","requestObject":{"kind":"ConfigMap","data":{"a":"b",` +
			`"password":"by rule not secret"}}}`,
		`{"requestURI":"/x","requestObject":{"volumes":[{"secret":{"secretName":"s"}}],"ref":{"kind":"Secret","name":"s"}}}`,
		`{"requestURI":"/x","responseStatus":{"metadata":{},"message":"secrets \"s\" not found: Unauthorized, invalid bearer token,` +
			` token expired","code":404}}`,
		`{"requestURI":"/x",` +
			`"annotations":{"authorization.k8s.io/reason":"RBAC: ` +
			`allowed by RoleBinding \"token=abcdef/x\" of Role \"monkeyJar.example\" to User \"u\""}}`,
		`{"requestURI":"/x","requestObject":{"caBundle":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM"}}`,
		`{"requestURI":"/x?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAsInN0YXJ0IjoiYSJ9&labelSelector=a%3Db"}`,
		`{"userAgent":"kubectl/v1.36.3 (linux/amd64) kubernetes/unknown","user":{"extra":{"authentication.kubernetes.io/pod-name":["p"]}}}`,
	} {
		e, err := event.Decode([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		before := event.AppendJSON(nil, e)
		r.Redact(e)
		if got := event.AppendJSON(nil, e); !bytes.Equal(got, before) {
			t.Errorf("changed\nfrom %s\n  to %s", before, got)
		}
	}
}

// Redaction must not change what a decision depends on, and recorded events must stay
// readable and stable under it.
func TestRedactRecorded(t *testing.T) {
	lines := recorded.Slice(t)
	if n := checkRedactRecorded(t, lines); n == 0 || n == len(lines) {
		t.Errorf("%d of %d events changed", n, len(lines))
	}
}

func TestRedactSample(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole recording takes its time; a slice runs with -short")
	}
	if n := checkRedactRecorded(t, recorded.Sample(t)); n != 0 {
		t.Errorf("%d events without bodies of secrets changed", n)
	}
}

func TestRedactCorpus(t *testing.T) {
	if n := checkRedactRecorded(t, recorded.Corpus(t, "full-requestresponse.jsonl")); n < 300 {
		t.Errorf("%d events with bodies of secrets and tokens changed", n)
	}
}

// checkRedactRecorded returns how many events redaction changed.
func checkRedactRecorded(t *testing.T, lines [][]byte) int {
	t.Helper()
	r := New(TestKey)
	changed := 0
	for _, raw := range lines {
		before, err := event.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := event.Decode(raw)
		r.Redact(e)
		path := func(uri string) string { p, _, _ := strings.Cut(uri, "?"); return p }
		if path(e.RequestURI) != path(before.RequestURI) || !reflect.DeepEqual(e.User, before.User) ||
			!reflect.DeepEqual(e.ObjectRef, before.ObjectRef) || e.Code() != before.Code() {
			t.Fatalf("redaction changed who did what\n%s\n%s", raw, event.AppendJSON(nil, e))
		}
		for _, key := range []string{event.AnnotationDecision, event.AnnotationReason} {
			got, _ := e.Annotations.Get(key)
			if want, _ := before.Annotations.Get(key); got != want {
				t.Fatalf("%s: %q became %q", key, want, got)
			}
		}
		out := event.AppendJSON(nil, e)
		again, err := event.Decode(out)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%v\n%s", err, out)
		}
		r.Redact(again)
		if twice := event.AppendJSON(nil, again); !bytes.Equal(twice, out) {
			t.Fatalf("redacting twice changes more\n%s\n%s", out, twice)
		}
		if !bytes.Equal(out, event.AppendJSON(nil, before)) {
			changed++
		}
	}
	return changed
}

// A client can repeat what looks like the beginning of a secret as often as it likes. In
// quadratic time these would take hours.
func TestRedactHostileRepetition(t *testing.T) {
	r := New(TestKey)
	for _, part := range []string{"eyJ", "eyJabcdefghij.", "ZXlK", "LS0tLS1CRUdJTi", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
		"bearer ", "Bearer:", "authorization:", "authorization",
		"token:", "token=", "=:", `Secret\"`, `{\"kind\":\"Secret\",`, "nvalid value: ", `nvalid value: \"a\"`, "map[", "%2", "?&;"} {
		text := strings.Repeat(part, (1<<20)/len(part))
		raw := []byte(`{"requestURI":"/api/v1/secrets?a=` + text + `","userAgent":"` + text + `","requestObject":{"kind":"` + text +
			`"},"responseStatus":{"message":"` + text + `","code":400}}`)
		e, err := event.Decode(raw)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		r.Redact(e)
		if _, err := event.Decode(event.AppendJSON(nil, e)); err != nil {
			t.Errorf("%s: %v", part, err)
		}
		if out := r.RedactBytes(raw[1:]); len(out) > 2*len(raw) {
			t.Errorf("%s: %d bytes became %d", part, len(raw), len(out))
		}
	}
}

// Lists may be as long as a client likes, every entry a secret. Were each replaced in a copy
// of its own, this would move a hundred gigabytes.
func TestRedactLongLists(t *testing.T) {
	const n = 50_000
	texts := strings.TrimSuffix(strings.Repeat(`"`+jwt+`",`, n), ",")
	var members strings.Builder
	for i := range n {
		members.WriteString(`,"m` + strconv.Itoa(i) + `":"` + jwt + `"`)
	}
	e, err := event.Decode([]byte(`{"user":{"username":"u","groups":[` + texts + `],"extra":{"x":[` + texts + `],"token":[` + texts +
		`]}}` + members.String() + `}`))
	if err != nil {
		t.Fatal(err)
	}
	New(TestKey).Redact(e)
	if len(e.User.Groups) != n || len(e.Unknown) != n {
		t.Errorf("%d groups and %d members of %d", len(e.User.Groups), len(e.Unknown), n)
	}
	if found := leaks(event.AppendJSON(nil, e)); len(found) > 0 {
		t.Errorf("left in the event: %q", found)
	}
}

func TestNewRedactorShortKey(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a short key was taken")
		}
	}()
	New(make([]byte, 15))
}

func TestRedactorKeysDiffer(t *testing.T) {
	a, b := New(TestKey), New(bytes.Repeat([]byte("k"), 32))
	if a.token([]byte("x")) == b.token([]byte("x")) || a.token([]byte("x")) == a.token([]byte("y")) || !isToken(a.token(nil)) {
		t.Error("replacements do not depend on key and secret")
	}
}
