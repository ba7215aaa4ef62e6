package sandbox

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFloodOfRefusedConnectionsIsCountedAndReportedPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports, sum := 0, map[string]int{}
		d := denials{report: func(_, target string, count int) { reports++; sum[target] += count }}
		redis := netip.MustParseAddrPort("127.0.0.1:6379")
		for range 100_000 {
			d.add(redis)
		}
		d.add(netip.MustParseAddrPort("[::1]:6379"))
		d.add(netip.MustParseAddrPort("127.0.0.2:80"))
		d.add(netip.MustParseAddrPort("192.0.2.1:80")) // another machine
		<-time.After(2 * reportPause)
		synctest.Wait()
		if reports != 2 || sum["localhost:6379"] != 100_001 || sum["127.0.0.2:80"] != 1 {
			t.Errorf("%d reports: %v", reports, sum)
		}
		for port := range 1000 {
			d.add(netip.AddrPortFrom(redis.Addr(), uint16(port+1)))
		}
		d.mu.Lock()
		remembered := len(d.counts)
		d.mu.Unlock()
		if remembered > maxDenied {
			t.Errorf("%d destinations are remembered", remembered)
		}
		<-time.After(2 * reportPause)
	})
}
