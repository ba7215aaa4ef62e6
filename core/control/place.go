package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// socketLimit is the length of a path that fits in a sockaddr_un on every supported system, in bytes.
const socketLimit = 100

// place is the location of a home's socket: in the home itself, however long its path is. Nobody else can put a socket
// there. Each side checks who the other is, because a command sends keys to the address that a server states.
type place struct {
	dir   *os.File
	home  string
	owner int
}

// openPlace opens a home, which must neither belong to others nor be writable by them.
func openPlace(home string) (*place, error) {
	dir, err := os.Open(home)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	p := &place{dir: dir, home: home, owner: int(info.Sys().(*syscall.Stat_t).Uid)}
	switch {
	case !info.IsDir():
		err = &fs.PathError{Op: "open", Path: home, Err: syscall.ENOTDIR}
	case os.Geteuid() != 0 && p.owner != os.Geteuid() && p.owner != 0:
		err = fmt.Errorf("the home %s belongs to another user", home)
	case info.Mode().Perm()&0o022 != 0 && (p.owner != 0 || os.Geteuid() == 0): // root makes container volumes writable for a group, or for everyone
		err = fmt.Errorf("the home %s is writable by other users; run `chmod go-w %s`", home, home)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return p, nil
}

// Close closes the home.
func (p *place) Close() error { return p.dir.Close() }

// path returns the path of the socket. If it is too long, it goes through the open directory.
func (p *place) path() (string, error) {
	path := filepath.Join(p.home, "control.sock")
	if len(path) > socketLimit {
		if path = descriptorPath(p.dir); path == "" {
			return "", fmt.Errorf("the path of the home %s is too long for a socket: the limit is %d bytes", p.home, socketLimit-len("/control.sock"))
		}
		path = filepath.Join(path, "control.sock")
	}
	return path, nil
}

func (p *place) listen(ctx context.Context) (net.Listener, error) {
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return trustedListener{l}, nil
}

// dial connects to the server of the home. The server must run as this user, as root or, if this user is root,
// as the home's owner.
func (p *place) dial(ctx context.Context) (net.Conn, error) {
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	trusted := []int{0, os.Geteuid()}
	if os.Geteuid() == 0 {
		trusted = append(trusted, p.owner)
	}
	server, err := peerOf(conn)
	if err == nil && !slices.Contains(trusted, server.uid) {
		err = fmt.Errorf("the user %d, who listens on the control socket of %s, is not its owner", server.uid, p.home)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// trustedListener accepts connections from the server's user and from root. The socket's mode keeps others out,
// on systems that check it. Processes that the server itself started are rejected: an app or a plugin may run
// as the same user, and commands act as the owner.
type trustedListener struct{ net.Listener }

// Accept returns the next connection.
func (l trustedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(conn)
		if err == nil && (p.uid == 0 || p.uid == os.Geteuid()) && !startedBy(os.Getpid(), p.pid) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// peer is the process at the other end of a socket, according to the kernel.
type peer struct{ uid, pid int }

func peerOf(conn net.Conn) (p peer, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return peer{}, err
	}
	controlErr := raw.Control(func(fd uintptr) { p, err = socketPeer(int(fd)) })
	return p, errors.Join(controlErr, err)
}

// startedBy reports whether a process descends from another one. The server adopts orphaned descendants, so none of
// them ends up with a different ancestor. A process that has exited counts as a descendant, because its origin is
// unknown. Process 0 is in another namespace and does not descend from anything here.
func startedBy(ancestor, pid int) bool {
	if pid == ancestor {
		return false
	}
	for pid > 1 {
		parent, err := parentOf(pid)
		if err != nil || parent == ancestor {
			return true
		}
		pid = parent
	}
	return false
}
