package sqlgate_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGate runs everything that needs one engine: a process can have one at a time, and
// starting it costs more than any of the cases.
func TestGate(t *testing.T) {
	k := newKit(t, nil)
	t.Run("answers", func(t *testing.T) { testAnswers(t, k) })
	t.Run("refuses", func(t *testing.T) { testRefuses(t, k) })
	t.Run("positions", func(t *testing.T) { testPositions(t, k) })
	t.Run("arguments", func(t *testing.T) { testArguments(t, k) })
	t.Run("callers", func(t *testing.T) { testCallers(t, k) })
	t.Run("functions", func(t *testing.T) { testFunctions(t, k) })
	t.Run("driver", func(t *testing.T) { testDriver(t, k) })
	t.Run("records", func(t *testing.T) { testRecords(t, k) })
}

// testAnswers: what dashboards and the data source ask is answered.
func testAnswers(t *testing.T, k *kit) {
	for _, c := range []struct {
		name, sql string
		args      []string
		want      string // of the answer in TabSeparated; "*": anything that is not empty
	}{
		{name: "a constant", sql: "SELECT 1", want: "1\n"},
		{name: "a final semicolon", sql: " select 1 ; ", want: "1\n"},
		{name: "comments", sql: "/* a */ SELECT 1 -- b\n# c\n", want: "1\n"},
		{name: "qualified table", sql: "SELECT sum(sign) > 100 FROM retrial.events", want: "1\n"},
		{name: "table of the database", sql: "SELECT sum(count) > 100 FROM volume", want: "1\n"},
		{name: "final", sql: "SELECT count() > 100 FROM events FINAL WHERE sign = 1", want: "1\n"},
		{name: "quoted names", sql: "SELECT `cluster` AS \"a b\" FROM \"retrial\".\"volume\" LIMIT 1", want: "c\n"},
		{name: "join of rollups", sql: "SELECT sum(u.count) > 0 FROM access_usage AS u INNER JOIN (SELECT access, any(verb) AS verb " +
			"FROM accesses GROUP BY access) AS a ON u.access = a.access WHERE a.verb != ''", want: "1\n"},
		{name: "with", sql: "WITH t AS (SELECT number AS n FROM numbers(3)), 2 AS two SELECT sum(n) + two FROM t", want: "5\n"},
		{name: "long names", sql: "SELECT retrial.volume.cluster, system.one.dummy FROM retrial.volume, system.one LIMIT 1",
			want: "c\t0\n"},
		{name: "recursive with", sql: "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT max(n) FROM r",
			want: "5\n"},
		{name: "union, except, intersect", sql: "SELECT * FROM (SELECT 1 AS n UNION ALL (SELECT 2 EXCEPT SELECT 2) UNION ALL (SELECT 3 " +
			"INTERSECT SELECT 3)) ORDER BY n", want: "1\n3\n"},
		{name: "in a subquery", sql: "SELECT 1 IN (SELECT 1 FROM retrial.volume)", want: "1\n"},
		{name: "in a table", sql: "SELECT 5 IN (SELECT count FROM volume) OR 1", want: "1\n"},
		{name: "array functions and lambdas", sql: "SELECT arrayMap((x, y) -> x + y, [1, 2], [3, 4])[1], arrayJoin([1])", want: "4\t1\n"},
		{name: "array join", sql: "SELECT count() > 0 FROM events ARRAY JOIN grants AS g WHERE g != ''", want: "1\n"},
		{name: "case, interval, extract, cast", sql: "SELECT CASE WHEN 1 THEN 'a' ELSE 'b' END, CASE 2 WHEN 2 THEN 'x' ELSE 'y' END, " +
			"toDate('2026-01-02') + INTERVAL 1 DAY, EXTRACT(YEAR FROM DATE '2026-01-01'), '5'::UInt8, CAST(1 AS String)",
			want: "a\tx\t2026-01-03\t2026\t5\t1\n"},
		{name: "windows", sql: "SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), row_number() OVER " +
			"w FROM (SELECT number AS n FROM numbers(2)) WINDOW w AS (ORDER BY n) ORDER BY n", want: "0\t0\t1\n1\t1\t2\n"},
		{name: "fill", sql: "SELECT toUInt8(number) AS n FROM numbers(1) ORDER BY n WITH FILL FROM 0 TO 3 STEP 1", want: "0\n1\n2\n"},
		{name: "combinators", sql: "SELECT countIf(number > 0), uniqExactIf(number, number > 1), quantilesTDigest(0.5)(number)[1], " +
			"countDistinct(number), sumOrNull(number), anyIf(number, number = 2) FROM numbers(3)", want: "2\t1\t1\t3\t3\t2\n"},
		{name: "group by rollup", sql: "SELECT number % 2 AS m, count() FROM numbers(4) GROUP BY ROLLUP(m) ORDER BY m, 2",
			want: "0\t2\n0\t4\n1\t2\n"},
		{name: "except columns", sql: "SELECT * EXCEPT (b) FROM (SELECT 1 AS a, 2 AS b)", want: "1\n"},
		{name: "time macros expanded", sql: "SELECT toStartOfInterval(toDateTime(minute), INTERVAL 60 second) AS t, sum(count) FROM " +
			"volume WHERE minute >= toDateTime(0) AND minute <= toDateTime(4000000000) GROUP BY t ORDER BY t LIMIT 1", want: "*"},
		{name: "hostile text is a value", sql: "SELECT 'file(''/etc/passwd''); DROP TABLE x -- \\' INTO OUTFILE' AS v",
			want: "file(\\'/etc/passwd\\'); DROP TABLE x -- \\' INTO OUTFILE\n"},
		{name: "values", sql: "SELECT sum(a) FROM values('a UInt8', 1, 2)", want: "3\n"},
		{name: "parameters", sql: "SELECT {s:String}, {n:UInt8} + 1, {a:Array(String)}[1]",
			args: []string{"param_s", `it's \\ "q"`, "param_n", "2", "param_a", "['x']"}, want: "it\\'s \\\\ \"q\"\t3\tx\n"},
		{name: "a parameter that names a table of the store", sql: "SELECT count() >= 0 FROM {t:Identifier}",
			args: []string{"param_t", "events"}, want: "1\n"},
		{name: "the builder's databases", sql: "SHOW DATABASES", want: "*"},
		{name: "the builder's tables", sql: `SHOW TABLES FROM "retrial"`, want: "*"},
		{name: "the builder's columns", sql: `DESC TABLE "retrial"."events"`, want: "*"},
		{name: "the builder's schema", sql: "SELECT database, table, name, type, comment FROM system.columns WHERE (database, table) IN " +
			"(('retrial', 'events')) ORDER BY database, table, position", want: "*"},
		{name: "the builder's list", sql: "SELECT database, name FROM system.tables ORDER BY database, name", want: "*"},
		{name: "the editor's functions", sql: "SELECT name, is_aggregate, case_insensitive, alias_to, origin, description, syntax, " +
			"arguments, returned_value, examples, categories FROM system.functions LIMIT 10000", want: "*"},
		{name: "version", sql: "SELECT version(), timezone(), currentDatabase()", want: "*"},
		{name: "a format", sql: "SELECT 1 AS a FORMAT JSONEachRow", want: "{\"a\":1}\n"},
		{name: "a default format", sql: "SELECT 1 AS a", args: []string{"default_format", "CSVWithNames"}, want: "\"a\"\n1\n"},
		{name: "a query in the address and the body", sql: "+ 1", args: []string{"query", "SELECT 1"}, want: "2\n"},
		{name: "a setting that is free", sql: "SELECT toDateTime(0)", args: []string{"session_timezone", "Europe/Berlin"},
			want: "1970-01-01 01:00:00\n"},
		{name: "a limit from outside", sql: "SELECT number FROM numbers(10)", args: []string{"limit", "1"}, want: "0\n"},
		{name: "rights that are given up anyway", sql: "SELECT 1", args: []string{"readonly", "2", "max_execution_time", "65"},
			want: "1\n"},
		{name: "a database that is none", sql: "SELECT count() >= 0 FROM events", args: []string{"database", "default"}, want: "1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := k.ask(t, c.sql, c.args...)
			if a.status != http.StatusOK || a.code != "" {
				t.Fatalf("%d %s", a.status, a.text)
			}
			if c.want == "*" && a.text == "" || c.want != "*" && a.text != c.want {
				t.Fatalf("got %q, want %q", a.text, c.want)
			}
		})
	}
}

// testRefuses: whatever writes, reaches past the tables or hides doing so is refused with
// ClickHouse's own form of error, and leaves nothing behind.
func testRefuses(t *testing.T, k *kit) {
	dir := t.TempDir()
	secretFile := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(secretFile, []byte("planted-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A server that must never be reached.
	reached := make(chan string, 100)
	trap := http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path })}
	host := listen(t, &trap)
	out := filepath.Join(dir, "out")
	before := k.ask(t, "SELECT sum(sign) FROM events").text

	fill := strings.NewReplacer("$FILE", secretFile, "$HOST", host, "$OUT", out)
	for _, c := range []struct {
		name, sql string
		args      []string
	}{
		// statements
		{name: "insert", sql: "INSERT INTO retrial.volume (cluster) VALUES ('x')"},
		{name: "insert select", sql: "INSERT INTO volume (cluster) SELECT 'x'"},
		{name: "insert into a function", sql: "INSERT INTO FUNCTION file('$OUT', CSV) SELECT 1"},
		{name: "insert in the address, data in the body", sql: "c\n", args: []string{"query", "INSERT INTO volume (cluster) FORMAT CSV"}},
		{name: "create", sql: "CREATE TABLE retrial.x (a UInt8) ENGINE = Memory"},
		{name: "create temporary", sql: "CREATE TEMPORARY TABLE x AS SELECT 1"},
		{name: "create a function", sql: "CREATE FUNCTION x AS (a) -> file(a)"},
		{name: "create user", sql: "CREATE USER x"},
		{name: "drop", sql: "DROP TABLE retrial.events"},
		{name: "drop in lower case", sql: "drop table events"},
		{name: "truncate", sql: "TRUNCATE TABLE retrial.events"},
		{name: "alter", sql: "ALTER TABLE retrial.events DELETE WHERE 1"},
		{name: "delete", sql: "DELETE FROM retrial.events WHERE 1"},
		{name: "update", sql: "UPDATE retrial.events SET cluster = 'x' WHERE 1"},
		{name: "optimize", sql: "OPTIMIZE TABLE retrial.events FINAL"},
		{name: "rename", sql: "RENAME TABLE retrial.events TO retrial.x"},
		{name: "exchange", sql: "EXCHANGE TABLES retrial.events AND retrial.volume"},
		{name: "attach", sql: "ATTACH TABLE retrial.x"},
		{name: "detach", sql: "DETACH TABLE retrial.events"},
		{name: "backup", sql: "BACKUP TABLE retrial.events TO File('$OUT')"},
		{name: "restore", sql: "RESTORE TABLE retrial.events FROM File('$OUT')"},
		{name: "set", sql: "SET readonly = 0"},
		{name: "use", sql: "USE system"},
		{name: "system", sql: "SYSTEM FLUSH LOGS"},
		{name: "system shutdown", sql: "SYSTEM SHUTDOWN"},
		{name: "kill", sql: "KILL QUERY WHERE 1"},
		{name: "grant", sql: "GRANT ALL ON *.* TO default"},
		{name: "execute as", sql: "EXECUTE AS default SELECT 1"},
		{name: "transaction", sql: "BEGIN TRANSACTION"},
		{name: "explain", sql: "EXPLAIN SELECT 1"},
		{name: "explain of a table function", sql: "EXPLAIN TABLE OVERRIDE url('http://$HOST/a', CSV) COLUMNS (a UInt8)"},
		{name: "explain in a subquery", sql: "SELECT * FROM (EXPLAIN SELECT file('$FILE'))"},
		{name: "check", sql: "CHECK TABLE retrial.events"},
		{name: "exists", sql: "EXISTS TABLE system.users"},
		{name: "parallel", sql: "SELECT 1 PARALLEL WITH DROP TABLE retrial.events"},
		{name: "two statements", sql: "SELECT 1; SELECT 2"},
		{name: "two statements, one of them worse", sql: "SELECT 1;\nDROP TABLE retrial.events"},
		{name: "a statement after a comment", sql: "SELECT 1 /* ; */; DROP TABLE retrial.events -- "},
		{name: "a second statement in the body", sql: "; DROP TABLE retrial.events", args: []string{"query", "SELECT 1"}},
		{name: "nothing but a comment", sql: "-- x"},
		// listings
		{name: "show create", sql: "SHOW CREATE TABLE retrial.events"},
		{name: "show processlist", sql: "SHOW PROCESSLIST"},
		{name: "show with a condition that reads", sql: "SHOW TABLES FROM retrial WHERE name = file('$FILE')"},
		{name: "show functions", sql: "SHOW FUNCTIONS"},
		{name: "show settings", sql: "SHOW SETTINGS LIKE '%'"},
		{name: "show into a file", sql: "SHOW DATABASES INTO OUTFILE '$OUT'"},
		{name: "describe a function", sql: "DESCRIBE TABLE url('http://$HOST/b', CSV)"},
		{name: "describe a file", sql: "DESC file('$FILE', CSV)"},
		{name: "describe a query over a file", sql: "DESC (SELECT * FROM file('$FILE'))"},
		{name: "describe another table", sql: "DESC TABLE system.users"},
		{name: "describe into a file", sql: "DESC TABLE retrial.events INTO OUTFILE '$OUT'"},
		// results elsewhere
		{name: "into outfile", sql: "SELECT 1 INTO OUTFILE '$OUT'"},
		{name: "into outfile with a format", sql: "SELECT 1 INTO OUTFILE '$OUT' FORMAT CSV"},
		{name: "into outfile, truncate", sql: "SELECT 1 INTO OUTFILE '$OUT' TRUNCATE"},
		{name: "into outfile of a union", sql: "SELECT 1 UNION ALL SELECT 2 INTO OUTFILE '$OUT'"},
		{name: "into outfile behind a comment", sql: "SELECT 1 INTO/**/OUTFILE '$OUT'"},
		{name: "into outfile behind a hostile alias", sql: "SELECT 1 AS `x\nSelectQuery`, 2 AS `y\n Identifier JSON` INTO OUTFILE '$OUT'"},
		// table functions
		{name: "file", sql: "SELECT * FROM file('$FILE', LineAsString)"},
		{name: "file in capitals", sql: "SELECT * FROM FILE('$FILE', LineAsString)"},
		{name: "file in back quotes", sql: "SELECT * FROM `file`('$FILE', 'LineAsString')"},
		{name: "file with a comment inside", sql: "SELECT * FROM file/* x */('$FILE', LineAsString)"},
		{name: "file with an escape", sql: `SELECT * FROM file('\x2fetc/passwd', LineAsString)`},
		{name: "file in a subquery", sql: "SELECT (SELECT count() FROM file('$FILE', LineAsString))"},
		{name: "file in a join", sql: "SELECT 1 FROM volume AS v LEFT JOIN file('$FILE', LineAsString) AS f ON f.line = v.cluster"},
		{name: "file in a with", sql: "WITH f AS (SELECT * FROM file('$FILE', LineAsString)) SELECT * FROM f"},
		{name: "file after in", sql: "SELECT 'x' IN file('$FILE', LineAsString)"},
		{name: "file in a fill", sql: "SELECT 1 AS n ORDER BY n WITH FILL FROM (SELECT count() FROM file('$FILE', LineAsString)) TO 2"},
		{name: "file in an interpolation", sql: "SELECT 1 AS n, '' AS x ORDER BY n WITH FILL FROM 0 TO 3 INTERPOLATE (x AS file('$FILE'))"},
		{name: "file in a limit", sql: "SELECT 1 LIMIT (SELECT count() FROM file('$FILE', LineAsString))"},
		{name: "file in a window", sql: "SELECT sum(1) OVER (ORDER BY file('$FILE'))"},
		{name: "file in a prewhere", sql: "SELECT 1 FROM volume PREWHERE file('$FILE') != ''"},
		{name: "url", sql: "SELECT * FROM url('http://$HOST/c', CSV, 'a String')"},
		{name: "url to be guessed", sql: "SELECT * FROM url('http://$HOST/d')"},
		{name: "s3", sql: "SELECT * FROM s3('http://$HOST/e/f', 'CSV', 'a String')"},
		{name: "remote", sql: "SELECT * FROM remote('127.0.0.1:1', system.one)"},
		{name: "remote, secure", sql: "SELECT * FROM remoteSecure('127.0.0.1', 'system', 'users')"},
		{name: "cluster", sql: "SELECT * FROM cluster('default', system.one)"},
		{name: "mysql", sql: "SELECT * FROM mysql('$HOST', 'd', 't', 'u', 'p')"},
		{name: "postgresql", sql: "SELECT * FROM postgresql('$HOST', 'd', 't', 'u', 'p')"},
		{name: "mongodb", sql: "SELECT * FROM mongodb('$HOST', 'd', 't', 'u', 'p', 'a String')"},
		{name: "redis", sql: "SELECT * FROM redis('$HOST', 'k', 'k String')"},
		{name: "sqlite", sql: "SELECT * FROM sqlite('$OUT', 't')"},
		{name: "executable", sql: "SELECT * FROM executable('x', CSV, 'a String')"},
		{name: "hdfs", sql: "SELECT * FROM hdfs('hdfs://$HOST/x', 'CSV')"},
		{name: "python", sql: "SELECT * FROM Python(x)"},
		{name: "merge", sql: "SELECT * FROM merge('system', '.*')"},
		{name: "view", sql: "SELECT * FROM view(SELECT 1)"},
		{name: "dictionary", sql: "SELECT * FROM dictionary('x')"},
		{name: "filesystem", sql: "SELECT * FROM filesystem('/etc')"},
		{name: "loop", sql: "SELECT * FROM loop(retrial.volume)"},
		{name: "input", sql: "SELECT * FROM input('a String')"},
		{name: "format", sql: "SELECT * FROM format(CSV, 'a')"},
		{name: "generateRandom", sql: "SELECT * FROM generateRandom('a UInt8')"},
		{name: "mergeTreeIndex", sql: "SELECT * FROM mergeTreeIndex(retrial, events)"},
		{name: "null sink", sql: "SELECT * FROM null('a UInt8')"},
		{name: "a file by its name", sql: "SELECT * FROM '$FILE'"},
		{name: "a file by its quoted name", sql: "SELECT * FROM `$FILE`"},
		{name: "a file in a database of files", sql: "SELECT * FROM default.`$FILE`"},
		{name: "a table function through a parameter", sql: "SELECT * FROM {f:Identifier}('$FILE')", args: []string{"param_f", "file"}},
		// functions
		{name: "file function", sql: "SELECT file('$FILE')"},
		{name: "file function in capitals", sql: "SELECT FILE('$FILE')"},
		{name: "file function in back quotes", sql: "SELECT `file`('$FILE')"},
		{name: "file function by its name", sql: "SELECT arrayMap(file, ['$FILE'])"},
		{name: "file function by its quoted name", sql: "SELECT arrayMap(`file`, ['$FILE'])"},
		{name: "file function by a parameter", sql: "SELECT arrayMap({f:Identifier}, ['$FILE'])", args: []string{"param_f", "file"}},
		{name: "file function in a lambda", sql: "SELECT arrayMap(x -> file(x), ['$FILE'])"},
		{name: "file function as a transformer", sql: "SELECT * APPLY(file) FROM (SELECT '$FILE' AS p)"},
		{name: "file function as a lambda transformer", sql: "SELECT * APPLY(x -> file(x)) FROM (SELECT '$FILE' AS p)"},
		{name: "file function in a replacement", sql: "SELECT * REPLACE (file(p) AS p) FROM (SELECT '$FILE' AS p)"},
		{name: "file function by a parameter in a condition", sql: "SELECT 1 FROM volume WHERE arrayExists({f:Identifier}, [cluster])",
			args: []string{"param_f", "FILE"}},
		{name: "file function under an alias", sql: "WITH file AS f SELECT arrayMap(f, ['$FILE'])"},
		{name: "dictGet", sql: "SELECT dictGet('d', 'a', 1)"},
		{name: "joinGet", sql: "SELECT joinGet('retrial.x', 'a', 1)"},
		{name: "hasColumnInTable", sql: "SELECT hasColumnInTable('system', 'users', 'name')"},
		{name: "hasColumnInTable elsewhere", sql: "SELECT hasColumnInTable('$HOST', 'system', 'users', 'name')"},
		{name: "catboost", sql: "SELECT catboostEvaluate('$FILE', 1)"},
		{name: "ai", sql: "SELECT aiGenerate('x')"},
		{name: "sleep", sql: "SELECT sleep(3)"},
		{name: "sleep per row", sql: "SELECT sleepEachRow(1) FROM numbers(10)"},
		{name: "addressToLine", sql: "SELECT addressToLine(1::UInt64)"},
		{name: "logTrace", sql: "SELECT logTrace('x')"},
		{name: "getSetting", sql: "SELECT getSetting('readonly')"},
		{name: "getServerSetting", sql: "SELECT getServerSetting('max_connections')"},
		{name: "getMacro", sql: "SELECT getMacro('x')"},
		{name: "showCertificate", sql: "SELECT showCertificate()"},
		{name: "header of the client", sql: "SELECT getClientHTTPHeader('Authorization')"},
		{name: "hostName", sql: "SELECT hostName()"},
		{name: "filesystemAvailable", sql: "SELECT filesystemAvailable()"},
		{name: "a query in text", sql: "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT 1))"},
		{name: "eval", sql: "SELECT * FROM eval('SELECT 1')"},
		{name: "slow over one row", sql: "SELECT editDistance(repeat('a', 60000), repeat('b', 60000))"},
		{name: "a function that is none", sql: "SELECT nosuch(1)"},
		// states nobody made
		{name: "a forged state", sql: "SELECT finalizeAggregation(CAST('x' AS AggregateFunction(uniq, String)))"},
		{name: "a forged state, type computed", sql: "SELECT CAST('x', concat('Aggregate', 'Function(uniq, String)'))"},
		{name: "a forged state, type escaped", sql: `SELECT CAST('x', 'Aggregate\x46unction(uniq, String)')`},
		{name: "a forged state as a parameter", sql: "SELECT {p:AggregateFunction(uniq, String)}", args: []string{"param_p", "x"}},
		// tables
		{name: "users", sql: "SELECT * FROM system.users"},
		{name: "processes", sql: "SELECT query FROM system.processes"},
		{name: "settings", sql: "SELECT * FROM system.settings"},
		{name: "named collections", sql: "SELECT * FROM system.named_collections"},
		{name: "stack trace", sql: "SELECT * FROM system.stack_trace"},
		{name: "zeros", sql: "SELECT * FROM system.zeros"},
		{name: "information schema", sql: "SELECT * FROM information_schema.tables"},
		{name: "in capitals", sql: "SELECT * FROM SYSTEM.users"},
		{name: "in quotes", sql: "SELECT * FROM \"system\".`users`"},
		{name: "with a comment", sql: "SELECT * FROM system/**/./**/users"},
		{name: "with an escape", sql: "SELECT * FROM `s\\x79stem`.users"},
		{name: "in a subquery", sql: "SELECT (SELECT count() FROM system.users)"},
		{name: "in exists", sql: "SELECT EXISTS (SELECT 1 FROM system.users)"},
		{name: "after in, by name", sql: "SELECT 'default' IN system.users"},
		{name: "after global in, by name", sql: "SELECT 'default' GLOBAL NOT IN (system.users)"},
		{name: "in a function's form of in", sql: "SELECT in('default', system.users)"},
		{name: "in a union", sql: "SELECT '' UNION ALL SELECT name FROM system.users"},
		{name: "in a join", sql: "SELECT 1 FROM volume, system.users"},
		{name: "a table of a database named by a parameter", sql: "SELECT * FROM {d:Identifier}.users",
			args: []string{"param_d", "system"}},
		{name: "a table named by a parameter", sql: "SELECT * FROM system.{t:Identifier}", args: []string{"param_t", "users"}},
		{name: "in a table named by a parameter", sql: "SELECT 'x' IN {t:Identifier}", args: []string{"param_t", "system.users"}},
		{name: "a name that prints a line of its own", sql: "SELECT 1 AS `a\n  TableIdentifier retrial.events` FROM system.users"},
		{name: "under another name", sql: "WITH system.users AS t SELECT * FROM t"},
		{name: "under another name, quoted", sql: "WITH `system`.`users` AS t SELECT * FROM t"},
		{name: "under another name, in a subquery", sql: "SELECT (WITH system.users AS t SELECT any(name) FROM t)"},
		{name: "under another name, after in", sql: "WITH system.users AS t SELECT 'default' IN t"},
		{name: "under another name by a parameter", sql: "WITH {t:Identifier} AS t SELECT * FROM t",
			args: []string{"param_t", "system.users"}},
		{name: "under another name by two parameters", sql: "WITH {d:Identifier}.{t:Identifier} AS t SELECT * FROM t",
			args: []string{"param_d", "system", "param_t", "users"}},
		{name: "a file under another name", sql: "WITH default.`$FILE` AS t SELECT * FROM t"},
		{name: "a function under another name", sql: "WITH {f:Identifier} AS f SELECT arrayMap(f, ['$FILE'])",
			args: []string{"param_f", "file"}},
		{name: "a function of its own", sql: "WITH (x -> file(x)) AS f SELECT f('$FILE')"},
		{name: "another alphabet", sql: "SELECT * FROM sуstem.users"}, // a Cyrillic letter
		{name: "full width", sql: "ＳＥＬＥＣＴ 1"},
		{name: "a zero byte", sql: "SELECT 1\x00 FROM system.users"},
		{name: "not text", sql: "\xff\xfeS\x00E\x00"},
		// settings
		{name: "settings in the query", sql: "SELECT 1 SETTINGS readonly = 0"},
		{name: "settings after the format", sql: "SELECT 1 FORMAT JSON SETTINGS max_threads = 1"},
		{name: "settings of a union", sql: "SELECT 1 UNION ALL SELECT 2 SETTINGS max_execution_time = 0"},
		{name: "settings in a subquery", sql: "SELECT * FROM (SELECT 1 SETTINGS max_memory_usage = 0)"},
		{name: "a filter in a setting", sql: "SELECT * FROM volume SETTINGS additional_table_filters = {'retrial.volume': " +
			"'file(''/etc/passwd'') != '''''}"},
		{name: "readonly lifted in the address", sql: "SELECT 1", args: []string{"readonly", "0"}},
		{name: "a filter in the address", sql: "SELECT * FROM volume", args: []string{"additional_result_filter", "file('/etc/passwd') " +
			"!= ''"}},
		{name: "introspection in the address", sql: "SELECT 1", args: []string{"allow_introspection_functions", "1"}},
		{name: "a template in the address", sql: "SELECT 1", args: []string{"format_template_row", "/etc/passwd"}},
		{name: "a setting twice", sql: "SELECT 1", args: []string{"max_threads", "1", "max_threads", "2"}},
		{name: "a query twice", sql: "", args: []string{"query", "SELECT 1", "query", "DROP TABLE retrial.events"}},
		{name: "a value that ends the statement", sql: "SELECT 1", args: []string{"session_timezone", "UTC', readonly = '0"}},
		{name: "a session", sql: "SELECT 1", args: []string{"session_id", "x"}},
		{name: "a role", sql: "SELECT 1", args: []string{"role", "admin"}},
		{name: "another database", sql: "SELECT * FROM users", args: []string{"database", "system"}},
		{name: "a database that is none", sql: "SELECT 1", args: []string{"database", "retrial`; DROP TABLE x"}},
		// formats
		{name: "a format that reads files", sql: "SELECT 1 FORMAT Template"},
		{name: "a format that reads schemas", sql: "SELECT 1 FORMAT Protobuf"},
		{name: "a default format that is none", sql: "SELECT 1", args: []string{"default_format", "../x"}},
		{name: "a format with quotes", sql: "SELECT 1 FORMAT `a b`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := make([]string, len(c.args))
			for i, arg := range c.args {
				args[i] = fill.Replace(arg)
			}
			a := k.ask(t, fill.Replace(c.sql), args...)
			if a.status < 400 || a.code == "" || !strings.HasPrefix(a.text, "Code: "+a.code+". DB::Exception: ") {
				t.Fatalf("%d, code %q: %.300s", a.status, a.code, a.text)
			}
			if strings.Contains(a.text, "planted-secret") || strings.Contains(a.text, "root:x:") {
				t.Fatalf("the answer shows a file: %s", a.text)
			}
			if a.status >= 500 {
				t.Errorf("refused by the engine, not by the gate: %s", a.text)
			}
		})
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written")
	}
	select {
	case path := <-reached:
		t.Errorf("another host was asked for %s", path)
	default:
	}
	if after := k.ask(t, "SELECT sum(sign) FROM events").text; after != before {
		t.Errorf("%s rows before, %s after", before, after)
	}
}
