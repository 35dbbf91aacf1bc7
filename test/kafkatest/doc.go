// Package kafkatest runs a real Apache Kafka for tests and benchmarks: the jars that
// scripts/fetch-kafka.sh fetches from Maven Central, in KRaft mode, on loopback, with one
// broker or several, which can be killed, stopped and started again on the same data.
//
//	Cluster ─▶ Node 1: broker and controller ┐  each: PLAINTEXT listener  every client is a super user
//	           Node 2…: brokers              ┘        SASL_SSL listener   TLS, SCRAM or PLAIN, ACLs apply
//
// A process counts as started when it has said so itself, which it does once clients are
// served: nothing here waits for a guessed time. All processes end with the one that started
// them, however that ends.
package kafkatest
