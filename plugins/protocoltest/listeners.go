package protocoltest

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
	tcpListens     = "0A"
	udpUnconnected = "07"
)

// listenersOf returns the addresses on which a process and its children listen, according to Linux.
func listenersOf(pid int) ([]listenerAddress, error) {
	inodes := map[string]bool{}
	for _, member := range family(pid) {
		if err := addSockets(inodes, member); err != nil && member == pid {
			return nil, err
		}
	}
	var all []listenerAddress
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		state := tcpListens
		if strings.HasPrefix(table, "udp") {
			state = udpUnconnected
		}
		found, err := listening(filepath.Join("/proc", strconv.Itoa(pid), "net", table), state, inodes)
		if err != nil && !os.IsNotExist(err) { // a kernel without IPv6 has no tcp6
			return nil, err
		}
		for _, at := range found {
			all = append(all, listenerAddress{table[:3], at})
		}
	}
	return all, nil
}

// addSockets adds the inodes of a process's open sockets.
func addSockets(inodes map[string]bool, pid int) error {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, "fd", e.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return nil
}

// listening returns the sockets in a table of /proc/net that are among inodes and in the wanted state.
func listening(table, wanted string, inodes map[string]bool) ([]*net.TCPAddr, error) {
	const local, state, inode = 1, 3, 9
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []*net.TCPAddr
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= inode || fields[state] != wanted || !inodes[fields[inode]] {
			continue
		}
		address, err := parseAddress(fields[local])
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, lines.Err()
}

// parseAddress parses an address from /proc/net: words of four bytes in little-endian order, a colon and the
// port, all in hex.
func parseAddress(text string) (*net.TCPAddr, error) {
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	if err != nil || len(ip)%4 != 0 {
		return nil, fmt.Errorf("the address %q of /proc/net cannot be read", text)
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	n, err := strconv.ParseUint(port, 16, 16)
	return &net.TCPAddr{IP: ip, Port: int(n)}, err
}

// listensNowhereElse looks for listeners other than the one in the handshake line. A DNS query has a datagram socket
// until its answer arrives, so a socket counts only if it stays open.
func (p *process) listensNowhereElse(b *bench) error {
	stay, err := p.otherListeners()
	if err != nil {
		return kit.CannotJudge("this system does not show where a process listens: run the kit on Linux")
	}
	for until := time.Now().Add(lookup); len(stay) > 0 && time.Now().Before(until); {
		if err := b.pause(100 * time.Millisecond); err != nil {
			return err
		}
		again, err := p.otherListeners()
		if err != nil {
			return err
		}
		maps.DeleteFunc(stay, func(at string, _ bool) bool { return !again[at] })
	}
	for at := range stay {
		return failure("it also listens on "+at, p.fields[2]+" "+p.fields[3]+" alone", sentenceNowhere, "Configure", "a call")
	}
	return nil
}

// lookup is the longest that a DNS query may keep its socket open: resolvers give up after five seconds, plus one
// second.
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
