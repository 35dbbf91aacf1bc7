//go:build !race

package event_test

// raceEnabled says that sync.Pool forgets at random, as it does under the race detector.
const raceEnabled = false
