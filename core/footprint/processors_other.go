//go:build !unix

package footprint

import "time"

// processorTime has no way to be known on other systems: there all processors are used.
func processorTime() (time.Duration, bool) { return 0, false }
