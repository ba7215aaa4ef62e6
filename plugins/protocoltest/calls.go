package protocoltest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// checkPlugin asks for the health of a plugin.
func checkPlugin(ctx context.Context, conn *grpc.ClientConn) (*grpc_health_v1.HealthCheckResponse, error) {
	return grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
}

// healthy checks the health of a process over a new connection like the server's.
func (p *process) healthy(after string) {
	ctx, cancel := p.limited()
	defer cancel()
	answer, err := checkPlugin(ctx, p.dial(true, p.server))
	if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		kit.Reject(fmt.Sprintf("%v, %v", answer.GetStatus(), err), "SERVING", sentenceHealth, after, "Health.Check of \"plugin\"")
	}
}

// ask calls Configure, or Validate if configure is false, and returns the problems that the plugin reports.
func (p *process) ask(configure bool, settings []byte) []*pluginv1.Problem {
	if len(settings) == 0 {
		settings = []byte("{}")
	}
	ctx, cancel := p.limited()
	defer cancel()
	var resp interface{ GetProblems() []*pluginv1.Problem }
	var err error
	step := "Validate of "
	if configure {
		step = "Configure with "
		resp, err = p.service.Configure(ctx, &pluginv1.ConfigureRequest{SettingsJson: string(settings), DataDir: p.data})
	} else {
		resp, err = p.service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: string(settings), DataDir: p.data})
	}
	if err != nil {
		kit.Reject(p.reason(err), "OK, with problems where settings are wrong", sentenceProblems, step+shown(settings))
	}
	return resp.GetProblems()
}

// reason returns the text of an error and the plugin's last log line, because an internal error has no details of its
// own.
func (p *process) reason(err error) string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	if code := status.Code(err); lines[0] == "" || code != codes.Internal && code != codes.Unknown {
		return kit.ErrorText(err)
	}
	const most = 5
	return kit.ErrorText(err) + "; it logged: " + strings.Join(lines[max(0, len(lines)-most):], "\n"+strings.Repeat(" ", 14))
}

func shown(text []byte) string { return string(text[:min(len(text), 300)]) }

func (p *process) info() *pluginv1.InfoResponse {
	ctx, cancel := p.limited()
	defer cancel()
	info, err := p.service.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		kit.Reject(kit.ErrorText(err), "an answer", sentenceInfo, "Info")
	}
	return info
}

// probe makes one call to the kind's own service.
func (p *process) probe(about string) codes.Code {
	ctx, cancel := p.limited()
	defer cancel()
	err := p.Probe(ctx, p.conn, about)
	code := status.Code(err)
	allowed := []codes.Code{codes.OK, codes.NotFound, codes.InvalidArgument, codes.Unauthenticated, codes.Unavailable}
	if !slices.Contains(allowed, code) || err != nil && status.Convert(err).Message() == "" {
		kit.Reject(fmt.Sprintf("%v %q", code, status.Convert(err).Message()), "one of the status codes of the contract, with a message", sentenceMessage, "a call of the kind's own service")
	}
	return code
}

// servesItsKind checks that the executable refuses to start without a kind, or with a wrong one.
func servesItsKind(b *bench) {
	for _, value := range []string{"", "nonsense", strings.ToUpper(string(b.Kind)), string(b.Kind) + " "} {
		ctx, cancel := b.limited()
		defer cancel()
		cmd := b.command(ctx, "PLUGIN_UNIX_SOCKET_DIR="+b.makeDir())
		if value != "" {
			cmd.Env = append(cmd.Env, "ROPEWALK_PLUGIN="+value, "PLUGIN_PROTOCOL_VERSIONS=1")
		}
		var stdout, stderr kit.Output
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if ctx.Err() != nil || cmd.ProcessState.ExitCode() != 1 || stdout.String() != "" || len(strings.Fields(stderr.String())) < 3 {
			answered := fmt.Sprintf("status %d (%v), standard output %q, standard error %q", cmd.ProcessState.ExitCode(), err, stdout.String(), stderr.String())
			kit.Reject(answered, "status 1, nothing on standard output, a sentence on standard error", sentenceCookie, fmt.Sprintf("start it with ROPEWALK_PLUGIN=%q", value))
		}
	}
	b.trial.Cover("started by hand and as 3 other kinds")
}

// handshakes checks the handshake when different protocol versions are on offer.
func handshakes(b *bench) {
	keys := map[string]bool{}
	for _, offered := range []string{"1", "1,99", "99,1", "1"} {
		step := "start it with PLUGIN_PROTOCOL_VERSIONS=" + offered
		p := b.start(offered, "")
		info := p.info()
		version, _ := strconv.ParseUint(p.fields[1], 10, 32)
		if !slices.Contains(strings.Split(offered, ","), p.fields[1]) || !slices.Contains(info.GetProtocolVersions(), uint32(version)) {
			kit.Reject(fmt.Sprintf("%q, and by Info it serves %d", p.fields[1], info.GetProtocolVersions()), "one that both speak", sentenceVersion, step)
		}
		if p.fields[2] != "unix" && (p.fields[2] != "tcp" || !strings.HasPrefix(p.fields[3], "127.0.0.1:")) {
			kit.Reject(p.fields[2]+" "+p.fields[3], "a unix socket or 127.0.0.1", sentenceListens, step)
		}
		key := string(p.certificate().RawSubjectPublicKeyInfo) // not the whole certificate, because signatures always differ
		if keys[key] {
			kit.Reject("the key of an earlier start", "a key of its own", sentenceOwn, step, step)
		}
		keys[key] = true
	}
	p := b.serving("")
	p.probe("x")
	b.trial.Cover("4 starts that offer other versions")
	p.listensNowhereElse()
}

// guarded checks that nobody can connect without the server's certificate.
func guarded(b *bench) {
	p := b.start("1", "")
	p.healthy("connect with the server's certificate")
	other := certificate() // it has the same names as the server's
	clients := map[string]*grpc.ClientConn{
		"without a certificate": p.dial(true), "with another's certificate": p.dial(true, other), "in plain text": p.dial(false),
		"with the server's certificate and another's key": p.dial(true, tls.Certificate{Certificate: p.server.Certificate, PrivateKey: other.PrivateKey}),
	}
	for how, conn := range clients {
		ctx, cancel := b.limited()
		_, err := checkPlugin(ctx, conn)
		cancel()
		if code := status.Code(err); err == nil || code == codes.NotFound || code == codes.Unimplemented {
			kit.Reject(fmt.Sprint("an answer: ", err), "no connection", sentenceClient, "connect "+how)
		}
	}
	b.trial.Cover("%d clients that are not the server", len(clients))
	p.healthy("connect as somebody else, then with the server's certificate")
}

// introduced checks that Info returns the same before and after the plugin gets settings and calls.
func introduced(b *bench) {
	p := b.start("1", "")
	first := p.info()
	name := first.GetName()
	if first.GetKind() != string(b.Kind) || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || first.GetVersion() == "" {
		kit.Reject(first.String(), fmt.Sprintf("the kind %s, a name of a-z, 0-9 and -, and a version", b.Kind), sentenceName, "Info")
	}
	for _, step := range []string{"", "Configure with a setting that does not exist", "Configure", "a call of its kind", "a call of its kind"} {
		switch step {
		case "Configure with a setting that does not exist":
			p.ask(true, []byte(`{"noPluginHasThisSetting": true}`))
		case "Configure":
			p.ask(true, b.Settings)
		case "a call of its kind":
			p.probe("x")
		}
		p.healthy("start " + step)
		if again := p.info(); again.String() != first.String() {
			kit.Reject(fmt.Sprintf("first %v, then %v", first, again), "the same answer", sentenceInfo, "Info", step, "Info")
		}
	}
	b.trial.Cover("Info and health at 5 moments")
}

// loaded makes large calls, many at once, abandoned and hostile ones. After each kind of call it checks that the plugin
// still responds.
func loaded(b *bench) {
	p := b.serving("")
	alone := p.probe("alone")
	asAlone := func(about, sentence, step string) {
		var code codes.Code
		err := kit.Catch(func() { code = p.probe(about) })
		busy := b.Kind == plugins.KindRegistry && code == codes.Unavailable // its backend may reject many calls
		if err == nil && code != alone && !busy {
			err = errors.New(code.String())
		}
		if err != nil {
			kit.Reject(kit.ErrorText(err), fmt.Sprintf("%v, as for a single call", alone), sentence, step)
		}
	}
	second := b.start("1", "")
	large := slices.Concat([]byte(`{"noPluginHasThisSetting": "`), bytes.Repeat([]byte("x"), 15<<20), []byte(`"}`))
	if err := kit.Catch(func() { second.ask(true, large) }); err != nil {
		kit.Reject(kit.ErrorText(err), "OK, with a problem", sentenceLarge, "Configure with settings of 15 MiB")
	}
	for range b.trial.Count(10) {
		kit.AtOnce(b.ctx, 100, 100, func(context.Context, int) {
			asAlone("one-of-many", sentenceHundred, "100 calls at once")
		})
		for _, limit := range []time.Duration{1, 3, 10, 25} {
			kit.AtOnce(b.ctx, 100, 100, func(ctx context.Context, _ int) {
				ctx, cancel := context.WithTimeout(ctx, limit*time.Millisecond)
				defer cancel()
				_ = b.Probe(ctx, p.conn, "given-up")
			})
		}
		asAlone("after", sentenceGivenUp, "400 abandoned calls, then one")
	}
	p.hostile()
	if err := kit.Catch(func() { p.healthy("hostile connections and messages") }); err != nil {
		kit.Reject(kit.ErrorText(err), "SERVING", sentenceHostile, "hostile connections and messages", "Health.Check")
	}
	b.trial.Cover("15 MiB in a message, %d times 100 calls at once and 400 abandoned, hostile connections and messages", b.trial.Count(10))
	asAlone("after", sentenceHostile, "hostile connections and messages, then a call")
}

// hostile sends what a server never sends: bytes that are not TLS, unknown methods, messages that are not protobuf,
// text that is not UTF-8, and more than 16 MiB.
func (p *process) hostile() {
	for _, data := range []string{"", "\x00", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff" + strings.Repeat("\xff", 4096), strings.Repeat("\x00", 1<<16)} {
		if raw, err := net.DialTimeout(p.fields[2], p.fields[3], time.Second); err == nil { //nolint:noctx // bounded
			_, _ = raw.Write([]byte(data))
			_ = raw.Close()
		}
	}
	raw := &emptypb.Empty{}
	for _, bytes := range [][]byte{{0xff}, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0xff, 0xfe}), protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1<<63), bytes.Repeat([]byte{0x0a, 0x7f}, 9<<20)} {
		raw.ProtoReflect().SetUnknown(bytes)
		for _, method := range []string{"/ropewalk.plugin.v1.PluginService/Validate", "/ropewalk.plugin.v1.PluginService/NoSuchMethod", "/no.such.Service/Method", "/plugin.GRPCController/NoSuchMethod"} {
			ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
			_ = p.conn.Invoke(ctx, method, raw, &emptypb.Empty{})
			cancel()
		}
	}
}

// secretive passes secrets in settings and calls, and looks for them wherever they could appear.
func secretive(b *bench) {
	const canary = "canary-4711-must-not-be-repeated"
	secrets := []kit.Secret{{What: "a value of the settings", Text: canary}}
	good := map[string]any{}
	_ = json.Unmarshal(b.Settings, &good)
	changes := map[string]any{"noPluginHasThisSetting": canary, "nested": map[string]any{"secret": canary}}
	for name, value := range good {
		if _, text := value.(string); !text {
			changes[name] = canary
		}
	}
	look := func(step, where, text string) {
		if err := kit.Tells(text, secrets); err != nil {
			kit.Reject(fmt.Sprintf("%s: %v", where, err), "no secret", sentenceSecret, step)
		}
	}
	p := b.start("1", "")
	settings := kit.Got(json.Marshal(merged(good, changes)))
	for _, configure := range []bool{true, false} {
		if configure || slices.Contains(p.info().GetCapabilities(), plugins.CapabilityValidate) {
			look("settings with secrets in wrong places", "the problems", fmt.Sprint(p.ask(configure, settings)))
		}
	}
	p.exposes(look)
	p = b.serving("")
	for name, value := range good { // the author's own values for settings that look like secrets
		lower := strings.ToLower(name)
		if text, ok := value.(string); ok && (strings.Contains(lower, "secret") || strings.Contains(lower, "password") || strings.HasSuffix(lower, "key")) {
			secrets = append(secrets, kit.Secret{What: "the setting " + name, Text: text})
		}
	}
	if b.Kind == plugins.KindAuth {
		part := base64.RawURLEncoding.EncodeToString
		for _, token := range []string{canary, "sk_" + canary, part([]byte(`{"alg":"none"}`)) + "." + part([]byte(`{"sub":"`+canary+`"}`)) + "." + canary} {
			ctx, cancel := b.limited()
			_, err := authv1.NewAuthServiceClient(p.conn).Verify(ctx, &authv1.VerifyRequest{Token: token})
			cancel()
			look("Verify of an unknown token", "the error", fmt.Sprint(err))
		}
	}
	_ = b.Probe(b.ctx, p.conn, canary)
	p.exposes(look)
	for name, value := range good { // put a secret into each text setting; the result does not matter
		if _, text := value.(string); !text {
			continue
		}
		p = b.start("1", "")
		var problems []*pluginv1.Problem
		err := kit.Catch(func() { problems = p.ask(true, kit.Got(json.Marshal(merged(good, map[string]any{name: canary})))) })
		if f, ok := errors.AsType[*kit.Failure](err); ok {
			err = errors.New(f.Answered)
		}
		look("Configure with a secret in "+name, "the problems or the error", fmt.Sprint(problems, err))
		p.exposes(look)
	}
	b.trial.Cover("problems, errors, both outputs, arguments of its processes, temporary files")
}

// exposes checks the arguments of the process and its children, the files that others can read, and its output.
func (p *process) exposes(look func(step, where, text string)) {
	for _, pid := range family(p.cmd.Process.Pid) {
		args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		look("settings or calls with secrets", "the arguments of a process", string(args))
	}
	kit.Must(filepath.WalkDir(p.tempDir(), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // it is gone, or not a regular file
		}
		if info, err := entry.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			raw, _ := os.ReadFile(path)
			look("settings or calls with secrets", "the file "+entry.Name()+", which others can read", string(raw))
		}
		return nil
	}))
	p.stop() // after that, all of its output has been read
	look("settings or calls with secrets", "its output", p.stderr.String()+strings.Join(p.printed(), "\n"))
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
