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

// ownServices are the sockets on which an app listens, where it has no network of its own. Programs that consist of
// several processes, such as browsers, connect to each other on loopback.
type ownServices struct {
	lock   sync.Mutex
	inodes []string // the newest last
}

// ownPatience is how long a connection of a program that does not wait may take to be made.
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

// mayAdd reports whether no socket but the app's listens on a port, on any address. inode is the app's socket that is to
// listen there.
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

// noteService records the socket of a listen call, which the kernel then makes. If the app puts another socket in its place
// in the meantime, that is also its own. It takes the place of listen where the broker cannot take the app's socket to find
// its port.
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

// connectOwn connects to a service of the app itself. The app could give up the port just before the connection is made, so
// that another program of the machine gets both. It therefore receives a connected socket, and only if the port is still its
// own.
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
		if appFlags(n)&unix.O_NONBLOCK != 0 { // the thread that calls may be the one that accepts
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
