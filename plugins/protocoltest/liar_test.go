package protocoltest_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// liar is a hand-written session store plugin that breaks one rule.
type liar struct {
	pluginv1.UnimplementedPluginServiceServer
	sessionstorev1.UnimplementedSessionStoreServiceServer
	authv1.UnimplementedAuthServiceServer
	lie    string
	health *health.Server

	mu       sync.Mutex
	infos    int
	calls    int // of its kind's own service
	inFlight int
	crowd    chan struct{} // closed when a call has been rejected
	workers  chan struct{} // nil until it is configured
	failed   bool
	broken   bool
	dir      string
	kept     [][]byte
	held     []*os.File
	locked   string
}

// main is the plugin's main function.
func (l *liar) main() {
	if os.Getenv("ROPEWALK_PLUGIN") != l.kind() {
		if value := os.Getenv("ROPEWALK_PLUGIN"); (value != "" || !l.is("serves without the cookie")) && (value == "" || !l.is("serves whatever kind is wanted")) {
			if l.is("says on standard output what it is") {
				fmt.Println("this is a plugin")
			}
			if !l.is("does not say what it is") {
				fmt.Fprintln(os.Stderr, "this is a session store plugin")
			}
			if l.is("exits with status 0") {
				os.Exit(0)
			}
			os.Exit(1)
		}
	}
	certificate, config := l.tls()
	listener, network, address := l.listen()
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(16 << 20)}
	if l.is("ends when it cannot read a message") {
		options = append(options, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { panic("what is this?") }))
	}
	if l.is("takes 4 MiB in at most") {
		options = nil
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	pluginv1.RegisterPluginServiceServer(server, l)
	sessionstorev1.RegisterSessionStoreServiceServer(server, l)
	authv1.RegisterAuthServiceServer(server, l)
	if !l.is("has no health service") {
		healthy := health.NewServer()
		state := grpc_health_v1.HealthCheckResponse_SERVING
		if l.is("is not healthy") {
			state = grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
		healthy.SetServingStatus("plugin", state)
		l.health = healthy
		grpc_health_v1.RegisterHealthServer(server, healthy)
	}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Shutdown", Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			if !l.is("does not obey Shutdown") {
				go func() {
					if l.is("waits for open streams at Shutdown") {
						server.GracefulStop()
					}
					l.leave(server)
				}()
			}
			return &emptypb.Empty{}, nil
		},
	}}}, l)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM) // before the handshake line, because a signal may come right after it
	go func() {
		for range terminated {
			if l.is("waits for open streams at SIGTERM") {
				server.GracefulStop()
			}
			if !l.is("does not obey SIGTERM") && (!l.is("does not obey SIGTERM once it is configured") || l.workers == nil) {
				l.leave(server)
			}
		}
	}()
	version := "1"
	if l.is("answers with a version that it does not serve") && os.Getenv("PLUGIN_PROTOCOL_VERSIONS") != "1" {
		version = "99"
	}
	protocol := "grpc"
	if l.is("speaks netrpc by its handshake line") {
		protocol = "netrpc"
	}
	fmt.Printf("1|%s|%s|%s|%s|%s\n", version, network, address, protocol, certificate)
	_ = server.Serve(listener)
	select {}
}

func (l *liar) is(lie string) bool { return l.lie == lie }

const (
	locksUnsaid  = "locks its backend and does not say that it is exclusive"
	locksForGood = "is exclusive and leaves its lock behind"
	locksKilled  = "is exclusive and leaves its lock behind when it is killed"
)

// lock takes the backend with a lock file, which stays behind if the process is killed.
func (l *liar) lock(dir string) bool {
	if !l.is(locksUnsaid) && !l.is(locksForGood) && !l.is(locksKilled) {
		return true
	}
	l.locked = filepath.Join(dir, "lock")
	file, err := os.OpenFile(l.locked, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

func (l *liar) leave(server *grpc.Server) {
	if !l.is(locksForGood) && l.locked != "" {
		_ = os.Remove(l.locked)
	}
	if l.is("prints as it ends") {
		fmt.Println("bye")
	}
	l.leaveLate()
	time.Sleep(10 * time.Millisecond) //nolint:forbidigo // let the response to Shutdown out first
	if !l.is("leaves its socket behind") {
		server.Stop()
	}
	os.Exit(0)
}

func (l *liar) listen() (net.Listener, string, string) {
	if l.is("listens on every address") {
		listener, _ := net.Listen("tcp", "0.0.0.0:0")
		return listener, "tcp", listener.Addr().String()
	}
	if l.is("listens on every address besides") {
		_, _ = net.Listen("tcp", "0.0.0.0:0") // stays open until the process ends
	}
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return listener, "unix", path
}

func (l *liar) tls() (string, *tls.Config) {
	if l.is("serves in plain text") {
		return "", nil
	}
	key := l.key()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	der, _ := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	block, _ := pem.Decode([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	if block != nil {
		clients := x509.NewCertPool()
		clients.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
		config.ClientCAs, config.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	switch {
	case l.is("wants no certificate"):
		config.ClientAuth = tls.VerifyClientCertIfGiven
	case l.is("takes any certificate"):
		config.ClientAuth = tls.RequireAnyClientCert
	}
	return base64.RawStdEncoding.EncodeToString(der), config
}

func (l *liar) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.infos++
	info := &pluginv1.InfoResponse{Name: "liar", Version: "1.0.0", Kind: l.kind(), ProtocolVersions: []uint32{1}, Capabilities: []string{"configure", "validate"}}
	switch {
	case l.is("is of another kind by its Info"):
		info.Kind = "registry"
	case l.is("has a name in capitals"):
		info.Name = "Liar"
	case l.is("has no version"):
		info.Version = ""
	case l.is("counts its Infos"):
		info.Version = fmt.Sprint(l.infos)
	case l.is(locksForGood), l.is(locksKilled):
		info.Capabilities = append(info.Capabilities, "exclusive")
	case l.is("does not say that it validates"):
		info.Capabilities = []string{"configure"}
	case l.is("keeps 20 KB of each call"):
		l.kept = append(l.kept, append(make([]byte, 0, 20<<10), make([]byte, 20<<10)...))
		l.kept[len(l.kept)-1][1] = 1
	case l.is("keeps a descriptor of each fiftieth call") && l.infos%50 == 0:
		f, _ := os.Open("/dev/null")
		l.held = append(l.held, f)
	}
	return info, nil
}

func (l *liar) problems(settings string, configure bool) []*pluginv1.Problem {
	if l.overlooks(settings, configure) {
		return nil
	}
	if (l.is("configures with settings that do not exist") && configure) || (l.is("validates settings that do not exist") && !configure) {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(settings), &all); err != nil || all == nil {
		if l.is("accepts settings that are not an object") {
			return nil
		}
		return []*pluginv1.Problem{{Message: "must be an object"}}
	}
	var problems []*pluginv1.Problem
	for name, raw := range all {
		var text string
		switch {
		case name == "url" && json.Unmarshal(raw, &text) == nil && l.is("refuses good settings"):
			problems = append(problems, &pluginv1.Problem{Path: "url", Message: "must be another"})
		case name == "url" && json.Unmarshal(raw, &text) != nil:
			if l.is("takes a list of objects for a text") && raw[0] == '[' {
				continue
			}
			if (!configure || !l.is("configures with values of the wrong type")) && (configure || !l.is("validates values of the wrong type")) {
				problems = append(problems, &pluginv1.Problem{Path: "url", Message: "must be a string"})
			}
		case name != "url":
			message := "is not a setting"
			if l.is("repeats values in problems") || l.is("repeats values in problems of Validate") && !configure {
				message += ": " + string(raw)
			}
			path := name
			if l.is("reports problems without a path") {
				path = ""
			}
			problems = append(problems, &pluginv1.Problem{Path: path, Message: message})
		}
	}
	if l.is("reports one problem at a time") && len(problems) > 1 {
		problems = problems[:1]
	}
	return l.some(problems, configure)
}

func (l *liar) Configure(_ context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is("logs its settings") {
		fmt.Fprintln(os.Stderr, req.GetSettingsJson())
	}
	if l.is("logs its settings in hex") {
		fmt.Fprintf(os.Stderr, "%X\n", req.GetSettingsJson())
	}
	l.exposes(req.GetSettingsJson())
	if l.is("prints as it configures") {
		fmt.Println("configured")
	}
	problems := l.problems(req.GetSettingsJson(), true)
	if l.failed && l.is("takes settings once only") {
		return nil, status.Error(codes.Internal, "configured already")
	}
	if len(problems) > 0 && l.is("fails where it should report problems") {
		return nil, status.Error(codes.InvalidArgument, "bad settings")
	}
	l.failed = l.failed || len(problems) > 0
	if req.GetDataDir() == "" && l.is("fails without a data directory") {
		return nil, status.Error(codes.Internal, "mkdir: no such file or directory")
	}
	if len(problems) == 0 && !l.lock(req.GetDataDir()) {
		return nil, status.Error(codes.Unavailable, "another process has the backend")
	}
	if len(problems) == 0 {
		if err := l.configured(req); err != nil {
			return nil, err
		}
	}
	return &pluginv1.ConfigureResponse{Problems: problems}, nil
}

func (l *liar) Validate(_ context.Context, req *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	if l.is("says that it validates and does not") {
		return nil, status.Error(codes.Unimplemented, "no")
	}
	if l.is("finds fault in good settings") {
		return &pluginv1.ValidateResponse{Problems: []*pluginv1.Problem{{Path: "url", Message: "must be another"}}}, nil
	}
	problems := l.problems(req.GetSettingsJson(), false)
	l.validated(req, problems)
	return &pluginv1.ValidateResponse{Problems: problems}, nil
}
