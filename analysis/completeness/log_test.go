package completeness

import (
	"strings"
	"testing"
	"time"
)

func TestReadLog(t *testing.T) {
	const events = `2026-11-22T07:01:02.123456Z AUDIT: id="a-1" stage="ResponseComplete" ip="127.0.0.1" method="patch" user="eve" groups="\"x\",\"y\"" as="<self>" asgroups="<lookup>" user-agent="cu\"rl id=\"z\"" namespace="default" uri="/api/v1/namespaces/default/pods/p" response="400"
2026-11-22T07:01:02.2Z AUDIT: id="a-2" stage="ResponseComplete" ip="127.0.0.1" method="get" user="bob" groups="<none>" as="<self>" asgroups="<lookup>" user-agent="x" namespace="<none>" uri="/version" response="200"
`
	const head = "Error in audit plugin 'webhook' affecting 2 audit events: json: error calling MarshalJSON for type *runtime.Unknown: " +
		"invalid character 'h' looking for beginning of value\nImpacted events:\n"
	text := "I1122 07:00:00.000000       1 x.go:1] started\n" + "E1122 07:02:35.000001       1 metrics.go:120] " + head + events + "\n" +
		"E1122 07:03:00.000000       1 metrics.go:120] Error in audit plugin 'buffered' affecting 3 audit events: audit buffer queue " +
		"blocked\nImpacted events:\n" +
		"I1122 07:03:01.000000       1 x.go:1] fine\n" + events +
		"E1122 07:04:00.000000       1 metrics.go:120] Error in audit plugin 'webhook' affecting 400 audit events: Post \"https://x\": " +
		"dial tcp: connection refused\nImpacted events:\n"
	list, err := ReadLog(strings.NewReader(text))
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v %v", list, err)
	}
	if e := list[0]; e.Plugin != "webhook" || e.Events != 2 || e.Cause != CauseUnencodable || len(e.Lost) != 2 ||
		!e.Written.Equal(time.Date(2026, 11, 22, 7, 2, 35, 1000, time.UTC)) {
		t.Errorf("%+v", e)
	}
	if s := list[0].Suspects(); len(s) != 1 || s[0].AuditID != "a-1" || s[0].User != "eve" ||
		s[0].URI != "/api/v1/namespaces/default/pods/p" || s[0].Response != "400" {
		t.Errorf("%+v", s)
	}
	if e := list[1]; e.Cause != CauseOverflow || e.Events != 3 || len(e.Lost) != 0 {
		t.Errorf("lines behind another message were taken for it: %+v", e)
	}
	if e := list[2]; e.Cause != CauseOutage || e.Events != 400 {
		t.Errorf("%+v", e)
	}
	asJSON := `{"ts":1,"msg":"` + strings.NewReplacer("\"", `\"`, "\n", `\n`, `\`, `\\`).Replace(head+events) + `"}` + "\n"
	if list, err = ReadLog(strings.NewReader(asJSON)); err != nil || len(list) != 1 || len(list[0].Lost) != 2 {
		t.Errorf("as JSON: %+v %v", list, err)
	}
	// Text that clients choose does not create lines.
	if list, err = ReadLog(strings.NewReader(strings.Repeat("x", maxLogLine+10) + "Error in audit plugin 'log' affecting 1 audit events: " +
		"y\n")); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}
