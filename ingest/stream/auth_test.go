package stream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// selfSigned returns a server certificate for 127.0.0.1 and a pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLSAndSASL(t *testing.T) {
	cert, pool := selfSigned(t)
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "retrial", "secret-word"),
				kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			cfg := Config{Brokers: broker.ListenAddrs(), Partitions: 1, FetchWait: time.Millisecond,
				HeartbeatInterval: 50 * time.Millisecond,
				TLS:               &tls.Config{RootCAs: pool}, SASL: &SASL{mechanism, "retrial", "secret-word"}}
			w := &world{cfg: cfg}
			w.connect(t)
			if err := w.Producer().Produce(deadline(t), recs(0, 5)...); err != nil {
				t.Fatal(err)
			}
			c := newCollector(5)
			stop := w.consume(t, c)
			wait(t, "records", c.full)
			stop()

			cfg.SASL = &SASL{mechanism, "retrial", "another-word"}
			wrong, err := NewClient(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { wrong.Close() })
			err = wrong.EnsureTopics(deadline(t))
			if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "retrial") || !strings.Contains(err.Error(), mechanism) {
				t.Errorf("wrong password: %v", err)
			}
			if strings.Contains(err.Error(), "word") && strings.Contains(err.Error(), "another-word") {
				t.Errorf("the error holds the password: %v", err)
			}

			cfg.SASL, cfg.TLS = &SASL{mechanism, "retrial", "secret-word"}, &tls.Config{RootCAs: x509.NewCertPool()}
			untrusting, err := NewClient(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { untrusting.Close() })
			if err := untrusting.Ping(deadline(t)); err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("unknown certificate: %v", err)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no brokers", Config{}, "no brokers"},
		{"mechanism", Config{Brokers: []string{"a:1"}, SASL: &SASL{Mechanism: "GSSAPI"}}, "GSSAPI"},
		{"record size", Config{Brokers: []string{"a:1"}, MaxRecordBytes: maxMessageBytes}, "MaxRecordBytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := NewClient(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one about %s", err, tc.want)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, err := NewClient(Config{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(deadline(t)); !errors.Is(err, ErrTransient) || !strings.Contains(err.Error(), addr) {
		t.Errorf("error %v", err)
	}
}

// A topic somebody created with Kafka's default limit is raised to what a record may have.
func TestTopicLimitIsRaised(t *testing.T) {
	onlyEmbedded(t)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	if err := broker.CreateTopic(TopicEvents, 3, map[string]string{"max.message.bytes": "1048588"}); err != nil {
		t.Fatal(err)
	}
	w := &world{cfg: Config{Brokers: broker.ListenAddrs()}}
	w.connect(t)
	if n, err := w.Partitions(deadline(t), TopicEvents); n != 3 || err != nil {
		t.Errorf("%d partitions, %v: those of the existing topic count", n, err)
	}
	if got := *broker.TopicInfo(TopicEvents).Configs["max.message.bytes"]; got != "16777216" {
		t.Errorf("max.message.bytes is %s", got)
	}
	for _, topic := range topicNames {
		if got := broker.TopicInfo(topic); got == nil {
			t.Errorf("topic %s is missing", topic)
		}
	}
	if got := *broker.TopicInfo(TopicPolicy).Configs["retention.ms"]; got != "604800000" {
		t.Errorf("retention.ms is %s", got)
	}
}
