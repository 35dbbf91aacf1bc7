package event

import (
	"errors"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       error
	}{
		{"an item of a list", `{"level":"Metadata","auditID":"a","stage":"ResponseComplete","requestURI":"/","verb":"get"}`, nil},
		{"with members of other products", `{"Devops":"","Workspace":"w","Cluster":"host","Message":"","level":"Metadata","auditID":"a",` +
			`"stage":"ResponseComplete"}`, nil},
		{"nothing", `{}`, ErrNotEvent},
		{"a line of a client", `{"auditID":"c8e355d8","code":201,"method":"POST","path":"/api/v1/namespaces",` +
			`"t":"2026-11-20T11:36:18.065616Z"}`, ErrNotEvent},
		{"no audit ID", `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete"}`, ErrNotEvent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Decode([]byte(tc.text)); err != nil {
				t.Fatalf("it does not even decode: %v", err)
			}
			if _, err := DecodeValid([]byte(tc.text)); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
	for _, text := range []string{`{"kind":"Event","apiVersion":"audit.k8s.io/v1beta1","auditID":"a","stage":"ResponseComplete"}`, `[]`,
		`17`} {
		if _, err := DecodeValid([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
