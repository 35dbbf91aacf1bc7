package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/phrase"
)

// followedStep reports whether the audit log, which has what the webhook loses, is read as well.
func (f *ConnectionFacts) followedStep() Step {
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
func (f *ConnectionFacts) countedStep() Step {
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
