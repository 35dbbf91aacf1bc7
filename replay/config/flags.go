package config

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/release"
)

// setting is one flag as it was set.
type setting struct {
	name, value string
	where       string // file, with the line when there are lines
}

// flags are all flags of a command line, in their order.
type flags struct {
	list []setting
	file string
}

// kind is how the values of a repeated flag combine.
type kind int

const (
	text     kind = iota // the last one counts
	list                 // comma-separated, repeated ones add
	array                // repeated ones add
	boolean              // without a value it is true
	duration             // the last one counts
	gates                // comma-separated name=bool, repeated ones add
)

// spec is what is known about a flag.
type spec struct {
	kind kind
	// until is the last minor version that has it, 0 if that does not matter.
	until int
}

// decisive are the flags authentication and authorization depend on.
var decisive = map[string]spec{
	"admission-control":                            {kind: list},
	"anonymous-auth":                               {kind: boolean},
	"authentication-config":                        {},
	"authentication-kubeconfig":                    {},
	"authentication-skip-lookup":                   {kind: boolean},
	"authentication-token-webhook-cache-ttl":       {kind: duration},
	"authentication-token-webhook-config-file":     {},
	"authentication-token-webhook-version":         {},
	"authorization-always-allow-paths":             {kind: list},
	"authorization-config":                         {},
	"authorization-kubeconfig":                     {},
	"authorization-mode":                           {kind: list},
	"authorization-policy-file":                    {},
	"authorization-rbac-super-user":                {},
	"authorization-webhook-cache-authorized-ttl":   {kind: duration},
	"authorization-webhook-cache-unauthorized-ttl": {kind: duration},
	"bind-address":                                 {},
	"authorization-webhook-config-file":            {},
	"authorization-webhook-version":                {},
	"basic-auth-file":                              {until: 18},
	"client-ca-file":                               {},
	"disable-admission-plugins":                    {kind: list},
	"emulated-version":                             {kind: list},
	"enable-admission-plugins":                     {kind: list},
	"enable-bootstrap-token-auth":                  {kind: boolean},
	"experimental-bootstrap-token-auth":            {kind: boolean},
	"experimental-keystone-url":                    {until: 9},
	"feature-gates":                                {kind: gates},
	"insecure-allow-any-token":                     {kind: boolean, until: 7},
	"insecure-port":                                {until: 23},
	"oidc-client-id":                               {},
	"oidc-groups-claim":                            {},
	"oidc-groups-prefix":                           {},
	"oidc-issuer-url":                              {},
	"oidc-required-claim":                          {kind: array},
	"oidc-username-claim":                          {},
	"oidc-username-prefix":                         {},
	"requestheader-allowed-names":                  {kind: list},
	"requestheader-client-ca-file":                 {},
	"requestheader-extra-headers-prefix":           {kind: list},
	"requestheader-group-headers":                  {kind: list},
	"requestheader-uid-headers":                    {kind: list},
	"requestheader-username-headers":               {kind: list},
	"service-account-issuer":                       {kind: array},
	"service-account-key-file":                     {kind: array},
	"service-account-lookup":                       {kind: boolean},
	"service-account-max-token-expiration":         {kind: duration},
	"service-account-signing-endpoint":             {},
	"token-auth-file":                              {},
}

// switches are the booleans among the flags that decide nothing and are in no table of a release:
// the word after one is not its value.
var switches = strings.Fields(`add-dir-header alsologtostderr audit-dynamic-configuration
	authentication-tolerate-lookup-failure enable-inflight-quota-handler enable-swagger-ui
	etcd-quorum-read help kubelet-https logtostderr one-output repair-malformed-updates
	skip-headers skip-log-headers version`)

// harmless are flags that are known to decide nothing, by name, or by prefix where they end
// in a dash: old ones, which are in no table of a release, and those whose names mention
// authentication nevertheless.
var harmless = strings.Fields(`service-account-api-audiences service-account-extend-token-expiration audit-
	authentication-tolerate-lookup-failure cloud- default- deserialization-cache-size etcd-
	experimental-encryption-provider-config experimental-keystone-ca-file google-json-key
	identity-lease- insecure-bind-address kubelet- log- long-running-request-regexp
	master-service-namespace oidc-ca-file oidc-signing-algs shutdown- ssh- stderrthreshold
	storage- target-ram-mb tls-`)

func isHarmless(name string) bool {
	if _, _, known := release.FlagSpan(name); known && whatItSpeaksOf(name) == nothingThatDecides {
		return true
	}
	return slices.Contains(switches, name) || slices.ContainsFunc(harmless, func(h string) bool {
		return h == name || strings.HasSuffix(h, "-") && strings.HasPrefix(name, h)
	})
}

// isSwitch reports whether a flag is a boolean.
func isSwitch(name string) bool {
	if _, last, known := release.FlagSpan(name); known {
		f, _ := last.Flag(name)
		return f.Type == "bool"
	}
	return decisive[name].kind == boolean || slices.Contains(switches, name)
}

// speaksOf is what a flag's name speaks of.
type speaksOf uint8

const (
	nothingThatDecides speaksOf = iota
	authorization
	authentication
)

// whatItSpeaksOf goes by a flag's name alone.
func whatItSpeaksOf(name string) speaksOf {
	switch {
	case strings.HasPrefix(name, "authorization") || strings.Contains(name, "authz"):
		return authorization
	case slices.ContainsFunc([]string{"auth", "oidc", "token", "requestheader", "impersonat", "keystone", "identity", "user", "login"},
		func(s string) bool { return strings.Contains(name, s) }):
		return authentication
	}
	return nothingThatDecides
}

// flagsOf reads the flags among the words; other words (the command itself, arguments of a
// shell) are dropped.
func flagsOf(words []word, file string) *flags {
	f := &flags{file: file}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if len(w.text) < 2 || w.text[0] != '-' || w.text == "--" {
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		name = strings.ReplaceAll(name, "_", "-") // as the apiserver does
		if !plainName(name) {
			continue
		}
		switch {
		case has:
		case isSwitch(name):
			value = "true"
		case i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "--"):
			i++
			value = words[i].text
		}
		where := file
		if w.line > 0 {
			where += ":" + strconv.Itoa(w.line)
		}
		// A copy: the line may hold secrets.
		f.list = append(f.list, setting{strings.Clone(name), strings.Clone(value), where})
	}
	return f
}

func plainName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return s != ""
}

// last returns the flag of a name as it was set last.
func (f *flags) last(name string) (setting, bool) {
	for i := len(f.list) - 1; i >= 0; i-- {
		if f.list[i].name == name {
			return f.list[i], true
		}
	}
	return setting{}, false
}

func (f *flags) set(name string) bool { _, ok := f.last(name); return ok }

func (f *flags) text(name string) string { fl, _ := f.last(name); return fl.value }

// all returns the values of a list or an array.
func (f *flags) all(name string) []string {
	var out []string
	for _, fl := range f.list {
		if fl.name != name {
			continue
		}
		if decisive[name].kind == list {
			out = append(out, commaList(fl.value)...)
			continue
		}
		out = append(out, fl.value)
	}
	return out
}

// commaList splits a list as the apiserver's flags do: one line of CSV, an empty value is an
// empty list. Invalid CSV, which the apiserver would refuse, is split nevertheless.
func commaList(s string) []string {
	if s == "" {
		return nil
	}
	out, err := csv.NewReader(strings.NewReader(s)).Read()
	if err != nil {
		return strings.Split(s, ",")
	}
	return out
}

func (f *flags) bool(name string, def bool) (bool, error) {
	fl, ok := f.last(name)
	if !ok {
		return def, nil
	}
	v, err := strconv.ParseBool(fl.value)
	if err != nil {
		return def, fmt.Errorf("%s: --%s: invalid value %q: want true or false", fl.where, name, fl.value)
	}
	return v, nil
}

func (f *flags) duration(name string, def time.Duration) (time.Duration, error) {
	fl, ok := f.last(name)
	if !ok {
		return def, nil
	}
	v, err := time.ParseDuration(fl.value)
	if err != nil {
		return def, fmt.Errorf("%s: --%s: invalid duration %q: want one such as 2m or 30s", fl.where, name, fl.value)
	}
	return v, nil
}

func (f *flags) gates() (map[string]bool, error) {
	var out map[string]bool
	for _, fl := range f.list {
		if fl.name != "feature-gates" {
			continue
		}
		for _, pair := range commaList(fl.value) {
			name, value, ok := strings.Cut(pair, "=")
			// Since 1.31 a gate may name the component it is of.
			name = strings.TrimPrefix(strings.TrimSpace(name), "kube:")
			v, err := strconv.ParseBool(strings.TrimSpace(value))
			if !ok || err != nil {
				return nil, fmt.Errorf("%s: --feature-gates: invalid gate %q: want NAME=true or NAME=false", fl.where, pair)
			}
			if out == nil {
				out = map[string]bool{}
			}
			out[name] = v
		}
	}
	return out, nil
}

// at returns where a flag was set, for messages.
func (f *flags) at(name string) string {
	if fl, ok := f.last(name); ok {
		return fl.where + ": --" + name
	}
	return f.file + ": --" + name
}
