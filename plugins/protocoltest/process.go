package protocoltest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// Subject is the executable under test.
type Subject struct {
	Path     string
	Args     []string
	Env      []string // in addition to the handshake's own variables and PATH
	Kind     plugins.Kind
	Settings json.RawMessage // valid settings
	Probe    Probe           // for the kind's own service
}

// Probe makes a cheap call to a kind's own service, about something that does not exist. Calls with the same value of
// about are identical.
type Probe func(ctx context.Context, conn grpc.ClientConnInterface, about string) error

// process is a running plugin.
type process struct {
	*bench
	cmd     *exec.Cmd
	dir     string
	data    string          // the directory that Configure passes to the plugin
	server  tls.Certificate // the certificate that the kit presents
	fields  []string        // from the handshake line
	ended   chan error
	mu      sync.Mutex
	after   []string // lines of standard output after the handshake
	stderr  kit.Output
	conns   []*grpc.ClientConn
	conn    *grpc.ClientConn // like the server's
	service pluginv1.PluginServiceClient
	stopped bool
}

// command returns the executable's command, with only the environment variables that it should have.
func (s Subject) command(ctx context.Context, env ...string) *exec.Cmd {
	path := s.Path
	if strings.ContainsRune(path, filepath.Separator) { // it may run in another directory
		path = kit.Got(filepath.Abs(path))
	}
	cmd := exec.CommandContext(ctx, path, s.Args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, append(s.Env, env...)...) //nolint:forbidigo // for the kit's own child process
	cmd.WaitDelay = time.Second
	return cmd
}

// start runs the executable as a server that supports these versions would, in a new directory or in data, and reads
// its handshake.
func (b *bench) start(versions, data string) *process {
	p := &process{bench: b, ended: make(chan error, 1), server: certificate(), dir: b.makeDir(), data: data}
	if data == "" {
		p.data = filepath.Join(p.dir, "data")
	}
	kit.Must(errors.Join(os.MkdirAll(p.data, 0o700), os.Mkdir(p.socketDir(), 0o700), os.Mkdir(p.tempDir(), 0o700)))
	p.cmd = b.Subject.command(b.ctx, host.Cookie+"="+string(b.Kind), "PLUGIN_PROTOCOL_VERSIONS="+versions, "PLUGIN_UNIX_SOCKET_DIR="+p.socketDir(), "TMPDIR="+p.tempDir(),
		"PLUGIN_CLIENT_CERT="+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate[0]})))
	p.cmd.Stderr, p.cmd.Dir = &p.stderr, b.current
	stdout := kit.Got(p.cmd.StdoutPipe())
	if err := p.cmd.Start(); err != nil {
		kit.Must(fmt.Errorf("start the plugin: %w", err))
	}
	b.processes = append(b.processes, p)
	first := make(chan string, 1)
	go p.read(bufio.NewReader(stdout), first)
	select {
	case line, ok := <-first:
		if !ok {
			kit.Reject("it exited without a handshake line and wrote: "+p.stderr.String(), "one line on standard output", sentenceHandshake)
		}
		p.fields = strings.Split(line, "|")
	case <-time.After(b.patience):
		kit.Reject(fmt.Sprintf("no line within %v", b.patience), "the handshake line", sentenceHandshake)
	}
	if f := p.fields; len(f) != 6 || f[0] != "1" || f[4] != "grpc" || f[5] == "" {
		kit.Reject(strings.Join(f, "|"), "1|version|network|address|grpc|certificate", sentenceLine)
	}
	p.conn = p.dial(true, p.server)
	p.service = pluginv1.NewPluginServiceClient(p.conn)
	return p
}

// tempDir returns the directory for the plugin's temporary files.
func (p *process) tempDir() string { return filepath.Join(p.dir, "tmp") }

// socketDir returns the directory for the plugin's socket.
func (p *process) socketDir() string { return filepath.Join(p.dir, "sockets") }

func (p *process) read(stdout *bufio.Reader, first chan<- string) {
	defer func() { p.ended <- p.cmd.Wait() }()
	for n := 0; ; n++ {
		line, err := stdout.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" && n == 0 {
			first <- line
		} else if line != "" {
			p.mu.Lock()
			p.after = append(p.after, line)
			p.mu.Unlock()
		}
		if err != nil {
			close(first)
			return
		}
	}
}

// stop kills the process and waits until all of its output has been read. It is safe to call more than once.
func (p *process) stop() {
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	if !p.stopped {
		_ = p.cmd.Process.Kill()
		<-p.ended //nolint:errcheck // the exit status of a killed process means nothing
		p.stopped = true
	}
}

// waitForExit waits for the process to exit on its own.
func (p *process) waitForExit(within time.Duration) bool {
	select {
	case <-p.ended:
		p.stopped = true
	case <-time.After(within):
	}
	return p.stopped
}

// dial connects with certificates over TLS, or in plain text if secure is false.
func (p *process) dial(secure bool, certificates ...tls.Certificate) *grpc.ClientConn {
	creds := insecure.NewCredentials()
	if secure {
		roots := x509.NewCertPool()
		roots.AddCert(p.certificate())
		creds = credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: certificates, ServerName: "localhost", MinVersion: tls.VersionTLS12})
	}
	address := p.fields[3]
	if p.fields[2] == "unix" {
		address = "unix://" + address
	}
	conn := kit.Got(grpc.NewClient(address, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugins.MaxMessage), grpc.MaxCallSendMsgSize(plugins.MaxMessage))))
	p.conns = append(p.conns, conn)
	return conn
}

// certificate creates a self-signed certificate with a subject and an issuer, like the server's plugin host.
func certificate() tls.Certificate {
	key := kit.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost", Organization: []string{"Ropewalk"}}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der := kit.Got(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// certificate returns the certificate in the handshake line.
func (p *process) certificate() *x509.Certificate {
	der, err := base64.RawStdEncoding.DecodeString(p.fields[5])
	if err != nil {
		err = fmt.Errorf("the certificate in the handshake line is not base64 without padding: %w", err)
	}
	own, wrong := x509.ParseCertificate(der)
	if err == nil && wrong != nil {
		err = fmt.Errorf("the certificate in the handshake line cannot be parsed: %w", wrong)
	}
	if err != nil {
		kit.Reject(err.Error(), "the DER bytes of a certificate in base64 without padding", sentenceOwn)
	}
	return own
}

// printed returns the lines on standard output after the handshake line.
func (p *process) printed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.after)
}
