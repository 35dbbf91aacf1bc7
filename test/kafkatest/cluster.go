package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Config is what New needs. Dir is required; zero values stand for the defaults named with
// each field.
type Config struct {
	// Dir takes configuration, data and logs. It must exist; the caller removes it.
	Dir     string
	Version string            // DefaultVersion
	Brokers int               // 1
	HeapMB  int               // of each broker's Java; 256
	Set     map[string]string // further properties of every broker, over those of this package
}

// Users of the SASL_SSL listener and their passwords. Nobody may do nothing, everybody else
// what Grant grants.
const (
	User     = "retrial"
	Password = "password-for-tests"
	Nobody   = "nobody"
)

// Cluster is a Kafka of one or more brokers.
type Cluster struct {
	Nodes []*Node // the first is the controller too

	install installation
	dir     string
	version string
}

// New makes a cluster: ports, certificates, configuration, formatted storage. Nothing runs
// until Start.
func New(cfg Config) (*Cluster, error) {
	if cfg.Version == "" {
		cfg.Version = DefaultVersion
	}
	cfg.Brokers, cfg.HeapMB = max(cfg.Brokers, 1), max(cfg.HeapMB, 0)
	if cfg.HeapMB == 0 {
		cfg.HeapMB = 256
	}
	install, err := locate(cfg.Version)
	if err != nil {
		return nil, err
	}
	c := &Cluster{install: install, dir: cfg.Dir, version: cfg.Version}
	if err := writeCertificates(c.caFile(), filepath.Join(cfg.Dir, "broker.pem")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.passwordFile(), []byte(Password+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the user's password: %w", err)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it does not fail
	id[0] &= 0x7f        // an identifier that begins with - would be taken for a flag
	clusterID := base64.RawURLEncoding.EncodeToString(id)
	controller, err := port()
	if err != nil {
		return nil, err
	}
	var format errgroup.Group
	for i := range cfg.Brokers {
		n := &Node{c: c, id: i + 1, heapMB: cfg.HeapMB, dir: filepath.Join(cfg.Dir, "node-"+strconv.Itoa(i+1))}
		if n.plaintext, err = port(); err != nil {
			return nil, err
		}
		if n.sasl, err = port(); err != nil {
			return nil, err
		}
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			return nil, fmt.Errorf("folder of node %d: %w", n.id, err)
		}
		if err := os.WriteFile(n.file("server.properties"), n.properties(controller, cfg), 0o600); err != nil {
			return nil, fmt.Errorf("configuration of node %d: %w", n.id, err)
		}
		c.Nodes = append(c.Nodes, n)
		format.Go(func() error { return n.format(clusterID) })
	}
	return c, format.Wait()
}

func (c *Cluster) caFile() string       { return filepath.Join(c.dir, "ca.pem") }
func (c *Cluster) passwordFile() string { return filepath.Join(c.dir, "password") }

// Start starts every node that does not run, and returns when all serve clients.
func (c *Cluster) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		g.Go(func() error { return n.Start(ctx) })
	}
	return g.Wait()
}

// Close kills every node.
func (c *Cluster) Close() error {
	for _, n := range c.Nodes {
		n.Kill()
	}
	return nil
}

// Version returns the version of Kafka that runs.
func (c *Cluster) Version() string { return c.version }

// properties returns a node's configuration.
func (n *Node) properties(controller int, cfg Config) []byte {
	on := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	listeners := "PLAINTEXT://" + on(n.plaintext) + ",SASL_SSL://" + on(n.sasl)
	p := map[string]string{
		"process.roles":                  "broker",
		"node.id":                        strconv.Itoa(n.id),
		"controller.quorum.voters":       "1@" + on(controller),
		"controller.listener.names":      "CONTROLLER",
		"listeners":                      listeners,
		"advertised.listeners":           listeners,
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
		"inter.broker.listener.name":     "PLAINTEXT",
		"log.dirs":                       n.file("data"),

		"ssl.keystore.type":                                     "PEM",
		"ssl.keystore.location":                                 filepath.Join(n.c.dir, "broker.pem"),
		"sasl.enabled.mechanisms":                               "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.sasl_ssl.plain.sasl.jaas.config": fmt.Sprintf(
			"org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q user_%s=%q;", User, Password, Nobody, Password),
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS",

		"auto.create.topics.enable":                "false",
		"default.replication.factor":               strconv.Itoa(min(cfg.Brokers, 3)),
		"min.insync.replicas":                      strconv.Itoa(min(cfg.Brokers, 2)),
		"offsets.topic.replication.factor":         strconv.Itoa(min(cfg.Brokers, 3)),
		"offsets.topic.num.partitions":             "3",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",
		// A group begins at once instead of waiting for further members.
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "500",
		// The controller lets a broker that was killed come back when its session is over.
		"broker.heartbeat.interval.ms":      "200",
		"broker.session.timeout.ms":         "2000",
		"log.cleaner.dedupe.buffer.size":    "8388608",
		"num.io.threads":                    "2",
		"num.network.threads":               "2",
		"num.recovery.threads.per.data.dir": "2",
	}
	if n.id == 1 {
		p["process.roles"] = "broker,controller"
		p["listeners"] += ",CONTROLLER://" + on(controller)
	}
	maps.Copy(p, cfg.Set)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", name, p[name])
	}
	return []byte(b.String())
}

// format prepares a node's storage; the controller's knows the users from then on.
func (n *Node) format(clusterID string) error {
	args := []string{"-cp", n.c.install.classPath, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "kafka.tools.StorageTool", "format",
		"-t", clusterID, "-c", n.file("server.properties")}
	if n.id == 1 {
		for _, user := range []string{User, Nobody} {
			for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
				args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%q]", mechanism, user, Password))
			}
		}
	}
	if out, err := exec.Command(n.c.install.java, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("format the storage of node %d: %w: %s", n.id, err, out)
	}
	return nil
}

// port returns one that nobody listens on, below those that systems give to outgoing
// connections: it is still free when a broker that was killed is started again.
func port() (int, error) {
	const first, count, attempts = 20_000, 10_000, 100
	var errs error
	for range attempts {
		r, err := rand.Int(rand.Reader, big.NewInt(count))
		if err != nil {
			return 0, fmt.Errorf("choose a port: %w", err)
		}
		p := first + int(r.Int64())
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(p))
		if err == nil {
			return p, l.Close()
		}
		errs = errors.Join(errs, err)
	}
	return 0, fmt.Errorf("find a free port: %w", errs)
}
