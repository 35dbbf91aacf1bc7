// Package node holds the replica's node authorizer, with its graph, against the real one of
// k8s.io/kubernetes: generated clusters change over time and generated requests are put to
// both sides, which must agree in decision and reason, at once and in hindsight.
//
//	ORACLE_NODE=1000000 go test -count=1 -timeout 60m -v -run 'TestNode$|TestState$' ./node
//
// makes a million comparisons, and another with the state in between; ORACLE_SEED chooses
// them.
package node
