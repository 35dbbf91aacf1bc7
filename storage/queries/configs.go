package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/statement"
)

// ConfigUse counts the requests of an hour that were judged by one configuration.
type ConfigUse struct {
	Cluster, APIServer string
	Hour               time.Time // of the requests: its beginning
	Config             string    // as Verdict.Config
	Requests           int64
}

// It reads four narrow columns, and answers with some rows an hour.
const configUseQuery = `SELECT cluster, apiserver, toUnixTimestamp(toStartOfHour(minute)) AS hour, config_version, sum(toInt64(sign)) AS n
FROM %s.events
WHERE outcome != '' AND ({cluster:String} = '' OR cluster = {cluster:String})
GROUP BY cluster, apiserver, hour, config_version
HAVING n > 0
ORDER BY cluster, hour, apiserver, config_version`

// ConfigUse returns by which configurations the stored requests of a cluster were judged, of
// every cluster for "", by cluster and then the oldest hour first.
func (rd *Reader) ConfigUse(ctx context.Context, cluster string) ([]ConfigUse, error) {
	used, err := statement.Collect(ctx, rd.at, configUseQuery, clickhouse.Parameters{"cluster": statement.Text(cluster)}, func(u *ConfigUse) ([]any, func()) {
		var hour uint32
		return []any{&u.Cluster, &u.APIServer, &hour, &u.Config, &u.Requests}, func() { u.Hour = time.Unix(int64(hour), 0).UTC() }
	})
	if err != nil {
		return nil, fmt.Errorf("read configurations of stored requests: %w", err)
	}
	return used, nil
}
