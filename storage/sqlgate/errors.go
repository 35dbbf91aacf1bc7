package sqlgate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Error is a refusal or a failure in ClickHouse's terms.
type Error struct {
	code int
	name string // "ACCESS_DENIED"
	text string
}

func newError(code int, name, format string, args ...any) *Error {
	return &Error{code, name, fmt.Sprintf(format, args...)}
}

// Error returns the error in ClickHouse's format.
func (e *Error) Error() string {
	return fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", e.code, strings.TrimSuffix(e.text, "."), e.name)
}

// Code returns ClickHouse's number of the error.
func (e *Error) Code() int { return e.code }

// coded is an error with ClickHouse's number for it: of the gate or of the engine.
type coded interface {
	error
	Code() int
}

// asCoded returns err in ClickHouse's terms.
func asCoded(err error) coded {
	var c coded
	switch {
	case errors.As(err, &c):
		return c
	case errors.Is(err, context.DeadlineExceeded):
		return newError(codeTimeout, "TIMEOUT_EXCEEDED", "the query exceeded its time limit")
	case errors.Is(err, context.Canceled):
		return newError(codeCancelled, "QUERY_WAS_CANCELLED", "the query was cancelled")
	}
	return newError(codeUnexpected, "STD_EXCEPTION", "%s", err)
}

// status returns the HTTP status for an error's code.
func status(code int) int {
	switch code {
	case codeAuthentication:
		return http.StatusUnauthorized
	case codeAccessDenied, codeReadonly:
		return http.StatusForbidden
	case codeTooMany:
		return http.StatusServiceUnavailable
	case 60, 81:
		return http.StatusNotFound
	case 16, codeBadArguments, 46, 47, codeSyntax, codeUnknownFormat, codeUnknownSetting, 456, 457:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// fail answers with an error, compressed as the answer would have been: older drivers can read nothing else.
func fail(w http.ResponseWriter, r *http.Request, c coded) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Del("Content-Encoding")
	if c.Code() != 0 {
		h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(c.Code()))
	}
	w.WriteHeader(status(c.Code()))
	args := r.URL.Query()
	if args.Get("compress") == "1" {
		if packed, err := newBlockWriter(w, args.Get("network_compression_method")); err == nil {
			_, _ = fmt.Fprintln(packed, c.Error())
			_ = packed.Close() // the caller may be gone
			return
		}
	}
	_, _ = fmt.Fprintln(w, c.Error())
}
