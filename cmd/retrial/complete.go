package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
)

// completeWithin is how long a shell waits for what completes a word; what is not known by then does not complete it.
const completeWithin = 150 * time.Millisecond

// completed are the flags whose values the server knows, and their kinds there.
var completed = []string{ //nolint:gochecknoglobals // constant table
	"cluster", "subject", "namespace", "rule", "verb", "resource", "group", "class"}

// completeFlags has the running server complete the flags of a command.
func (a *asker) completeFlags(c *cobra.Command) {
	for _, kind := range completed {
		if f := c.Flags().Lookup(kind); f != nil && !f.Hidden {
			// The only error is that it has a completion already.
			_ = c.RegisterFlagCompletionFunc(kind, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return a.completing(kind)(c, nil, begun)
			})
		}
	}
}

// completing returns what completes a command's arguments, by the kinds of names they are.
func (a *asker) completing(kinds ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(kinds) || a.offline() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		resource := ""
		if n := len(args); n > 0 {
			resource, _, _ = strings.Cut(args[n-1], ".")
		}
		return a.names(ctx, c, kinds[len(args)], begun, resource), cobra.ShellCompDirectiveNoFileComp
	}
}

// completingClusters completes the names of clusters, for commands that ask no question.
func completingClusters(flags *config.Flags) cobra.CompletionFunc {
	return (&asker{flags: flags}).completing("cluster")
}

// names returns the names of a kind that begin with a text, as they are written on the command line; none if the server does not say.
func (a *asker) names(ctx context.Context, c *cobra.Command, kind, begun, resource string) (out []cobra.Completion) {
	client, err := a.running(ctx)
	if err != nil {
		return nil
	}
	defer client.Close()
	values := url.Values{"kind": {kind}, "limit": {"200"}}
	if kind != "cluster" && kind != "rule" && kind != "class" {
		named := ""
		if f := c.Flags().Lookup("cluster"); f != nil {
			named = f.Value.String()
		}
		if named == "" {
			if named, err = client.OneCluster(ctx, ""); err != nil {
				return nil
			}
		}
		values.Set("cluster", named)
	}
	form, prefix := "", begun
	if kind == "subject" {
		form, prefix = subjectForm(begun)
		if form == "group/" {
			values.Set("kind", "group")
		}
	}
	values.Set("prefix", prefix)
	if kind == "name" {
		values.Set("resource", resource)
		if f := c.Flags().Lookup("namespace"); f != nil && f.Changed {
			values.Set("namespace", f.Value.String())
		}
	}
	text, err := client.AskByName(ctx, "complete", values)
	if err != nil {
		return nil
	}
	var answer struct {
		Values []struct{ Value, Kind string } `json:"values"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil
	}
	for _, v := range answer.Values {
		word := v.Value
		if kind == "subject" {
			word = inForm(form, begun, word)
		}
		if word != "" && strings.HasPrefix(word, begun) && safe.Printable(word) {
			out = append(out, cobra.CompletionWithDesc(word, v.Kind))
		}
	}
	return out
}

// saPrefix begins the user names of service accounts.
const saPrefix = "system:serviceaccount:"

// subjectForm returns in which form a subject is begun, "" for a user name, and the beginning of the name as the server has it.
func subjectForm(begun string) (form, prefix string) {
	form, rest, ok := strings.Cut(begun, "/")
	switch {
	case !ok:
		return "", begun
	case form == "sa":
		return "sa/", saPrefix + strings.Replace(rest, "/", ":", 1)
	case form == "node":
		return "node/", "system:node:" + rest
	case form == "user", form == "group":
		return form + "/", rest
	}
	return "", begun
}

// inForm writes a name in the form that was begun; a service account's in its short form unless its user name was begun. It is "" for a
// name that the form has not.
func inForm(form, begun, name string) string {
	account, is := strings.CutPrefix(name, saPrefix)
	switch form {
	case "":
		if is && strings.HasPrefix("sa/", begun) {
			return "sa/" + account
		}
		return name
	case "sa/":
		if is {
			return form + account
		}
		return ""
	case "node/":
		if node, ok := strings.CutPrefix(name, "system:node:"); ok {
			return form + node
		}
		return ""
	}
	return form + name
}
