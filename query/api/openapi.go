package api

import (
	_ "embed" // for the document
	"net/http"
)

// openAPI describes every question, its parameters and its answer (OpenAPI 3.1). It is generated from
// the types of requests and answers, and from their comments: `make golden`.
//
//go:embed openapi.json
var openAPI []byte

// serveOpenAPI answers with the document.
func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	private(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // the caller is gone when this fails
}
