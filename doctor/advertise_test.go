package doctor

import (
	"testing"

	"github.com/retrial-io/retrial/internal/config"
)

func TestAdvertised(t *testing.T) {
	listen := func(listen string, advertise ...string) config.Config {
		c := config.Default()
		c.Webhook.Listen, c.Webhook.Advertise = listen, advertise
		return c
	}
	for _, tc := range []struct {
		address    string
		cfg        config.Config
		host, port string
	}{
		{"", listen("127.0.0.1:9443"), "127.0.0.1", "9443"},
		{"", listen("0.0.0.0:9443", "retrial.example", "10.0.0.1"), "retrial.example", "9443"},
		{"10.0.0.1", listen("0.0.0.0:7000"), "10.0.0.1", "7000"},
		{"10.0.0.1:443", listen("0.0.0.0:7000"), "10.0.0.1", "443"},
		{"fd00::1", listen("[::]:7000"), "fd00::1", "7000"},
		{"[fd00::1]", listen("[::]:7000"), "fd00::1", "7000"},
		{"[fd00::1]:443", listen("[::]:7000"), "fd00::1", "443"},
		{"retrial.example:443", listen("127.0.0.1:9443"), "retrial.example", "443"},
	} {
		host, port, err := Advertised(tc.address, tc.cfg)
		if host != tc.host || port != tc.port || err != nil {
			t.Errorf("%q is %q and %q, %v; want %q and %q", tc.address, host, port, err, tc.host, tc.port)
		}
	}
}
