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
	"sync"
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

// healthy checks the health of a process over a new connection like the server's.
func (p *process) healthy(after string) error {
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	ctx, cancel := p.limited()
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure(fmt.Sprintf("%v, %v", answer.GetStatus(), err), "SERVING", sentenceHealth, after, "Health.Check of \"plugin\"")
	}
	return nil
}

// ask calls Configure, or Validate if configure is false.
func (p *process) ask(configure bool, settings []byte) ([]*pluginv1.Problem, error) {
	if len(settings) == 0 {
		settings = []byte("{}")
	}
	ctx, cancel := p.limited()
	defer cancel()
	if !configure {
		resp, err := p.service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: string(settings), DataDir: p.data})
		if err != nil {
			err = failure(err.Error(), "OK, with problems where settings are wrong", sentenceProblems, "Validate of "+shown(settings))
		}
		return resp.GetProblems(), err
	}
	resp, err := p.service.Configure(ctx, &pluginv1.ConfigureRequest{SettingsJson: string(settings), DataDir: p.data})
	if err != nil {
		err = failure(err.Error(), "OK, with problems where settings are wrong", sentenceProblems, "Configure with "+shown(settings))
	}
	return resp.GetProblems(), err
}

func shown(text []byte) string { return string(text[:min(len(text), 300)]) }

func (p *process) info() (*pluginv1.InfoResponse, error) {
	ctx, cancel := p.limited()
	defer cancel()
	info, err := p.service.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		err = failure(err.Error(), "an answer", sentenceInfo, "Info")
	}
	return info, err
}

// probe makes one call to the kind's own p.service.
func (p *process) probe(about string) (codes.Code, error) {
	ctx, cancel := p.limited()
	defer cancel()
	err := p.Probe(ctx, p.conn, about)
	code := status.Code(err)
	allowed := []codes.Code{codes.OK, codes.NotFound, codes.InvalidArgument, codes.Unauthenticated, codes.Unavailable}
	if !slices.Contains(allowed, code) || err != nil && status.Convert(err).Message() == "" {
		return code, failure(fmt.Sprintf("%v %q", code, status.Convert(err).Message()), "one of the status codes of the contract, with a message", sentenceMessage, "a call of the kind's own service")
	}
	return code, nil
}

// servesItsKind starts the executable without a kind and with wrong ones.
func servesItsKind(b *bench) error {
	for _, value := range []string{"", "nonsense", strings.ToUpper(string(b.Kind)), string(b.Kind) + " "} {
		ctx, cancel := b.limited()
		defer cancel()
		dir, err := os.MkdirTemp("", "ropewalk-kit-")
		if err != nil {
			return err
		}
		b.dirs = append(b.dirs, dir)
		cmd := b.command(ctx, "PLUGIN_UNIX_SOCKET_DIR="+dir)
		if value != "" {
			cmd.Env = append(cmd.Env, "ROPEWALK_PLUGIN="+value, "PLUGIN_PROTOCOL_VERSIONS=1")
		}
		var stdout, stderr kit.Output
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		if ctx.Err() != nil || cmd.ProcessState.ExitCode() != 1 || stdout.String() != "" || len(strings.Fields(stderr.String())) < 3 {
			answered := fmt.Sprintf("status %d (%v), standard output %q, standard error %q", cmd.ProcessState.ExitCode(), err, stdout.String(), stderr.String())
			return failure(answered, "status 1, nothing on standard output, a sentence on standard error", sentenceCookie, fmt.Sprintf("start it with ROPEWALK_PLUGIN=%q", value))
		}
	}
	b.trial.Cover("started by hand and as 3 other kinds")
	return nil
}

// handshakes starts the executable with different protocol versions on offer.
func handshakes(b *bench) error {
	keys := map[string]bool{}
	for _, offered := range []string{"1", "1,99", "99,1", "1"} {
		step := "start it with PLUGIN_PROTOCOL_VERSIONS=" + offered
		p, err := b.start(offered, "")
		if err != nil {
			return err
		}
		info, err := p.info()
		if err != nil {
			return err
		}
		version, _ := strconv.ParseUint(p.fields[1], 10, 32)
		if !slices.Contains(strings.Split(offered, ","), p.fields[1]) || !slices.Contains(info.GetProtocolVersions(), uint32(version)) {
			return failure(fmt.Sprintf("%q, and by Info it serves %d", p.fields[1], info.GetProtocolVersions()), "one that both speak", sentenceVersion, step)
		}
		if p.fields[2] != "unix" && (p.fields[2] != "tcp" || !strings.HasPrefix(p.fields[3], "127.0.0.1:")) {
			return failure(p.fields[2]+" "+p.fields[3], "a unix socket or 127.0.0.1", sentenceListens, step)
		}
		own, err := p.certificate()
		if err != nil {
			return err
		}
		key := string(own.RawSubjectPublicKeyInfo) // not the whole certificate, because signatures always differ
		if keys[key] {
			return failure("the key of an earlier start", "a key of its own", sentenceOwn, step, step)
		}
		keys[key] = true
	}
	p, err := b.serving("")
	if err != nil {
		return err
	}
	if _, err := p.probe("x"); err != nil {
		return err
	}
	b.trial.Cover("4 starts with other offers of versions")
	return p.listensNowhereElse()
}

// guarded tries to connect without the server's certificate.
func guarded(b *bench) error {
	p, err := b.start("1", "")
	if err != nil {
		return err
	}
	if err := p.healthy("connect with the server's certificate"); err != nil {
		return err
	}
	other, err := certificate() // with the same names as the server's
	if err != nil {
		return err
	}
	clients := map[string]func() (*grpc.ClientConn, error){
		"without a certificate":      func() (*grpc.ClientConn, error) { return p.dial(true) },
		"with another's certificate": func() (*grpc.ClientConn, error) { return p.dial(true, other) },
		"with the server's certificate and another's key": func() (*grpc.ClientConn, error) {
			return p.dial(true, tls.Certificate{Certificate: p.server.Certificate, PrivateKey: other.PrivateKey})
		},
		"in plain text": func() (*grpc.ClientConn, error) { return p.dial(false) },
	}
	for how, dial := range clients {
		conn, err := dial()
		if err != nil {
			return err
		}
		ctx, cancel := b.limited()
		_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
		cancel()
		if code := status.Code(err); err == nil || code == codes.NotFound || code == codes.Unimplemented {
			return failure(fmt.Sprint("an answer: ", err), "no connection", sentenceClient, "connect "+how)
		}
	}
	b.trial.Cover("%d clients that are not the server", len(clients))
	return p.healthy("connect as somebody else, then with the server's certificate")
}

// introduced compares Info before and after settings and calls.
func introduced(b *bench) error {
	p, err := b.start("1", "")
	if err != nil {
		return err
	}
	first, err := p.info()
	if err != nil {
		return err
	}
	name := first.GetName()
	if first.GetKind() != string(b.Kind) || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || first.GetVersion() == "" {
		return failure(first.String(), fmt.Sprintf("the kind %s, a name of a-z, 0-9 and -, and a version", b.Kind), sentenceName, "Info")
	}
	steps := map[string]func() error{
		"Configure with a setting that does not exist": func() error { _, err := p.ask(true, []byte(`{"noPluginHasThisSetting": true}`)); return err },
		"Configure": func() error { _, err := p.ask(true, b.Settings); return err },
		"a call of its kind": func() error {
			_, err := p.probe("x")
			return err
		},
	}
	for _, step := range []string{"", "Configure with a setting that does not exist", "Configure", "a call of its kind", "a call of its kind"} {
		if do := steps[step]; do != nil {
			if err := do(); err != nil {
				return err
			}
		}
		if err := p.healthy("start " + step); err != nil {
			return err
		}
		if again, err := p.info(); err != nil || again.String() != first.String() {
			return errors.Join(failure(fmt.Sprintf("first %v, then %v", first, again), "the same answer", sentenceInfo, "Info", step, "Info"), err)
		}
	}
	b.trial.Cover("Info and health at 5 moments")
	return nil
}

// loaded makes large, many, abandoned and hostile calls, and checks after each kind that the plugin still responds.
func loaded(b *bench) error {
	p, err := b.serving("")
	if err != nil {
		return err
	}
	alone, err := p.probe("alone")
	if err != nil {
		return err
	}
	asAlone := func(sentence, step string, code codes.Code, err error) error {
		busy := b.Kind == plugins.KindRegistry && code == codes.Unavailable // its backend may reject many calls
		if code == alone || busy {
			return nil
		}
		return failure(fmt.Sprintf("%v: %v", code, err), fmt.Sprintf("%v, as to one call alone", alone), sentence, step)
	}
	large := slices.Concat([]byte(`{"noPluginHasThisSetting": "`), bytes.Repeat([]byte("x"), 15<<20), []byte(`"}`))
	if second, err := b.start("1", ""); err != nil {
		return err
	} else if _, err := second.ask(true, large); err != nil {
		return failure(err.Error(), "OK, with a problem", sentenceLarge, "Configure with settings of 15 MiB")
	}
	for range b.trial.Count(10) {
		errs := make([]error, 100)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				code, err := p.probe("one-of-many")
				errs[i] = asAlone(sentenceHundred, "100 calls at once", code, err)
			})
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		for _, limit := range []time.Duration{1, 3, 10, 25} {
			for range 100 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(b.ctx, limit*time.Millisecond)
					defer cancel()
					_ = b.Probe(ctx, p.conn, "given-up")
				})
			}
			all.Wait()
		}
		code, err := p.probe("after")
		if err := asAlone(sentenceGivenUp, "400 calls that are given up, then one", code, err); err != nil {
			return err
		}
	}
	p.hostile()
	if err := p.healthy("hostile connections and messages"); err != nil {
		return failure(err.Error(), "SERVING", sentenceHostile, "hostile connections and messages", "Health.Check")
	}
	code, err := p.probe("after")
	b.trial.Cover("15 MiB in a message, %d times 100 calls at once and 400 given up, hostile connections and messages", b.trial.Count(10))
	return asAlone(sentenceHostile, "hostile connections and messages, then a call", code, err)
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
func secretive(b *bench) error {
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
	p, err := b.start("1", "")
	if err != nil {
		return err
	}
	info, err := p.info()
	if err != nil {
		return err
	}
	look := func(step, where, text string) error {
		if err := kit.Tells(text, secrets); err != nil {
			return failure(fmt.Sprintf("%s: %v", where, err), "no secret", sentenceSecret, step)
		}
		return nil
	}
	settings, err := json.Marshal(merged(good, changes))
	if err != nil {
		return err
	}
	for _, configure := range []bool{true, false} {
		if !configure && !slices.Contains(info.GetCapabilities(), plugins.CapabilityValidate) {
			continue
		}
		problems, err := p.ask(configure, settings)
		if err != nil {
			return err
		}
		if err := look("settings with secrets in wrong places", "the problems", fmt.Sprint(problems)); err != nil {
			return err
		}
	}
	if err := p.exposes(look); err != nil {
		return err
	}
	if p, err = b.serving(""); err != nil {
		return err
	}
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
			if err := look("Verify of a token of nobody", "the error", fmt.Sprint(err)); err != nil {
				return err
			}
		}
	}
	_ = b.Probe(b.ctx, p.conn, canary)
	if err := p.exposes(look); err != nil {
		return err
	}
	for name, value := range good { // put a secret into each text setting; the result does not matter
		if _, text := value.(string); !text {
			continue
		}
		if p, err = b.start("1", ""); err != nil {
			return err
		}
		settings, err := json.Marshal(merged(good, map[string]any{name: canary}))
		if err != nil {
			return err
		}
		problems, err := p.ask(true, settings)
		if f, ok := errors.AsType[*kit.Failure](err); ok {
			err = errors.New(f.Answered)
		}
		if err := look("Configure with a secret in "+name, "the problems or the error", fmt.Sprint(problems, err)); err != nil {
			return err
		}
		if err := p.exposes(look); err != nil {
			return err
		}
	}
	b.trial.Cover("problems, errors, both outputs, arguments of its processes, temporary files")
	return nil
}

// exposes checks the arguments of the process and its children, the files that others can read, and its output.
func (p *process) exposes(look func(step, where, text string) error) error {
	for _, pid := range family(p.cmd.Process.Pid) {
		args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err := look("settings or calls with secrets", "the arguments of a process", string(args)); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(p.tempDir(), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // it is gone, or not a regular file
		}
		info, err := entry.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			return nil //nolint:nilerr // it is gone, or private
		}
		raw, _ := os.ReadFile(path)
		return look("settings or calls with secrets", "the file "+entry.Name()+", which others can read", string(raw))
	})
	if err != nil {
		return err
	}
	p.stop() // all of its output has been read then
	return look("settings or calls with secrets", "its output", p.stderr.String()+strings.Join(p.printed(), "\n"))
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
