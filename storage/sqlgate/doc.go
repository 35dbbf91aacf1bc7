// Package sqlgate serves the store to untrusted SQL clients, over ClickHouse's HTTP interface
// and for reading only: what a dashboard needs, and nothing that reaches beyond the tables.
//
// The embedded engine has no users and no grants, so nothing in it keeps a SELECT from
// reading files, calling other hosts or writing its result to disk. The gate does:
//
//	request ──▶ authenticate ──▶ slot ──▶ session (readonly, limits) ──▶ format ──▶ tree ──▶ check ──▶ run ──▶ record
//	                                       one engine connection, closed after
//
// The engine itself parses. Its canonical text of the query (formatQuerySingleLine, given
// the text as a value) is one statement without comments, escapes or alternative spellings;
// EXPLAIN AST shows what that text means with the parameters inserted. Both are checked against
// allow lists: kinds of nodes, functions, table functions, tables. What is not known is
// refused, so new features of an engine are not offered here. The text that was checked is the
// text that runs, on a connection that is also read-only.
package sqlgate
