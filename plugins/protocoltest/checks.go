package protocoltest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// Check is one promise of every plugin.
type Check = kit.Check[Subject]

// Checks is everything that a plugin of any kind promises.
func Checks() []Check {
	return slices.Concat(starts(), speaks(), takesSettings(), validates(), answers(), load(), serving(), sharesBackend(), ends())
}

func starts() []Check {
	const cookie = "executable that does not serve that kind, or that is started without the variable, prints a sentence to stderr, nothing to stdout, and exits with status 1"
	return []Check{
		{Name: "started by hand it says what it is and exits with status 1", Contract: cookie, Run: refusesCookie("")},
		{Name: "started as another kind it says so and exits with status 1", Contract: cookie, Run: refusesCookie("nonsense")},
		{Name: "the handshake line is as documented", Contract: "prints one line to stdout", Run: handshake},
		{Name: "it answers with the highest protocol version that both speak", Contract: "a plugin answers with the highest one that both speak", Run: negotiates},
		{Name: "it listens on this machine only", Contract: "listens on a unix socket or on 127.0.0.1", Run: listensLocally},
		{Name: "it serves nobody without a certificate", Contract: "requires a client certificate and accepts only the server's", Run: refusesClient(true)},
		{Name: "it serves nobody with another certificate", Contract: "requires a client certificate and accepts only the server's", Run: refusesClient(false)},
		{Name: "it serves nobody in plain text", Contract: "serves TLS with it", Run: refusesPlainText},
	}
}

func refusesCookie(value string) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		dir, err := os.MkdirTemp("", "ropewalk-kit-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		cmd := s.command(ctx, "PLUGIN_UNIX_SOCKET_DIR="+dir)
		if value != "" {
			cmd.Env = append(cmd.Env, host.Cookie+"="+value, "PLUGIN_PROTOCOL_VERSIONS=1")
		}
		var stdout, stderr kit.Output
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		exit, ok := errors.AsType[*exec.ExitError](err)
		switch {
		case ctx.Err() != nil:
			return kit.Failf("with %s=%q it must exit; %s later it still ran", host.Cookie, value, patience)
		case !ok || exit.ExitCode() != 1:
			return kit.Failf("with %s=%q it must exit with status 1; it ended with: %w", host.Cookie, value, errors.Join(err))
		case stdout.String() != "":
			return kit.Failf("with %s=%q it must print nothing to standard output; it printed %q", host.Cookie, value, stdout.String())
		case len(strings.Fields(stderr.String())) < 3:
			return kit.Failf("with %s=%q it must print a sentence to standard error; it printed %q", host.Cookie, value, stderr.String())
		}
		return nil
	}
}

// with starts the plugin for one check.
func with(look func(context.Context, Subject, *process) error) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) error {
		p, err := s.start(ctx, "1")
		if err != nil {
			return err
		}
		defer p.stop()
		return look(ctx, s, p)
	}
}

func handshake(ctx context.Context, s Subject) error {
	return with(func(_ context.Context, _ Subject, p *process) error {
		f := p.fields
		if len(f) != 6 || f[0] != "1" || f[1] != "1" || f[4] != "grpc" || f[5] == "" {
			return kit.Failf("the handshake line must be 1|1|network|address|grpc|certificate; it is %q", strings.Join(f, "|"))
		}
		return nil
	})(ctx, s)
}

func negotiates(ctx context.Context, s Subject) error {
	for _, offered := range []string{"1", "1,99", "99,1"} {
		p, err := s.start(ctx, offered)
		if err != nil {
			return kit.Failf("offered the protocol versions %s: %w", offered, err)
		}
		err = func() error {
			defer p.stop()
			service, err := p.service()
			if err != nil {
				return err
			}
			info, err := service.Info(ctx, &pluginv1.InfoRequest{})
			if err != nil {
				return kit.Failf("Info failed: %w", err)
			}
			version, err := strconv.ParseUint(p.fields[1], 10, 32)
			if err != nil || !slices.Contains(strings.Split(offered, ","), p.fields[1]) || !slices.Contains(info.GetWireVersions(), uint32(version)) {
				return kit.Failf("offered the protocol versions %s, it answered %q, and Info says that it serves %d", offered, p.fields[1], info.GetWireVersions())
			}
			return nil
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

func listensLocally(ctx context.Context, s Subject) error {
	return with(func(_ context.Context, _ Subject, p *process) error {
		network, address := p.fields[2], p.fields[3]
		if network == "unix" || network == "tcp" && strings.HasPrefix(address, "127.0.0.1:") {
			return nil
		}
		return kit.Failf("it must listen on a unix socket or on 127.0.0.1; it listens on %s %s", network, address)
	})(ctx, s)
}

// healthService is the service whose health a plugin reports.
const healthService = "plugin"

// health asks the health service over a connection that a stranger or the server makes.
func health(ctx context.Context, p *process, secure bool, stranger bool, none bool) error {
	certs := p.server
	if stranger {
		other, err := certificate()
		if err != nil {
			return err
		}
		certs = other
	}
	conn, err := p.dial(secure, certs)
	if none {
		conn, err = p.dial(secure)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	if err == nil && answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return kit.Failf("the health of the service %q is %s", healthService, answer.GetStatus())
	}
	return err
}

func refusesClient(none bool) func(context.Context, Subject) error {
	return with(func(ctx context.Context, _ Subject, p *process) error {
		if err := health(ctx, p, true, false, false); err != nil {
			return kit.Failf("a client with the server's certificate was not answered: %w", err)
		}
		if health(ctx, p, true, !none, none) == nil {
			return kit.Failf("a client with no certificate, or with one that is not the server's, was answered")
		}
		return nil
	})
}

func refusesPlainText(ctx context.Context, s Subject) error {
	return with(func(ctx context.Context, _ Subject, p *process) error {
		if health(ctx, p, false, false, true) == nil {
			return kit.Failf("a client without TLS was answered although PLUGIN_CLIENT_CERT was set")
		}
		return nil
	})(ctx, s)
}

var pluginName = regexp.MustCompile(`^[a-z0-9-]+$`)

func speaks() []Check {
	return []Check{
		{Name: "its health service answers SERVING", Contract: `answers SERVING for the service "plugin"`, Run: with(func(ctx context.Context, _ Subject, p *process) error { return health(ctx, p, true, false, false) })},
		{Name: "Info answers before Configure, always the same", Contract: "It answers before Configure was called, asks no backend, and always gives the same answer", Run: with(infoIsConstant)},
		{Name: "Info names the kind it was started as, a name and a version", Contract: `The plugin's own name, such as "redis": lower-case letters, digits and "-"`, Run: with(infoIsWhole)},
	}
}

func infoIsConstant(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	first, err := service.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		return kit.Failf("Info before Configure failed: %w", err)
	}
	if _, err := configure(ctx, service, p, s.Settings); err != nil {
		return err
	}
	for range 3 {
		again, err := service.Info(ctx, &pluginv1.InfoRequest{})
		if err != nil {
			return kit.Failf("Info after Configure failed: %w", err)
		}
		if !reflect.DeepEqual(first.String(), again.String()) {
			return kit.Failf("Info first said %v, then %v", first, again)
		}
	}
	return nil
}

func infoIsWhole(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	info, err := service.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		return kit.Failf("Info failed: %w", err)
	}
	if plugins.Kind(info.GetKind()) != s.Kind || !pluginName.MatchString(info.GetName()) || info.GetVersion() == "" {
		return kit.Failf("Info must give the kind %s, a name of a-z, 0-9 and -, and a version; it gave %v", s.Kind, info)
	}
	return nil
}

func ends() []Check {
	return []Check{
		{Name: "Shutdown ends the process and leaves nothing behind", Contract: "whose Shutdown ends the process within two seconds", Run: with(obeysShutdown)},
		{Name: "SIGTERM ends the process", Contract: "SIGTERM ends it too", Run: with(obeysSIGTERM)},
		{Name: "standard output carries nothing while the plugin serves, nor a while after", Contract: "at no time, however late", Run: with(staysSilent)},
		{Name: "standard output carries the handshake line alone", Contract: "Stdout carries nothing after the handshake line", Run: with(keepsStdoutClean)},
	}
}

func obeysShutdown(ctx context.Context, _ Subject, p *process) error {
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = conn.Invoke(short, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // the process may be gone before it answers
	if _, gone := p.exits(shutdownTimeout); !gone {
		return kit.Failf("after Shutdown the process must end within two seconds; it still ran after %s", shutdownTimeout)
	}
	left, err := os.ReadDir(p.socketDir())
	if err != nil || len(left) > 0 {
		return kit.Failf("after Shutdown nothing must be left of it; %d files are in its socket directory", len(left))
	}
	return nil
}

func obeysSIGTERM(_ context.Context, _ Subject, p *process) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if _, gone := p.exits(4 * time.Second); !gone {
		return kit.Failf("after SIGTERM the process must end; it still ran after four seconds")
	}
	return nil
}

func keepsStdoutClean(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	if _, err := service.Info(ctx, &pluginv1.InfoRequest{}); err != nil {
		return kit.Failf("Info failed: %w", err)
	}
	if _, err := configure(ctx, service, p, []byte(`{"noPluginHasThisSetting": true}`)); err != nil {
		return err
	}
	if _, err := configure(ctx, service, p, s.Settings); err != nil {
		return err
	}
	if err := callKind(ctx, s, p); err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_, _ = p.exits(patience) // another check judges how it ends
	return p.printedNothing()
}

// late is how long after its last call the kit listens to a plugin.
const late = 2500 * time.Millisecond

// staysSilent makes calls of the kind's own service, and listens to standard output for a while after them. The
// process is killed, so that what it prints as it ends is another check's matter.
func staysSilent(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	for range 10 {
		if err := callKind(ctx, s, p); err != nil {
			return err
		}
	}
	if err := pause(ctx, late); err != nil {
		return err
	}
	return p.printedNothing()
}

// printedNothing ends the process, and returns an error if it wrote to standard output after the handshake line.
func (p *process) printedNothing() error {
	p.stop() // after which all of its output has been read
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.after) > 0 {
		return kit.Failf("after the handshake line it printed %q to standard output", p.after[:min(len(p.after), 3)])
	}
	return nil
}
