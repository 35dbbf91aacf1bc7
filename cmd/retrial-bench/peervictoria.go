package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/server"
)

// startVictoria starts VictoriaLogs as it is without a flag, but for TLS and for a retention that
// keeps a recorded log. A line's time is the request's, its message the URI, its stream the cluster;
// every member of an event becomes a field.
func (b *peersBench) startVictoria(ctx context.Context, dir string) (*peer, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, cert, key, err := certificatesIn(dir)
	if err != nil {
		return nil, err
	}
	authority, err := server.OpenIdentity(identityIn(dir))
	if err != nil {
		return nil, err
	}
	client, err := clusterClient(authority, "asking")
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "logs")
	c, err := startChild(exec.CommandContext(ctx, filepath.Join(b.programs, "victoria-logs"), "-storageDataPath="+folder,
		"-httpListenAddr="+address, "-tls", "-tlsCertFile="+cert, "-tlsKeyFile="+key, "-retentionPeriod=100y", "-loggerLevel=WARN"), b.log)
	if err != nil {
		return nil, err
	}
	at := "https://" + address
	p := &peer{child: c, kind: "application/stream+json", folder: folder, end: c.stop,
		url: at + "/insert/jsonline?_time_field=requestReceivedTimestamp&_msg_field=requestURI&_stream_fields=cluster&" +
			"extra_fields=cluster=CLUSTER",
		encode: func(_ string, lines [][]byte) ([]byte, error) {
			return append(bytes.Join(lines, []byte("\n")), '\n'), nil
		},
		stored: func(ctx context.Context) (rows, different int64, err error) { return askVictoria(ctx, client, at) },
	}
	return p, c.answers(ctx, func() error {
		_, _, err := p.stored(ctx)
		return err
	})
}

// askVictoria counts the rows of a VictoriaLogs and the events in them.
func askVictoria(ctx context.Context, client *http.Client, at string) (rows, different int64, err error) {
	query := "* | stats count() rows, count_uniq(cluster, auditID, stage, stageTimestamp) different"
	form := strings.NewReader(url.Values{"query": {query}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/select/logsql/query", form)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, 0, err
	}
	var answer struct{ Rows, Different string }
	if err := json.Unmarshal(text, &answer); err != nil || res.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("count: %s: %s", res.Status, text)
	}
	if rows, err = strconv.ParseInt(answer.Rows, 10, 64); err != nil {
		return 0, 0, err
	}
	different, err = strconv.ParseInt(answer.Different, 10, 64)
	return rows, different, err
}
