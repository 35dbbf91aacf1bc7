// Package product runs the built retrial binary for a test: `serve` with the embedded store
// on folders of the test's own, commands beside it, and the local API.
package product
