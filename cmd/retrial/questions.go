package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

type askCommand struct {
	asker
	query.AskRequest
	params []string
	within struct {
		From time.Time `json:"from" help:"the question's parameter from, where it has one: requests at or after this time"`
		To   time.Time `json:"to" help:"the question's parameter to, where it has one: requests before this time"`
	}
}

func newAsk(s cli.Streams) *cobra.Command {
	var a askCommand
	names := query.QuestionNames()
	for _, q := range plainQuestions() {
		names = append(names, q.Name)
	}
	c := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Ask the store a question that has a name",
		Long: `Ask a question of docs/questions.md, or one of docs/api.md that no other command asks; the latter
are answered in YAML or JSON. Without a QUESTION, list them with their parameters; a parameter
without a default is required.

The running server is asked; with none running the command reads the store itself. With
--events it replays an audit log as evaluate does instead, into a temporary store that is
removed afterwards.`,
		Example: `  retrial ask
  retrial ask denials --since yesterday
  retrial ask object --param resource=secrets --param namespace=payments --param name=db -o csv
  retrial ask events --param decision=forbid --events audit.log --state state.json -o json`,
		ValidArgs: names,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.UsageError(c, "one question at a time: parameters are --param NAME=VALUE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.list()
			}
			return a.run(c, args[0])
		},
	}
	a.bindServer(c, s)
	a.bindLog(c)
	cli.BindRequest(c, &a.AskRequest, "cluster")
	cli.BindRequest(c, &a.within, "from", "to")
	c.Flags().StringArrayVar(&a.params, "param", nil, "a parameter of the question, NAME=VALUE; may be repeated")
	cli.AddOutput(c, &a.output)
	return c
}

func (a *askCommand) list() error {
	return cli.Show(a.Streams, "table", nil, func(page *cli.Page) {
		line := func(name, about string, takes []string) {
			page.Printf("%s\t%s\t%s\n", name, strings.Join(takes, " "), about)
		}
		for _, q := range query.NamedQuestions() {
			var takes []string
			for _, p := range q.Params {
				if p.Default == "" {
					takes = append(takes, p.Name)
				} else {
					takes = append(takes, "["+p.Name+"]")
				}
			}
			if q.Now == "" {
				line(q.Name, q.About, takes)
			}
		}
		for _, q := range plainQuestions() {
			var takes []string
			for _, p := range q.Parameters() {
				switch {
				case p.Name == "cluster":
				case p.Required:
					takes = append(takes, p.Name)
				default:
					takes = append(takes, "["+p.Name+"]")
				}
			}
			line(q.Name, q.Summary, takes)
		}
	})
}

func (a *askCommand) values() (map[string]string, error) {
	values := map[string]string{}
	for _, p := range a.params {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --param %s: want NAME=VALUE", phrase.Shorten(p)))
		}
		if _, twice := values[k]; twice {
			return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("--param %s is given twice", phrase.Shorten(k)))
		}
		values[k] = v
	}
	for name, at := range map[string]time.Time{"from": a.within.From, "to": a.within.To} {
		if _, twice := values[name]; twice && !at.IsZero() {
			return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("--param %s is given by a flag as well", name))
		} else if !at.IsZero() {
			values[name] = at.Format(time.RFC3339Nano)
		}
	}
	for _, name := range []string{"subject", "user"} {
		if text := values[name]; text != "" {
			user, err := cli.User("--param "+name, text)
			if err != nil {
				return nil, err
			}
			values[name] = user
		}
	}
	return values, nil
}

// readTimes writes those of the values that are times as the API takes them.
func (a *askCommand) readTimes(isTime func(name string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(a.Values)) {
		if text := a.Values[name]; text != "" && isTime(name) {
			at, err := cli.ReadTime(a.Err, "--param "+name, text)
			if err != nil {
				return err
			}
			a.Values[name] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	return nil
}

func (a *askCommand) run(c *cobra.Command, name string) (err error) {
	if a.Values, err = a.values(); err != nil {
		return err
	}
	plain := plainQuestions()
	if i := slices.IndexFunc(plain, func(q query.Question) bool { return q.Name == name }); i >= 0 {
		return a.plain(c.Context(), &plain[i])
	}
	named := query.NamedQuestions()
	i := slices.IndexFunc(named, func(q query.NamedQuestion) bool { return q.Name == name })
	if i < 0 {
		if other, _, err := c.Root().Find([]string{name}); err == nil && other != c.Root() && other != c {
			return cli.ExitWith(cli.ExitUsage, fmt.Errorf("%s is a command: retrial %[1]s", phrase.Shorten(name)))
		}
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("unknown question %s%s: want %s", phrase.Shorten(name),
			didYouMean(query.Nearest(name, c.ValidArgs, 3)), strings.Join(c.ValidArgs, ", ")))
	}
	if err := a.readTimes(named[i].TakesTime); err != nil {
		return err
	}
	if _, _, err := named[i].Bind("", "", a.Values); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	if named[i].Now != "" {
		return a.instead(c, &named[i])
	}
	a.Name = name
	answer, err := answerOne(c.Context(), &a.asker, &a.Cluster, &a.AskRequest)
	if err != nil {
		return err
	}
	if subject := cmp.Or(a.Values["subject"], a.Values["user"]); subject != "" && len(answer.Rows) == 0 {
		seen, err := answerOf(c.Context(), &a.asker, a.Cluster, query.FindingsRequest{Cluster: a.Cluster, Subject: subject, Limit: 1})
		if err != nil {
			return err
		}
		if seen.Stranger {
			return unseen(subject, seen.Near)
		}
	}
	if a.output == "csv" {
		return printAnswerCSV(a.Out, &answer)
	}
	return a.show(answer, func(p *cli.Page) { printAnswer(p, &answer) })
}

func texts(row []any) []string {
	out := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case string:
			out[i] = safe.Text(v)
		case float64:
			out[i] = fmt.Sprintf("%.0f", v)
		case time.Time:
			out[i] = v.UTC().Format(time.RFC3339Nano)
		default:
			out[i] = safe.Text(fmt.Sprint(v))
		}
	}
	return out
}

func printAnswerCSV(out io.Writer, j *query.AskAnswer) error {
	w := csv.NewWriter(out)
	if err := w.Write(j.Columns); err != nil {
		return err
	}
	for _, row := range j.Rows {
		cells := texts(row)
		for i, c := range cells {
			if c != "" && strings.ContainsRune("=+-@", rune(c[0])) {
				cells[i] = "'" + c // or a spreadsheet takes it for a formula
			}
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func printAnswer(p *cli.Page, j *query.AskAnswer) {
	if len(j.Rows) == 0 {
		p.Printf("nothing\n")
		return
	}
	p.Table(strings.ToUpper(strings.Join(j.Columns, "\t")))
	for _, row := range j.Rows {
		for i, cell := range texts(row) {
			if i == 0 {
				p.Named(cell)
			}
			if i > 0 {
				p.Printf("\t")
			}
			p.Printf("%s", cell)
		}
		p.Printf("\n")
	}
}

// plainNames are the questions of the API that no other command asks.
var plainNames = []string{ //nolint:gochecknoglobals // constant table
	"classes", "clusters", "complete", "events", "facets", "histogram", "overview", "status", "subject",
}

func plainQuestions() []query.Question {
	return slices.DeleteFunc((&query.Service{}).Questions(), func(q query.Question) bool { return !slices.Contains(plainNames, q.Name) })
}

// plain asks a question of the API and prints its JSON, or YAML for people.
func (a *askCommand) plain(ctx context.Context, q *query.Question) (err error) {
	if slices.Contains([]string{"csv", "name", "wide"}, a.output) {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --output %q: %s is answered in YAML or JSON", a.output, q.Name))
	}
	if err := a.readTimes(func(name string) bool {
		return slices.ContainsFunc(q.Parameters(), func(f params.Field) bool { return f.Name == name && f.IsTime() })
	}); err != nil {
		return err
	}
	values := url.Values{}
	for name, value := range a.Values {
		values.Set(name, value)
	}
	if _, err := params.Read(q.NewRequest(), values); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	client, done, err := a.openFor(ctx, a.Cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if slices.ContainsFunc(q.Parameters(), func(f params.Field) bool { return f.Name == "cluster" }) && !values.Has("cluster") {
		if a.Cluster, err = client.OneCluster(ctx, a.Cluster); err != nil {
			return err
		}
		values.Set("cluster", a.Cluster)
	}
	answer, err := client.AskByName(ctx, q.Name, values)
	if err != nil {
		return err
	}
	if a.output == "table" {
		a.output = "yaml"
	}
	kind := cli.KindOf(q.Answer)
	return a.show(cli.Kinded{Kind: kind, Answer: answer}, nil)
}

// instead runs the command that now answers a question, with the given flags.
func (a *askCommand) instead(c *cobra.Command, q *query.NamedQuestion) error {
	if a.output == "csv" {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --output \"csv\": retrial %s answers this, as table, json or yaml", q.Now))
	}
	fmt.Fprintf(a.Err, "hint: `retrial ask %s` is `retrial %s` now; the old name will be removed in the next release\n", q.Name, q.Now)
	var args []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "param" {
			return
		}
		list, ok := f.Value.(pflag.SliceValue)
		if !ok {
			args = append(args, "--"+f.Name+"="+f.Value.String())
			return
		}
		for _, value := range list.GetSlice() {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	command := newDrift(a.Streams)
	if q.Now == "why" {
		command, args = newWhy(a.Streams), append(args, "--", a.Values["id"])
	}
	for _, name := range []string{"from", "to"} {
		if value := a.Values[name]; value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	command.SetArgs(args)
	command.SetErr(a.Err)
	command.SilenceErrors, command.SilenceUsage = true, true
	return command.ExecuteContext(c.Context())
}
