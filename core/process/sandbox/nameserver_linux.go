package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

const (
	nameTimeout  = 5 * time.Second
	maxQuestions = 64 // at once; more are not answered
	namePort     = 53
	resolvConf   = "/etc/resolv.conf"
)

// nameServer forwards an app's DNS queries to this machine's name servers. It listens in the app's network
// namespace, on 127.0.0.1:53, and sends queries from the server's. An app with a list of destinations can
// resolve only their names, so that queries cannot be used to leak data.
type nameServer struct {
	upstream []string // host:port
	network  Network
	packets  net.PacketConn
	streams  net.Listener
	slots    chan struct{}
}

// nameServersOf returns the name servers in a resolv.conf.
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
		found = []string{"127.0.0.1:53"} // the default in resolv.conf(5)
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

// listenLocal returns a socket in the calling thread's network namespace. Package net may create sockets on
// another thread.
func listenLocal(kind int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: namePort, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, maxQuestions)
	}
	return os.NewFile(uintptr(fd), "name server"), os.NewSyscallError("listen for DNS queries", err)
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

// start runs f, unless too many queries are pending.
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

// ask answers one message: with a name server's answer to its question, or with a refusal. It sends a new query, so
// only the question and a few flags of the app's message are forwarded.
func (s *nameServer) ask(network string, message []byte) (answer []byte, err error) {
	q, refusal, err := readQuery(message)
	if err != nil {
		return nil, err // not a query, so it is not answered
	}
	if refusal == dnsmessage.RCodeSuccess && !s.allows(q.question.Name) {
		refusal = dnsmessage.RCodeNameError
	}
	if refusal != dnsmessage.RCodeSuccess {
		return q.refused(refusal)
	}
	id := uint16(rand.Uint32())
	query, err := q.pack(id)
	if err != nil {
		return nil, err
	}
	for _, server := range s.upstream {
		answer, err = exchange(network, server, query)
		if err == nil && (len(answer) < 12 || binary.BigEndian.Uint16(answer) != id) {
			err = errors.New("the answer belongs to another query")
		}
		if err == nil {
			binary.BigEndian.PutUint16(answer, q.header.ID)
			return answer, nil
		}
	}
	return nil, err
}

// query is the part of an app's message that is used.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	extended bool // has an OPT record (RFC 6891), whose contents are not forwarded
}

// readQuery parses a message. It returns a refusal for anything other than a query with one question, and an
// error for a message that cannot be answered at all.
func readQuery(message []byte) (q query, refusal dnsmessage.RCode, err error) {
	var parser dnsmessage.Parser
	if q.header, err = parser.Start(message); err != nil {
		return q, 0, err
	}
	if q.header.Response {
		return q, 0, errors.New("the message is an answer")
	}
	if q.header.OpCode != 0 { // QUERY
		return q, dnsmessage.RCodeNotImplemented, nil
	}
	questions, err := parser.AllQuestions()
	if err != nil || len(questions) != 1 {
		return q, dnsmessage.RCodeFormatError, nil //nolint:nilerr // the code answers a message that cannot be parsed
	}
	q.question = questions[0]
	answers, err1 := parser.AllAnswers()
	authorities, err2 := parser.AllAuthorities()
	if err1 != nil || err2 != nil || len(answers)+len(authorities) > 0 {
		return q, dnsmessage.RCodeFormatError, nil //nolint:nilerr // the code answers a message that cannot be parsed
	}
	switch extra, err := parser.AdditionalHeader(); {
	case errors.Is(err, dnsmessage.ErrSectionDone):
	case err != nil || extra.Type != dnsmessage.TypeOPT:
		return q, dnsmessage.RCodeFormatError, nil //nolint:nilerr // the code answers a message that cannot be parsed
	default:
		q.extended = true
		if err := parser.SkipAdditional(); err != nil {
			return q, dnsmessage.RCodeFormatError, nil //nolint:nilerr // the code answers a message that cannot be parsed
		}
		if _, err := parser.AdditionalHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
			return q, dnsmessage.RCodeFormatError, nil
		}
	}
	if q.question.Class != dnsmessage.ClassINET || q.question.Type == dnsmessage.TypeAXFR || q.question.Type == typeIXFR {
		return q, dnsmessage.RCodeRefused, nil
	}
	return q, dnsmessage.RCodeSuccess, nil
}

// typeIXFR is an incremental zone transfer (RFC 1995).
const typeIXFR dnsmessage.Type = 251

// answerSize is the maximum size of a UDP answer if the app can receive more than 512 bytes.
const answerSize = 1232

// pack encodes the query to send.
func (q query) pack(id uint16) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: q.header.RecursionDesired, AuthenticData: q.header.AuthenticData, CheckingDisabled: q.header.CheckingDisabled},
		Questions: []dnsmessage.Question{q.question},
	}
	if q.extended {
		var opt dnsmessage.ResourceHeader
		if err := opt.SetEDNS0(answerSize, dnsmessage.RCodeSuccess, false); err != nil {
			return nil, err
		}
		m.Additionals = []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}}
	}
	return m.Pack()
}

// refused returns the answer to a query that is not forwarded.
func (q query) refused(code dnsmessage.RCode) ([]byte, error) {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: q.header.ID, Response: true, OpCode: q.header.OpCode, RecursionDesired: q.header.RecursionDesired, RCode: code}}
	if q.question.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.question}
	}
	return m.Pack()
}

// allows reports whether the app may look up a name. If it has a list of destinations, it may look up only
// these.
func (s *nameServer) allows(asked dnsmessage.Name) bool {
	listed := s.network.destinations()
	if listed == nil {
		return true
	}
	name := strings.TrimSuffix(asked.String(), ".")
	return slices.ContainsFunc(listed, func(allowed string) bool {
		host, _, err := splitDestination(allowed)
		return err == nil && strings.EqualFold(host, name)
	})
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

// lookup resolves a name with this machine's name servers.
func (s *nameServer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.upstream[0])
	}}
	return r.LookupNetIP(ctx, "ip", host)
}
