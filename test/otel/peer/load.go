package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// load is everything that will be posted, made before the clock starts.
type load struct {
	posts  [][]byte
	events int64
}

// prepare makes the posts: each event is one log record, its JSON the body.
func prepare(o options) (*load, error) {
	lines, err := readLines(o.events)
	if err != nil {
		return nil, err
	}
	l := &load{}
	for i := range o.repeat {
		cluster := fmt.Sprint("bench-", i+1)
		for from := 0; from < len(lines); from += o.batch {
			batch := lines[from:min(from+o.batch, len(lines))]
			post, err := encode(cluster, batch)
			if err != nil {
				return nil, err
			}
			l.posts, l.events = append(l.posts, post), l.events+int64(len(batch))
		}
	}
	return l, nil
}

// encode makes an OTLP request in protobuf, the cheapest form the collector takes.
func encode(cluster string, lines []string) ([]byte, error) {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "kube-apiserver")
	rl.Resource().Attributes().PutStr("k8s.cluster.name", cluster)
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	records.EnsureCapacity(len(lines))
	for _, line := range lines {
		line = renumber(line, cluster)
		var e struct {
			Received time.Time `json:"requestReceivedTimestamp"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, err
		}
		r := records.AppendEmpty()
		r.SetTimestamp(pcommon.NewTimestampFromTime(e.Received))
		r.Body().SetStr(line)
	}
	return plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
}

// post sends everything, so many posts at once, each until it is taken.
func (l *load) post(ctx context.Context, client *http.Client, url string, connections int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	posts := make(chan []byte)
	var wait sync.WaitGroup
	for range connections {
		wait.Go(func() {
			for body := range posts {
				if err := send(ctx, client, url, body); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, p := range l.posts {
		posts <- p
	}
	close(posts)
	wait.Wait()
	return context.Cause(ctx)
}

func send(ctx context.Context, client *http.Client, url string, body []byte) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		_ = res.Body.Close()
		switch res.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		default:
			return fmt.Errorf("post: %s: %s", res.Status, strings.TrimSpace(string(text)))
		}
	}
}

func readLines(file string) (lines []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var in io.Reader = f
	if strings.HasSuffix(file, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		in = z
	}
	s := bufio.NewScanner(in)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, s.Err()
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// renumber replaces every UUID as `retrial bench pipeline` does: audit IDs, uids and token ids
// are as random as in another cluster, the same by the same.
func renumber(text, seed string) string {
	return uuids.ReplaceAllStringFunc(text, func(id string) string {
		sum := sha256.Sum256([]byte(seed + "/" + id))
		h := hex.EncodeToString(sum[:16])
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	})
}
