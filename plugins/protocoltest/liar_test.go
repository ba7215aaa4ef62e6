package protocoltest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// right is a session store with a setting.
type right struct{ *memory.Store }

type settings struct {
	URL string `json:"url"`
}

func (right) NewSettings() any { return &settings{} }

func (right) Configure(_ context.Context, c plugins.Config) error { return c.Decode(&settings{}) }

// liar is a session store plugin built with the SDK, with a handshake of its own. It breaks one rule: each of its
// methods changes what the correct plugin does at one point.
type liar struct {
	lie    string
	health *health.Server
	server *grpc.Server

	mu          sync.Mutex
	ready       bool // it is configured
	wrong       bool // it has reported problems, or validated wrong settings
	infos, gets int
	dir, lock   string
	kept        []any // what must not be collected as garbage

	places, workers chan struct{}
	crowd           context.Context // ends when a call has been rejected
	reject          func()
}

// kind returns the kind that the liar serves. Only auth plugins are given tokens.
func (l *liar) kind() plugins.Kind {
	if strings.Contains(l.lie, "tokens") {
		return plugins.KindAuth
	}
	return plugins.KindSessionStore
}

// main is the plugin's main function.
func (l *liar) main() {
	l.health, l.places, l.workers = health.NewServer(), make(chan struct{}, 50), make(chan struct{}, 8)
	l.crowd, l.reject = context.WithCancel(context.Background())
	l.health.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	if wanted := os.Getenv("ROPEWALK_PLUGIN"); wanted != string(l.kind()) {
		l.refuse(wanted)
	}
	listener, err := net.Listen("unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "socket"))
	if l.lie == "listens on every address" {
		listener, err = net.Listen("tcp", "0.0.0.0:0")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config := l.tls()
	line := []string{"1", "1", listener.Addr().Network(), listener.Addr().String(), "grpc", base64.RawStdEncoding.EncodeToString(config.Certificates[0].Certificate[0])}
	options := []grpc.ServerOption{grpc.UnaryInterceptor(l.intercept), grpc.Creds(credentials.NewTLS(config))}
	switch l.lie {
	case "announces netrpc in its handshake line":
		line[4] = "netrpc"
	case "announces a version that it does not serve":
		if os.Getenv("PLUGIN_PROTOCOL_VERSIONS") != "1" {
			line[1] = "99"
		}
	case "serves in plain text":
		line[5], options = "", options[:1]
	case "accepts messages of at most 4 MiB":
		options = append(options, grpc.MaxRecvMsgSize(4<<20))
	case "exits when it cannot read a message":
		options = append(options, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { os.Exit(2); return nil }))
	case "prints the names of unknown methods":
		options = append(options, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			fmt.Println("no such method")
			return status.Error(codes.Unimplemented, "no such method")
		}))
	case "also listens on every address":
		l.keep(net.Listen("tcp", "0.0.0.0:0"))
	case "is not healthy":
		l.unhealthy()
	}
	p := sessionstore.Plugin(right{memory.New()})
	p.Version = "1.0.0"
	l.server = pluginserver.New(p, 1, hclog.NewNullLogger(), options...)
	authv1.RegisterAuthServiceServer(l.server, authv1.UnimplementedAuthServiceServer{})
	if l.lie != "has no health service" {
		grpc_health_v1.RegisterHealthServer(l.server, l.health)
	}
	l.server.RegisterService(&grpc.ServiceDesc{ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Shutdown", Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			go l.end("Shutdown")
			return &emptypb.Empty{}, nil
		},
	}}}, l)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM) // before the handshake line, because a signal may come right after it
	go func() {
		for range terminated {
			l.end("SIGTERM")
		}
	}()
	fmt.Println(strings.Join(line, "|"))
	_ = l.server.Serve(listener)
	select {}
}

func (l *liar) keep(what any, _ error) { l.kept = append(l.kept, what) }

func (l *liar) unhealthy() {
	l.health.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
}

// refuse exits a process that was started as another kind, or by hand.
func (l *liar) refuse(wanted string) {
	out, code := io.Writer(os.Stderr), 1
	switch l.lie {
	case "serves without the cookie":
		if wanted == "" {
			return
		}
	case "serves any kind that is requested":
		if wanted != "" {
			return
		}
	case "prints what it is to standard output":
		out = os.Stdout
	case "does not say what it is":
		out = io.Discard
	case "exits with status 0":
		code = 0
	}
	_, _ = fmt.Fprintln(out, "this is a session store plugin")
	os.Exit(code)
}

// tls returns a configuration that accepts only the server's certificate.
func (l *liar) tls() *tls.Config {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if l.lie == "uses the same key at every start" {
		secret := sha256.Sum256([]byte("a key that everybody has"))
		key, _ = ecdsa.ParseRawPrivateKey(elliptic.P256(), secret[:])
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	der, _ := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
	wanted := tls.RequireAndVerifyClientCert
	switch l.lie {
	case "requires no certificate":
		wanted = tls.VerifyClientCertIfGiven
	case "accepts any certificate":
		wanted = tls.RequireAnyClientCert
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12, ClientCAs: clients, ClientAuth: wanted}
}

// end ends the process, for Shutdown or SIGTERM.
func (l *liar) end(by string) {
	lie := l.lie
	if l.mu.Lock(); l.ready {
		lie = strings.TrimSuffix(lie, " once it is configured")
	}
	l.mu.Unlock()
	switch lie {
	case "ignores " + by:
		return
	case "takes long to exit":
		time.Sleep(5 * time.Second) //nolint:forbidigo // the lie
	case "waits for open streams at " + by:
		l.server.GracefulStop()
	case "prints while it exits":
		fmt.Println("bye")
	}
	if l.lie != "is exclusive and leaves its lock behind" {
		_ = os.Remove(l.lock)
	}
	time.Sleep(10 * time.Millisecond) //nolint:forbidigo // let the response to Shutdown out first
	if l.lie != "leaves its socket behind" {
		l.server.Stop()
	}
	os.Exit(0)
}

// intercept changes calls, before and after the right plugin answers.
func (l *liar) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	method := path.Base(info.FullMethod)
	about, hasSettings := req.(interface{ GetSettingsJson() string })
	if hasSettings {
		l.takes(method, about.GetSettingsJson())
	}
	if resp, err = next(ctx, req); hasSettings && err != nil {
		return nil, err
	}
	if method == "Get" {
		if answer := l.busy(ctx); answer != nil {
			return nil, answer
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch req := req.(type) {
	case *pluginv1.InfoRequest:
		l.informs(resp.(*pluginv1.InfoResponse))
	case *pluginv1.ConfigureRequest:
		answer := resp.(*pluginv1.ConfigureResponse)
		before := l.wrong
		l.wrong = before || len(answer.GetProblems()) > 0
		answer.Problems = l.reports(method, req.GetSettingsJson(), answer.GetProblems())
		err = l.configures(req, len(answer.GetProblems()) > 0, before)
	case *pluginv1.ValidateRequest:
		if l.lie == "declares Validate without implementing it" {
			return nil, status.Error(codes.Unimplemented, "no")
		}
		answer := resp.(*pluginv1.ValidateResponse)
		l.wrong = len(answer.GetProblems()) > 0
		answer.Problems = l.reports(method, req.GetSettingsJson(), answer.GetProblems())
		l.validated(req.GetDataDir())
	case *sessionstorev1.GetRequest:
		if err = l.got(err); strings.Contains(req.GetId(), "given-up") && l.lie == "leaks 200 KB for each abandoned call" {
			l.keep(slices.Repeat([]byte{1}, 200<<10), nil)
		}
	case *grpc_health_v1.HealthCheckRequest:
		if l.lie == "leaks 200 KB for each health check" {
			l.keep(slices.Repeat([]byte{1}, 200<<10), nil)
		}
	case *authv1.VerifyRequest:
		err = l.verified(req.GetToken())
	}
	return resp, err
}

func (l *liar) informs(info *pluginv1.InfoResponse) {
	l.infos++
	switch l.lie {
	case "reports a different kind in Info":
		info.Kind = "registry"
	case "has an upper-case name":
		info.Name = "Liar"
	case "has no version":
		info.Version = ""
	case "returns a different Info each time":
		info.Version = strconv.Itoa(l.infos)
	case "is exclusive and leaves its lock behind", "is exclusive and leaves its lock behind when it is killed":
		info.Capabilities = append(info.Capabilities, plugins.CapabilityExclusive)
	case "implements Validate without declaring it":
		info.Capabilities = []string{plugins.CapabilityConfigure}
	case "leaks 20 KB for each call":
		l.keep(slices.Repeat([]byte{1}, 20<<10), nil)
	case "leaks a file descriptor on every thirtieth call":
		if l.infos%30 == 0 {
			l.keep(os.Open("/dev/null"))
		}
	}
	if l.kind() == plugins.KindAuth {
		info.Kind = string(plugins.KindAuth)
	}
}

// takes runs before Configure and Validate.
func (l *liar) takes(method, settings string) {
	switch method + " " + l.lie {
	case "Configure logs its settings", "Validate logs the settings that it validates":
		fmt.Fprintln(os.Stderr, settings)
	case "Configure logs its settings in hex":
		fmt.Fprintf(os.Stderr, "%X\n", settings)
	case "Configure prints while it is configured":
		fmt.Println("configured")
	case "Configure passes its settings to a child as an argument":
		run("sh", "-c", "sleep 5; true", settings)
	case "Configure leaves a child behind":
		run("sleep", "5")
	case "Configure writes its settings to a file that everybody can read":
		if file, err := os.CreateTemp("", "settings"); err == nil {
			_, _ = file.WriteString(settings)
			_ = errors.Join(file.Chmod(0o644), file.Close())
		}
	}
}

func run(name string, args ...string) { _ = exec.Command(name, args...).Start() }

type problem = pluginv1.Problem

func ofURL(p *problem) bool { return p.GetPath() == "url" }

// reports leaves out, adds or spoils problems.
func (l *liar) reports(method, settings string, all []*problem) []*problem {
	switch method + " " + l.lie {
	case "Configure refuses good settings", "Validate reports problems with good settings":
		return append(all, &problem{Path: "url", Message: "must be another"})
	case "Configure accepts settings that do not exist", "Validate validates settings that do not exist":
		return nil
	case "Configure accepts values of the wrong type", "Validate validates values of the wrong type":
		return slices.DeleteFunc(all, ofURL)
	case "Configure accepts settings that are not an object", "Validate validates settings that are not an object":
		if settings[0] != '{' {
			return nil
		}
	case "Configure accepts null as an object":
		if settings == "null" {
			return nil
		}
	case "Configure accepts a list of objects as a string":
		if strings.Contains(settings, `"url":[`) {
			return nil
		}
	case "Configure ignores the case of setting names":
		return slices.DeleteFunc(all, func(p *problem) bool { return strings.EqualFold(p.GetPath(), "url") && p.GetPath() != "url" })
	case "Configure reports one problem at a time":
		return all[:min(len(all), 1)]
	case "Configure reports wrong types but not unknown names", "Validate validates types but not unknown names":
		if i := slices.IndexFunc(all, ofURL); i >= 0 {
			return all[i : i+1]
		}
	}
	var values map[string]json.RawMessage
	_ = json.Unmarshal([]byte(settings), &values)
	for _, p := range all {
		switch l.lie {
		case "reports problems without a path":
			p.Path = ""
		case "starts its problems with a capital letter":
			p.Message = "Must be another"
		case "reports problems without a message":
			p.Message = ""
		case "suggests a setting that does not exist":
			p.Nearest = p.GetPath()
		case "suggests a setting when the type is wrong":
			p.Nearest = "uri"
		case "repeats values in problems", "repeats values in problems of " + method:
			p.Message += ": " + string(values[p.GetPath()])
		}
	}
	return all
}

// configures runs after Configure. It returns an error if the lie is to reject the settings.
func (l *liar) configures(req *pluginv1.ConfigureRequest, wrong, before bool) error {
	switch l.lie {
	case "accepts settings only once":
		if before {
			return status.Error(codes.Internal, "configured already")
		}
	case "fails instead of reporting problems":
		if wrong {
			return status.Error(codes.InvalidArgument, "bad settings")
		}
	case "uses the current directory without a data directory":
		if req.GetDataDir() == "" {
			l.keep(os.CreateTemp(".", "sessions-*.db"))
		}
	case "fails without a data directory":
		if req.GetDataDir() == "" {
			fmt.Fprintln(os.Stderr, "configure: the directory is empty")
			return status.Error(codes.Internal, "mkdir: no such file or directory")
		}
	}
	if wrong {
		return nil
	}
	l.ready, l.dir = true, req.GetDataDir()
	switch l.lie {
	case "listens on every address once it is configured":
		l.keep(net.Listen("tcp", "0.0.0.0:0"))
	case "serves a page about itself on loopback":
		l.keep(net.Listen("tcp", "127.0.0.1:0"))
	case "accepts datagrams on every address":
		l.keep(net.ListenPacket("udp", "0.0.0.0:0"))
	case "accepts datagrams on IPv6 loopback":
		l.keep(net.ListenPacket("udp6", "[::1]:0"))
	case "prints a second after it is configured":
		time.AfterFunc(time.Second, func() { fmt.Println("ready") })
	case "is not healthy once it is configured":
		l.unhealthy()
	case "rejects unknown capabilities":
		if slices.Contains(req.GetHostCapabilities(), "a.word.of.tomorrow") {
			return status.Error(codes.InvalidArgument, "the server is too new")
		}
	case "rejects newer servers":
		if strings.HasPrefix(req.GetHostVersion(), "99") {
			return status.Error(codes.InvalidArgument, "the server is too new")
		}
	case "refuses a data directory that was not closed":
		return takeDirectory(l.dir)
	case "locks its backend without declaring that it is exclusive", "is exclusive and leaves its lock behind", "is exclusive and leaves its lock behind when it is killed":
		l.lock = filepath.Join(l.dir, "lock")
		file, err := os.OpenFile(l.lock, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return status.Error(codes.Unavailable, "another process has the backend")
		}
		return file.Close()
	}
	return nil
}

// takeDirectory fails if the last process that used the directory has ended.
func takeDirectory(dir string) error {
	file := filepath.Join(dir, "pid")
	if raw, err := os.ReadFile(file); err == nil {
		if pid, _ := strconv.Atoi(string(raw)); syscall.Kill(pid, 0) != nil {
			return status.Error(codes.Unavailable, "the directory was not closed")
		}
	}
	return os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600)
}

// validated runs after Validate.
func (l *liar) validated(dir string) {
	switch l.lie {
	case "creates the data directory in Validate":
		_ = os.MkdirAll(dir, 0o700)
	case "writes to the data directory in Validate":
		_ = os.WriteFile(filepath.Join(dir, "try"), nil, 0o600)
	}
}
