package protocoltest

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// listenerAddress is where a process accepts TCP connections or UDP datagrams.
type listenerAddress struct {
	network string // "tcp" or "udp"
	*net.TCPAddr
}

// String returns the network and the address.
func (a listenerAddress) String() string { return a.network + " " + a.TCPAddr.String() }

// Socket states in /proc/net: a listening TCP socket, and an unconnected UDP socket, which accepts datagrams
// from anyone.
const (
	tcpListens     = 10
	udpUnconnected = 7
)

// listenersOf returns the addresses on which a process and its children listen, according to Linux.
func listenersOf(pid int) (all []listenerAddress, err error) {
	own := map[string]bool{}
	for _, member := range family(pid) {
		proc, err := procfs.NewProc(member)
		if err == nil {
			var targets []string
			targets, err = proc.FileDescriptorTargets()
			for _, target := range targets {
				own[target] = true
			}
		}
		if err != nil && member == pid {
			return nil, err
		}
	}
	fs, err := procfs.NewFS(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return nil, err
	}
	datagrams := func(table func() (procfs.NetUDP, error)) func() (procfs.NetTCP, error) {
		return func() (procfs.NetTCP, error) {
			lines, err := table()
			return procfs.NetTCP(lines), err
		}
	}
	for _, table := range []struct {
		network string
		state   uint64
		read    func() (procfs.NetTCP, error)
	}{{"tcp", tcpListens, fs.NetTCP}, {"tcp", tcpListens, fs.NetTCP6}, {"udp", udpUnconnected, datagrams(fs.NetUDP)}, {"udp", udpUnconnected, datagrams(fs.NetUDP6)}} {
		lines, err := table.read()
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6 has no tcp6
			return nil, err
		}
		for _, l := range lines {
			if l.St == table.state && own[fmt.Sprintf("socket:[%d]", l.Inode)] {
				all = append(all, listenerAddress{table.network, &net.TCPAddr{IP: l.LocalAddr, Port: int(l.LocalPort)}}) //nolint:gosec // a port
			}
		}
	}
	return all, nil
}

// listensNowhereElse looks for listeners other than the one in the handshake line. A DNS query has a datagram socket
// until its answer arrives, so a socket counts only if it stays open.
func (p *process) listensNowhereElse() {
	stay, err := p.otherListeners()
	if err != nil {
		kit.Must(kit.CannotJudge("this system does not show where a process listens: run the kit on Linux"))
	}
	for until := time.Now().Add(lookup); len(stay) > 0 && time.Now().Before(until); {
		kit.Must(kit.Pause(p.ctx, 100*time.Millisecond))
		again := kit.Got(p.otherListeners())
		maps.DeleteFunc(stay, func(at string, _ bool) bool { return !again[at] })
	}
	for at := range stay {
		kit.Reject("it also listens on "+at, p.fields[2]+" "+p.fields[3]+" alone", sentenceNowhere, "Configure", "a call")
	}
}

// lookup is the longest that a DNS query may keep its socket open: resolvers give up after five seconds, and this is one
// second more.
const lookup = 6 * time.Second

// otherListeners returns the addresses that the process listens on, except the one in its handshake line.
func (p *process) otherListeners() (map[string]bool, error) {
	all, err := listenersOf(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, at := range all {
		if p.fields[2] != "tcp" || at.network != "tcp" || at.TCPAddr.String() != p.fields[3] {
			others[at.String()] = true
		}
	}
	return others, nil
}
