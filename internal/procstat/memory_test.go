package procstat

import (
	"testing"
	"testing/fstest"
)

func TestMemoryIn(t *testing.T) {
	const meminfo = "MemTotal:       2048 kB\nMemFree:        1024 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is told", nil, 0},
		{"a machine without groups", map[string]string{"proc/meminfo": meminfo}, 2 << 20},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n"}, 2 << 20},
		{"a container, whose group looks like the root", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		{"the group above has less", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1048576\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		{"a limit above what there is", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "9223372036854771712\n"}, 2 << 20},
		{"version 1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "11:cpu,cpuacct:/x\n7:memory:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "8192\n", "sys/fs/cgroup/memory.max": "max"}, 8192},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryIn(root); got != c.want {
				t.Errorf("memory %d, want %d", got, c.want)
			}
		})
	}
	if got := Memory(); got < 64<<20 {
		t.Errorf("this process may use %d bytes, if one believes it", got)
	}
}
