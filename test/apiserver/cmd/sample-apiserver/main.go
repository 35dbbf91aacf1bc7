// Command sample-apiserver is Kubernetes' example of an API server behind the aggregator,
// built from its Go module, for the tests beside it: the released server, nothing added.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/sample-apiserver/pkg/cmd/server"
)

func main() {
	options := server.NewWardleServerOptions(os.Stdout, os.Stderr)
	os.Exit(cli.Run(server.NewCommandStartWardleServer(genericapiserver.SetupSignalContext(), options, false)))
}
