package api

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"sync"

	"github.com/retrial-io/retrial/internal/gzipped"
)

// worthIt is from how many bytes on an answer is compressed: a shorter one fits into a packet as it is.
const worthIt = 1400

// writers are used again: each has a megabyte of tables.
var writers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	return z
}}

// compressed compresses what is answered as JSON to callers of the page's listener that take gzip. Those of the socket are on this machine.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if callerOf(r).Door != "page" || !gzipped.Accepted(r.Header.Get("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		c := compressing{ResponseWriter: w}
		next.ServeHTTP(&c, r) // an answer that is cut off panics: it must not get an end
		c.end()
	})
}

// compressing decides by the headers of an answer whether to compress it.
type compressing struct {
	http.ResponseWriter
	begun   bool
	streams bool         // it has no length yet: each piece leaves as it is written
	z       *gzip.Writer // nil: it leaves as it is
}

func (c *compressing) WriteHeader(code int) {
	if !c.begun {
		c.begun = true
		h := c.Header()
		length, err := strconv.Atoi(h.Get("Content-Length"))
		c.streams = err != nil
		if h.Get("Content-Type") == "application/json" && (c.streams || length >= worthIt) {
			h.Del("Content-Length")
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
			c.z = writers.Get().(*gzip.Writer)
			c.z.Reset(c.ResponseWriter)
		}
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *compressing) Write(p []byte) (int, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	if c.z == nil {
		return c.ResponseWriter.Write(p)
	}
	n, err := c.z.Write(p)
	if err == nil && c.streams {
		err = c.z.Flush()
	}
	return n, err
}

// end completes an answer that is whole.
func (c *compressing) end() {
	if c.z == nil {
		return
	}
	_ = c.z.Close() // the caller is gone when this fails
	c.z.Reset(nil)
	writers.Put(c.z)
}

// Unwrap lets an http.ResponseController reach the connection.
func (c *compressing) Unwrap() http.ResponseWriter { return c.ResponseWriter }
