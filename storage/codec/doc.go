// Package codec turns rows into columns and columns into rows. The table of columns (columns.go) is where everything about a column
// stands: how it is appended, read, compared and hashed, and docs/schema.md follows from it. What a [Block] appends, [Stored] reads.
//
// What is hashed of a row, and in which order, is for ever: a row is taken back by the version it was stored with, by whichever
// release. [Folds] bounds how much of a day is counted by itself (docs/adr/0076).
//
// The package talks to no server.
package codec
