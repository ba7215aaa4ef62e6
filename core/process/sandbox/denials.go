package sandbox

import (
	"maps"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// denials counts the refused connections of an app to services on this machine, and reports them occasionally.
type denials struct {
	mu     sync.Mutex
	counts map[netip.AddrPort]int
	report func(kind, target string, count int) // may be nil
	due    bool                                 // whether a report is scheduled
}

// Even an app that attempts many connections causes only one report per reportPause, with at most maxDenied
// destinations.
const (
	reportPause = 500 * time.Millisecond
	maxDenied   = 20
)

// add counts a refused connection.
func (d *denials) add(to netip.AddrPort) {
	ip := to.Addr().Unmap().WithZone("")
	if !ip.IsLoopback() {
		return
	}
	if ip == netip.IPv6Loopback() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1}) // 127.0.0.1 and ::1 both count as localhost
	}
	target := netip.AddrPortFrom(ip, to.Port())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.report == nil {
		return
	}
	if _, known := d.counts[target]; !known && len(d.counts) >= maxDenied {
		return
	}
	if d.counts == nil {
		d.counts = map[netip.AddrPort]int{}
	}
	d.counts[target]++
	if !d.due {
		d.due = true
		time.AfterFunc(reportPause, d.flush)
	}
}

// flush reports the counts.
func (d *denials) flush() {
	d.mu.Lock()
	counts, report := maps.Clone(d.counts), d.report
	clear(d.counts)
	d.due = false
	d.mu.Unlock()
	for to, count := range counts {
		target := to.String()
		if to.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			target = "localhost:" + strconv.Itoa(int(to.Port()))
		}
		report("net", target, count)
	}
}
