package doctor

import (
	"fmt"
	"path"
	"strings"
)

// followDelay is how old a line of the audit log is when the follower posts it: three times as old as what a batch of the webhook holds.
const followDelay = "15s"

// BinaryPath is where the node's retrial lies.
const BinaryPath = "/usr/local/bin/retrial"

// followCommand returns the command line that closes what the webhook loses.
func (p *Plan) followCommand() []string {
	name := strings.TrimSuffix(p.Cluster+"-"+p.APIServer, "-")
	return []string{BinaryPath, "import", "--follow", "--webhook-config", path.Join(p.Install, FileKubeconfig), "--delay", followDelay,
		"--position", path.Join("/var/lib", followState, name+".json"), p.Log}
}

// followState is the folder below /var/lib in which the follower keeps its position.
const followState = "retrial-follow"

// followUnit returns the systemd unit of the follower. It reads root's or kube-apiserver's files, writes its position, posts.
func (p *Plan) followUnit() []byte {
	var words []string
	for _, w := range p.followCommand() {
		words = append(words, unitWord(w))
	}
	return fmt.Appendf(nil, `# Posts from the audit log of kube-apiserver what its webhook loses: a batch that holds an event
# that cannot be encoded, what found the buffer full, an outage longer than its retries.
[Unit]
Description=Retrial: follow the audit log of cluster %s
Wants=network-online.target
After=network-online.target
# Never given up: the log waits for it.
StartLimitIntervalSec=0

[Service]
ExecStart=%s
Restart=always
RestartSec=10
StateDirectory=%s
StateDirectoryMode=0700
WorkingDirectory=/var/lib/%s
Environment=GOMEMLIMIT=200MiB
MemoryMax=400M
CapabilityBoundingSet=CAP_DAC_READ_SEARCH
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
UMask=0077

[Install]
WantedBy=multi-user.target
`, p.Cluster, strings.Join(words, " "), followState, followState)
}

// unitWord writes a word of a command line as systemd reads it.
func unitWord(s string) string {
	s = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(s)
	if strings.ContainsAny(s, ` '"\;`) {
		return `"` + s + `"`
	}
	return s
}
