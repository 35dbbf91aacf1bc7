package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestManual(t *testing.T) {
	root := &cobra.Command{Use: "program", Short: "does things"}
	sub := &cobra.Command{Use: "sub NAME", Short: "does one", Long: "First line.\n.dangerous \\n line", Example: "  program sub x",
		Run: func(*cobra.Command, []string) {}}
	sub.Flags().StringP("output", "o", "table", "the `FORM` of it")
	sub.Flags().Bool("secret", false, "nobody's business")
	_ = sub.Flags().MarkHidden("secret")
	hidden := &cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(sub, hidden, NewMan("v1"))
	dir := filepath.Join(t.TempDir(), "man")
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "program-sub.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`.TH "PROGRAM-SUB" 1 "" "program v1" "Retrial"`, `program\-sub \- does one`, "\n\\&.dangerous \\en line\n",
		".TP\n\\fB\\-o, \\-\\-output\\fR \\fIFORM\\fR\nthe FORM of it (default table)\n", ".BR program (1)"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "secret") {
		t.Error("a hidden flag is told of")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) < 2 || strings.Contains(list[0].Name()+list[1].Name(), "hidden") {
		t.Errorf("%v, error %v", list, err)
	}
}
