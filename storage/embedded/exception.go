package embedded

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Exception codes the transport itself has to know.
const (
	codeNotImplemented = 36  // streaming a statement that cannot be streamed
	codeCancelled      = 394 // QUERY_WAS_CANCELLED
)

// exception is an error of the engine: "Code: N. DB::Exception: ... (NAME)".
type exception struct {
	code int
	text string
}

func newException(text string) *exception {
	e := &exception{text: strings.TrimSpace(text)}
	if _, rest, ok := strings.Cut(text, "Code: "); ok {
		if digits, _, ok := strings.Cut(rest, "."); ok {
			e.code, _ = strconv.Atoi(digits) // 0 if the text is not an exception
		}
	}
	return e
}

func (e *exception) Error() string { return e.text }

// Code returns the engine's number of the error.
func (e *exception) Code() int { return e.code }

// response answers as a server does: a status, the code in a header, the text as body.
func (e *exception) response(req *http.Request) *http.Response {
	status := http.StatusInternalServerError
	switch e.code {
	case 36, 62, 47, 46, 60, 81, 16: // bad arguments, syntax, unknown things
		status = http.StatusBadRequest
	case 497, 164: // access denied, readonly
		status = http.StatusForbidden
	}
	r := respond(req, status, io.NopCloser(strings.NewReader(e.text)), int64(len(e.text)))
	if e.code != 0 {
		r.Header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
	}
	return r
}

// midStream returns an exception that occurs after a 200 and some data were sent, in the frame
// that ClickHouse's HTTP interface uses for it.
func (e *exception) midStream() []byte {
	const tag = "retrialembedded0" // 16 bytes; any will do, the driver looks for the frame
	var b bytes.Buffer
	fmt.Fprintf(&b, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", tag, e.text, len(e.text)+1, tag)
	return b.Bytes()
}

// respond builds a response the driver accepts.
func respond(req *http.Request, status int, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/octet-stream"}},
		Body:          body,
		ContentLength: length,
		Request:       req,
	}
}
