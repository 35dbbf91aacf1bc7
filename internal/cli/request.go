package cli

import (
	"reflect"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/params"
)

// BindRequest adds a flag for each of the named parameters of a request, to which it is given a
// pointer: name, help and default come from the tags of its fields.
func BindRequest(c *cobra.Command, request any, names ...string) {
	for _, name := range names {
		f := params.FlagOf(request, name)
		flag := c.Flags().VarPF(f, f.Field.Flag, f.Field.Short, f.Field.FlagHelp)
		if f.Field.Type.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
	}
}
