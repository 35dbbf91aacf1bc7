package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

const (
	// quietAfter is how long an apiserver may say nothing: its components renew leases every few seconds, a batch waits 30 s by default.
	quietAfter = 5 * time.Minute
	// wantedShare is the share of judged requests that must not wait for something an
	// operator can supply.
	wantedShare = 0.9
)

// Steps words how far the connection is.
func (f *connectionFacts) Steps() []Step {
	list := []Step{f.registeredStep(), f.connectedStep(), f.firstEventStep(), f.stateStep(), f.coverageStep()}
	if f.Site.Contacts != nil { // otherwise other processes receive, and know
		list = append(list, f.followedStep())
	}
	return append(list, f.countedStep())
}

// stepOf returns a function that tells how a step is, as Checks.Add tells it of a check.
func stepOf(id, title string) func(state, todo, format string, args ...any) Step {
	return func(state, todo, format string, args ...any) Step {
		return Step{ID: id, Title: title, State: state, Text: fmt.Sprintf(format, args...), Todo: todo}
	}
}

func (f *connectionFacts) registeredStep() Step {
	is := stepOf(StepRegistered, "The cluster is registered")
	last := f.validUntil()
	switch {
	case errors.Is(f.Registered, identity.ErrUnknown):
		return is(StateWaiting, f.connectCommand(), "It is not registered, so its posts are refused.")
	case f.Registered != nil:
		return is(StateFailed, "", "The registry cannot be read: %v", f.Registered)
	case f.Entry.Name == "":
		return is(StateDone, "", "The token file names it.")
	case f.Entry.Revoked != nil:
		return is(StateFailed, f.rotateCommand(), "It was revoked on %s: everything it posts is refused.",
			f.Entry.Revoked.Format(time.DateOnly))
	case !last.Before(f.Now):
		return is(StateDone, "", "Its certificate is valid until %s.", last.Format(time.DateOnly))
	case len(f.Entry.Tokens) > 0:
		return is(StateDone, "", "It may post with a token.")
	case last.IsZero():
		return is(StateFailed, f.rotateCommand(), "It has no valid certificate any more.")
	}
	return is(StateFailed, f.rotateCommand(), "Its certificate expired on %s.", last.Format(time.DateOnly))
}

// validUntil returns when the last of the cluster's certificates expires, zero if it has none.
func (f *connectionFacts) validUntil() (last time.Time) {
	for _, c := range f.Entry.Certificates {
		if c.Revoked == nil && c.Expires.After(last) {
			last = c.Expires
		}
	}
	return last
}

func (f *connectionFacts) rotateCommand() string {
	return "retrial cluster rotate " + phrase.ShellWord(f.Cluster) + " --output webhook.kubeconfig" + f.Site.DataDir()
}

func (f *connectionFacts) connectedStep() Step {
	is := stepOf(StepConnected, "The apiserver reaches the receiver")
	refused := f.newestRefusal()
	switch {
	case !f.Site.Serving:
		return is(StateFailed, f.Site.ServeCommand(), "No server is running on this data directory, so nothing can be posted.")
	case f.Accepted != nil && (refused == nil || refused.Last.Before(f.Accepted.Last)) && f.Now.Sub(f.Accepted.Last) <= quietAfter:
		return is(StateDone, "", "%s", f.posted(f.Accepted))
	case refused != nil && (f.Accepted == nil || !refused.Last.Before(f.Accepted.Last)):
		text, todo := f.refusalWords(refused)
		return is(StateFailed, todo, "%s", text)
	case len(f.Site.Config.Kafka.Brokers) > 0 && f.Stored.Events > 0 && f.Now.Sub(f.Stored.Last) <= quietAfter:
		return is(StateDone, "", "It posts through another process: new events are stored.")
	case f.Accepted != nil:
		return is(StateFailed, f.notReached(), "Nothing has arrived since %s (%s). An apiserver is never quiet for that long.",
			f.Accepted.Last.UTC().Format(time.RFC3339), phrase.Ago(f.Now, f.Accepted.Last))
	}
	since, log := "yet", ""
	if f.Receiver.Since != nil {
		since = "since the server started, " + phrase.Ago(f.Now, *f.Receiver.Since)
	}
	if f.Followed != nil {
		log = " Its events come only from its audit log."
	}
	return is(StateWaiting, f.notReached(), "No apiserver has posted for it %s.%s", since, log)
}

// posted says what was posted, from where, and when last.
func (f *connectionFacts) posted(a *webhook.Accepted) string {
	return fmt.Sprintf("%s from %s, the last %s.", phrase.Count(a.Posts, "post"), a.Remote, phrase.Ago(f.Now, a.Last))
}

// newestRefusal returns this cluster's latest refusal. One without a name counts while nothing has come: it is the likeliest reason.
func (f *connectionFacts) newestRefusal() *webhook.Refusal {
	for i := range f.Refusals {
		if r := &f.Refusals[i]; r.Cluster == f.Cluster || f.Accepted == nil {
			return r
		}
	}
	return nil
}

// notReached returns what to check if nothing arrives.
func (f *connectionFacts) notReached() string {
	var b strings.Builder
	if f.Receiver.Listen != "" {
		fmt.Fprintf(&b, "The receiver listens on %s", f.Receiver.Listen)
		if f.Site.listensLocally() {
			fmt.Fprintf(&b, ", which only this machine reaches; for an apiserver elsewhere start it with\n  %s\n", f.Site.ServeCommand())
		} else {
			b.WriteString(".\n")
		}
	}
	if len(f.Receiver.Names) > 0 {
		fmt.Fprintf(&b, "Its certificate names %s: the kubeconfig has to use one of them.\n", strings.Join(f.Receiver.Names, ", "))
	}
	b.WriteString("Check that kube-apiserver was restarted with the flags and reaches that address, and what its log says about " +
		"the audit webhook;\n" +
		"apiserver_audit_error_total{plugin=\"webhook\"} of its metrics grows when it cannot post. It gathers events before it posts: up " +
		"to 5 s with the flags of connect, 30 s by default.")
	return b.String()
}

// refusalWords returns why a client was turned away, and what to do.
func (f *connectionFacts) refusalWords(r *webhook.Refusal) (text, todo string) {
	who := "An apiserver of it, at " + r.Remote + ","
	if r.Cluster == "" {
		who = "A client at " + r.Remote
	}
	refused := func(why string) string {
		return fmt.Sprintf("%s was turned away %s: %s", who, phrase.Ago(f.Now, r.Last), why)
	}
	file := "Give kube-apiserver the webhook.kubeconfig that this writes, unchanged:\n  " + f.connectCommand()
	switch r.Reason {
	case webhook.ReasonUnknownAuthority:
		return refused("it presents a certificate from another authority."),
			"Its kubeconfig belongs to another installation, or to a deleted data directory. " + file
	case webhook.ReasonExpired:
		return refused("its certificate is expired, or not valid yet."),
			"Compare the two machines' clocks. If the certificate has expired:\n  " + f.rotateCommand()
	case webhook.ReasonNotTrusted:
		return fmt.Sprintf("%s does not accept the receiver's certificate, %s.", strings.TrimSuffix(who, ","), phrase.Ago(f.Now, r.Last)),
			fmt.Sprintf("The certificate names %s. Reach it by one of them, or name the address with serve --webhook-advertise HOST.\nIf "+
				"the name is right, the kubeconfig trusts another authority. %s",
				strings.Join(f.Receiver.Names, ", "), file)
	case webhook.ReasonNotTLS:
		return refused("it speaks plain HTTP."), "The server in its kubeconfig must begin with https://. " + file
	case webhook.ReasonHandshake:
		return refused("the TLS handshake failed: " + r.Detail), ""
	case webhook.ReasonCredential:
		return refused(r.Detail), file + "\nIf its certificate was replaced or revoked:\n  " + f.rotateCommand()
	case webhook.ReasonCluster, webhook.ReasonPath:
		return refused(r.Detail), file
	}
	return refused(r.Detail), ""
}

func (f *connectionFacts) firstEventStep() Step {
	is := stepOf(StepFirstEvent, "Events arrive")
	switch {
	case f.Stored.Events > 0:
		newest := phrase.Ago(f.Now, f.Stored.Last)
		if f.Now.Sub(f.Stored.Last) < 2*time.Minute { // the store knows whole minutes
			newest = "of this minute"
		}
		return is(StateDone, "", "%s stored, the newest %s.", phrase.Count(f.Stored.Events, "event"), newest)
	case f.Accepted != nil && f.Accepted.Events > 0:
		return is(StateWaiting, "Wait; retrial doctor reports if the replay is stuck.", "%s accepted, not stored yet.",
			phrase.Count(f.Accepted.Events, "event"))
	case f.Accepted != nil:
		return is(StateWaiting, "Make a request, such as kubectl get namespaces. The audit policy must log at least at level Metadata.",
			"It posts, but has sent no event yet.")
	}
	return is(StateWaiting, "", "There is none yet.")
}

func (f *connectionFacts) stateStep() Step {
	is := stepOf(StepState, "The state before the log is known")
	imported := query.StateListing + "\n" + query.StateImport(f.Cluster) + f.Site.DataDir()
	known := strings.Replace(phrase.Count(int64(f.State.Objects), "role and binding"), "role and bindings", "roles and bindings", 1)
	kinds := strings.Join(f.State.UnknownKinds, ", ")
	switch {
	case kinds == "" && f.State.UnknownObjects > 0:
		return is(StateDone, "Import a fresh listing, and log writes to RBAC objects at level RequestResponse:\n"+imported,
			"%s are known; of %d the content is not: they were written without a body in the log.", known, f.State.UnknownObjects)
	case kinds == "":
		return is(StateDone, "", "%s are known.", known)
	case f.Watched:
		return is(StateWaiting, "retrial doctor shows what the watch reports; its account needs what deploy/watch-rbac.yaml grants.",
			"The watch has not listed all of it yet: %s.", kinds)
	}
	return is(StateWaiting, imported, "It is not known which %s there are.", kinds)
}

func (f *connectionFacts) coverageStep() Step {
	is := stepOf(StepCoverage, "Requests get a verdict")
	var judged, waiting int64 // waiting: indeterminate because of something an operator can supply
	by := map[string]int64{}  // judged ones, by outcome
	for _, s := range f.Shares {
		if s.Outcome == "not_judged" {
			continue
		}
		judged += s.Requests
		by[s.Outcome] += s.Requests
		if s.Outcome == "indeterminate" && (s.Class == verdict.ClassNoState || s.Class == verdict.ClassUnknown) {
			waiting += s.Requests
		}
	}
	if judged == 0 {
		return is(StateWaiting, "", "None has been judged yet.")
	}
	state, todo := StateWaiting, ""
	if float64(waiting) <= (1-wantedShare)*float64(judged) {
		if state = StateDone; by["drift"]*5 > judged {
			todo = "That much drift means a state of another cluster or time, or another authorizer besides RBAC: look at the drift, " +
				"newest first, on the page."
		}
	} else if a := query.Advise(f.Cluster, f.Shares, nil); a != nil {
		if todo = a.Text; a.Command != "" {
			todo += "\n" + a.Command
		}
	}
	share := func(outcome string) float64 { return 100 * float64(by[outcome]) / float64(judged) }
	return is(state, todo, "Of %s in the newest hour %.1f %% match, %.1f %% drift, %.1f %% are indeterminate.",
		phrase.Count(judged, "request"), share("match"), share("drift"), share("indeterminate"))
}

func (f *connectionFacts) connectCommand() string {
	return "retrial connect " + phrase.ShellWord(f.Cluster) + f.Site.DataDir()
}

// followedStep reports whether the audit log, which has what the webhook loses, is read as well.
func (f *connectionFacts) followedStep() Step {
	is := stepOf(StepFollowed, "The audit log is followed")
	unit := "systemctl status " + strings.TrimSuffix(FileFollowUnit, ".service") + ", or wherever retrial import --follow runs"
	switch a := f.Followed; {
	case a != nil && f.Now.Sub(a.Last) <= quietAfter && len(f.Unfollowed) > 0:
		return is(StateFailed, "On the machine of each: "+unit+", with the webhook file of that apiserver.", "One log is followed, and in "+
			"the last %s nothing was posted from that of %s: a batch that its webhook drops would be lost for good.",
			quietAfter, strings.Join(f.Unfollowed, ", "))
	case a != nil && f.Now.Sub(a.Last) <= quietAfter:
		return is(StateDone, "", "%s", f.posted(a))
	case a != nil:
		return is(StateFailed, "On the machine of kube-apiserver: "+unit+".", "Its follower has posted nothing since %s (%s).",
			a.Last.UTC().Format(time.RFC3339), phrase.Ago(f.Now, a.Last))
	}
	since := ""
	if f.Receiver.Since != nil {
		since = " since the server started, " + phrase.Ago(f.Now, *f.Receiver.Since)
	}
	return is(StateWaiting, "On the machine of kube-apiserver, with --audit-log-path set and by the unit "+FileFollowUnit+
		" that retrial connect writes, or by hand:\nretrial import --follow --webhook-config webhook.kubeconfig AUDIT-LOG",
		"Nothing was posted from it%s: a batch that the webhook drops would be lost for good.", since)
}

// countedStep reports whether it is known how many events were sent.
func (f *connectionFacts) countedStep() Step {
	is := stepOf(StepCounted, "What the apiservers send is counted")
	names := f.Site.Scraped(f.Cluster)
	commands := func(apiserver string) string {
		return "In the folder that retrial connect wrote, with ADDRESS that of the apiserver itself:\n" +
			strings.Join(f.Site.scrapeCommands(f.Cluster, apiserver), "\n")
	}
	if len(names) == 0 {
		return is(StateWaiting, commands(""),
			"The apiservers' counters are not read, so it is not known how many events they sent and whether one is missing.")
	}
	at := f.Site.watched(MetricCountersRead, f.Cluster, "apiserver")
	stale := max(quietAfter, 3*time.Duration(f.Site.Config.Completeness.Every))
	var never, old []string
	for _, name := range names {
		switch last := time.Unix(int64(at[name]), 0); {
		case at[name] == 0:
			never = append(never, name)
		case f.Now.Sub(last) > stale:
			old = append(old, name)
		}
	}
	switch {
	case len(f.Site.watched(MetricCountersFailed, f.Cluster, "apiserver")) == 0:
		return is(StateWaiting, "", "The server has not read them yet.")
	case len(never) > 0:
		return is(StateWaiting, "See the server's log: the address, the credential, or the right to get /metrics. Again:\n"+
			commands(never[0]), "Never read: the counters of %s.", inWords(never))
	case len(old) > 0:
		return is(StateFailed, "See the server's log: whether the apiserver is gone, or its token expired. To register it again:\n"+
			commands(old[0]), "The counters of %s were not read in the last %s.", inWords(old), stale)
	}
	return is(StateDone, "", "The counters of %s are read.", phrase.Count(int64(len(names)), "apiserver"))
}

// inWords names apiservers, of which one may have no name.
func inWords(names []string) string {
	words := slices.Clone(names)
	for i, name := range words {
		if name == "" {
			words[i] = "the apiserver"
		}
	}
	return strings.Join(words, ", ")
}
