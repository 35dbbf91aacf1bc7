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
	// quietAfter is how long a connected apiserver may say nothing: it is never idle, since
	// its own components renew leases every few seconds, and waits 30 s for a batch by default.
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

func (f *connectionFacts) registeredStep() Step {
	s := Step{ID: StepRegistered, Title: "The cluster is registered", State: StateFailed}
	var last time.Time
	for _, c := range f.Entry.Certificates {
		if c.Revoked == nil && c.Expires.After(last) {
			last = c.Expires
		}
	}
	switch {
	case errors.Is(f.Registered, identity.ErrUnknown):
		s.State = StateWaiting
		s.Text = "It is not registered, so its posts are refused."
		s.Todo = f.connectCommand()
	case f.Registered != nil:
		s.Text = "The registry cannot be read: " + f.Registered.Error()
	case f.Entry.Name == "":
		s.State, s.Text = StateDone, "The token file names it."
	case f.Entry.Revoked != nil:
		s.Text = "It was revoked on " + f.Entry.Revoked.Format(time.DateOnly) + ": everything it posts is refused."
		s.Todo = f.rotateCommand()
	case last.Before(f.Now) && len(f.Entry.Tokens) == 0:
		s.Text = "It has no valid certificate any more."
		if !last.IsZero() {
			s.Text = "Its certificate expired on " + last.Format(time.DateOnly) + "."
		}
		s.Todo = f.rotateCommand()
	case last.Before(f.Now):
		s.State, s.Text = StateDone, "It may post with a token."
	default:
		s.State, s.Text = StateDone, "Its certificate is valid until "+last.Format(time.DateOnly)+"."
	}
	return s
}

func (f *connectionFacts) rotateCommand() string {
	return "retrial cluster rotate " + phrase.ShellWord(f.Cluster) + " --output webhook.kubeconfig" + f.Site.DataDir()
}

func (f *connectionFacts) connectedStep() Step {
	s := Step{ID: StepConnected, Title: "The apiserver reaches the receiver", State: StateWaiting}
	refused := f.newestRefusal()
	switch {
	case !f.Site.Serving:
		s.State, s.Text = StateFailed, "No server is running on this data directory, so nothing can be posted."
		s.Todo = f.Site.ServeCommand()
	case f.Accepted != nil && (refused == nil || refused.Last.Before(f.Accepted.Last)) && f.Now.Sub(f.Accepted.Last) <= quietAfter:
		s.State = StateDone
		s.Text = fmt.Sprintf("%s from %s, the last %s.", phrase.Count(f.Accepted.Posts, "post"), f.Accepted.Remote,
			phrase.Ago(f.Now, f.Accepted.Last))
	case refused != nil && (f.Accepted == nil || !refused.Last.Before(f.Accepted.Last)):
		s.State = StateFailed
		s.Text, s.Todo = f.refusalWords(refused)
	case len(f.Site.Config.Kafka.Brokers) > 0 && f.Stored.Events > 0 && f.Now.Sub(f.Stored.Last) <= quietAfter:
		s.State, s.Text = StateDone, "It posts through another process: new events are stored."
	case f.Accepted != nil:
		s.State = StateFailed
		s.Text = fmt.Sprintf("Nothing has arrived since %s (%s). An apiserver is never quiet for that long.",
			f.Accepted.Last.UTC().Format(time.RFC3339), phrase.Ago(f.Now, f.Accepted.Last))
		s.Todo = f.notReached()
	default:
		s.Text = "No apiserver has posted for it yet."
		if f.Receiver.Since != nil {
			s.Text = "No apiserver has posted for it since the server started, " + phrase.Ago(f.Now, *f.Receiver.Since) + "."
		}
		if f.Followed != nil {
			s.Text += " Its events come only from its audit log."
		}
		s.Todo = f.notReached()
	}
	return s
}

// newestRefusal returns the latest refusal that is this cluster's. A refusal without a name counts
// while nothing has been received from this cluster: it is the likeliest explanation.
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
	s := Step{ID: StepFirstEvent, Title: "Events arrive", State: StateWaiting}
	switch {
	case f.Stored.Events > 0:
		s.State = StateDone
		newest := phrase.Ago(f.Now, f.Stored.Last)
		if f.Now.Sub(f.Stored.Last) < 2*time.Minute { // the store knows whole minutes
			newest = "of this minute"
		}
		s.Text = fmt.Sprintf("%s stored, the newest %s.", phrase.Count(f.Stored.Events, "event"), newest)
	case f.Accepted != nil && f.Accepted.Events > 0:
		s.Text = fmt.Sprintf("%s accepted, not stored yet.", phrase.Count(f.Accepted.Events, "event"))
		s.Todo = "Wait; retrial doctor reports if the replay is stuck."
	case f.Accepted != nil:
		s.Text = "It posts, but has sent no event yet."
		s.Todo = "Make a request, such as kubectl get namespaces. The audit policy must log at least at level Metadata."
	default:
		s.Text = "There is none yet."
	}
	return s
}

func (f *connectionFacts) stateStep() Step {
	s := Step{ID: StepState, Title: "The state before the log is known", State: StateWaiting}
	imported := query.StateListing + "\n" + query.StateImport(f.Cluster) + f.Site.DataDir()
	switch {
	case len(f.State.UnknownKinds) == 0:
		s.State = StateDone
		s.Text = fmt.Sprintf("%s are known.", phrase.Count(int64(f.State.Objects), "role and binding"))
		if n := f.State.UnknownObjects; n > 0 {
			s.Text = fmt.Sprintf("%s are known; of %d the content is not: they were written without a body in the log.",
				phrase.Count(int64(f.State.Objects), "role and binding"), n)
			s.Todo = "Import a fresh listing, and log writes to RBAC objects at level RequestResponse:\n" + imported
		}
	case f.Watched:
		s.Text = "The watch has not listed all of it yet: " + strings.Join(f.State.UnknownKinds, ", ") + "."
		s.Todo = "retrial doctor shows what the watch reports; its account needs what deploy/watch-rbac.yaml grants."
	default:
		s.Text = "It is not known which " + strings.Join(f.State.UnknownKinds, ", ") + " there are."
		s.Todo = imported
	}
	s.Text = strings.Replace(s.Text, "role and bindings", "roles and bindings", 1)
	return s
}

// verdictCounts sums the newest hour's verdicts.
type verdictCounts struct {
	requests, judged, match, drift, indeterminate int64
	// waiting counts requests that are indeterminate because of something an operator can supply.
	waiting int64
}

func (f *connectionFacts) verdicts() verdictCounts {
	var v verdictCounts
	for _, s := range f.Shares {
		v.requests += s.Requests
		switch s.Outcome {
		case "not_judged":
			continue
		case "match":
			v.match += s.Requests
		case "drift":
			v.drift += s.Requests
		case "indeterminate":
			v.indeterminate += s.Requests
			if s.Class == verdict.ClassNoState || s.Class == verdict.ClassUnknown {
				v.waiting += s.Requests
			}
		}
		v.judged += s.Requests
	}
	return v
}

func (f *connectionFacts) coverageStep() Step {
	s := Step{ID: StepCoverage, Title: "Requests get a verdict", State: StateWaiting}
	v := f.verdicts()
	if v.judged == 0 {
		s.Text = "None has been judged yet."
		return s
	}
	share := func(n int64) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(v.judged)) }
	s.Text = fmt.Sprintf("Of %s in the newest hour %s match, %s drift, %s are indeterminate.", phrase.Count(v.judged, "request"),
		share(v.match), share(v.drift), share(v.indeterminate))
	if float64(v.waiting) <= (1-wantedShare)*float64(v.judged) {
		s.State = StateDone
		if v.drift*5 > v.judged {
			s.Todo = "That much drift means a state of another cluster or time, or another authorizer besides RBAC: look at " +
				"the drift, newest " +
				"first, on the page."
		}
		return s
	}
	if a := query.Advise(f.Cluster, f.Shares, nil); a != nil {
		s.Todo = a.Text
		if a.Command != "" {
			s.Todo += "\n" + a.Command
		}
	}
	return s
}

// connectCommand returns the command that connects the cluster.
func (f *connectionFacts) connectCommand() string {
	return "retrial connect " + phrase.ShellWord(f.Cluster) + f.Site.DataDir()
}

// followedStep reports whether the audit log, which has what the webhook loses, is read as well.
func (f *connectionFacts) followedStep() Step {
	s := Step{ID: StepFollowed, Title: "The audit log is followed", State: StateWaiting}
	switch {
	case f.Followed != nil && f.Now.Sub(f.Followed.Last) <= quietAfter && len(f.Unfollowed) > 0:
		s.State = StateFailed
		s.Text = fmt.Sprintf("One log is followed, and in the last %s nothing was posted from that of %s: a batch that its webhook drops "+
			"would be lost for good.", quietAfter, strings.Join(f.Unfollowed, ", "))
		s.Todo = "On the machine of each: systemctl status " + strings.TrimSuffix(FileFollowUnit, ".service") +
			", or wherever retrial import --follow runs, with the webhook file of that apiserver."
		return s
	case f.Followed != nil && f.Now.Sub(f.Followed.Last) <= quietAfter:
		s.State = StateDone
		s.Text = fmt.Sprintf("%s from %s, the last %s.", phrase.Count(f.Followed.Posts, "post"), f.Followed.Remote,
			phrase.Ago(f.Now, f.Followed.Last))
		return s
	case f.Followed != nil:
		s.State = StateFailed
		s.Text = fmt.Sprintf("Its follower has posted nothing since %s (%s).", f.Followed.Last.UTC().Format(time.RFC3339),
			phrase.Ago(f.Now, f.Followed.Last))
		s.Todo = "On the machine of kube-apiserver: systemctl status " + strings.TrimSuffix(FileFollowUnit, ".service") +
			", or wherever retrial import --follow runs."
		return s
	case f.Receiver.Since != nil:
		s.Text = "Nothing was posted from it since the server started, " + phrase.Ago(f.Now, *f.Receiver.Since) +
			": a batch that the webhook drops would be lost for good."
	default:
		s.Text = "Nothing was posted from it: a batch that the webhook drops would be lost for good."
	}
	s.Todo = "On the machine of kube-apiserver, with --audit-log-path set and by the unit " + FileFollowUnit +
		" that retrial connect writes, or by hand:\n" +
		"retrial import --follow --webhook-config webhook.kubeconfig AUDIT-LOG"
	return s
}

// countedStep reports whether it is known how many events were sent.
func (f *connectionFacts) countedStep() Step {
	s := Step{ID: StepCounted, Title: "What the apiservers send is counted", State: StateWaiting}
	names := f.Site.Scraped(f.Cluster)
	commands := func(apiserver string) string {
		return "In the folder that retrial connect wrote, with ADDRESS that of the apiserver itself:\n" +
			strings.Join(f.Site.scrapeCommands(f.Cluster, apiserver), "\n")
	}
	if len(names) == 0 {
		s.Text = "The apiservers' counters are not read, so it is not known how many events they sent and whether one is missing."
		s.Todo = commands("")
		return s
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
		s.Text = "The server has not read them yet."
	case len(never) > 0:
		s.Text = "Never read: the counters of " + inWords(never) + "."
		s.Todo = "See the server's log: the address, the credential, or the right to get /metrics. Again:\n" + commands(never[0])
	case len(old) > 0:
		s.State, s.Text = StateFailed, fmt.Sprintf("The counters of %s were not read in the last %s.", inWords(old), stale)
		s.Todo = "See the server's log: whether the apiserver is gone, or its token expired. To register it again:\n" + commands(old[0])
	default:
		s.State, s.Text = StateDone, "The counters of "+phrase.Count(int64(len(names)), "apiserver")+" are read."
	}
	return s
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
