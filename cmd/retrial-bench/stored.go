package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/internal/config"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// storeShape says in what form the store holds the events when its merges are idle.
type storeShape struct {
	Inserts    int64            `json:"inserts"`      // blocks of events
	Parts      int64            `json:"parts"`        // active, of all tables
	EventParts int64            `json:"event_parts"`  // active, of the table of events
	Levels     map[string]int64 `json:"merge_levels"` // rows of events by how often their part was merged
	RollupRows int64            `json:"rollup_rows"`  // of all tables but events, as stored
	TableBytes float64          `json:"table_bytes_per_event"`
	DiskBytes  float64          `json:"folder_bytes_per_event"` // with the log of the embedded broker
}

// insertsMetric counts the blocks of events that the server inserted.
const insertsMetric = `retrial_storage_inserts_total{result="ok"}`

// readInserts returns how many blocks the server has inserted, by its metrics.
func readInserts(ctx context.Context, page string) (n int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+page+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("metrics of the server: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("metrics of the server: %s", res.Status)
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), insertsMetric+" "); ok {
			return int64(numeric(value)), nil
		}
	}
	return 0, errors.New("metrics of the server: no count of inserts")
}

// measureStore reads the shape of the embedded store of a server that has ended. It returns nil for
// a server whose store is elsewhere.
func measureStore(ctx context.Context, cfg config.Config, events int64) (_ *storeShape, err error) {
	if cfg.ClickHouse.DSN != "" {
		return nil, nil
	}
	engine, err := chdb.Open(chdb.Config{Path: filepath.Join(cfg.DataDir, "clickhouse"), Library: cfg.ClickHouse.Library})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	out := &storeShape{Levels: map[string]int64{}, DiskBytes: float64(folderSize(cfg.DataDir)) / float64(events)}
	parts, err := rawRows(ctx, engine, "SELECT table = 'events', level, count(), sum(rows), sum(bytes_on_disk) FROM system.parts WHERE "+
		"active AND database = 'retrial' GROUP BY ALL ORDER BY ALL")
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		count, rows := int64(numeric(p[2])), int64(numeric(p[3]))
		out.Parts += count
		out.TableBytes += numeric(p[4]) / float64(events)
		if p[0] != "1" {
			out.RollupRows += rows
			continue
		}
		out.EventParts += count
		out.Levels[p[1]] += rows
	}
	return out, nil
}

// print writes the shape as lines of a table.
func (s *storeShape) print(w io.Writer, events int64) {
	fmt.Fprintf(w, "inserts\t%d, of %.0f events\n", s.Inserts, float64(events)/float64(max(s.Inserts, 1)))
	fmt.Fprintf(w, "parts\t%d, %d of events\n", s.Parts, s.EventParts)
	levels := slices.SortedFunc(maps.Keys(s.Levels), func(a, b string) int { return int(numeric(a) - numeric(b)) })
	for i, level := range levels {
		levels[i] = level + ": " + strconv.FormatInt(s.Levels[level], 10)
	}
	fmt.Fprintf(w, "events by merges\t%s\n", strings.Join(levels, ", "))
	fmt.Fprintf(w, "rollup rows\t%d\n", s.RollupRows)
	fmt.Fprintf(w, "bytes per event\t%.0f in tables, %.0f in the folder\n", s.TableBytes, s.DiskBytes)
}
