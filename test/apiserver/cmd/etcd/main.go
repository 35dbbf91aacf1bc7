// Command etcd is etcd built from its Go module, for the tests beside it: the released
// server, nothing added.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
