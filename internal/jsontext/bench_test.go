package jsontext

import (
	"strings"
	"testing"
)

// BenchmarkSkip skips an object of the shape that most of an audit log has: nested objects with short
// names, lists, texts, numbers, and managed fields. Written and indented, as apiservers and people do.
func BenchmarkSkip(b *testing.B) {
	container := `{"name":"main","image":"registry.example/app:1.2","args":["--port=8080","--level=info"],"ports":[{"containerPort":8080,` +
		`"protocol":"TCP"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"ready":true,"restarts":0,"last":null}`
	fields := `{"manager":"kubelet","operation":"Update","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":` +
		`{".":{},"f:status":{},"f:type":{}}},"f:phase":{}}}}`
	pod := `{"kind":"Pod","metadata":{"name":"p","managedFields":[` + strings.Repeat(fields+",", 7) + fields + `]},"spec":{"containers":[` +
		strings.Repeat(container+",", 7) + container + `]}}`
	for _, c := range []struct{ name, text string }{
		{"object", pod},
		{"spaced", strings.NewReplacer(",", ",\n      ", ":", ": ").Replace(pod)},
		{"deep", strings.Repeat(`[{"a":`, 100) + "1" + strings.Repeat("}]", 100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			s := Scanner{Buf: []byte(c.text)}
			for b.Loop() {
				if s.Pos = 0; !s.Skip() || s.Pos != len(c.text) {
					b.Fatal("not skipped")
				}
			}
		})
	}
}
