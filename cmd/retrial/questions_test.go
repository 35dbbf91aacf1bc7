package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/test/golden"
)

// VisitAnswer answers with what it was asked.
func (fakeStore) VisitAnswer(_ context.Context, name, cluster string, values map[string]string, begin func(queries.Question) error,
	_ func([]any) error) error {
	for _, q := range queries.Questions() {
		if q.Name == name {
			if _, _, err := q.Bind("d", cluster, values); err != nil {
				return err
			}
			return begin(q)
		}
	}
	return fmt.Errorf("%w %q is not known", queries.ErrQuestion, name)
}

// TestDocsQuestions writes the questions there are.
func TestDocsQuestions(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Questions with a name

For people who want answers without writing SQL: the questions that the store answers by name, their parameters and columns.

Generated from storage/questions.go; change it there and run ` + "`make golden`" + `. Ask with ` + "`retrial ask NAME --param k=v`" + `
(` + "`-o table`, `json` or `csv`" + `), or over the API ([api.md](api.md)). Times are those of the requests, in RFC 3339; "by days" means that a rollup answers and
whole days (UTC) count. Answers are exact at any moment, corrections and merges under way included. The SQL and the indexes it uses:
[questions.golden.txt](../storage/testdata/questions.golden.txt); what they cost: [storage.md](storage.md).

| question | answers | parameters | columns |
| --- | --- | --- | --- |
`)
	for _, q := range queries.Questions() {
		var takes []string
		for _, p := range q.Params {
			text := "`" + p.Name + "`"
			if p.About != "" {
				text += " " + p.About
			}
			switch p.Default {
			case "":
				text += " (required)"
			case "-":
			default:
				text += " (" + p.Default + ")"
			}
			takes = append(takes, text)
		}
		about := q.About
		if q.Now != "" {
			about += "; will be removed in the next release: `retrial " + q.Now + "` answers it"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", q.Name, about, strings.Join(takes, "; "), strings.Join(q.Columns, ", "))
	}
	golden.File(t, "docs/questions.md", b.String())
}

// TestAnswersArePrintedSafely: texts of an answer are anybody's.
func TestAnswersArePrintedSafely(t *testing.T) {
	a := query.AskAnswer{Columns: []string{"user", "requests"}, Rows: [][]any{{"=cmd()|x\x1b[2J", float64(7)}}}
	for name, c := range map[string]struct {
		print func(*bytes.Buffer) error
		want  string
	}{
		"csv": {func(b *bytes.Buffer) error { return printAnswerCSV(b, &a) }, "'=cmd()"},
		"table": {func(b *bytes.Buffer) error {
			lines, _ := printed(printAnswer, &a)
			_, err := b.WriteString(lines)
			return err
		}, "=cmd()"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := c.print(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "\x1b") || !strings.Contains(b.String(), c.want) || !strings.Contains(b.String(), "7") {
				t.Fatalf("%q", b.String())
			}
		})
	}
}

// TestAskMistakes are told before anything is opened.
func TestAskMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		says string
	}{
		"unknown question":  {"nonsense", "unknown question nonsense: want denials"},
		"missing parameter": {"object --param resource=secrets", "wants name"},
		"no value":          {"denials --param from", "NAME=VALUE"},
		"twice":             {"denials --param limit=1 --param limit=2", "given twice"},
		"a command":         {"why", "unknown question why"},
		"a wrong parameter": {"events --param colour=red", `there is no parameter "colour"`},
		"events as csv":     {"events -o csv", "answered in YAML or JSON"},
		"drift as csv":      {"drift -o csv", "retrial drift answers this"},
		"two questions":     {"denials drift", "one question at a time"},
		"form":              {"denials -o xml", "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			cmd := newAsk(cli.Streams{Out: &out, Err: &errs})
			cmd.SetArgs(strings.Fields(c.args))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetErr(&errs)
			if err := cmd.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v does not say %q", err, c.says)
			}
		})
	}
}
