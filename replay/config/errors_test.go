package config

import (
	"encoding/pem"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

const whole = "--etcd-servers=https://127.0.0.1:2379\n"

// folder is a folder in memory.
func folder(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const webhookEntry = `
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/hook}
`

// pemOf is a PEM block; what is in it does not matter.
func pemOf(content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(content)}))
}

const authzHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"

// TestErrors are the folders nobody could mean: every message names the file (and line),
// what is wrong, and never a credential.
func TestErrors(t *testing.T) {
	flags := func(more string) map[string]string { return map[string]string{"kube-apiserver.flags": whole + more} }
	with := func(more string, name, text string) map[string]string {
		m := flags(more)
		m[name] = text
		return m
	}
	authz := func(text string) map[string]string {
		return with("--authorization-config=/etc/authz.yaml", "authz.yaml", text)
	}
	authn := func(text string) map[string]string {
		return with("--authorization-mode=RBAC\n--service-account-issuer=https://sa.example.com\n--authentication-config=/etc/authn.yaml",
			"authn.yaml", text)
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"an empty folder": {nil, []string{"no configuration of an apiserver", "kube-apiserver.yaml", "*.flags"}},
		"other files": {map[string]string{"notes.txt": "hello", "etcd.yaml": "kind: Pod\nspec: {containers: [{name: etcd, " +
			"command: [etcd, --name=a]}]}"}, []string{"no configuration of an apiserver"}},
		"two configurations": {with("", "kube-apiserver.yaml", "kind: Pod\nspec: {containers: [{name: kube-apiserver, command: "+
			"[kube-apiserver, --etcd-servers=x]}]}"), []string{"kube-apiserver.flags and kube-apiserver.yaml", "keep one"}},
		"two servers in a manifest": {map[string]string{"p.yaml": "kind: Pod\nspec: {containers: [{name: kube-apiserver}, {name: x, " +
			"image: a/kube-apiserver:v1.36.0}]}"}, []string{"p.yaml", "2 containers"}},
		"no flags": {map[string]string{"kube-apiserver.flags": "# none\n"},
			[]string{"kube-apiserver.flags", "it sets no flag"}},
		"an open quote": {map[string]string{"kube-apiserver.flags": whole + `--v="2`},
			[]string{"kube-apiserver.flags: line 2", "not closed"}},
		"a broken list": {map[string]string{"kube-apiserver.args": `["--a",`}, []string{"kube-apiserver.args", "JSON list"}},
		"no boolean": {flags("--anonymous-auth=maybe"),
			[]string{"kube-apiserver.flags:2", `--anonymous-auth: invalid value "maybe"`, "want true or false"}},
		"invalid duration": {flags("--authorization-mode=Webhook\n--authorization-webhook-config-file=/x\n" +
			"--authorization-webhook-cache-authorized-ttl=soon"), []string{"kube-apiserver.flags:4", "invalid duration"}},
		"no gate":             {flags("--feature-gates=A"), []string{"kube-apiserver.flags:2", `invalid gate "A": want NAME=true`}},
		"a mode twice":        {flags("--authorization-mode=RBAC,RBAC"), []string{"kube-apiserver.flags:2", "RBAC is named twice"}},
		"ABAC without a file": {flags("--authorization-mode=ABAC"), []string{"ABAC needs --authorization-policy-file"}},
		"a file without ABAC": {flags("--authorization-mode=RBAC\n--authorization-policy-file=/p"),
			[]string{":3", "without mode ABAC"}},
		"a webhook without a file": {flags("--authorization-mode=Webhook"), []string{"mode Webhook needs " +
			"--authorization-webhook-config-file"}},
		"a file without a webhook": {flags("--authorization-mode=RBAC\n--authorization-webhook-config-file=/p"),
			[]string{":3", "without mode Webhook"}},
		"modes and a file": {authz(""), []string{"authz.yaml: it is empty"}},
		"modes beside a file": {flags("--authorization-mode=RBAC\n--authorization-config=/a"),
			[]string{":2: --authorization-mode", "excludes --authorization-config"}},
		"webhook flags and a file": {flags("--authorization-webhook-version=v1\n--authorization-config=/a"),
			[]string{"--authorization-webhook-version", "excludes"}},
		"not yet in 1.29": {map[string]string{"kube-apiserver.flags": whole + "--authorization-config=/a",
			"server.yaml": "kubernetesVersion: '1.29'"}, []string{"StructuredAuthorizationConfiguration=true"}},
		"an unknown field": {authz(authzHead + "- {type: RBAC, name: rbac, order: 1}"), []string{"authz.yaml", "order"}},
		"another kind": {authz("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"),
			[]string{"authz.yaml", "AuthorizationConfiguration"}},
		"no authorizer": {authz(strings.TrimSpace(authzHead) + " []"), []string{"authz.yaml", "at least one"}},
		"a type twice": {authz(authzHead + "- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac2}"),
			[]string{"authz.yaml", "Duplicate"}},
		"a name of its own": {authz(authzHead + "- {type: RBAC, name: roles}"), []string{"authz.yaml", "must have the name rbac"}},
		"a webhook without options": {authz(authzHead + "- {type: Webhook, name: hook}"), []string{"authz.yaml", "required when " +
			"type=Webhook"}},
		"a condition with a typo": {authz(authzHead + strings.TrimSuffix(webhookEntry, "\n") + "\n    matchConditions: [{expression: " +
			"request.usr == 'a'}]"), []string{"authz.yaml", "undefined field 'usr'"}},
		"a relative kubeconfig": {authz(authzHead + strings.Replace(webhookEntry, "/etc/hook", "hook", 1)),
			[]string{"authz.yaml", "absolute"}},
		"a bad policy line": {with("--authorization-mode=ABAC\n--authorization-policy-file=/p.jsonl", "p.jsonl",
			"# c\n\n{\"user\":\"a\"}\n{\"user\":"), []string{"p.jsonl: line 4"}},
		"a policy of another kind": {with("--authorization-mode=ABAC\n--authorization-policy-file=/p.jsonl", "p.jsonl",
			`{"apiVersion":"v1","kind":"Pod"}`), []string{"p.jsonl: line 1: Pod of v1 is not a policy"}},
		"a policy in YAML": {with("--authorization-mode=ABAC\n--authorization-policy-file=/p.jsonl", "p.jsonl", "{user: a}"),
			[]string{"p.jsonl: line 1: not a policy"}},
		"a policy without a kind": {with("--authorization-mode=ABAC\n--authorization-policy-file=/p.jsonl", "p.jsonl",
			`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","user":"a"}`), []string{"p.jsonl: line 1"}},
		"a bad token line": {with("--authorization-mode=RBAC\n--token-auth-file=/t.csv", "t.csv",
			"s3cret-a,alice,1\ns3cret-b,bob\n"), []string{"t.csv: line 2 has 2 columns", "redacted"}},
		"no CSV": {with("--authorization-mode=RBAC\n--token-auth-file=/t.csv", "t.csv",
			"s3cret-a,alice,1\n\"s3cret-b\"x,bob,2\n"), []string{"t.csv: line 2"}},
		"Keystone in the clear": {map[string]string{"kube-apiserver.flags": whole + "--experimental-keystone-url=http://k",
			"server.yaml": "kubernetesVersion: '1.5'"}, []string{"must begin with https"}},
		"a flag of another time": {map[string]string{"kube-apiserver.flags": whole + "--basic-auth-file=/b",
			"server.yaml": "kubernetesVersion: '1.36'"}, []string{"kube-apiserver.flags:2", "last in 1.18"}},
		"half of OIDC":      {flags("--oidc-issuer-url=https://a"), []string{":2", "must both be set"}},
		"OIDC in the clear": {flags("--oidc-issuer-url=http://a\n--oidc-client-id=b"), []string{"https"}},
		"OIDC twice": {flags("--oidc-issuer-url=https://a\n--oidc-client-id=b\n--authentication-config=/a"),
			[]string{"excludes --authentication-config"}},
		"no required claim": {flags("--oidc-issuer-url=https://a\n--oidc-client-id=b\n--oidc-required-claim=x"),
			[]string{"want CLAIM=VALUE"}},
		"anonymous twice": {with("--anonymous-auth=true\n--authentication-config=/etc/authn.yaml", "authn.yaml",
			"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}"),
			[]string{":2: --anonymous-auth", "also configures anonymous"}},
		"the accounts' own issuer": {authn("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: " +
			"{url: 'https://sa.example.com', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]"),
			[]string{"authn.yaml", "issuer.url"}},
		"an expression with a typo": {authn("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: " +
			"{url: 'https://a', audiences: [a]}, claimMappings: {username: {expression: claims.}}}]"),
			[]string{"authn.yaml", "expression"}},
		"an empty header": {flags("--requestheader-client-ca-file=/a\n--requestheader-username-headers='a, '"),
			[]string{":3", "an empty value"}},
		"one CA for both": {map[string]string{"kube-apiserver.flags": whole +
			"--client-ca-file=/p/ca.crt\n--requestheader-client-ca-file=/p/proxy.crt", "ca.crt": pemOf("b") + pemOf("a"),
			"proxy.crt": pemOf("a")}, []string{":3", "shares a certificate"}},
		"a gate that is off": {flags("--feature-gates=StructuredAuthenticationConfiguration=false\n--authentication-config=/a"),
			[]string{"StructuredAuthenticationConfiguration=true"}},
		"an issuer twice": {flags("--service-account-issuer=a\n--service-account-issuer=a"),
			[]string{"--service-account-issuer", "twice"}},
		"a signer and a key": {flags("--service-account-signing-endpoint=@a\n--service-account-key-file=/k"),
			[]string{"excludes --service-account-key-file"}},
		"flags of another server": {flags("--authorization-kubeconfig=/k"), []string{"aggregated/NAME", "server.yaml"}},
		"two files of a name": {map[string]string{"kube-apiserver.flags": whole +
			"--authorization-mode=RBAC\n--token-auth-file=/etc/t.csv", "a/t.csv": "", "b/t.csv": ""},
			[]string{":3", "several files", "t.csv"}},
		"server.yaml": {map[string]string{"kube-apiserver.flags": whole, "server.yaml": "version: 1"},
			[]string{"server.yaml", "version"}},
		"no version": {map[string]string{"kube-apiserver.flags": whole, "server.yaml": "kubernetesVersion: latest"},
			[]string{"server.yaml", `"latest"`}},
		"versions of no time": {map[string]string{"kube-apiserver.flags": whole, "versions.yaml": "versions: [{dir: .}, {from: " +
			"today, dir: b}]"}, []string{"versions[1]", `"today"`}},
		"versions out of order": {map[string]string{"kube-apiserver.flags": whole, "versions.yaml": "versions: [{dir: ., from: " +
			"2026-01-02T00:00:00Z}, {from: 2026-01-01T00:00:00Z, dir: b}]"}, []string{"versions[1]", "later"}},
		"versions of nothing": {map[string]string{"versions.yaml": "versions: []"}, []string{"versions.yaml", "no versions"}},
		"versions elsewhere": {map[string]string{"versions.yaml": "versions: [{dir: ../b}]"},
			[]string{"versions[0]", "is not in this folder"}},
		"versions without a folder": {map[string]string{"versions.yaml": "versions: [{from: 2026-01-01T00:00:00Z}]"},
			[]string{"versions[0]", "dir is missing"}},
		"a reload at first": {map[string]string{"versions.yaml": "versions: [{authorizationConfig: a}]"},
			[]string{"versions[0]", "whole"}},
		"a reload that restarts": {map[string]string{"versions.yaml": "versions: [{dir: .}, {from: 2026-01-01T00:00:00Z, " +
			"authorizationConfig: a, restart: true}]"}, []string{"versions[1]", "without dir and restart"}},
		"a reload of no file": {map[string]string{"kube-apiserver.flags": whole + "--authorization-mode=RBAC", "a": authzHead,
			"versions.yaml": "versions: [{dir: .}, {from: 2026-01-01T00:00:00Z, authorizationConfig: a}]"},
			[]string{"versions.yaml", "was not"}},
		"a folder that is not": {map[string]string{"versions.yaml": "versions: [{dir: first}]"}, []string{"first"}},
		"a version is wrong": {map[string]string{"kube-apiserver.flags": whole, "2026-01-01/kube-apiserver.flags": whole +
			"--authorization-mode=ABAC"}, []string{"2026-01-01: ", "ABAC needs"}},
		"two of one time": {map[string]string{"2026-01-01/a.flags": whole, "20260101T000000Z/a.flags": whole},
			[]string{"2026-01-01 and 20260101T000000Z"}},
		"an aggregated one": {map[string]string{"kube-apiserver.flags": whole, "aggregated/shop/readme.md": "x"},
			[]string{"aggregated/shop: ", "no configuration"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, report, err := ReadHistory(folder(tc.files))
			if err == nil || report == nil {
				t.Fatalf("got %v and report %v, want an error", err, report)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q shows a credential", err)
			}
		})
	}
}

// unreadable is a folder in which one file may not be read.
type unreadable struct {
	fstest.MapFS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.Open(name)
}

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.ReadFile(name)
}

func TestUnreadableFiles(t *testing.T) {
	files := folder(map[string]string{"kube-apiserver.flags": whole + "--authorization-mode=RBAC\n--token-auth-file=/etc/t.csv",
		"t.csv": "redacted,a,b"})
	for _, name := range []string{"kube-apiserver.flags", "t.csv", "versions.yaml"} {
		_, _, err := ReadHistory(unreadable{files, name})
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), "grant read access") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Read(unreadable{files, "t.csv"}, Options{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Read: %v", err)
	}
}
