package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/phrase"
)

// followedStep tells whether the audit log, which has what the webhook loses, is read as well.
func (f *connectionFacts) followedStep() stepJSON {
	s := stepJSON{ID: stepFollowed, Title: "The audit log is followed", State: stateWaiting}
	switch {
	case f.followed != nil && f.now.Sub(f.followed.Last) <= quietAfter && len(f.unfollowed) > 0:
		s.State = stateFailed
		s.Text = fmt.Sprintf("One log is followed, and in the last %s nobody has posted from that of %s: a batch that its webhook drops would be lost for good.", quietAfter, strings.Join(f.unfollowed, ", "))
		s.Todo = "On the machine of each: systemctl status " + strings.TrimSuffix(fileFollowUnit, ".service") + ", or wherever retrial import --follow runs, with the webhook file of that apiserver."
		return s
	case f.followed != nil && f.now.Sub(f.followed.Last) <= quietAfter:
		s.State = stateDone
		s.Text = fmt.Sprintf("%s from %s, the last %s.", phrase.Count(f.followed.Posts, "post"), f.followed.Remote, phrase.Ago(f.now, f.followed.Last))
		return s
	case f.followed != nil:
		s.State = stateFailed
		s.Text = fmt.Sprintf("Its follower has posted nothing since %s (%s).", f.followed.Last.UTC().Format(time.RFC3339), phrase.Ago(f.now, f.followed.Last))
		s.Todo = "On the machine of kube-apiserver: systemctl status " + strings.TrimSuffix(fileFollowUnit, ".service") + ", or wherever retrial import --follow runs."
		return s
	case f.receiver.Since != nil:
		s.Text = "Nobody has posted from it since the server started, " + phrase.Ago(f.now, *f.receiver.Since) + ": a batch that the webhook drops would be lost for good."
	default:
		s.Text = "Nobody has posted from it: a batch that the webhook drops would be lost for good."
	}
	s.Todo = "On the machine of kube-apiserver, with --audit-log-path set and by the unit " + fileFollowUnit + " that retrial connect writes, or by hand:\n" +
		"retrial import --follow --webhook-config webhook.kubeconfig AUDIT-LOG"
	return s
}

// countedStep tells whether it is known how many events were sent.
func (f *connectionFacts) countedStep() stepJSON {
	s := stepJSON{ID: stepCounted, Title: "What the apiservers send is counted", State: stateWaiting}
	names := f.site.scraped(f.cluster)
	commands := func(apiserver string) string {
		return "In the folder that retrial connect wrote, with ADDRESS that of the apiserver itself:\n" + strings.Join(f.site.scrapeCommands(f.cluster, apiserver), "\n")
	}
	if len(names) == 0 {
		s.Text = "Nobody reads the apiservers' counters, so that nobody knows how many events they sent and whether one is missing."
		s.Todo = commands("")
		return s
	}
	at := f.site.watched("retrial_completeness_read_timestamp_seconds", f.cluster, "apiserver")
	stale := max(quietAfter, 3*time.Duration(f.site.cfg.Completeness.Every))
	var never, old []string
	for _, name := range names {
		switch last := time.Unix(int64(at[name]), 0); {
		case at[name] == 0:
			never = append(never, name)
		case f.now.Sub(last) > stale:
			old = append(old, name)
		}
	}
	switch {
	case len(f.site.watched("retrial_completeness_read_failures_total", f.cluster, "apiserver")) == 0:
		s.Text = "The server has not begun to read them."
	case len(never) > 0:
		s.Text = "Never read: the counters of " + inWords(never) + "."
		s.Todo = "See the server's log: the address, the credential, or the right to get /metrics. Again:\n" + commands(never[0])
	case len(old) > 0:
		s.State, s.Text = stateFailed, fmt.Sprintf("The counters of %s were not read in the last %s.", inWords(old), stale)
		s.Todo = "See the server's log: is the apiserver gone, or its token expired? Again:\n" + commands(old[0])
	default:
		s.State, s.Text = stateDone, "The counters of "+phrase.Count(int64(len(names)), "apiserver")+" are read."
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
