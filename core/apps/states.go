package apps

import "github.com/ropewalk/ropewalk/core"

// States is how many apps of all workspaces are in which state.
func (y *Manager) States() map[core.State]int {
	y.mu.RLock()
	defer y.mu.RUnlock()
	counts := map[core.State]int{}
	for _, workspace := range y.apps {
		for _, a := range workspace {
			counts[a.now.Load().state]++
		}
	}
	return counts
}
