package changeset

import (
	"bytes"
	"fmt"

	"github.com/retrial-io/retrial/internal/phrase"
)

// Names of the scripts, which take the steps of README.md.
const (
	applyScript    = "apply.sh"
	removeScript   = "remove.sh"
	rollbackScript = "rollback.sh"
)

// start is how each script begins: where it is, which kubectl it calls, and how it edits.
const start = `set -u
cd "$(dirname "$0")" || exit 1
: "${KUBECTL:=kubectl}" # such as KUBECTL="kubectl --context production"
failed=0
`

// editing patches an object, unless the way back says that this is done.
const editing = `
edit() { # PATCH WAY-BACK OBJECT
	patch=$1 back=$2
	shift 2
	if $KUBECTL patch "$@" --type=json --patch-file "$back" --dry-run=server >/dev/null 2>&1; then
		echo "$1: is so already"
	else
		$KUBECTL patch "$@" --type=json --patch-file "$patch" || failed=1
	fi
}
`

// removing deletes an object that is what it was.
const removing = `
remove() { # TEST OBJECT
	test=$1
	shift
	found=$($KUBECTL get "$@" --ignore-not-found -o name) || { failed=1; return; }
	if [ -z "$found" ]; then
		echo "$1: is gone already"
	else
		$KUBECTL patch "$@" --type=json --patch-file "$test" >/dev/null && $KUBECTL delete "$@" || failed=1
	fi
}
`

// restoring makes an object that is gone.
const restoring = `
restore() { # FILE OBJECT
	file=$1
	shift
	found=$($KUBECTL get "$@" --ignore-not-found -o name) || { failed=1; return; }
	if [ -n "$found" ]; then
		echo "$1: is there already"
	else
		$KUBECTL create -f "$file" || failed=1
	fi
}
`

// changed is what a script says of objects that are not what they were.
const changed = "some objects have changed since this was made: see above, and make the suggestion again"

// script is one that is written.
type script struct {
	bytes.Buffer
}

func (b *script) begin(told string, functions ...string) {
	fmt.Fprintf(b, "#!/bin/sh\n# %s\n%s", told, start)
	for _, f := range functions {
		b.WriteString(f)
	}
	b.WriteString("\n")
}

// call writes the call of a function for the object of a step.
func (b *script) call(function string, s *step, files ...string) {
	b.WriteString(function)
	for _, f := range files {
		b.WriteString(" " + phrase.ShellWord(f))
	}
	fmt.Fprintf(b, " %s\n", phrase.KubectlObject(s.key.Kind.String(), s.key.Namespace, s.key.Name))
}

// stop ends a script that has failed.
func (b *script) stop(name, told string) {
	fmt.Fprintf(b, "[ $failed = 0 ] || { echo %s >&2; exit 1; }\n", phrase.ShellWord(name+": "+told))
}

// scripts writes the steps as commands.
func (c *change) scripts() error {
	if len(c.made)+len(c.edited) > 0 {
		c.applyScript()
	}
	if len(c.removed) > 0 {
		c.removeScript()
	}
	if len(c.made)+len(c.edited)+len(c.removed) > 0 {
		c.rollbackScript()
	}
	return nil
}

func (c *change) applyScript() {
	var b script
	var functions []string
	if len(c.edited) > 0 {
		functions = append(functions, editing)
	}
	b.begin("Makes what replaces, then narrows the roles that stay. It may be run again.", functions...)
	if len(c.made) > 0 {
		b.WriteString("$KUBECTL apply -k . || exit 1\n")
	}
	for i := range c.edited {
		name := fileOf(c.edited[i].key)
		b.call("edit", &c.edited[i], "patches/"+name, "rollback/"+name)
	}
	b.stop(applyScript, changed)
	c.add(applyScript, &b.Buffer)
}

func (c *change) removeScript() {
	var b script
	b.begin("Takes away what "+applyScript+" replaced: run it when that is in force. It may be run again.", editing, removing)
	for i := range c.removed {
		s := &c.removed[i]
		if i > 0 && rank(s.key) == 0 && rank(c.removed[i-1].key) == 1 {
			b.stop(removeScript, changed+"; no role was deleted")
		}
		name := fileOf(s.key)
		if s.after == nil {
			b.call("remove", s, "remove/"+name)
		} else {
			b.call("edit", s, "remove/"+name, "rollback/"+name)
		}
	}
	b.stop(removeScript, changed)
	c.add(removeScript, &b.Buffer)
}

func (c *change) rollbackScript() {
	var b script
	b.begin("Brings back what was there before, then deletes what was made. It may be run at any time.", editing, restoring)
	for _, roles := range []bool{true, false} { // first: a binding needs its role
		for i := range c.removed {
			s := &c.removed[i]
			name := fileOf(s.key)
			switch {
			case (rank(s.key) == 0) != roles:
			case s.after == nil:
				b.call("restore", s, "rollback/"+name)
			default:
				b.call("edit", s, "rollback/"+name, "remove/"+name)
			}
		}
	}
	for i := range c.edited {
		name := fileOf(c.edited[i].key)
		b.call("edit", &c.edited[i], "rollback/"+name, "patches/"+name)
	}
	b.stop(rollbackScript, "some objects are neither as they were nor as the change left them: see above; what was made stays")
	if len(c.made) > 0 {
		b.WriteString("$KUBECTL delete -k . --ignore-not-found\n")
	}
	c.add(rollbackScript, &b.Buffer)
}
