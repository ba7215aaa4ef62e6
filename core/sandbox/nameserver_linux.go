package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

const (
	nameTimeout  = 5 * time.Second
	maxQuestions = 64 // at the same time; more are not answered
	resolvConf   = "/etc/resolv.conf"
)

// nameServer passes an app's name queries on to the name servers of this machine. It listens in the
// app's network namespace, on 127.0.0.1:53, and asks from the server's. An app whose destinations are
// listed learns the addresses of these names only, so that queries carry nothing else out.
type nameServer struct {
	upstream []string // host:port
	network  Network
	packets  net.PacketConn
	streams  net.Listener
	slots    chan struct{}
}

// nameServersOf reads the name servers of a resolv.conf.
func nameServersOf(conf string) []string {
	var found []string
	for line := range strings.Lines(conf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if _, err := netip.ParseAddr(fields[1]); err == nil {
			found = append(found, net.JoinHostPort(fields[1], "53"))
		}
	}
	if len(found) == 0 {
		found = []string{"127.0.0.1:53"} // as resolv.conf(5) says
	}
	return found
}

// newNameServer listens in the network namespace of the calling thread.
func newNameServer(upstream []string, network Network) (*nameServer, error) {
	s := &nameServer{upstream: upstream, network: network, slots: make(chan struct{}, maxQuestions)}
	datagrams, err := listenLocal(unix.SOCK_DGRAM)
	if err != nil {
		return nil, err
	}
	s.packets, err = net.FilePacketConn(datagrams)
	if err := errors.Join(err, datagrams.Close()); err != nil {
		return nil, err
	}
	stream, err := listenLocal(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	s.streams, err = net.FileListener(stream)
	return s, errors.Join(err, stream.Close())
}

// listenLocal is a socket of the calling thread's network namespace: those of package net may be made on
// another thread.
func listenLocal(kind int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, maxQuestions)
	}
	return os.NewFile(uintptr(fd), "name server"), os.NewSyscallError("listen for name queries", err)
}

func (s *nameServer) serve() {
	go s.serveStreams()
	go func() {
		for {
			question := make([]byte, 4096)
			n, from, err := s.packets.ReadFrom(question)
			if err != nil {
				return
			}
			s.start(func() {
				if answer, err := s.ask("udp", question[:n]); err == nil {
					_, _ = s.packets.WriteTo(answer, from)
				}
			})
		}
	}()
}

// start runs f, unless too many questions are open.
func (s *nameServer) start(f func()) bool {
	select {
	case s.slots <- struct{}{}:
		go func() {
			defer func() { <-s.slots }()
			f()
		}()
		return true
	default:
		return false
	}
}

func (s *nameServer) serveStreams() {
	for {
		conn, err := s.streams.Accept()
		if err != nil {
			return
		}
		started := s.start(func() {
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(2 * nameTimeout))
			for {
				question, err := readFrame(conn)
				if err != nil {
					return
				}
				answer, err := s.ask("tcp", question)
				if err != nil || writeFrame(conn, answer) != nil {
					return
				}
			}
		})
		if !started {
			_ = conn.Close()
		}
	}
}

// ask passes one message on, or refuses it.
func (s *nameServer) ask(network string, question []byte) (answer []byte, err error) {
	if refusal := s.refuse(question); refusal != nil {
		return refusal, nil
	}
	for _, server := range s.upstream {
		if answer, err = exchange(network, server, question); err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// refuse is the answer to a query for a name that the app may not connect to; nil for any other.
func (s *nameServer) refuse(question []byte) []byte {
	if s.network.mode() != "list" {
		return nil
	}
	var parser dnsmessage.Parser
	header, err := parser.Start(question)
	if err != nil {
		return []byte{}
	}
	q, err := parser.Question()
	if err != nil {
		return []byte{}
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	for _, allowed := range s.network.Allow {
		if host, _, err := splitDestination(allowed); err == nil && strings.ToLower(host) == name {
			return nil
		}
	}
	header.Response, header.RCode = true, dnsmessage.RCodeNameError
	reply := dnsmessage.Message{Header: header, Questions: []dnsmessage.Question{q}}
	raw, err := reply.Pack()
	if err != nil {
		return []byte{}
	}
	return raw
}

func exchange(network, server string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nameTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(nameTimeout))
	if network == "tcp" {
		if err := writeFrame(conn, question); err != nil {
			return nil, err
		}
		return readFrame(conn)
	}
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, 65535)
	n, err := conn.Read(answer)
	return answer[:n], err
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func writeFrame(w io.Writer, message []byte) error {
	frame := binary.BigEndian.AppendUint16(nil, uint16(len(message)))
	_, err := w.Write(append(frame, message...))
	return err
}

// lookup resolves a name with the name servers of this machine.
func (s *nameServer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.upstream[0])
	}}
	return r.LookupNetIP(ctx, "ip", host)
}
