package query

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/retrial-io/retrial/internal/params"
)

// Asks is embedded in every request: its tag has the question's name, and the answer is an A.
type Asks[A any] struct{}

func (Asks[A]) answer() (a A) { return a }

// Request is what asks a question whose answer is an A. Its fields are the question's parameters; their tags are those of package params.
type Request[A any] interface{ answer() A }

// NameOf returns the name of the question that a request asks.
func NameOf(request any) string {
	asks, _ := reflect.TypeOf(request).FieldByName("Asks")
	return asks.Tag.Get("question")
}

// Action is embedded in every request that changes something: it runs on the server's machine only, and is recorded with who did it and
// why.
type Action struct {
	Why string `json:"why" help:"why it is done, for the record of who asked what"`
}

func (Action) action() {}

// IsAction reports whether a request changes something.
func IsAction(request any) bool {
	_, is := request.(interface{ action() })
	return is
}

// Posted is embedded in requests that are too long for a URL: they are asked by POST, with a JSON object, and change nothing.
type Posted struct{}

func (Posted) posted() {}

// IsPosted reports whether a request that changes nothing is asked by POST.
func IsPosted(request any) bool {
	_, is := request.(interface{ posted() })
	return is
}

// Cost says what a question may cost the store.
type Cost uint8

const (
	CostQuery   Cost = iota // a turn, and the usual time
	CostPage                // the same, of a page that many open at once: one answer is for all who ask within a second
	CostNothing             // it asks the store nothing
	CostHistory             // it reads a whole history: many times as long, one at a time
)

// Question is one question.
type Question struct {
	Name    string // below /api/v1/
	Summary string
	Cost    Cost
	Action  bool         // it changes something
	Posted  bool         // it is asked by POST, though it changes nothing
	Request reflect.Type // a struct
	Answer  reflect.Type
	// Ask answers a request, to which it is given a pointer.
	Ask func(ctx context.Context, request any) (any, error)
}

// NewRequest returns a pointer to an empty request.
func (q *Question) NewRequest() any { return reflect.New(q.Request).Interface() }

// Parameters returns the parameters a question takes.
func (q *Question) Parameters() []params.Field { return params.Fields(q.Request) }

// NewQuestion returns the question that a request asks and a function answers. The function receives requests with defaults filled in and
// nothing required missing.
func NewQuestion[R Request[A], A any](cost Cost, summary string, answer func(context.Context, R) (A, error)) Question {
	var r R
	return Question{
		Name: NameOf(r), Summary: summary, Cost: cost, Action: IsAction(r), Posted: IsPosted(r), Request: reflect.TypeFor[R](),
		Answer: reflect.TypeOf(r.answer()),
		Ask: func(ctx context.Context, request any) (any, error) {
			r := request.(*R)
			if err := params.Complete(r); err != nil {
				return nil, BadRequest{err}
			}
			if c, ok := any(r).(interface{ check() error }); ok {
				if err := c.check(); err != nil {
					return nil, err
				}
			}
			return answer(ctx, *r)
		},
	}
}

// Sink takes an answer with a long list in parts, so that nobody holds all of it.
type Sink interface {
	// Begin takes the answer with its list, which is its last member, empty. What is wrong with a question is known before.
	Begin(answer any) error
	// Add takes the next of the list.
	Add(item any) error
}

type sinkKey struct{}

// WithSink returns a context in which an answer with a long list goes to a Sink.
func WithSink(ctx context.Context, s Sink) context.Context {
	return context.WithValue(ctx, sinkKey{}, s)
}

// SinkOf returns where a long list goes; nil: into the answer.
func SinkOf(ctx context.Context) Sink {
	s, _ := ctx.Value(sinkKey{}).(Sink)
	return s
}

// BadRequest is an error of the caller.
type BadRequest struct{ Err error }

func (e BadRequest) Error() string { return e.Err.Error() }

func (e BadRequest) Unwrap() error { return e.Err }

// Bad returns an error of the caller.
func Bad(format string, args ...any) error { return BadRequest{fmt.Errorf(format, args...)} }

// NotFound is the error of a question about something that does not exist.
type NotFound struct{ error }

func none(format string, args ...any) error { return NotFound{fmt.Errorf(format, args...)} }

// ErrRefused is the error of an action that this process does not do.
var ErrRefused = errors.New("refused")

// before returns an error unless from is before to.
func before(from, to time.Time) error {
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return Bad("from %s is not before to %s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))
	}
	return nil
}
