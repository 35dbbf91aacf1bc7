package server

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/spool"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// system is everything between the listeners and the disk, wired once for serve and for
// the commands that open the store themselves.
type system struct {
	cfg        config.Config
	log        *zap.Logger
	reg        registry
	authority  *identity.Authority
	redactor   *redact.Redactor
	stream     *stream.Client
	spool      *spool.Spool // nil: switched off, or the process takes nothing in
	store      *storage.Store
	engine     *chdb.Engine // of the embedded store; nil when the store is a server
	otherwise  *otherwise
	runner     *runner.Runner
	rules      *detect.Set
	apiservers *apiservers
	detect     *detections
	complete   *completing
	asking     *api.QueryLog
	contacts   *webhook.Contacts // who reached the webhook's listener
	hook       string            // its address, once it listens
	halves     Halves            // that the process runs; none: it was opened for one command

	topicsLater bool // Kafka could not be reached at the start

	closers []func() error // in the order they were opened
}

// registry is where metrics go and where /metrics reads them.
type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// close closes what was opened, last first.
func (s *system) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}
