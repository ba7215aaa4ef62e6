package listener

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// SecureConn is a Conn with TLS on top. The HTTP library performs the handshake, within its read timeout.
type SecureConn struct {
	*Conn
	tls    *tls.Conn
	peeked []byte // bytes read by Peek but not yet returned by Read
}

// transport is the connection underneath TLS: the TCP connection with the deadlines of its Conn.
type transport struct{ *Conn }

func (t transport) Read(p []byte) (int, error) {
	if err := t.reading.apply(); err != nil {
		return 0, err
	}
	return t.TCPConn.Read(p)
}

// Handshake performs the TLS handshake. A client that speaks plain HTTP gets a 400 response that explains the mistake.
func (c *SecureConn) Handshake() error {
	err := c.tls.HandshakeContext(context.Background()) // bounded by the connection's deadlines
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && isHTTP(plain.RecordHeader[:]) {
		_, _ = io.WriteString(c.TCPConn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis server uses HTTPS, but the request was plain HTTP.\n")
	}
	return err
}

// isHTTP reports whether a connection starts like an HTTP/1 request.
func isHTTP(header []byte) bool {
	for _, method := range []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO"} {
		if bytes.Equal(header, []byte(method)) {
			return true
		}
	}
	return false
}

// ConnectionState returns the result of the TLS handshake.
func (c *SecureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// Read implements net.Conn.
func (c *SecureConn) Read(p []byte) (n int, err error) {
	if len(c.peeked) > 0 {
		n = copy(p, c.peeked)
		c.peeked = c.peeked[n:]
	} else {
		n, err = c.tls.Read(p)
	}
	c.lines.scan(p[:n])
	c.ended = c.ended || errors.Is(err, io.EOF)
	return n, err
}

// Write implements net.Conn.
func (c *SecureConn) Write(p []byte) (int, error) { return c.tls.Write(p) }

// Peek waits until the client sends more data, which the next Read returns. If the client disconnects, it returns
// io.EOF or the connection's error. At the read deadline, it returns an error. It must not be called during a Read.
func (c *SecureConn) Peek() error {
	if len(c.peeked) > 0 {
		return nil
	}
	one := make([]byte, 1)
	n, err := c.tls.Read(one)
	c.peeked = one[:n]
	if n > 0 {
		return nil
	}
	return err
}

// Close ends TLS and then the connection, as Conn.Close does.
func (c *SecureConn) Close() error {
	_ = c.SetWriteDeadline(time.Now().Add(lingerTime))
	_ = c.tls.CloseWrite() // fails before the handshake, and after the client has disconnected
	return c.Conn.Close()
}

// Certificate is a certificate and its key. They are read from files, and reread when the files change.
type Certificate struct {
	certFile, keyFile string
	log               hclog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	stamps  [2]os.FileInfo
	checked time.Time
}

// recheck is how long a certificate is served before its files are checked again.
const recheck = 5 * time.Second

// LoadCertificate reads a certificate and its key, both in PEM format.
func LoadCertificate(certFile, keyFile string, log hclog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.load()
}

// Config returns a TLS configuration that serves the certificate, or nil when c is nil.
func (c *Certificate) Config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Current(), nil },
	}
}

// Current returns the certificate to serve. It rereads the files if they have been replaced. If they cannot be read or
// do not match, it returns the previous certificate and logs a warning.
func (c *Certificate) Current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < recheck {
		return c.current
	}
	c.checked = time.Now()
	if stamps, err := c.stat(); err == nil && c.unchanged(stamps) {
		return c.current
	}
	if err := c.load(); err != nil {
		c.log.Warn("cannot use the changed TLS certificate; still serving the previous one", "error", err)
	} else {
		c.log.Info("TLS certificate reloaded", "expires", c.current.Leaf.NotAfter)
	}
	return c.current
}

func (c *Certificate) stat() (stamps [2]os.FileInfo, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if stamps[i], err = os.Stat(file); err != nil {
			return stamps, err
		}
	}
	return stamps, nil
}

func (c *Certificate) unchanged(stamps [2]os.FileInfo) bool {
	for i, s := range stamps {
		if before := c.stamps[i]; !os.SameFile(s, before) || s.Size() != before.Size() || !s.ModTime().Equal(before.ModTime()) {
			return false
		}
	}
	return true
}

func (c *Certificate) load() error {
	stamps, err := c.stat()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.current, c.stamps, c.checked = &pair, stamps, time.Now()
	return nil
}

var _ net.Conn = (*SecureConn)(nil)
