package kubenames

import (
	"strings"
	"testing"
)

func TestParseSubject(t *testing.T) {
	for text, want := range map[string]Subject{
		"alice": {Name: "alice"}, "system:serviceaccount:shop:api": {Name: "system:serviceaccount:shop:api"},
		"sa/shop:api": {Name: "system:serviceaccount:shop:api"}, "sa/shop/api": {Name: "system:serviceaccount:shop:api"},
		"sa:shop:api": {Name: "system:serviceaccount:shop:api"}, "ServiceAccount/shop/api": {Name: "system:serviceaccount:shop:api"},
		"user/alice": {Name: "alice"}, "user:alice": {Name: "alice"}, "User/alice": {Name: "alice"},
		"user/group:ops": {Name: "group:ops"}, "user/system:serviceaccount:x": {Name: "system:serviceaccount:x"},
		"group/ops": {"ops", true}, "group:system:authenticated": {"system:authenticated", true}, "Group/ops": {"ops", true},
		"node/n1": {Name: "system:node:n1"}, "system:node:n1": {Name: "system:node:n1"}, "system:anonymous": {Name: "system:anonymous"},
		"oidc:alice": {Name: "oidc:alice"}, "arn:aws:iam::1:user/alice": {Name: "arn:aws:iam::1:user/alice"},
		"https://idp.example.com#alice": {Name: "https://idp.example.com#alice"}, "shop:api": {Name: "shop:api"}, "": {},
	} {
		if got, err := ParseSubject(text); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"sa/": "want sa/NAMESPACE:NAME", "sa/api": "want sa/NAMESPACE:NAME", "sa/shop:": "want sa/NAMESPACE:NAME",
		"sa/:api": "want sa/NAMESPACE:NAME", "sa/shop:api:x": "want sa/NAMESPACE:NAME", "sa/shop/api/x": "want sa/NAMESPACE:NAME",
		"group/": "want group/NAME", "group:": "want group/NAME", "user/": "want user/NAME", "node/": "want node/NAME",
		"system:serviceaccount:shop":     "want system:serviceaccount:NAMESPACE:NAME or sa/NAMESPACE:NAME",
		"system:serviceaccount:shop/api": "want system:serviceaccount:NAMESPACE:NAME or sa/NAMESPACE:NAME",
	} {
		if got, err := ParseSubject(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v %v, want %q", text, got, err, want)
		}
	}
}
