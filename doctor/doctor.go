// Package doctor reports the progress of a cluster's connection and the health of an installation:
// the files an apiserver needs and the steps to put them in place, and checks of everything between
// the apiserver and the answers, each with what to do.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
)

// Answer reports the health of the installation.
type Answer struct {
	Version string  `json:"version"`
	Unknown bool    `json:"unknown,omitempty"` // nothing is known of the cluster that was named
	Checks  []Check `json:"checks"`
}

// Request asks the health of the installation, and of every cluster, or the one that is named. Several checks may
// have one id. Of the installation: server, store, key-file, certificates, listener, lag, policy-lag,
// dead-letters, folded, disk, retention, stream; of a cluster: the steps of connection, certificate, watch,
// apiserver-config (whether it is known, its digest, what is missing), policy-known (roles and bindings
// whose content is not known: fail when no refusal is certain), version (of its apiservers, by their own
// requests), cache-lag (where it was learnt), clock, audit-policy, completeness (in place of the step
// counted), aggregated.
type Request struct {
	query.Asks[Answer] `question:"doctor"`
	Cluster            string `json:"cluster" help:"only this cluster, beside the installation"`
}

// Doctor checks the installation and its clusters.
func (a *Service) Doctor(ctx context.Context, q Request) (out Answer, err error) {
	stored, err := a.Store.Clusters(ctx)
	if err != nil {
		return out, err
	}
	out.Version = a.Version
	names, registered := a.Site.clusters(stored)
	if q.Cluster != "" {
		out.Unknown = !slices.Contains(names, q.Cluster)
		names = []string{q.Cluster}
	}
	c := a.Site.Installation()
	a.Site.listenerCheck(&c, registered)
	a.lagChecks(&c)
	a.Site.findingsCheck(&c)
	for _, check := range []func(context.Context, *Checks) error{a.letterCheck, a.foldedCheck, a.diskChecks} {
		if err := check(ctx, &c); err != nil {
			return out, err
		}
	}
	a.Site.streamCheck(&c)
	a.Site.spoolCheck(&c)
	for _, name := range names {
		of, err := a.clusterChecks(ctx, name, stored)
		if err != nil {
			return out, err
		}
		c = append(c, of...)
	}
	out.Checks = c
	return out, nil
}

// clusters returns those that are registered or stored, and how many are registered.
func (s Site) clusters(stored []queries.Cluster) (names []string, registered int) {
	if s.Authority != nil {
		if list, err := s.Authority.Registry().List(); err == nil { // otherwise each cluster's own check reports it
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

// Installation checks what needs neither store nor server.
func (s Site) Installation() Checks {
	var c Checks
	if s.Serving {
		c.Add("server", CheckOK, "", "It is running, version %s.", s.Version)
	} else {
		c.Add("server", CheckFail, "retrial serve"+s.DataDir(), "No server is running on %s.", config.Absolute(s.Config.DataDir))
	}
	s.storeCheck(&c)
	s.keyCheck(&c)
	s.certificateChecks(&c)
	return c
}

func (s Site) storeCheck(c *Checks) {
	const id = "store"
	if s.Config.ClickHouse.DSN != "" {
		c.Add(id, CheckOK, "", "A ClickHouse server is used.")
		return
	}
	if err := chdb.Suitable(); err != nil {
		c.Add(id, CheckFail, "Use a ClickHouse server: --clickhouse-dsn.", "The embedded store cannot run here: %v.", err)
		return
	}
	library, err := chdb.Locate(s.Config.ClickHouse.Library)
	if err != nil {
		c.Add(id, CheckFail, "scripts/fetch-libchdb.sh", "%v.", err)
		return
	}
	c.Add(id, CheckOK, "", "The embedded store is used; the processor has AVX2, the library is %s.", library)
}

func (s Site) keyCheck(c *Checks) {
	const id = "key-file"
	if err := identity.CheckKeyPath(s.Config.KeyFile, s.Config.DataDir); err != nil {
		c.Add(id, CheckFail, "Move it out of the data directory and set --key-file: a backup of the data must not contain it.",
			"%v.", err)
		return
	}
	info, err := os.Stat(s.Config.KeyFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		state := CheckWarn
		if _, err := os.Stat(s.Config.KeyIDFile()); err == nil {
			state = CheckFail
		}
		c.Add(id, state, "Restore it, or set --key-file; the first start creates one.", "There is no redaction key at %s.",
			s.Config.KeyFile)
	case err != nil:
		c.Add(id, CheckFail, "", "The redaction key cannot be read: %v.", err)
	case info.Mode().Perm()&0o007 != 0: // a group may read it: that is how a mounted Secret arrives
		c.Add(id, CheckFail, "chmod 600 "+phrase.ShellWord(s.Config.KeyFile), "Everyone on this machine may use the redaction key %s "+
			"(mode %04o).", s.Config.KeyFile, info.Mode().Perm())
	default:
		c.Add(id, CheckOK, "", "The redaction key %s is outside of the data directory: back it up separately.", s.Config.KeyFile)
	}
}

func (s Site) certificateChecks(c *Checks) {
	const id = "certificates"
	if s.Authority == nil {
		c.Add(id, CheckOK, "", "No certificate authority has been created yet.")
		return
	}
	s.rotationCheck(c)
	authority, server, err := s.Authority.Certificates()
	if err != nil {
		c.Add(id, CheckFail, "Restore the folder pki of the data directory.", "%v.", err)
		return
	}
	state, todo := expiry(s.time(), authority.NotAfter, warnAuthority)
	if todo {
		c.Add(id, state, "retrial cluster rotate --authority"+s.DataDir()+"    # docs/rotate.md",
			"The authority's certificate is valid until %s.", authority.NotAfter.Format(time.DateOnly))
		return
	}
	if state, todo = expiry(s.time(), server.NotAfter, warnLeaf); todo {
		c.Add(id, state, "The running server renews it if ca.key exists: see its log.",
			"The receiver's certificate is valid until %s.", server.NotAfter.Format(time.DateOnly))
		return
	}
	c.Add(id, CheckOK, "", "The authority's is valid until %s, the receiver's until %s (it renews itself).",
		authority.NotAfter.Format(time.DateOnly), server.NotAfter.Format(time.DateOnly))
}

func (s Site) listenerCheck(c *Checks, registered int) {
	const id = "listener"
	switch {
	case s.Hook == nil:
		return
	case s.Hook() == "":
		c.Add(id, CheckFail, "", "The webhook's listener is not open.")
	case s.listensLocally() && registered > 0:
		c.Add(id, CheckWarn, "For apiservers elsewhere: "+s.ServeCommand(), "The webhook listens on %s, which only this machine reaches.",
			s.Hook())
	default:
		c.Add(id, CheckOK, "", "The webhook listens on %s.", s.Hook())
	}
}

// Lags that are more than the work of a moment: a burst of an apiserver is some thousands.
const (
	WideLag       = 100_000
	WidePolicyLag = 10_000
)

func (a *Service) lagChecks(c *Checks) {
	if !a.Site.Serving {
		return
	}
	lag := a.Replay.Lag()
	state, todo := CheckOK, ""
	if lag.Events > WideLag {
		state, todo = CheckWarn, "See the server's log, and the retrial_runner metrics for what takes the time."
	}
	c.Add("lag", state, todo, "%s accepted and not stored yet.", phrase.Count(lag.Events, "event"))
	if state, todo = CheckOK, ""; lag.Policy > WidePolicyLag {
		state, todo = CheckWarn, "Events wait for earlier policy: see the server's log."
	}
	c.Add("policy-lag", state, todo, "%s not applied yet.", phrase.Count(lag.Policy, "policy change"))
}

// lateFindings is how far findings may be behind; the alert rule RetrialDetectionsBehind agrees.
const lateFindings = 5 * time.Minute

func (s Site) findingsCheck(c *Checks) {
	const id = "findings"
	if !s.Serving {
		return
	}
	if !s.Config.Detect.Enabled {
		c.Add(id, CheckWarn, "Remove --detect-enabled=false.", "No findings are computed: detections are switched off.")
		return
	}
	seconds, known := s.gauge(MetricDetectLag)
	if !known {
		return
	}
	led, _ := s.gauge(MetricDetectPartsLed)
	parts, _ := s.gauge(MetricDetectParts)
	behind := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case behind > lateFindings:
		c.Add(id, CheckFail, "See the server's log, its CPU load, and the retrial_detect metrics.",
			"Findings are %s behind: what was stored since is not processed yet.", behind)
	case led == 0 && len(s.Config.Kafka.Brokers) > 0:
		c.Add(id, CheckOK, "", "Another process computes them.")
	case led < parts && led > 0:
		c.Add(id, CheckOK, "", "They are %s behind what is stored, in the %.0f of %.0f parts of the clusters that this process has.",
			behind, led, parts)
	default:
		c.Add(id, CheckOK, "", "They are %s behind what is stored.", behind)
	}
}

// lettersRange is how far back dead letters are reported.
const lettersRange = 24 * time.Hour

func (a *Service) letterCheck(ctx context.Context, c *Checks) error {
	letters, err := a.Store.DeadLetters(ctx, a.Site.time().Add(-lettersRange))
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
		c.Add("dead-letters", CheckOK, "", "None in the last day.")
		return nil
	}
	c.Add("dead-letters", CheckWarn, "The table dead_letters has them, with reason, digest and beginning. For bodies that were too large "+
		"see --webhook-max-body-bytes.",
		"%s in the last day: %s.", phrase.Count(total, "dead letter"), strings.Join(what, ", "))
	return nil
}

// foldedCheck tells of requests of today and yesterday that sums do not tell apart.
func (a *Service) foldedCheck(ctx context.Context, c *Checks) error {
	folded, err := a.Store.Folded(ctx, a.Site.time().Add(-24*time.Hour))
	if err != nil {
		return err
	}
	var what []string
	for _, d := range folded {
		of := "of subjects beyond those of a day"
		if d.Rule != "" {
			of = "with keys of " + d.Rule + " beyond those of a day"
		}
		what = append(what, fmt.Sprintf("%s of %s %s", phrase.Count(d.Requests, "request"), d.Cluster, of))
	}
	if len(what) == 0 {
		c.Add("folded", CheckOK, "", "Rollups tell the subjects and first-seen keys of the last day apart.")
		return nil
	}
	c.Add("folded", CheckWarn, "Somebody asks for very many resources, or acts as very many users: "+
		"look at top-verbs and at who may impersonate (retrial who-can impersonate users).",
		"Rollups do not tell everything of the last day apart: %s. Events do.", strings.Join(what, ", "))
	return nil
}

const (
	lowDisk  = 2 << 30 // bytes free that are warned of
	noDisk   = 200 << 20
	NearFull = 0.8 // of a cap
)

func (a *Service) diskChecks(ctx context.Context, c *Checks) error {
	used, err := a.Store.DiskBytes(ctx)
	if err != nil {
		return err
	}
	retention := a.Site.Config.Retention
	if free, _, ok := DiskBytes(a.Site.Config.DataDir); ok && a.Site.Config.ClickHouse.DSN == "" {
		state, todo := CheckOK, ""
		if free < lowDisk {
			state, todo = CheckWarn, "Make room, or bound the store: --retention-events, --retention-disk-cap."
		}
		if free < noDisk {
			state = CheckFail
		}
		c.Add("disk", state, todo, "The store uses %s, %s are free.", Size(used), Size(free))
	}
	days := "forever"
	if retention.Events > 0 {
		days = "for " + retention.Events.String()
	}
	switch limit := DiskCap(ctx, a.Site.Config, a.Store); {
	case limit > 0 && float64(used) > NearFull*float64(limit):
		c.Add("retention", CheckWarn, "Raise --retention-disk-cap, or keep events for a shorter time.",
			"The store uses %s of its cap of %s: the oldest day of events is deleted first.", Size(used), Size(limit))
	case limit > 0:
		c.Add("retention", CheckOK, "", "Events are kept %s, within a cap of %s; %s are used.", days, Size(limit), Size(used))
	default:
		c.Add("retention", CheckOK, "", "Events are kept %s, without a cap on the disk (--retention-disk-cap).", days)
	}
	return nil
}

// Size writes bytes in the unit people read.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n)/1024, 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func (s Site) streamCheck(c *Checks) {
	const id = "stream"
	if len(s.Config.Kafka.Brokers) > 0 {
		c.Add(id, CheckOK, "", "Kafka at %s is used.", strings.Join(s.Config.Kafka.Brokers, ", "))
		return
	}
	held, known := s.gauge("retrial_embedded_log_bytes")
	if !known {
		return
	}
	limit, _ := s.gauge("retrial_embedded_log_limit_bytes")
	failed, _ := s.gauge("retrial_embedded_sync_failed")
	if failed > 0 {
		c.Add(id, CheckFail, "Check the disk, then restart the server.", "The embedded broker's log could not be synced to disk: "+
			"nothing is acknowledged any more.")
		return
	}
	state, todo := CheckOK, ""
	if held > NearFull*limit {
		state, todo = CheckWarn, "The store does not keep up: at the cap apiservers are slowed down. See lag."
	}
	c.Add(id, state, todo, "The embedded broker holds %s of at most %s.", Size(int64(held)), Size(int64(limit)))
}

func (s Site) rotationCheck(c *Checks) {
	r, err := s.Authority.Rotation()
	if err != nil {
		c.Add("rotation", CheckFail, "Restore the folder pki of the data directory.", "%v.", err)
		return
	}
	if r == nil {
		return
	}
	clusters, err := s.Authority.Registry().List()
	if err != nil {
		return // the certificates' own check reports it
	}
	var late []string
	for _, cluster := range clusters {
		if n := len(cluster.Certificates); cluster.Revoked == nil && (n == 0 || cluster.Certificates[n-1].Issued.Before(r.Begun)) {
			late = append(late, cluster.Name)
		}
	}
	since := r.Begun.Format(time.DateOnly)
	if len(late) > 0 {
		c.Add("rotation", CheckWarn, "retrial cluster rotate NAME"+s.DataDir(), "The authority is being changed since %s; without a "+
			"certificate of the new one: %s.", since, strings.Join(late, ", "))
		return
	}
	c.Add("rotation", CheckWarn, "retrial cluster rotate --authority --finish"+s.DataDir(), "The authority is being changed since %s, "+
		"and every cluster has a certificate of the new one.", since)
}

func (s Site) spoolCheck(c *Checks) {
	const id = "spool"
	if !s.Config.Spool.On {
		c.Add(id, CheckWarn, "--spool on", "The spool is off: while Kafka cannot be reached nothing is acknowledged, and apiservers drop "+
			"events after a minute or two.")
		return
	}
	bytes, known := s.gauge("retrial_spool_bytes")
	if !known {
		return // events are taken in elsewhere
	}
	limit, _ := s.gauge("retrial_spool_max_bytes")
	active, _ := s.gauge("retrial_spool_active")
	records, _ := s.gauge("retrial_spool_records")
	kept, _ := s.gauge("retrial_spool_kept_segments")
	text := fmt.Sprintf("The spool holds %s in %s of at most %s.", phrase.Count(int64(records), "record"), Size(int64(bytes)),
		Size(int64(limit)))
	const full = "Restore Kafka; raise --spool-max-bytes if that takes longer. At the bound apiservers are slowed down."
	switch {
	case bytes > NearFull*limit:
		c.Add(id, CheckFail, full, "%s", text)
	case active > 0:
		c.Add(id, CheckWarn, full, "Kafka does not take records, or has not taken all of them yet. %s", text)
	case kept > 0:
		c.Add(id, CheckWarn, "See what the log says about them; move the *.kept files away.",
			"The spool has set %s in %s aside: something in them could not be sent.", phrase.Count(int64(kept), "segment"),
			config.Absolute(s.Config.SpoolDir()))
	default:
		c.Add(id, CheckOK, "", "%s", text)
	}
}
