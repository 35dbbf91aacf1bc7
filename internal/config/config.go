// Package config is the configuration of the retrial binary: one versioned YAML file, decoded
// strictly, with a flag and an environment variable for every field. [Config] is the single
// source: the file's members, the flags, the variables and docs/config.md all follow from it.
//
// Order of precedence: flag, environment (RETRIAL_<FLAG>, upper case, dashes as
// underscores), file, default. Secrets are named by file, never written into the
// configuration itself.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Version and kind a configuration file must carry.
const (
	APIVersion = "retrial.io/v1alpha1"
	Kind       = "Config"
)

// Config is the whole configuration. Leaf fields carry their documentation in the `doc` tag, and names of files that have to be readable
// the tag file:"read"; the flag's name is the path of the members' names in kebab case, unless the `flag` tag sets another.
type Config struct {
	APIVersion string `json:"apiVersion" flag:"-"`
	Kind       string `json:"kind" flag:"-"`

	DataDir string `json:"dataDir" doc:"Folder that holds everything Retrial keeps: embedded Kafka and ClickHouse, certificates, the registry of clusters, the local socket."`
	KeyFile string `json:"keyFile" doc:"File with the installation's redaction key (made on first use). Keep it outside the data directory and back it up: with another key, values redacted before and after cannot be correlated. Default: retrial/hmac.key in the user's configuration folder."`

	Log          Log          `json:"log"`
	Webhook      Webhook      `json:"webhook"`
	Watch        Watch        `json:"watch"`
	UI           UI           `json:"ui"`
	Kafka        Kafka        `json:"kafka"`
	Spool        Spool        `json:"spool"`
	ClickHouse   ClickHouse   `json:"clickhouse"`
	Replay       Replay       `json:"replay"`
	Detect       Detect       `json:"detect"`
	Completeness Completeness `json:"completeness"`
	Retention    Retention    `json:"retention"`
	Debug        Debug        `json:"debug"`
}

// Log configures the process log (written to stderr).
type Log struct {
	Level  string `json:"level" doc:"Lowest level written: debug, info, warn or error."`
	Format string `json:"format" doc:"console (for people) or json (for machines)."`
}

// Webhook configures the endpoint kube-apiservers post audit events to.
type Webhook struct {
	Listen             string   `json:"listen" doc:"Address of the HTTPS listener for audit webhooks."`
	Advertise          []string `json:"advertise" doc:"Host names and addresses at which apiservers reach the listener; they go into the server certificate and the generated kubeconfig."`
	MaxBodyBytes       Bytes    `json:"maxBodyBytes" doc:"Largest request body. Apiservers do not truncate by default: a batch of 400 events with bodies can be large."`
	MaxInFlightBytes   Bytes    `json:"maxInFlightBytes" doc:"Bodies held in memory at once, over all clusters; beyond it the receiver answers 429 with Retry-After: 1."`
	MaxClusterInFlight Bytes    `json:"maxClusterInFlightBytes" doc:"The same for one cluster, so that a flood from one leaves room for the others."`
	MaxEventBytes      Bytes    `json:"maxEventBytes" doc:"Largest event; a larger one loses its bodies, except for what the replica reads of policy, is annotated with size and digest, and is still judged."`
	AllowAnonymous     bool     `json:"allowAnonymous" doc:"Accept posts without a client certificate or token. Allowed on a loopback listener only."`
	ReadTimeout        Duration `json:"readTimeout" doc:"Longest time a request may take to arrive."`
	TokenFile          string   `json:"tokenFile" file:"read" doc:"File of bearer tokens, one 'cluster token' pair a line, for apiservers that cannot present a client certificate."`
}

// Watch configures the live clusters whose policy objects are followed.
type Watch struct {
	Clusters []string `json:"clusters" doc:"Clusters to list and watch, each as cluster=/path/to/kubeconfig. The credentials need what deploy/watch-rbac.yaml grants: to list and watch roles, bindings, namespaces and service accounts, never Secrets."`
}

// WatchedCluster splits an entry of Watch.Clusters.
func WatchedCluster(entry string) (cluster, kubeconfig string, err error) {
	return pathOf(entry, "kubeconfig")
}

// pathOf splits an entry cluster=/path/to/what.
func pathOf(entry, what string) (cluster, path string, err error) {
	cluster, path, ok := strings.Cut(entry, "=")
	if !ok || cluster == "" || path == "" {
		return "", "", fmt.Errorf("invalid entry %q: want cluster=/path/to/%s", entry, what)
	}
	return cluster, path, nil
}

// UI configures the web page and the local API.
type UI struct {
	Listen    string   `json:"listen" doc:"Address of the page, the API and /metrics. Must be loopback unless a token file is set."`
	TokenFile string   `json:"tokenFile" file:"read" doc:"File with the bearer token that callers on a non-loopback listener must present."`
	TLSCert   string   `json:"tlsCert" file:"read" doc:"Certificate file for the listener; plain HTTP if empty (loopback only)."`
	TLSKey    string   `json:"tlsKey" file:"read" doc:"Key file for the listener."`
	Hosts     []string `json:"hosts" doc:"Further Host names at which the page may be reached (loopback names are always accepted)."`
}

// Debug configures what developers look at the process with.
type Debug struct {
	Listen string `json:"listen" doc:"Address of Go's profiles, at /debug/pprof/; loopback only. Empty: none."`
}

// Kafka configures the event stream.
type Kafka struct {
	Brokers           []string `json:"brokers" doc:"Bootstrap brokers of a real Kafka. Empty: the embedded broker, for one node and evaluation."`
	TopicPrefix       string   `json:"topicPrefix" doc:"Prefix of the topic names audit.events, audit.policy and audit.deadletter."`
	Partitions        int64    `json:"partitions" doc:"Partitions of audit.events and audit.policy when the topics are created; retrial partitions set adds some to audit.events later. 0: 1 on the embedded broker, where the store does best with one large block at a time, and 12 on a real Kafka."`
	ClusterPartitions int64    `json:"clusterPartitions" doc:"Partitions of a new audit.events over which the events of one cluster are spread; as many as there are at most. 1 has a process hold few clusters; a cluster with more than some 50,000 events a second needs more. retrial partitions set changes it later. See docs/kafka.md."`
	Replication       int64    `json:"replication" doc:"Replication factor of created topics on a real Kafka."`
	TLS               bool     `json:"tls" doc:"Use TLS to the brokers."`
	CAFile            string   `json:"caFile" file:"read" doc:"CA certificates for the brokers; empty: the system's."`
	SASLMechanism     string   `json:"saslMechanism" doc:"PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: none."`
	SASLUser          string   `json:"saslUser" doc:"SASL user name."`
	SASLPasswordFile  string   `json:"saslPasswordFile" file:"read" doc:"File with the SASL password."`
	EmbeddedMaxBytes  Bytes    `json:"embeddedMaxBytes" doc:"Cap on the embedded broker's log. It deletes only what is committed; at the cap the receiver pushes back."`
}

// Spool configures where records are kept while Kafka does not accept them.
type Spool struct {
	On           Switch `json:"enabled" flag:"spool" doc:"on: while Kafka does not accept records, they are kept on disk, acknowledged once they are synced, and sent in order later. off: they are not acknowledged. See docs/spool.md."`
	Dir          string `json:"dir" doc:"Folder of the spool, for this process alone. Empty: spool in the data directory."`
	MaxBytes     Bytes  `json:"maxBytes" doc:"Most bytes the spool may hold, compressed; one cluster uses at most three quarters of it. When it is full, the receiver pushes back."`
	MinFreeBytes Bytes  `json:"minFreeBytes" doc:"Free space that the spool leaves on its file system."`
}

// ClickHouse configures the store.
type ClickHouse struct {
	DSN               string `json:"dsn" doc:"http(s)://user@host:8123/database of a real ClickHouse. Empty: the embedded engine."`
	PasswordFile      string `json:"passwordFile" file:"read" doc:"File with the password for the DSN's user."`
	CAFile            string `json:"caFile" file:"read" doc:"CA certificates for an https DSN; empty: the system's."`
	Database          string `json:"database" doc:"Database that holds Retrial's tables."`
	Cluster           string `json:"cluster" doc:"Cluster of the DSN's server, as named in its remote_servers: tables are replicated, and spread over its shards by Kafka partition. Empty: one server. See docs/storage.md."`
	Library           string `json:"library" doc:"Path of libchdb.so for the embedded engine. Empty: RETRIAL_LIBCHDB, then the user's cache folder."`
	EmbeddedMaxMemory Bytes  `json:"embeddedMaxMemory" doc:"Memory the embedded engine may use. 0: a quarter of what the process may use by its control group, or of the machine's, between 512 MiB and 1.5 GiB."`
	EmbeddedThreads   int64  `json:"embeddedThreads" doc:"Processors that one statement of the embedded engine may use; merges use half as many, two at least. 0: as many as the process may use, eight at most."`

	Listen             string `json:"listen" doc:"Address on which the embedded store answers SQL queries, read-only, over ClickHouse's HTTP interface; for Grafana. Empty: none. Must be loopback unless a certificate is set. See docs/grafana.md."`
	ListenUser         string `json:"listenUser" doc:"User that SQL clients must present."`
	ListenPasswordFile string `json:"listenPasswordFile" file:"read" doc:"File with the password that SQL clients must present, of at least 16 characters."`
	ListenTLSCert      string `json:"listenTlsCert" file:"read" doc:"Certificate file for the SQL listener; plain HTTP if empty (loopback only)."`
	ListenTLSKey       string `json:"listenTlsKey" file:"read" doc:"Key file for the SQL listener."`
}

// Replay configures the re-evaluation.
type Replay struct {
	Hold      Duration `json:"hold" doc:"How long an event waits, after it was appended, for policy changes that other apiservers may still deliver."`
	Lag       Duration `json:"lag" doc:"How far an apiserver's caches may lag behind; it widens an event's window."`
	BatchRows int64    `json:"batchRows" doc:"Most rows in one insert."`
	Linger    Duration `json:"linger" doc:"Longest wait before received events are stored, when nothing is behind and nobody asks: a large insert costs little more than a small one. A question stores them first. With a ClickHouse server, where others may ask, the limit is a quarter of this."`
	// ApiserverConfig entries are split by ApiserverFolder.
	ApiserverConfig []string `json:"apiserverConfig" flag:"apiserver-config" doc:"Folders with the configuration of clusters' apiservers, each as cluster=/path/to/folder: the static-pod manifest or the flags, and the files they name. Reread when files change. See docs/apiserver-config.md."`
}

// ApiserverFolder splits an entry of Replay.ApiserverConfig.
func ApiserverFolder(entry string) (cluster, folder string, err error) {
	return pathOf(entry, "folder")
}

// Detect configures the detections.
type Detect struct {
	Enabled  bool     `json:"enabled" doc:"Compute findings. Without it rules still mark requests, so that a later start finds what is in them."`
	RulesDir string   `json:"rulesDir" doc:"Folder of further rules, one .yaml file each; a rule there replaces one with the same id. A broken file is an error at start. Empty: the built-in rules only."`
	Lateness Duration `json:"lateness" doc:"How far behind a cluster's newest request those rules stay that count, or look for something new: events may be this late without findings being taken back. Later ones are evaluated again."`
	Every    Duration `json:"every" doc:"Pause between two evaluations of what changed."`
}

// Completeness configures the comparison with what apiservers report to have sent. Entries are
// split by ApiserverEntry.
type Completeness struct {
	Scrape     []string `json:"scrape" doc:"Apiservers whose metrics are read, each as cluster=https://host:6443, or cluster/apiserver=https://host:6443 if a cluster has several that post under names of their own. See docs/completeness.md."`
	TokenFiles []string `json:"tokenFiles" doc:"Files with the bearer tokens for that, each as cluster=/path or cluster/apiserver=/path. The token's account needs permission to get the non-resource URL /metrics and nothing else."`
	CAFiles    []string `json:"caFiles" doc:"Files with the authorities of the apiservers' certificates, in the same form; empty: the system's."`
	CertFiles  []string `json:"clientCertificates" doc:"Files with client certificates in place of tokens, in the same form."`
	KeyFiles   []string `json:"clientKeys" doc:"Files with the keys of the client certificates, in the same form."`
	Every      Duration `json:"every" doc:"Pause between two readings of an apiserver; at every tenth the last hour is compared and its metrics are set."`
}

// ApiserverEntry splits an entry of Completeness: cluster, apiserver (may be empty), value.
func ApiserverEntry(entry string) (cluster, apiserver, value string, err error) {
	name, value, ok := strings.Cut(entry, "=")
	cluster, apiserver, named := strings.Cut(name, "/")
	if !ok || cluster == "" || value == "" || named && apiserver == "" {
		return "", "", "", fmt.Errorf("invalid entry %q: want cluster=VALUE or cluster/apiserver=VALUE", entry)
	}
	return cluster, apiserver, value, nil
}

// Retention configures how long stored data stays, counted from its ingestion.
type Retention struct {
	Events      Duration `json:"events" doc:"Events and their verdicts, in whole days. 0: forever."`
	Rollups     Duration `json:"rollups" doc:"Usage rollups, in whole days. 0: forever."`
	KeepImports bool     `json:"keepImports" doc:"Keep imported events, whatever their age, until the disk cap needs their room."`
	DiskCap     Bytes    `json:"diskCap" doc:"Most bytes the store may hold. Above it the oldest day of events is dropped, then the next, never the newest; rollups and policy stay. 0: for an embedded store whatever leaves 4 GiB of the disk free, or a twentieth of a small disk; for a ClickHouse server no cap."`
}

// Default returns the configuration used if nothing is set: everything embedded, in
// ./data, on loopback.
func Default() Config {
	keyFile := "retrial-hmac.key"
	if dir, err := os.UserConfigDir(); err == nil {
		keyFile = filepath.Join(dir, "retrial", "hmac.key")
	}
	return Config{
		APIVersion: APIVersion,
		Kind:       Kind,
		DataDir:    "data",
		KeyFile:    keyFile,
		Log:        Log{Level: "info", Format: "console"},
		Webhook: Webhook{
			Listen: "127.0.0.1:9443", MaxBodyBytes: 128 << 20, MaxInFlightBytes: 512 << 20, MaxClusterInFlight: 256 << 20,
			MaxEventBytes: 8 << 20, ReadTimeout: Duration(25 * time.Second),
		},
		UI:         UI{Listen: "127.0.0.1:8080"},
		Kafka:      Kafka{ClusterPartitions: 1, Replication: 3, EmbeddedMaxBytes: 2 << 30},
		Spool:      Spool{On: true, MaxBytes: 5 << 30, MinFreeBytes: 1 << 30},
		ClickHouse: ClickHouse{Database: "retrial", ListenUser: "grafana"},
		Replay: Replay{
			Hold: Duration(2 * time.Second), Lag: Duration(100 * time.Millisecond), BatchRows: 50000,
			Linger: Duration(12 * time.Second),
		},
		Completeness: Completeness{Every: Duration(30 * time.Second)},
		Detect:       Detect{Enabled: true, Lateness: Duration(time.Minute), Every: Duration(5 * time.Second)},
		Retention:    Retention{Events: Duration(30 * 24 * time.Hour), Rollups: Duration(400 * 24 * time.Hour), KeepImports: true},
	}
}

// Absolute returns path as an absolute path.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// KeyIDFile returns the path of the file that names the redaction key of the stored data. It
// exists once anything may be stored.
func (c Config) KeyIDFile() string { return filepath.Join(c.DataDir, "redaction-key.id") }

// SpoolDir returns the folder for records that Kafka does not accept.
func (c Config) SpoolDir() string {
	if c.Spool.Dir != "" {
		return c.Spool.Dir
	}
	return filepath.Join(c.DataDir, "spool")
}
