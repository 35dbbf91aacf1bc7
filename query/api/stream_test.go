package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/storage/queries"
)

// rowsOf is a store whose answers have so many rows, and then an error.
type rowsOf struct {
	query.Store
	n    int
	err  error
	last func() // is called before the last row
}

func (s *rowsOf) VisitAnswer(_ context.Context, name, _ string, _ map[string]string, begin func(queries.Question) error,
	row func([]any) error) error {
	if s.n == 0 && s.err != nil {
		return s.err
	}
	if err := begin(queries.Question{Name: name, Columns: []string{"user", "n"}}); err != nil {
		return err
	}
	for i := range s.n {
		if i == s.n-1 && s.last != nil {
			s.last()
		}
		if err := row([]any{fmt.Sprintf("<%d>", i), i}); err != nil {
			return err
		}
	}
	return s.err
}

func askRows(t *testing.T, s *rowsOf) (*httptest.Server, string) {
	t.Helper()
	service := &query.Service{Store: s}
	server := httptest.NewServer(api.New(service.Questions(), nil, zap.NewNop(), time.Minute))
	t.Cleanup(server.Close)
	return server, server.URL + "/api/v1/ask?cluster=c&question=rate"
}

// TestRowsAreWrittenAsTheyAreRead: a client has the first rows before the store has the last, and all of them in the end.
func TestRowsAreWrittenAsTheyAreRead(t *testing.T) {
	const many = 20_000
	read := make(chan struct{})
	s := &rowsOf{n: many, last: func() { <-read }}
	_, at := askRows(t, s)
	res, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 100)
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	close(read)
	rest, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString(`{"cluster":"c","question":"rate","columns":["user","n"],"rows":[`)
	for i := range many {
		fmt.Fprintf(&want, `["\u003c%d\u003e",%d]`, i, i)
		if i < many-1 {
			want.WriteByte(',')
		}
	}
	want.WriteString("]}\n")
	if got := string(first) + string(rest); got != want.String() {
		t.Errorf("got %d bytes, want %d: %.200s", len(got), want.Len(), got)
	}
}

// TestAnswersThatFail: before the first row there is a status and words, after it no end.
func TestAnswersThatFail(t *testing.T) {
	broken := errors.New("the store broke")
	_, at := askRows(t, &rowsOf{err: broken})
	if res, err := http.Get(at); err != nil || res.StatusCode != http.StatusInternalServerError {
		t.Errorf("%v, %v", res, err)
	}
	_, at = askRows(t, &rowsOf{n: 9, err: broken})
	if res, err := http.Get(at); err != nil || res.StatusCode != http.StatusInternalServerError {
		t.Errorf("nothing was sent, and the answer is %v, %v", res, err)
	}
	_, at = askRows(t, &rowsOf{})
	res, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(text), `"rows":[]}`+"\n") {
		t.Errorf("%v: %s", err, text)
	}
	server, at := askRows(t, &rowsOf{n: 20_000, err: broken})
	if res, err := http.Get(at); err == nil {
		if text, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("an answer that is cut off looks whole: %s", text)
		}
	}
	for name, client := range map[string]func() (*apiclient.Client, error){
		"server":  func() (*apiclient.Client, error) { return apiclient.Dial(t.Context(), server.URL, "") },
		"process": func() (*apiclient.Client, error) { return apiclient.InProcess(server.Config.Handler), nil },
	} {
		c, err := client()
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.AskByName(t.Context(), "ask", url.Values{"cluster": {"c"}, "question": {"rate"}})
		if err == nil {
			t.Errorf("%s: %s", name, answer)
		}
	}
}
