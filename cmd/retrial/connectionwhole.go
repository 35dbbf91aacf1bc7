package main

import (
	"fmt"
	"strings"
	"time"
)

// followedStep tells whether the audit log, which has what the webhook loses, is read as well.
func (f *connectionFacts) followedStep() stepJSON {
	s := stepJSON{ID: stepFollowed, Title: "The audit log is followed", State: stateWaiting}
	switch {
	case f.followed != nil && f.now.Sub(f.followed.Last) <= quietAfter:
		s.State = stateDone
		s.Text = fmt.Sprintf("%s from %s, the last %s.", count(f.followed.Posts, "post"), f.followed.Remote, ago(f.now, f.followed.Last))
		return s
	case f.followed != nil:
		s.State = stateFailed
		s.Text = fmt.Sprintf("Its follower has posted nothing since %s (%s).", f.followed.Last.UTC().Format(time.RFC3339), ago(f.now, f.followed.Last))
		s.Todo = "On the machine of kube-apiserver: systemctl status " + strings.TrimSuffix(fileFollowUnit, ".service") + ", or wherever retrial import --follow runs."
		return s
	case f.receiver.Since != nil:
		s.Text = "Nobody has posted from it since the server started, " + ago(f.now, *f.receiver.Since) + ": a batch that the webhook drops would be lost for good."
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
	if len(names) == 0 {
		s.Text = "Nobody reads the apiservers' counters, so that nobody knows how many events they sent and whether one is missing."
		s.Todo = f.site.scrapeCommand(f.cluster)
		return s
	}
	at := f.site.watched("retrial_completeness_read_timestamp_seconds", f.cluster, "apiserver")
	var never []string
	for _, name := range names {
		if at[name] == 0 {
			never = append(never, inWords(name))
		}
	}
	switch {
	case len(never) == 0:
		s.State, s.Text = stateDone, "The counters of "+count(int64(len(names)), "apiserver")+" are read."
	case len(f.site.watched("retrial_completeness_read_failures_total", f.cluster, "apiserver")) == 0:
		s.Text = "The server has not begun to read them."
	default:
		s.Text = "Never read: the counters of " + strings.Join(never, ", ") + "."
		s.Todo = "See the server's log: the address, the credential, or the right to get /metrics. Then again:\n" + f.site.scrapeCommand(f.cluster)
	}
	return s
}

// inWords names an apiserver that may have no name.
func inWords(name string) string {
	if name == "" {
		return "the apiserver"
	}
	return name
}
