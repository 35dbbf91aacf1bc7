package kafkatest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"
)

// Access is how a client reaches a cluster.
type Access struct {
	Brokers      []string // host:port of every broker
	CAFile       string   // empty: plain text
	Mechanism    string   // empty: no authentication
	User         string
	PasswordFile string
}

// Plaintext returns the listener where every client may do everything.
func (c *Cluster) Plaintext() Access {
	var a Access
	for _, n := range c.Nodes {
		a.Brokers = append(a.Brokers, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.plaintext)))
	}
	return a
}

// SASL returns the listener with TLS, as User; the mechanism is PLAIN, SCRAM-SHA-256 or
// SCRAM-SHA-512.
func (c *Cluster) SASL(mechanism string) Access {
	a := Access{CAFile: c.caFile(), Mechanism: mechanism, User: User, PasswordFile: c.passwordFile()}
	for _, n := range c.Nodes {
		a.Brokers = append(a.Brokers, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.sasl)))
	}
	return a
}

// Flags returns the product's.
func (a Access) Flags() []string {
	flags := []string{"--kafka-brokers", strings.Join(a.Brokers, ",")}
	if a.CAFile != "" {
		flags = append(flags, "--kafka-tls", "--kafka-ca-file", a.CAFile)
	}
	if a.Mechanism != "" {
		flags = append(flags, "--kafka-sasl-mechanism", a.Mechanism, "--kafka-sasl-user", a.User, "--kafka-sasl-password-file",
			a.PasswordFile)
	}
	return flags
}

// TLS returns a client's configuration; nil for plain text.
func (a Access) TLS() (*tls.Config, error) {
	if a.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authority of the brokers: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("authority of the brokers: %s holds no certificate", a.CAFile)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// The environment that tells tests of a cluster somebody else runs: those that do not care
// whose broker it is run against it.
const (
	envBrokers      = "RETRIAL_TEST_KAFKA_BROKERS"
	envCAFile       = "RETRIAL_TEST_KAFKA_CA_FILE"
	envMechanism    = "RETRIAL_TEST_KAFKA_MECHANISM"
	envUser         = "RETRIAL_TEST_KAFKA_USER"
	envPasswordFile = "RETRIAL_TEST_KAFKA_PASSWORD_FILE" //nolint:gosec // a name
)

// Environ returns what a process has to have in its environment for FromEnviron to return a.
func (a Access) Environ() []string {
	return []string{envBrokers + "=" + strings.Join(a.Brokers, ","), envCAFile + "=" + a.CAFile, envMechanism + "=" + a.Mechanism,
		envUser + "=" + a.User, envPasswordFile + "=" + a.PasswordFile}
}

// FromEnviron returns the cluster that the environment names, if it does.
func FromEnviron() (a Access, ok bool) {
	brokers := os.Getenv(envBrokers)
	if brokers == "" {
		return a, false
	}
	return Access{Brokers: strings.Split(brokers, ","), CAFile: os.Getenv(envCAFile), Mechanism: os.Getenv(envMechanism),
		User: os.Getenv(envUser), PasswordFile: os.Getenv(envPasswordFile)}, true
}

// Right is an operation on all topics or groups whose names begin with a prefix.
type Right struct {
	Resource  kafka.ResourceType
	Prefix    string
	Operation kafka.ACLOperationType
}

// Needed returns the rights the product's user has to have, with the topic prefix it is
// configured with: those that docs/kafka.md lists.
func Needed(topicPrefix string) []Right {
	var rights []Right
	for _, op := range []kafka.ACLOperationType{kafka.ACLOperationTypeCreate, kafka.ACLOperationTypeDescribeConfigs,
		kafka.ACLOperationTypeRead, kafka.ACLOperationTypeWrite} {
		rights = append(rights, Right{kafka.ResourceTypeTopic, topicPrefix + "audit.", op})
	}
	return append(rights, Right{kafka.ResourceTypeGroup, topicPrefix + "retrial-", kafka.ACLOperationTypeRead})
}

// Grant gives User rights, and returns when the brokers know of them.
func (c *Cluster) Grant(ctx context.Context, rights ...Right) error {
	client := &kafka.Client{Addr: kafka.TCP(c.Plaintext().Brokers...), Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	req := &kafka.CreateACLsRequest{}
	for _, r := range rights {
		req.ACLs = append(req.ACLs, kafka.ACLEntry{ResourceType: r.Resource, ResourceName: r.Prefix,
			ResourcePatternType: kafka.PatternTypePrefixed,
			Principal:           "User:" + User, Host: "*", Operation: r.Operation, PermissionType: kafka.ACLPermissionTypeAllow})
	}
	res, err := client.CreateACLs(ctx, req)
	if err == nil {
		err = errors.Join(res.Errors...)
	}
	for _, r := range rights {
		for known := false; err == nil && !known; { // brokers follow the controller's log, in moments
			known, err = knows(ctx, client, r)
		}
	}
	if err != nil {
		return fmt.Errorf("grant rights: %w", err)
	}
	return nil
}

func knows(ctx context.Context, client *kafka.Client, r Right) (bool, error) {
	res, err := client.DescribeACLs(ctx, &kafka.DescribeACLsRequest{Filter: kafka.ACLFilter{
		ResourceTypeFilter: r.Resource, ResourceNameFilter: r.Prefix, ResourcePatternTypeFilter: kafka.PatternTypePrefixed,
		PrincipalFilter: "User:" + User, HostFilter: "*", Operation: r.Operation, PermissionType: kafka.ACLPermissionTypeAllow}})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return false, err
	}
	return len(res.Resources) > 0, nil
}
