package process

import (
	"bufio"
	"strings"
	"testing"
	"time"
)

// The test limits nothing, as if limiting never ended because the program keeps starting processes.
func TestAStopDoesNotWaitForTaskLimits(t *testing.T) {
	s := &shim{requests: bufio.NewReader(strings.NewReader("tasks 30\ntasks 20\ntasks 10\nstop 5\n")), tasks: make(chan int, 1)}
	if grace := <-s.receiveStops(); grace != 5*time.Nanosecond {
		t.Errorf("the grace period is %v", grace)
	}
	if limit := <-s.tasks; limit != 10 {
		t.Errorf("the limit is %d, want the latest", limit)
	}
}
