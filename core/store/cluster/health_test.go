package cluster

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoticesThatAreNotReadOrWrittenForThreeSecondsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cluster
		c.health.readDone(nil)
		pass := func(d time.Duration) error { <-time.After(d); return c.Check() }
		if err := pass(lateAfter); err != nil {
			t.Errorf("not yet late: %v", err)
		}
		if err := pass(1); err == nil || !strings.Contains(err.Error(), "cannot read notices from other servers: the database does not respond") {
			t.Errorf("unread, without an answer: %v", err)
		}
		c.health.readDone(errors.New("connection refused"))
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "cannot read notices from other servers: connection refused") {
			t.Errorf("unread: %v", err)
		}
		c.health.writeBegins()
		c.health.writeDone(errors.New("read-only"))
		<-time.After(lateAfter)
		c.health.readDone(nil)
		if err := pass(1); err == nil || !strings.Contains(err.Error(), "cannot write notices for other servers: read-only") {
			t.Errorf("unwritten: %v", err)
		}
		c.health.writeDone(nil)
		if err := c.Check(); err != nil {
			t.Errorf("after both: %v", err)
		}
	})
}
