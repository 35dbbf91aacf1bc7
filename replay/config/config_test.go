package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// forms are the ways in which people have one and the same command line.
func TestFormsOfACommandLine(t *testing.T) {
	want := []string{"etcd-servers=https://a:2379,https://b:2379", "anonymous-auth=false", "authorization-mode=Node,RBAC",
		"enable-bootstrap-token-auth=true", "runtime-config=", "v=2"}
	for name, text := range map[string]string{
		"one a line": "--etcd-servers=https://a:2379,https://b:2379\n--anonymous-auth=false\n--authorization-mode=Node,RBAC\n" +
			"--enable-bootstrap-token-auth\n--runtime-config=\n--v=2\n",
		"with comments": "# flags\r\n--etcd-servers=https://a:2379,https://b:2379 # " +
			"etcd\r\n\r\n--anonymous_auth=false\r\n--authorization-mode " +
			"Node,RBAC\r\n--enable-bootstrap-token-auth\r\n--runtime-config=''\r\n-v 2\r\n",
		"cmdline": "/usr/bin/kube-apiserver\x00--etcd-servers=https://a:2379,https://b:2379\x00--anonymous-auth=false\x00" +
			"--authorization-mode\x00Node,RBAC\x00--enable-bootstrap-token-auth\x00--runtime-config=\x00--v=2\x00",
		"one line": "/usr/bin/kube-apiserver --etcd-servers=https://a:2379,https://b:2379 --anonymous-auth=false " +
			"--authorization-mode=Node,RBAC --enable-bootstrap-token-auth --runtime-config= --v=2",
		"continued": "exec kube-apiserver \\\n --etcd-servers=https://a:2379,https://b:2379 \\\n --anonymous-auth=false " +
			"--authorization-mode=Node,RBAC \\\n --enable-bootstrap-token-auth \\\n --runtime-config= \\\n --v=2",
		"a variable": "KUBE_LOGTOSTDERR=true\nexport KUBE_API_ARGS=\"--etcd-servers=https://a:2379,https://b:2379 " +
			"--anonymous-auth=false --authorization-mode=Node,RBAC --enable-bootstrap-token-auth --runtime-config= --v=2\"\n",
		"a JSON list": `["kube-apiserver", "--etcd-servers=https://a:2379,https://b:2379", "--anonymous-auth=false",` +
			` "--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth", "--runtime-config=", "--v=2"]`,
		"quoted": "'--etcd-servers=https://a:2379,https://b:2379' \"--anonymous-auth=false\" --authorization-mode=\"Node,RBAC\" " +
			"--enable-bootstrap-token-auth --runtime-config= --v=2",
		"a log line": `level=info msg="Running kube-apiserver --etcd-servers=https://a:2379,` +
			`https://b:2379 --anonymous-auth=false --authorization-mode=Node,RBAC --enable-bootstrap-token-auth --runtime-config= --v=2"`,
	} {
		t.Run(name, func(t *testing.T) {
			words, err := wordsOf([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range flagsOf(words, "f").list {
				got = append(got, f.name+"="+f.value)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestValuesOfFlags(t *testing.T) {
	words, err := wordsOf([]byte("--service-account-issuer=a,b --service-account-issuer=c --requestheader-allowed-names=x,y " +
		"--requestheader-allowed-names=z --authorization-policy-file=1 --authorization-policy-file=2"))
	if err != nil {
		t.Fatal(err)
	}
	f := flagsOf(words, "f")
	for name, want := range map[string][]string{
		"service-account-issuer":      {"a,b", "c"}, // an array: commas are part of a value
		"requestheader-allowed-names": {"x", "y", "z"},
		"requestheader-uid-headers":   nil,
	} {
		if got := f.all(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if f.text("authorization-policy-file") != "2" {
		t.Error("the first of two values counts")
	}
}

func TestStaticUsers(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		basic bool
		want  []string // name/uid/groups
		warn  int
	}{
		"groups":                     {"t1,alice,1,\"dev, ops\"\nt2,bob,2\n", false, []string{"alice/1/dev| ops", "bob/2/"}, 0},
		"the last of a token counts": {"t1,alice,1\nt2,bob,2\nt1,carol,3\n", false, []string{"bob/2/", "carol/3/"}, 1},
		"redacted are not duplicates": {"redacted,alice,1\nREDACTED,bob,2\n<redacted>,carol,3\nredacted,dan,4\n***,erin,5\n" +
			"***,frank,6\nxxxx,gus,7\nxxxx,hal,8\nREDACTED-1,ida,9\n", false,
			[]string{"alice/1/", "bob/2/", "carol/3/", "dan/4/", "erin/5/", "frank/6/", "gus/7/", "hal/8/", "ida/9/"}, 0},
		"nobody's":                        {",alice,1\nt,,2\nt2,bob,3\n", false, []string{"bob/3/"}, 2},
		"one user, two tokens":            {"t1,alice,1\nt2,alice,1,x\n", false, []string{"alice/1/", "alice/1/x"}, 0},
		"the last of a user counts":       {"p1,alice,1\np2,bob,2\np3,alice,3\n", true, []string{"bob/2/", "alice/3/"}, 1},
		"one password, two users":         {"p,alice,1\np,bob,2\n", true, []string{"alice/1/", "bob/2/"}, 0},
		"columns beyond the fourth":       {"t,alice,1,dev,whatever\n", false, []string{"alice/1/dev"}, 0},
		"an empty file":                   {"", false, nil, 0},
		"a # is not a comment in the CSV": {"#t,alice,1\n", false, []string{"alice/1/"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			users, warnings, err := staticUsers([]byte(tc.text), tc.basic)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range users {
				got = append(got, u.Name+"/"+u.UID+"/"+strings.Join(u.Groups, "|"))
			}
			if !slices.Equal(got, tc.want) || len(warnings) != tc.warn {
				t.Errorf("got %q and %q, want %q and %d warnings", got, warnings, tc.want, tc.warn)
			}
		})
	}
}

// TestCredentialsAreDropped reads a folder full of credentials and looks for them in all that
// comes of it.
func TestCredentialsAreDropped(t *testing.T) {
	files := folder(map[string]string{
		"server.yaml": "kubernetesVersion: '1.17'",
		"kube-apiserver.flags": whole +
			"--authorization-mode=RBAC\n--token-auth-file=/t.csv\n--basic-auth-file=/b.csv\n--some-secret=s3cret-flag\n" +
			"--tenant-token=s3cret-tenant\n",
		"t.csv": "s3cret-1,alice,1\ns3cret-1,bob,2\n",
		"b.csv": "s3cret-2,carol,3\ns3cret-3,carol,4\n",
	})
	h, report, err := ReadHistory(files)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{h.At(time.Time{}), report})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), "carol") {
		t.Errorf("%s", text)
	}
}

func TestABACPolicyLines(t *testing.T) {
	const v1 = `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":`
	for name, tc := range map[string]struct {
		text  string
		minor int
		want  PolicyLine
	}{
		"versioned": {v1 + `{"user":"a","group":"g","readonly":true,"apiGroup":"apps","resource":"r","namespace":"n",` +
			`"nonResourcePath":"/p*"}}`, 0, PolicyLine{1, "a", "g", true, "apps", "r", "n", "/p*"}},
		"versioned, empty":            {v1 + `{}}`, 0, PolicyLine{Line: 1}},
		"a star is the authenticated": {v1 + `{"user":"*","group":"dev"}}`, 0, PolicyLine{Line: 1, Group: "system:authenticated"}},
		"a star before 1.6":           {v1 + `{"user":"*","group":"dev"}}`, 5, PolicyLine{Line: 1, User: "*", Group: "dev"}},
		"unversioned, nothing": {`{}`, 0, PolicyLine{Line: 1, Group: "system:authenticated", APIGroup: "*", Resource: "*",
			Namespace: "*", NonResourcePath: "*"}},
		"unversioned before 1.6": {`{}`, 5, PolicyLine{Line: 1, User: "*", APIGroup: "*", Resource: "*", Namespace: "*",
			NonResourcePath: "*"}},
		"unversioned, a resource": {`{"user":"bob","resource":"pods","readonly":true}`, 0,
			PolicyLine{Line: 1, User: "bob", Readonly: true, APIGroup: "*", Resource: "pods", Namespace: "*"}},
		"unversioned, a namespace": {`{"group":"dev","namespace":"n"}`, 0,
			PolicyLine{Line: 1, Group: "dev", APIGroup: "*", Resource: "*", Namespace: "n"}},
		"a kind without a version": {`{"kind":"Policy","user":"bob","namespace":"n"}`, 0,
			PolicyLine{Line: 1, User: "bob", APIGroup: "*", Resource: "*", Namespace: "n"}},
		"members in upper case": {`{"User":"bob","namespace":"n"}`, 0,
			PolicyLine{Line: 1, Group: "system:authenticated", APIGroup: "*", Resource: "*", Namespace: "n"}},
		"version v0 by name": {`{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","user":"bob"}`, 0,
			PolicyLine{Line: 1, User: "bob", APIGroup: "*", Resource: "*", Namespace: "*", NonResourcePath: "*"}},
		"the third line": {"\n # c\n" + `{"user":"bob","namespace":"n","resource":"r"}`, 0,
			PolicyLine{Line: 3, User: "bob", APIGroup: "*", Resource: "r", Namespace: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := abacPolicy([]byte(tc.text), tc.minor)
			if err != nil || len(got) != 1 || got[0] != tc.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tc.want)
			}
		})
	}
}

// TestReloadedChain is an AuthorizationConfiguration that gets a webhook before RBAC while
// the apiserver runs.
func TestReloadedChain(t *testing.T) {
	a, err := txtar.ParseFile("testdata/reload.txtar")
	if err != nil {
		t.Fatal(err)
	}
	h, _, err := ReadHistory(files(a))
	if err != nil {
		t.Fatal(err)
	}
	at := func(clock string) time.Time {
		t.Helper()
		when, err := time.Parse(time.RFC3339Nano, "2026-11-20T"+clock+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	chain := func(c *APIServer) string {
		if c == nil {
			return "none"
		}
		var names []string
		for _, z := range c.Authorization.Authorizers {
			names = append(names, z.Name)
		}
		return strings.Join(names, ",")
	}
	for clock, want := range map[string][2]string{
		"09:59:59.999999": {"node,rbac", "none"},
		"10:00:00":        {"node,hook,rbac", "node,rbac"}, // the minute in which it may not be re-read
		"10:00:59":        {"node,hook,rbac", "node,rbac"},
		"10:01:00":        {"node,hook,rbac", "none"},
		"11:00:30":        {"node,hook,rbac", "none"}, // refused: nothing settles
		"11:30:00":        {"node,hook,rbac", "none"},
		"13:00:00":        {"alwaysallow", "none"}, // a restart: no minute of doubt
	} {
		if got := [2]string{chain(h.At(at(clock))), chain(h.Settling(at(clock)))}; got != want {
			t.Errorf("%s: got %q, want %q", clock, got, want)
		}
	}
	if h.At(at("10:30:00")).Digest != h.At(at("12:30:00")).Digest || h.At(at("09:00:00")).Digest == h.At(at("10:30:00")).Digest {
		t.Error("digests do not tell configurations apart, or tell equal ones apart")
	}
}

func TestHistory(t *testing.T) {
	var none *History
	if none.At(time.Now()) != nil || none.Settling(time.Now()) != nil || none.Server("") != nil || none.Server("x") != nil ||
		len(none.Servers()) > 0 {
		t.Error("a nil history knows something")
	}
	none.Visit(func(time.Time, *APIServer) { t.Error("a nil history has a version") })
	h := &History{}
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	a, b, c := &APIServer{Minor: 1}, &APIServer{Minor: 2}, &APIServer{Minor: 3}
	h.Add(day(5), b)
	h.Add(day(1), &APIServer{})
	h.Add(day(1), a) // takes the place of the other
	h.AddReload(day(9), c)
	h.AddServer("shop", &History{})
	var got []int
	h.Visit(func(_ time.Time, cfg *APIServer) { got = append(got, cfg.Minor) })
	if !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("versions %v", got)
	}
	for at, want := range map[time.Time]*APIServer{day(1).Add(-1): nil, day(1): a, day(4): a, day(5): b, day(8): b, day(9): c, day(30): c} {
		if h.At(at) != want {
			t.Errorf("%s: %v, want %v", at, h.At(at), want)
		}
	}
	if h.Settling(day(5)) != nil || h.Settling(day(9)) != b || h.Settling(day(9).Add(ReloadWindow)) != nil {
		t.Error("what settles is wrong")
	}
	if h.Server("shop") == nil || h.Server("other") != nil || h.Server("") != h || h.Of("shop") != h.Server("shop") || h.Of("cp-1") != h ||
		h.Of("") != h || none.Of("x") != nil || !slices.Equal(h.Servers(), []string{"shop"}) {
		t.Error("servers are wrong")
	}
}

func TestUnknown(t *testing.T) {
	a := Unknown("the file x")
	if a.Authentication.Unknown == "" || a.Authorization.Unknown == "" || a.Authentication.Anonymous.Unknown == "" ||
		a.Authentication.JWTUnknown == "" ||
		!slices.Equal(a.Unknown, []string{"the file x"}) || a.Digest == "" || a.Digest == Unknown("the file y").Digest {
		t.Errorf("%+v", a)
	}
	if !slices.Equal(a.unknowns(), a.Unknown) {
		t.Errorf("the parts say %q", a.unknowns())
	}
}

// TestDigestSeesEveryField changes every field of a configuration, one at a time: what the
// digest does not see would decide otherwise under the same name.
func TestDigestSeesEveryField(t *testing.T) {
	plain := digest(&APIServer{})
	var walk func(v reflect.Value, path string, root *APIServer)
	walk = func(v reflect.Value, path string, root *APIServer) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		defer v.Set(old)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name, root)
			}
			return
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			walk(v.Elem(), path, root)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			walk(v.Index(0), path+"[0]", root)
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]bool{"a": false}))
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		default:
			t.Fatalf("%s: a %s", path, v.Kind())
		}
		if (digest(root) == plain) != (path == ".Digest") {
			t.Errorf("%s: the digest does not see it", path)
		}
	}
	var a APIServer
	walk(reflect.ValueOf(&a).Elem(), "", &a)
}

func TestVersionsOfNames(t *testing.T) {
	for image, want := range map[string]int{
		"registry.k8s.io/kube-apiserver:v1.36.3": 36, "kube-apiserver-amd64:v1.9.0-beta.1": 9, "host:5000/kube-apiserver": 0,
		"host:5000/kube-apiserver:v1.20.1@sha256:00": 20, "rancher/hyperkube:v1.17.17-rancher1": 17, "kube-apiserver:latest": 0,
		"etcd:1.2": 0, "kube-apiserver@sha256:00": 0, "": 0, "kube-apiserver:2.36": 0,
	} {
		if got := minorOfImage(image); got != want {
			t.Errorf("%s: %d, want %d", image, got, want)
		}
	}
	for name, want := range map[string]string{
		"2026-11-20T18:30:00Z": "2026-11-20T18:30:00Z", "2026-11-20T18-30-00Z": "2026-11-20T18:30:00Z",
		"20261120T183000Z":            "2026-11-20T18:30:00Z",
		"2026-11-20T18:30:00.5+02:00": "2026-11-20T16:30:00.5Z", "2026-11-20": "2026-11-20T00:00:00Z",
	} {
		if got, ok := folderTime(name); !ok || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
	for _, name := range []string{"manifests", "2026", "20261120", "pki", "2026-13-01"} {
		if _, ok := folderTime(name); ok {
			t.Errorf("%s is not a time", name)
		}
	}
}

func TestFilesAreFound(t *testing.T) {
	t.Parallel()
	tr, err := newTree(folder(map[string]string{
		"etc/kubernetes/pki/ca.crt": "", "etc/kubernetes/pki/etcd/ca.crt": "", "tokens.csv": "", "srv/conf/a.yaml": "",
		"srv/conf/b/a.yaml": "",
		"2026-01-01/x":      "", "aggregated/n/x": "", "..data/x": "",
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr.mounts = []mount{{"/cfg/deep", "/srv/conf/b"}, {"/cfg", "/srv/conf"}}
	for name, want := range map[string]string{
		"/etc/kubernetes/pki/ca.crt":      "etc/kubernetes/pki/ca.crt",
		"/etc/kubernetes/pki/etcd/ca.crt": "etc/kubernetes/pki/etcd/ca.crt",
		"/other/etcd/ca.crt":              "etc/kubernetes/pki/etcd/ca.crt", // the longest tail
		"/run/tokens.csv":                 "tokens.csv",
		"tokens.csv":                      "tokens.csv",
		"/cfg/a.yaml":                     "srv/conf/a.yaml", // as mounted
		"/cfg/deep/a.yaml":                "srv/conf/b/a.yaml",
		"/run/none.csv":                   "",
		"/run/x":                          "", // of other versions
	} {
		if got, err := tr.find(name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := tr.find("/z/ca.crt"); err == nil {
		t.Errorf("one of two files is taken: %s", got)
	}
}

// FuzzRead looks for input that is read into a panic, or that is read differently the second
// time.
func FuzzRead(f *testing.F) {
	seeds, err := txtar.ParseFile("testdata/v1.5.txtar")
	if err != nil {
		f.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, file := range seeds.Files {
		texts[file.Name] = file.Data
	}
	f.Add(texts["apiserver.flags"], texts["known_tokens.csv"], texts["abac-authz-policy.jsonl"], []byte(authzHead+webhookEntry))
	f.Add([]byte(whole+"--authorization-config=/z.yaml\n--authentication-config=/z.yaml"), []byte("a,b,c,\"d,e\""), []byte(`{"user":"*"}`),
		[]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\nanonymous: {enabled: true, "+
			"conditions: [{path: /a}]}"))
	f.Add([]byte("kube-apiserver\x00--token-auth-file\x00/t.csv"), []byte("\"\",,"), []byte("{"), []byte("kind: Pod\nspec: {containers: "+
		"[{name: kube-apiserver, command: [kube-apiserver, --a, b]}]}"))
	f.Add([]byte(`["--a",1]`), []byte{0}, []byte("#\n\n"), []byte("kube-apiserver-arg: [a=b, 1]"))
	f.Fuzz(func(t *testing.T, flags, tokens, policy, yaml []byte) {
		files := folder(map[string]string{"kube-apiserver.flags": string(flags), "known_tokens.csv": string(tokens),
			"t.csv": string(tokens), "abac-authz-policy.jsonl": string(policy), "z.yaml": string(yaml)})
		h, report, err := ReadHistory(files)
		if report == nil || (h == nil) != (err != nil) {
			t.Fatalf("%v, %v, %v", h, report, err)
		}
		if err != nil {
			return
		}
		again, _, err := ReadHistory(files)
		if err != nil || again.At(time.Time{}).Digest != h.At(time.Time{}).Digest {
			t.Fatalf("read again it is another: %v", err)
		}
	})
}

// Kube-apiservers with configurations of their own: each is judged by its own, and what does not
// say whose it is by any of them.
func TestApart(t *testing.T) {
	flags := func(more string) string {
		return "--etcd-servers=https://127.0.0.1:2379\n--authorization-mode=Node,RBAC\n" + more
	}
	one, two := flags("--anonymous-auth=false"), flags("")
	now := time.Now()
	for name, c := range map[string]struct {
		files map[string]string
		of    map[string]bool // by server: whether anonymous requests are served
		alike int
	}{
		"each its own": {map[string]string{"apiservers/a/s.flags": one, "apiservers/b/s.flags": two},
			map[string]bool{"a": false, "b": true, "": false}, 2},
		"one its own": {map[string]string{"s.flags": two, "apiservers/a/s.flags": one}, map[string]bool{"a": false, "b": true, "": true},
			1},
		"one later": {map[string]string{"s.flags": two, "apiservers/a/2020-01-01/s.flags": one}, map[string]bool{"a": false, "b": true},
			1},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for file, text := range c.files {
				fsys[file] = &fstest.MapFile{Data: []byte(text)}
			}
			h, _, err := ReadHistory(fsys)
			if err != nil {
				t.Fatal(err)
			}
			for server, want := range c.of {
				if cfg := h.Of(server).At(now); cfg == nil || cfg.Authentication.Anonymous.Enabled != want {
					t.Errorf("%q has %+v", server, cfg)
				}
			}
			if got := len(h.Alike(now)); got != c.alike {
				t.Errorf("%d alike", got)
			}
		})
	}
	_, _, err := ReadHistory(fstest.MapFS{
		"apiservers/a/s.flags": &fstest.MapFile{Data: []byte(one)}, "aggregated/a/s.flags": &fstest.MapFile{Data: []byte(one)},
	})
	if err == nil || !strings.Contains(err.Error(), "aggregated/a: there is also a folder apiservers/a") {
		t.Errorf("a name of two servers: %v", err)
	}
	if _, _, err := ReadHistory(fstest.MapFS{"apiservers/a/readme": &fstest.MapFile{Data: []byte("x")}}); err == nil ||
		!strings.HasPrefix(err.Error(), "apiservers/a: ") {
		t.Errorf("an empty folder: %v", err)
	}
}
