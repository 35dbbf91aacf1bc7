package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
)

// growStep is how a body without Content-Length, or one larger than a pooled buffer, is first read and accounted; it doubles from there.
const growStep = 256 << 10

// readBody reads the whole body into memory reserved for it. After an answer it cannot be used; what is reserved stays so until release.
func (in *intake) readBody(r *http.Request) (body []byte, a *answer) {
	limit, declared := in.h.cfg.MaxBody, r.ContentLength
	if declared > limit {
		return nil, in.tooLarge(r, nil, declared)
	}
	room := declared
	if declared < 0 {
		room = growStep // the size is unknown: the body is accounted for as it arrives
	}
	if !in.reserve(room) {
		return nil, in.noRoom()
	}
	// A declared length is a promise, not yet memory: large ones are allocated as they arrive. One byte more shows the end without growing.
	if declared >= 0 && declared < pooledBuffer {
		body = in.h.buffers.get(int(declared) + 1)
	} else {
		body = make([]byte, 0, growStep)
	}
	for {
		if len(body) == cap(body) {
			grown := min(2*int64(cap(body)), limit+1)
			if declared < 0 && !in.reserve(grown-int64(cap(body))) {
				return nil, in.noRoom()
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		in.h.metrics.bodyBytes.Add(float64(n))
		if int64(len(body)) > limit {
			return nil, in.tooLarge(r, body, -1)
		}
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, in.readFailed(err, len(body), declared)
		}
	}
}

// readFailed answers a body that ended early. It does not become a dead letter: the sender knows that, and sends all of it again.
func (in *intake) readFailed(err error, read int, declared int64) *answer {
	a := refuse(http.StatusBadRequest, refusedAborted, "the body ended after %d bytes", read)
	if declared >= 0 {
		a = refuse(http.StatusBadRequest, refusedAborted, "the body ended after %d of %d bytes", read, declared)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(in.ctx.Err(), context.DeadlineExceeded) {
		a = refuse(http.StatusRequestTimeout, refusedTooSlow, "the body did not arrive in time: only %d bytes did", read)
	}
	return a.unread()
}

func (in *intake) noRoom() *answer {
	return refuse(http.StatusTooManyRequests, refusedInFlight,
		"too many bytes in flight, for cluster %s or in total: try again later", in.cluster).pushBack(roomBackAfter).unread()
}

// tooLarge makes the dead letter of a body over the limit. declared is its Content-Length if nothing was read and read is nil, else -1.
func (in *intake) tooLarge(r *http.Request, read []byte, declared int64) *answer {
	detail := fmt.Sprintf("body over the limit of %d bytes", in.h.cfg.MaxBody)
	if declared >= 0 {
		read = make([]byte, prefixRead)
		n, err := io.ReadFull(r.Body, read)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && n == 0 {
			return in.readFailed(err, n, declared)
		}
		read = read[:n]
		in.h.metrics.bodyBytes.Add(float64(n))
		detail = fmt.Sprintf("body of %d bytes over the limit of %d; the digest is of the first %d", declared, in.h.cfg.MaxBody, n)
	} else {
		declared = int64(len(read))
		detail += fmt.Sprintf("; size and digest are of the %d bytes read", len(read))
	}
	a := in.bodyLetter(letterTooLarge, detail, read, declared)
	if a == nil {
		a = refuse(http.StatusRequestEntityTooLarge, letterTooLarge, "the body is over %d bytes: lower --audit-webhook-batch-max-size "+
			"or set --audit-webhook-truncate-enabled on the apiserver, or raise the receiver's limit (--webhook-max-body-bytes)",
			in.h.cfg.MaxBody)
	}
	return a.unread()
}

// bodyLetter produces the dead letter of a whole body. It returns nil once that is acknowledged, else an answer that asks for a retry.
func (in *intake) bodyLetter(reason, detail string, body []byte, size int64) *answer {
	letter := event.DeadLetter{
		Cluster: in.cluster,
		Source:  in.source,
		Reason:  reason,
		Detail:  detail,
		Digest:  digest(body),
		Size:    size,
		Prefix:  in.prefix(body),
	}
	in.h.log.Error("body became a dead letter; the sender will retry and then drop it",
		zap.String("cluster", in.cluster), zap.String("apiserver", in.apiserver), zap.String("reason", reason),
		zap.Int64("bytes", size), zap.String("digest", letter.Digest))
	if err := in.produce(in.letterRecord(letter)); err != nil {
		return in.notAcknowledged(err)
	}
	in.h.metrics.letters.WithLabelValues(reason).Inc()
	return nil
}

// prefix returns the redacted beginning of raw, which could not be decoded.
func (in *intake) prefix(raw []byte) []byte {
	redacted := in.h.redactor.RedactBytes(raw[:min(len(raw), prefixRead)])
	return append([]byte(nil), redacted[:min(len(redacted), prefixKept)]...)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// reserve reserves n more bytes for this request; it reports false if there is no room.
func (in *intake) reserve(n int64) bool {
	if !in.h.flight.reserve(in.cluster, n) {
		return false
	}
	in.reserved += n
	return true
}
