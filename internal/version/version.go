// Package version says which version of the product a program is of.
package version

// Version is set when programs are built (see Makefile).
var Version = "dev"
