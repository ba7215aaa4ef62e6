package instance

import (
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// programsAge is how long the list of programs on the search path may be reused. Finding them, and the libraries that
// each needs, accounts for most of the time that an app takes to start; a server starts hundreds of apps at once.
const programsAge = time.Second

// searchPathPrograms keeps the last result of sandbox.SearchPathPrograms.
type searchPathPrograms struct {
	lock    sync.Mutex // apps that start at the same time wait for one search
	found   []string
	key     []string    // the search path and the protected directories
	changes []time.Time // of the search path's directories when they were searched
	until   time.Time
}

// list returns the programs on the search path. The caller must not change the list.
func (p *searchPathPrograms) list(searchPath, protected []string) []string {
	p.lock.Lock()
	defer p.lock.Unlock()
	changes := make([]time.Time, len(searchPath))
	for i, dir := range searchPath {
		if info, err := os.Stat(dir); err == nil {
			changes[i] = info.ModTime()
		}
	}
	key := slices.Concat(searchPath, []string{""}, protected)
	if time.Now().After(p.until) || !slices.Equal(key, p.key) || !slices.EqualFunc(changes, p.changes, time.Time.Equal) {
		p.found = sandbox.SearchPathPrograms(searchPath, protected)
		p.key, p.changes, p.until = key, changes, time.Now().Add(programsAge)
	}
	return p.found
}
