//go:build !unix

package embedded

import (
	"errors"
	"os"
)

// tryLock refuses: without flock two processes could write one log.
func tryLock(*os.File) error {
	return errors.New("the embedded broker needs flock, which this operating system lacks: use a Kafka server")
}
