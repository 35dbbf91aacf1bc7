package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// States of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn" // it works, and somebody should look at it
	checkFail = "fail" // something that is wanted does not work
)

// checkJSON is one thing that was looked at.
type checkJSON struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster,omitempty"` // absent: of the whole installation
	State   string `json:"state"`
	Text    string `json:"text"`
	Todo    string `json:"todo,omitempty"`
}

// doctorJSON is the answer to how the installation does.
type doctorJSON struct {
	Version string      `json:"version"`
	Unknown bool        `json:"unknown,omitempty"` // nothing is known of the cluster that was named
	Checks  []checkJSON `json:"checks"`
}

// checks collects them.
type checks []checkJSON

func (c *checks) add(id, state, todo, format string, args ...any) {
	*c = append(*c, checkJSON{ID: id, State: state, Text: fmt.Sprintf(format, args...), Todo: todo})
}

// listensLocally: only this machine reaches the webhook's listener.
func (s site) listensLocally() bool {
	if s.hook != nil && s.hook() != "" {
		return config.Loopback(s.hook())
	}
	return config.Loopback(s.cfg.Webhook.Listen)
}

func (a *doctorAPI) doctor(ctx context.Context, q url.Values) (any, error) {
	stored, err := a.store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	out := doctorJSON{Version: version}
	names, registered := a.site.clusters(stored)
	if named := q.Get("cluster"); named != "" {
		out.Unknown = !slices.Contains(names, named)
		names = []string{named}
	}
	c := a.site.installation()
	a.site.listenerCheck(&c, registered)
	a.lagChecks(&c)
	a.site.findingsCheck(&c)
	if err := a.letterCheck(ctx, &c); err != nil {
		return nil, err
	}
	if err := a.diskChecks(ctx, &c); err != nil {
		return nil, err
	}
	a.site.streamCheck(&c)
	a.site.spoolCheck(&c)
	for _, name := range names {
		of, err := a.clusterChecks(ctx, name, stored)
		if err != nil {
			return nil, err
		}
		c = append(c, of...)
	}
	out.Checks = c
	return out, nil
}

// clusters are those that are registered or stored, and how many are registered.
func (s site) clusters(stored []storage.Cluster) (names []string, registered int) {
	if s.authority != nil {
		if list, err := s.authority.Registry().List(); err == nil { // else each cluster's own check tells
			for _, c := range list {
				names = append(names, c.Name)
			}
		}
	}
	registered = len(names)
	for _, c := range stored {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names, registered
}

// installation checks what needs neither store nor server.
func (s site) installation() checks {
	var c checks
	if s.serving {
		c.add("server", checkOK, "", "It answers, version %s.", version)
	} else {
		c.add("server", checkFail, "retrial serve"+s.dataDir(), "No server is running on %s.", absolute(s.cfg.DataDir))
	}
	s.storeCheck(&c)
	s.keyCheck(&c)
	s.certificateChecks(&c)
	return c
}

// storeCheck looks for what the embedded store needs.
func (s site) storeCheck(c *checks) {
	const id = "store"
	if s.cfg.ClickHouse.DSN != "" {
		c.add(id, checkOK, "", "A ClickHouse server is used.")
		return
	}
	if err := chdb.Suitable(); err != nil {
		c.add(id, checkFail, "Use a ClickHouse server: --clickhouse-dsn.", "The embedded store cannot run here: %v.", err)
		return
	}
	library, err := chdb.Locate(s.cfg.ClickHouse.Library)
	if err != nil {
		c.add(id, checkFail, "scripts/fetch-libchdb.sh", "%v.", err)
		return
	}
	c.add(id, checkOK, "", "The embedded store is used; the processor has AVX2, the library is %s.", library)
}

func (s site) keyCheck(c *checks) {
	const id = "key-file"
	if err := identity.CheckKeyPath(s.cfg.KeyFile, s.cfg.DataDir); err != nil {
		c.add(id, checkFail, "Move it out of the data directory and name it with --key-file: a backup of the data must not hold it.", "%v.", err)
		return
	}
	info, err := os.Stat(s.cfg.KeyFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		state := checkWarn
		if _, err := os.Stat(keyIDFile(s.cfg)); err == nil {
			state = checkFail
		}
		c.add(id, state, "Restore it, or name it with --key-file; the first start makes one.", "There is no redaction key at %s.", s.cfg.KeyFile)
	case err != nil:
		c.add(id, checkFail, "", "The redaction key cannot be read: %v.", err)
	case info.Mode().Perm()&0o007 != 0: // a group may read it: that is how a mounted Secret arrives
		c.add(id, checkFail, "chmod 600 "+phrase.ShellWord(s.cfg.KeyFile), "Everyone on this machine may use the redaction key %s (mode %04o).", s.cfg.KeyFile, info.Mode().Perm())
	default:
		c.add(id, checkOK, "", "The redaction key %s is outside of the data directory. Is it backed up?", s.cfg.KeyFile)
	}
}

// Certificates are warned of this long before they expire. The server's renews itself when a
// third of its year is left, so that one getting this close means that it cannot.
const (
	warnAuthority = 90 * 24 * time.Hour
	warnLeaf      = 30 * 24 * time.Hour
)

func (s site) certificateChecks(c *checks) {
	const id = "certificates"
	if s.authority == nil {
		c.add(id, checkOK, "", "No authority was made here yet.")
		return
	}
	s.rotationCheck(c)
	authority, server, err := s.authority.Certificates()
	if err != nil {
		c.add(id, checkFail, "Restore the folder pki of the data directory.", "%v.", err)
		return
	}
	state, todo := expiry(s.time(), authority.NotAfter, warnAuthority)
	if todo {
		c.add(id, state, "retrial cluster rotate --authority"+s.dataDir()+" (docs/rotate.md)", "The authority's certificate is valid until %s.", authority.NotAfter.Format(time.DateOnly))
		return
	}
	if state, todo = expiry(s.time(), server.NotAfter, warnLeaf); todo {
		c.add(id, state, "It is renewed by the running server when ca.key is there: see its log.", "The receiver's certificate is valid until %s.", server.NotAfter.Format(time.DateOnly))
		return
	}
	c.add(id, checkOK, "", "The authority's is valid until %s, the receiver's until %s (it renews itself).", authority.NotAfter.Format(time.DateOnly), server.NotAfter.Format(time.DateOnly))
}

// expiry judges when something ends; todo says whether anything is to be done.
func expiry(now, end time.Time, warn time.Duration) (state string, todo bool) {
	switch left := end.Sub(now); {
	case left <= 0:
		return checkFail, true
	case left < warn:
		return checkWarn, true
	}
	return checkOK, false
}

func (s site) listenerCheck(c *checks, registered int) {
	const id = "listener"
	switch {
	case s.hook == nil:
		return
	case s.hook() == "":
		c.add(id, checkFail, "", "The webhook's listener is not open.")
	case s.listensLocally() && registered > 0:
		c.add(id, checkWarn, "For apiservers elsewhere: "+s.serveCommand(), "The webhook listens on %s: only this machine reaches it.", s.hook())
	default:
		c.add(id, checkOK, "", "The webhook listens on %s.", s.hook())
	}
}

// Lags that are more than the work of a moment: a burst of an apiserver is some thousands.
const (
	wideLag       = 100_000
	widePolicyLag = 10_000
)

func (a *doctorAPI) lagChecks(c *checks) {
	if !a.site.serving {
		return
	}
	lag := a.Replay.Lag()
	if lag.Events > wideLag {
		c.add("lag", checkWarn, "Look at the server's log, and at retrial_runner metrics for what takes the time.", "%s accepted and not stored yet.", phrase.Count(lag.Events, "event"))
	} else {
		c.add("lag", checkOK, "", "%s accepted and not stored yet.", phrase.Count(lag.Events, "event"))
	}
	if lag.Policy > widePolicyLag {
		c.add("policy-lag", checkWarn, "Events wait for the policy before them: look at the server's log.", "%s not applied yet.", phrase.Count(lag.Policy, "policy change"))
	} else {
		c.add("policy-lag", checkOK, "", "%s not applied yet.", phrase.Count(lag.Policy, "policy change"))
	}
}

// lateFindings is how far findings may be behind; the alert rule RetrialDetectionsBehind agrees.
const lateFindings = 5 * time.Minute

// findingsCheck tells how far findings are behind what is stored.
func (s site) findingsCheck(c *checks) {
	const id = "findings"
	if !s.serving {
		return
	}
	if !s.cfg.Detect.Enabled {
		c.add(id, checkWarn, "Leave --detect-enabled=false away.", "Nobody works findings out: detections are switched off.")
		return
	}
	seconds, known := s.gauge(metricDetectLag)
	if !known {
		return
	}
	leads, _ := s.gauge(metricDetectLeader)
	alone := len(s.cfg.Kafka.Brokers) == 0
	behind := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case behind > lateFindings:
		c.add(id, checkFail, "Look at the server's log, at how busy its processor is, and at retrial_detect metrics.", "Findings are %s behind: what was stored since is not looked at yet.", behind)
	case leads == 0 && !alone:
		c.add(id, checkOK, "", "Another process works them out.")
	default:
		c.add(id, checkOK, "", "They are %s behind what is stored.", behind)
	}
}

// lettersRange is how far back dead letters are told of.
const lettersRange = 24 * time.Hour

func (a *doctorAPI) letterCheck(ctx context.Context, c *checks) error {
	letters, err := a.store.DeadLetters(ctx, a.site.time().Add(-lettersRange))
	if err != nil {
		return err
	}
	var total int64
	var what []string
	for i, l := range letters {
		if total += l.Count; i < 5 {
			what = append(what, fmt.Sprintf("%s %s of %s", phrase.Thousands(l.Count), l.Reason, l.Cluster))
		}
	}
	if total == 0 {
		c.add("dead-letters", checkOK, "", "None in the last day.")
		return nil
	}
	c.add("dead-letters", checkWarn, "They are in the table dead_letters, with reason, digest and beginning. Bodies that were too large: see --webhook-max-body-bytes.",
		"%s in the last day: %s.", phrase.Count(total, "dead letter"), strings.Join(what, ", "))
	return nil
}

const (
	lowDisk  = 2 << 30 // bytes free that are warned of
	noDisk   = 200 << 20
	nearFull = 0.8 // of a cap
)

func (a *doctorAPI) diskChecks(ctx context.Context, c *checks) error {
	embedded := a.site.cfg.ClickHouse.DSN == ""
	used, err := a.store.DiskBytes(ctx)
	if err != nil {
		return err
	}
	retention := a.site.cfg.Retention
	if free, ok := freeBytes(a.site.cfg.DataDir); ok && embedded {
		text := fmt.Sprintf("The store uses %s, %s are free.", size(used), size(free))
		const todo = "Make room, or bound the store: --retention-events, --retention-disk-cap."
		switch {
		case free < noDisk:
			c.add("disk", checkFail, todo, "%s", text)
		case free < lowDisk:
			c.add("disk", checkWarn, todo, "%s", text)
		default:
			c.add("disk", checkOK, "", "%s", text)
		}
	}
	days := "for ever"
	if retention.Events > 0 {
		days = "for " + retention.Events.String()
	}
	switch limit := diskCap(ctx, a.site.cfg, a.store); {
	case limit > 0 && float64(used) > nearFull*float64(limit):
		c.add("retention", checkWarn, "Raise --retention-disk-cap, or keep events for a shorter time.", "The store uses %s of its cap of %s: the oldest day of events goes first.", size(used), size(limit))
	case limit > 0:
		c.add("retention", checkOK, "", "Events stay %s, within a cap of %s; %s are used.", days, size(limit), size(used))
	default:
		c.add("retention", checkOK, "", "Events stay %s, without a cap on the disk (--retention-disk-cap).", days)
	}
	return nil
}

// size writes bytes in the unit people read.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// streamCheck looks at the embedded broker's log.
func (s site) streamCheck(c *checks) {
	const id = "stream"
	if len(s.cfg.Kafka.Brokers) > 0 {
		c.add(id, checkOK, "", "Kafka at %s is used.", strings.Join(s.cfg.Kafka.Brokers, ", "))
		return
	}
	held, known := s.gauge("retrial_embedded_log_bytes")
	if !known {
		return
	}
	limit, _ := s.gauge("retrial_embedded_log_limit_bytes")
	failed, _ := s.gauge("retrial_embedded_sync_failed")
	text := fmt.Sprintf("The embedded broker holds %s of at most %s.", size(int64(held)), size(int64(limit)))
	switch {
	case failed > 0:
		c.add(id, checkFail, "Look at the disk, then restart the server.", "The embedded broker's log could not be synced to disk: nothing is acknowledged any more.")
	case held > nearFull*limit:
		c.add(id, checkWarn, "The store does not keep up: at the cap apiservers are pushed back. See lag.", "%s", text)
	default:
		c.add(id, checkOK, "", "%s", text)
	}
}
