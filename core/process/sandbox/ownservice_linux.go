package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ownServices are the listening sockets of an app that has no network of its own. Programs that consist of several
// processes, such as browsers, connect to each other on loopback.
type ownServices struct {
	lock   sync.Mutex
	inodes []string // the newest last
}

// ownPatience is how long the broker waits for the connection of a program whose socket is non-blocking.
const ownPatience = 250 * time.Millisecond

const maxServices = 1024 // for one app; if it creates more, it cannot connect to the oldest

func (o *ownServices) add(inode string) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if slices.Contains(o.inodes, inode) {
		return
	}
	if len(o.inodes) == maxServices {
		o.forgetClosed()
	}
	o.inodes = append(o.inodes[max(0, len(o.inodes)+1-maxServices):], inode)
}

// forgetClosed removes the sockets that no longer listen. The caller holds the lock.
func (o *ownServices) forgetClosed() {
	open := map[string]bool{}
	if eachSocket(func(s tcpSocket) { open[s.inode] = s.state == listening }) == nil {
		o.inodes = slices.DeleteFunc(o.inodes, func(inode string) bool { return !open[inode] })
	}
}

func (o *ownServices) isEmpty() bool {
	o.lock.Lock()
	defer o.lock.Unlock()
	return len(o.inodes) == 0
}

// include reports whether a port of this machine belongs to the app: all sockets that listen on it are the app's.
func (o *ownServices) include(to netip.AddrPort) bool {
	if !to.Addr().Unmap().IsLoopback() || o.isEmpty() {
		return false
	}
	found, err := listeners(to.Port())
	return err == nil && len(found) > 0 && o.haveAll(found)
}

// mayAdd reports whether the app may listen on a port: no other program's socket listens on it, on any address. inode
// identifies the app's socket that would listen there.
func (o *ownServices) mayAdd(inode string, port uint16) bool {
	found, err := listeners(port)
	return err == nil && o.haveAll(slices.DeleteFunc(found, func(other string) bool { return other == inode }))
}

func (o *ownServices) haveAll(inodes []string) bool {
	o.lock.Lock()
	defer o.lock.Unlock()
	return !slices.ContainsFunc(inodes, func(inode string) bool { return !slices.Contains(o.inodes, inode) })
}

// listening is the state of a socket that listens (TCP_LISTEN).
const listening = "0A"

// listeners returns the inodes of the sockets that listen on a port of the server's network.
func listeners(port uint16) (inodes []string, err error) {
	suffix := fmt.Sprintf(":%04X", port)
	err = eachSocket(func(s tcpSocket) {
		if s.state == listening && strings.HasSuffix(s.local, suffix) {
			inodes = append(inodes, s.inode)
		}
	})
	return inodes, err
}

// noteService records the socket of a listen call, and lets the kernel make the call. It replaces listen where the
// broker may not take the app's descriptors, and so cannot find the socket's port. If the app swaps the socket in the
// meantime, the new socket is also its own.
func (b *Broker) noteService(n notification) error {
	inode, err := socketInode(n)
	if err != nil {
		return err
	}
	if !b.valid(n) {
		return unix.ESRCH // the id belongs to another thread now
	}
	b.own.add(inode)
	return errContinue
}

// connectOwn connects to one of the app's own services. The app could give up the port just before the connection is
// made, and another program could then take over the port and receive the connection. So connectOwn connects a
// different socket, and gives it to the app only if the port still belongs to the app.
func (b *Broker) connectOwn(n notification, s appSocket, to netip.AddrPort, raw []byte) error {
	mine := s
	if !s.twin {
		var err error
		if mine, err = b.twin(n); err != nil {
			return err
		}
		defer func() { _ = unix.Close(mine.fd) }()
		copyOptions(s, mine.fd)
	}
	err := errors.Join(b.connectable(n, mine), unix.SetNonblock(mine.fd, true))
	if err != nil {
		return err
	}
	if err = connectRaw(mine.fd, raw); errors.Is(err, unix.EINPROGRESS) {
		var until time.Time
		if appFlags(n)&unix.O_NONBLOCK != 0 { // the calling thread may be the one that must accept the connection
			until = time.Now().Add(ownPatience)
		}
		err = b.await(n, mine.fd, until)
	}
	if err == nil && !b.own.include(to) {
		err = unix.EACCES
	}
	if err == nil {
		err = unix.SetNonblock(mine.fd, appFlags(n)&unix.O_NONBLOCK != 0)
	}
	if err == nil && !s.twin {
		err = b.put(n, mine.fd)
	}
	return err
}
