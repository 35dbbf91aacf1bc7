package params

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

type request struct {
	Cluster string            `json:"cluster" required:"true" help:"the cluster"`
	Subject string            `json:"subject" old:"user,who" help:"who"`
	Groups  []string          `json:"group" list:"csv" help:"groups"`
	Names   []string          `json:"names" list:"lines" help:"names"`
	Where   []string          `json:"where" list:"json" help:"conditions"`
	Values  map[string]string `json:"values" help:"values"`
	All     bool              `json:"allOfThem" short:"A" help:"all" flag:"take all"`
	Limit   int               `json:"limit" default:"50" min:"1" max:"500" help:"most"`
	Form    string            `json:"form" enum:"a,b" help:"a or b"`
	At      time.Time         `json:"at" name:"since" help:"when"`
	Settle  time.Duration     `json:"settle" min:"1ns" max:"1h" help:"how long"`
	shared
}

type shared struct {
	Why string `json:"why" help:"why"`
}

// What Write writes Read reads, whatever stands in it.
func TestWriteRead(t *testing.T) {
	want := request{
		Cluster: "c", Subject: "a\nb&=", Groups: []string{"ops", "CN=a,OU=b", `a"b`, "é", "-"}, Names: []string{"x y", "z"},
		Where: []string{"user=a\nb"}, Values: map[string]string{"k": `"`}, All: true, Limit: 7, Form: "b",
		At: time.Date(2026, 11, 20, 11, 36, 0, 1000, time.UTC), Settle: 90 * time.Second, shared: shared{"because"},
	}
	var got request
	if _, err := Read(&got, Write(want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	var empty request
	if q := Write(empty); len(q) != 0 {
		t.Errorf("nothing is written as %v", q)
	}
}

func TestReadIsStrict(t *testing.T) {
	for query, says := range map[string]string{
		"claster=c":                              `there is no parameter "claster"; known are: cluster, subject,`,
		"cluster=a&cluster=b":                    "cluster is given 2 times",
		"cluster=%ff":                            "cluster is not UTF-8",
		"cluster=" + long():                      "at most 16384 are taken",
		"at=yesterday":                           `invalid at "yesterday": want RFC 3339, such as`,
		"at=1969-01-01T00:00:00Z":                "want a time between 1970 and 2106",
		"limit=0":                                `invalid limit "0": want a number from 1 to 500`,
		"limit=501":                              "from 1 to 500",
		"limit=x":                                "from 1 to 500",
		"allOfThem=yes":                          `invalid allOfThem "yes": want true or false`,
		"form=c":                                 `invalid form "c": want one of a, b`,
		"settle=2h":                              `invalid settle "2h": want a duration such as 150s, from 1ns to 1h`,
		"settle=0s":                              "invalid settle",
		"values=x":                               "invalid values: want a JSON object of texts",
		"where=x":                                "invalid where: want a JSON list of texts",
		"group=a,,b":                             "group: there is an empty name",
		"group=" + url.QueryEscape(`a`+"\n"+`b`): "more than one line",
		"names=" + url.QueryEscape("a\n"):        "there is an empty name",
		"user=a&subject=b":                       "subject and user are one parameter: give subject alone",
		"user=a&who=b":                           "user and who are one parameter",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var r request
		if _, err := Read(&r, q); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v, want %q", query, err, says)
		}
	}
	var r request
	if old, err := Read(&r, url.Values{"user": {"ann"}, "at": {""}}); err != nil || r.Subject != "ann" || old["user"] != "subject" {
		t.Errorf("an old name: %v %v %+v", old, err, r)
	}
}

func long() string { return strings.Repeat("x", MaxValue+1) }

func TestComplete(t *testing.T) {
	r := request{Cluster: "c"}
	if err := Complete(&r); err != nil || r.Limit != 50 {
		t.Errorf("%+v, %v", r, err)
	}
	for says, r := range map[string]request{
		"cluster is missing":       {},
		"invalid limit 501":        {Cluster: "c", Limit: 501},
		`invalid form "c"`:         {Cluster: "c", Form: "c"},
		"invalid settle 2h0m0s: w": {Cluster: "c", Settle: 2 * time.Hour},
	} {
		if err := Complete(&r); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestReadJSON(t *testing.T) {
	var r request
	body := `{"cluster":"c","group":["a","b,c"],"where":["x=y"],"values":{"k":"v"},"allOfThem":true,"limit":3,
		"at":"2026-11-20T11:36:00Z","settle":"1m","subject":null}`
	if _, err := ReadJSON(&r, []byte(body)); err != nil {
		t.Fatal(err)
	}
	want := request{Cluster: "c", Groups: []string{"a", "b,c"}, Where: []string{"x=y"}, Values: map[string]string{"k": "v"},
		All: true, Limit: 3, At: time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC), Settle: time.Minute}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("%+v", r)
	}
	for body, says := range map[string]string{
		`[]`: "want a JSON object", `{} {}`: "want one JSON object", `{"x":1}`: "no parameter",
		`{"limit":"3"}`: "want a number", `{"limit":0}`: "from 1 to 500",
		`{"cluster":1}`: "want a text", `{"at":3}`: "want a time", `{"group":"a"}`: "want a list of texts",
	} {
		var r request
		if _, err := ReadJSON(&r, []byte(body)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
}

func TestFlags(t *testing.T) {
	var r request
	limit, all, since, group := FlagOf(&r, "limit"), FlagOf(&r, "allOfThem"), FlagOf(&r, "at"), FlagOf(&r, "group")
	if limit.String() != "50" || limit.Type() != "int" || since.Field.Flag != "since" || since.Type() != "time" ||
		all.Field.Flag != "all-of-them" || all.Field.FlagHelp != "take all" {
		t.Errorf("%q %q %+v %+v", limit, limit.Type(), all.Field, since.Field)
	}
	for _, g := range []string{"a,b", "c"} {
		if err := group.Set(g); err != nil {
			t.Fatal(err)
		}
	}
	if err := since.Set("tomorrow"); err == nil || group.Set(" ") == nil || len(r.Groups) != 2 || r.Limit != 50 {
		t.Errorf("%v, %+v", err, r)
	}
}

// What cannot be a parameter is found when the program starts, not when somebody asks.
func TestFieldsPanics(t *testing.T) {
	for name, r := range map[string]any{
		"no help": struct {
			A string `json:"a"`
		}{}, "type": struct {
			A float64 `json:"a" help:"a"`
		}{}, "list": struct {
			A []string `json:"a" help:"a"`
		}{}, "default": struct {
			A int `json:"a" help:"a" default:"x"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			FieldsOf(r)
		}()
	}
}
