package sandbox

import (
	"context"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openPorts records the ports on which the sockets of an app have ever listened. All its listen calls go through the
// broker.
type openPorts [1 << 16 / 64]atomic.Uint64

// open records the port of a socket. It does nothing for a Unix socket.
func (p *openPorts) open(fd int) {
	if port := localPort(fd); port != 0 {
		p.add(port)
	}
}

func (p *openPorts) add(port int)              { p[port/64].Or(1 << (port % 64)) }
func (p *openPorts) contains(port uint16) bool { return p[port/64].Load()&(1<<(port%64)) != 0 }

// refusal returns the error for a connect call to a service on this machine if the error is certain before the call is
// made, and nil otherwise. Programs that poll for a service make such calls in a loop, and this is several times cheaper
// than starting a goroutine and having the kernel refuse the connection. It never blocks.
func (b *Broker) refusal(n notification) error {
	if n.number != unix.SYS_CONNECT {
		return nil
	}
	var raw [maxAddress]byte
	address, err := copyMemory(raw[:], int(n.pid), uintptr(n.args[1]), uintptr(n.args[2]))
	if err != nil || len(address) < 2 || address[1] != 0 || address[0] != unix.AF_INET && address[0] != unix.AF_INET6 {
		return nil //nolint:nilerr // the call itself will fail with the right error
	}
	to, ok := parseAddress(address)
	if !ok || !to.Addr().Unmap().IsLoopback() || b.network.mayName(to.Port()) {
		return nil
	}
	if b.network.permits(context.Background(), to, isOwnAddress, nil) {
		return nil
	}
	if !b.private && !b.own.isEmpty() {
		return nil
	}
	if !b.private {
		b.denials.add(to)
		return unix.EACCES
	}
	if b.ports.contains(to.Port()) || b.names != nil && to.Port() == namePort || !b.isUnconnected(n) {
		return nil
	}
	b.denials.add(to)
	return unix.ECONNREFUSED
}

// isUnconnected reports whether a call is for a TCP socket without a connection.
func (b *Broker) isUnconnected(n notification) bool {
	if n.pid != b.asked.thread {
		_ = unix.Close(b.asked.pidfd)
		pidfd, err := unix.PidfdOpen(int(n.pid), unix.PIDFD_THREAD)
		if b.asked = (askingThread{n.pid, pidfd}); err != nil || !b.valid(n) {
			b.asked.thread = 0
			return false
		}
	}
	fd, err := unix.PidfdGetfd(b.asked.pidfd, int(int32(n.args[0])), 0)
	if err != nil {
		b.asked.thread = 0
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INFO) // the first byte is the state
	state := int32(info)
	return err == nil && *(*byte)(unsafe.Pointer(&state)) == tcpClose
}

// askingThread is the thread whose call was last refused immediately. Usually the same thread makes the next one too.
// The descriptor never refers to another thread that gets the same id.
type askingThread struct {
	thread uint32
	pidfd  int // -1 for none
}
