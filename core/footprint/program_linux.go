package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram unmaps the pages of the executable from the process: most of those that are there
// were needed for its start alone. What is needed again comes back from the page cache. A mapping in
// which anything was written, such as relocations, is left alone.
func releaseProgram() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = smaps.Close() }()
	for _, m := range clean(smaps, exe) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED) // advice: nothing is lost if it is not taken
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// clean finds the mappings of a file in /proc/<pid>/smaps (proc(5)) that cannot be written and of
// which no page is the process's own.
func clean(smaps io.Reader, file string) []mapping {
	var all []mapping
	var current *mapping
	in := bufio.NewScanner(smaps)
	for in.Scan() {
		fields := strings.Fields(in.Text())
		if len(fields) < 2 {
			continue
		}
		if strings.HasSuffix(fields[0], ":") { // a line about the current mapping
			if fields[0] == "Anonymous:" && fields[1] == "0" && current != nil {
				all = append(all, *current)
			}
			continue
		}
		current = nil
		if strings.HasSuffix(in.Text(), " "+file) && !strings.Contains(fields[1], "w") {
			current = parse(fields[0])
		}
	}
	return all
}

func parse(addresses string) *mapping {
	from, to, _ := strings.Cut(addresses, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil || end <= start {
		return nil
	}
	return &mapping{uintptr(start), uintptr(end)}
}
