package procstat

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory this process may use: what its control groups allow, or
// all that the machine has; 0 where the system does not tell.
func Memory() int64 { return memoryIn(os.DirFS("/")) }

// memoryIn is Memory of a system whose root is given.
func memoryIn(root fs.FS) int64 {
	most := int64(math.MaxInt64)
	if machine := machineMemory(root); machine > 0 {
		most = machine
	}
	for _, file := range limitFiles(root) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue // a group without a limit has no file, or not all groups are visible
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 { // else "max"
			most = min(most, limit)
		}
	}
	if most == math.MaxInt64 {
		return 0
	}
	return most
}

// machineMemory returns what the machine has, 0 if it does not tell.
func machineMemory(root fs.FS) int64 {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// limitFiles returns the files that may hold a limit: of the process's control group and of all those above it, in either version of
// control groups.
func limitFiles(root fs.FS) (files []string) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, group
		if len(fields) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case fields[1] == "memory":
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case fields[1] != "":
			continue
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			files = append(files, path.Join(mount, group, file))
			if group == "/" {
				break
			}
		}
	}
	return files
}
