package sqlgate_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// positions are the places of a query where an expression can stand; each is answered when
// the expression is harmless.
var positions = []string{
	"SELECT %s",
	"SELECT 1 AS a, %s AS b",
	"SELECT (%s, 1)",
	"SELECT [%s]",
	"SELECT map('k', %s)",
	"SELECT DISTINCT %s",
	"SELECT DISTINCT ON (%s) 1",
	"SELECT CAST(%s AS String)",
	"SELECT toString(%s)::String",
	"SELECT concat('a', upper(toString(%s)))",
	"SELECT if(1, toString(%s), '')",
	"SELECT CASE WHEN toString(%s) = '' THEN 1 ELSE 2 END",
	"SELECT CASE toString(%s) WHEN 'a' THEN 1 ELSE 2 END",
	"SELECT toString(%s) BETWEEN 'a' AND 'b'",
	"SELECT toString(%s) IN ('a', 'b')",
	"SELECT 'a' IN (SELECT toString(%s))",
	"SELECT 'a' IN (toString(%s), 'b')",
	"SELECT toString(%s) LIKE 'a%%'",
	"SELECT NOT (toString(%s) = 'a')",
	"SELECT toString(%s) IS NULL",
	"SELECT arrayMap(x -> toString(%s), [1])",
	"SELECT arrayFilter(x -> toString(%s) = x, ['a'])",
	"SELECT arraySort((x, y) -> toString(%s), [1], [2])",
	"SELECT arrayExists(x -> arrayExists(y -> toString(%s) = y, ['a']), [1])",
	"SELECT count(%s)",
	"SELECT countIf(toString(%s) = '')",
	"SELECT groupArray(1)(toString(%s))",
	"SELECT uniqExact(toString(%s))",
	"SELECT count() FILTER (WHERE toString(%s) = '')",
	"SELECT sum(1) OVER (PARTITION BY toString(%s))",
	"SELECT sum(1) OVER (ORDER BY toString(%s) ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
	"SELECT sum(1) OVER w WINDOW w AS (PARTITION BY toString(%s))",
	"SELECT * REPLACE (toString(%s) AS a) FROM (SELECT '' AS a)",
	"SELECT COLUMNS('a') REPLACE (toString(%s) AS a) FROM (SELECT '' AS a)",
	"WITH toString(%s) AS x SELECT x",
	"WITH x AS (SELECT toString(%s) AS s) SELECT s FROM x",
	"WITH RECURSIVE r AS (SELECT toString(%s) AS s, 1 AS n UNION ALL SELECT s, n + 1 FROM r WHERE n < 3) SELECT s FROM r",
	"SELECT (SELECT toString(%s))",
	"SELECT EXISTS (SELECT toString(%s))",
	"SELECT * FROM (SELECT toString(%s))",
	"SELECT 1 FROM (SELECT 1 AS a) AS t INNER JOIN (SELECT toString(%s) AS s, 1 AS a) AS u ON t.a = u.a",
	"SELECT 1 FROM (SELECT 'a' AS a) AS t LEFT JOIN (SELECT 'a' AS b) AS u ON concat(t.a, toString(%s)) = u.b",
	"SELECT 1 FROM (SELECT 1 AS n) ARRAY JOIN [toString(%s)] AS x",
	"SELECT arrayJoin([toString(%s)])",
	"SELECT sum(a) FROM values('a UInt8, b String', (1, toString(%s)))",
	"SELECT count() FROM numbers(length(toString(%s)))",
	"SELECT count() FROM volume PREWHERE toString(%s) = ''",
	"SELECT count() FROM volume WHERE toString(%s) = ''",
	"SELECT 1 FROM volume GROUP BY toString(%s)",
	"SELECT 1 FROM volume GROUP BY ROLLUP(toString(%s))",
	"SELECT 1 FROM volume GROUP BY GROUPING SETS ((cluster, toString(%s)), (cluster))",
	"SELECT cluster FROM volume GROUP BY cluster HAVING toString(%s) = ''",
	"SELECT row_number() OVER () AS n FROM volume QUALIFY toString(%s) = '' AND n = 1",
	"SELECT 1 ORDER BY toString(%s)",
	"SELECT 1 LIMIT 1 BY toString(%s)",
	"SELECT 1 LIMIT length(toString(%s))",
	"SELECT 1 LIMIT 1 OFFSET length(toString(%s))",
	"SELECT toUInt64(1) AS n ORDER BY n WITH FILL FROM length(toString(%s)) TO 3",
	"SELECT toUInt64(1) AS n ORDER BY n WITH FILL FROM 0 TO length(toString(%s))",
	"SELECT toUInt64(1) AS n ORDER BY n WITH FILL FROM 0 TO 3 STEP length(toString(%s))",
	"SELECT 1 AS n, '' AS s ORDER BY n WITH FILL FROM 0 TO 3 INTERPOLATE (s AS toString(%s))",
	"SELECT 1 UNION ALL SELECT length(toString(%s))",
	"(SELECT 1) EXCEPT (SELECT length(toString(%s)))",
	"DESCRIBE TABLE (SELECT toString(%s))",
	"SELECT 1 FORMAT JSON /* %s */",
}

// payloads reach out, each in another way.
var payloads = []string{
	"file('$FILE')",
	"`file`('$FILE')",
	"arrayMap(file, ['$FILE'])",
	"arrayMap(`file`, ['$FILE'])",
	"arrayMap({f:Identifier}, ['$FILE'])",
	"arrayMap(p -> file(p), ['$FILE'])",
	"(SELECT any(line) FROM file('$FILE', LineAsString))",
	"(SELECT any(c1) FROM file('$FILE', CSV))",
	"('x' IN file('$FILE', LineAsString))",
	"('x' IN system.users)",
	"('x' IN {u:Identifier})",
	"(SELECT any(name) FROM system.users)",
	"(SELECT any(name) FROM {s:Identifier}.users)",
	"(SELECT any(c1) FROM default.`$FILE`)",
	"(SELECT any(c1) FROM `$FILE`)",
	"(WITH system.users AS t SELECT any(name) FROM t)",
	"(WITH {u:Identifier} AS t SELECT any(name) FROM t)",
	"(WITH (x -> file(x)) AS f SELECT f('$FILE'))",
	"sleep(1)",
	"dictGet('d', 'a', 1)",
	"getSetting('readonly')",
	"(SELECT 1 SETTINGS readonly = 0)",
	"(SELECT * APPLY(file) FROM (SELECT '$FILE' AS p))",
}

// testPositions puts every payload into every position: all are refused, by the gate and not
// by chance, and the same position with a harmless expression is answered.
func testPositions(t *testing.T, k *kit) {
	file := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(file, []byte("planted-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"param_f", "file", "param_u", "system.users", "param_s", "system"}
	for i, position := range positions {
		if strings.Contains(position, "/*") { // a comment: whatever stands there is not there
			if a := k.ask(t, fmt.Sprintf(position, "file('x')")); a.status != http.StatusOK {
				t.Errorf("%s: %.300s", position, a.text)
			}
			continue
		}
		if a := k.ask(t, fmt.Sprintf(position, "'a'")); a.status != http.StatusOK {
			t.Errorf("refused though harmless: %s: %.300s", position, a.text)
		}
		for j, payload := range payloads {
			if testing.Short() && (i+j)%5 != 0 {
				continue // each place and each payload still comes
			}
			query := fmt.Sprintf(position, strings.ReplaceAll(payload, "$FILE", file))
			a := k.ask(t, query, args...)
			if a.status == http.StatusOK || strings.Contains(a.text, "planted-secret") {
				t.Errorf("answered: %s: %.300s", query, a.text)
			} else if a.code != "497" && a.code != "164" && a.code != "62" {
				t.Errorf("not refused by the gate: %s: %.300s", query, a.text)
			}
		}
	}
}
