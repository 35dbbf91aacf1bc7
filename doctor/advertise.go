package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/internal/config"
)

// Advertised returns the host and port that apiservers use: those given by flag, else the first
// advertised name or the listener's own address.
func Advertised(address string, cfg config.Config) (host, port string, err error) {
	listenHost, listenPort, err := net.SplitHostPort(cfg.Webhook.Listen)
	if err != nil {
		return "", "", fmt.Errorf("webhook-listen: %w", err)
	}
	flag := "--advertise-address " + strconv.Quote(address)
	if address == "" {
		flag = "--advertise-address is missing, and webhook-listen " + cfg.Webhook.Listen
		if address = listenHost; len(cfg.Webhook.Advertise) > 0 {
			address = cfg.Webhook.Advertise[0]
		}
	}
	host, port = address, listenPort
	if addr, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		host = addr.String() // an IPv6 address has colons and no port
	} else if h, p, err := net.SplitHostPort(address); err == nil {
		host, port = h, p
	}
	if strings.Contains(address, "/") {
		return "", "", fmt.Errorf("%s: write HOST or HOST:PORT, without a scheme or a path", flag)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("%s: invalid port %q: want HOST:PORT, with a port from 1 to 65535", flag, port)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip.IsUnspecified(), host == "":
		return "", "", fmt.Errorf("%s is not an address that clients can reach: name one that apiservers can: "+
			"--advertise-address HOST[:PORT]", flag)
	case err == nil && ip.Zone() != "":
		return "", "", fmt.Errorf("%s: an address with a zone is only valid on this machine", flag)
	case err != nil && len(validation.IsDNS1123Subdomain(host)) > 0:
		return "", "", fmt.Errorf("%s: %q is neither an IP address nor a host name", flag, host)
	}
	return host, port, nil
}
