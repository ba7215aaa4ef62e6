package protocoltest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// Lies of plugins that are configured and serve.
const (
	refusesDirectory = "refuses a data directory that was not closed"
	keepsWorker      = "keeps a worker of each call that was given up"
	refusesCrowd     = "answers RESOURCE_EXHAUSTED to more than 50 calls at once"
	logsToken        = "logs the tokens that it refuses"
	repeatsToken     = "repeats tokens in errors"
	encodesToken     = "logs the tokens that it refuses in base64"
)

// kind returns the kind that the liar serves. Only auth plugins are given tokens.
func (l *liar) kind() string {
	if l.is(logsToken) || l.is(repeatsToken) || l.is(encodesToken) {
		return "auth"
	}
	return "sessionstore"
}

// key returns a new key, or one that is built into the executable.
func (l *liar) key() *ecdsa.PrivateKey {
	if !l.is("has the same key at each start") {
		key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return key
	}
	secret := sha256.Sum256([]byte("a key that everybody has"))
	key, _ := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret[:])
	return key
}

// listenOnMore opens another listener, which stays open until the process ends.
func (l *liar) listenOnMore() {
	switch {
	case l.is("takes datagrams on every address"):
		_, _ = net.ListenPacket("udp", "0.0.0.0:0")
	case l.is("takes datagrams on this machine by IPv6"):
		_, _ = net.ListenPacket("udp6", "[::1]:0")
	case l.is("has a page about itself on this machine"):
		_, _ = net.Listen("tcp", "127.0.0.1:0")
	case l.is("listens on every address once it is configured"):
		_, _ = net.Listen("tcp", "0.0.0.0:0")
	}
}

func (l *liar) unhealthy() {
	l.health.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
}

// configured runs after the settings were found to be good.
func (l *liar) configured(req *pluginv1.ConfigureRequest) error {
	l.dir = req.GetDataDir()
	l.workers = make(chan struct{}, 8)
	l.crowd = make(chan struct{})
	l.listenOnMore()
	switch {
	case l.is("prints a second after it is configured"):
		time.AfterFunc(time.Second, func() { fmt.Println("ready") })
	case l.is("is not healthy once it is configured"):
		l.unhealthy()
	case l.is("refuses capabilities that it does not know") && slices.Contains(req.GetHostCapabilities(), "a.word.of.tomorrow"),
		l.is("refuses servers that are newer") && strings.HasPrefix(req.GetHostVersion(), "99"):
		return status.Error(codes.InvalidArgument, "the server is too new")
	case l.is(refusesDirectory):
		return takeDirectory(req.GetDataDir())
	}
	return nil
}

// exposes leaks the settings, or leaves a child process behind.
func (l *liar) exposes(settings string) {
	switch {
	case l.is("gives its settings to a child as an argument"):
		_ = exec.CommandContext(context.Background(), "sh", "-c", "sleep 5; true", settings).Start()
	case l.is("writes its settings where everybody reads them"):
		if file, err := os.CreateTemp("", "settings"); err == nil {
			_, _ = file.WriteString(settings)
			_ = errors.Join(file.Chmod(0o644), file.Close())
		}
	case l.is("leaves a child behind"):
		_ = exec.CommandContext(context.Background(), "sleep", "5").Start()
	}
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

// overlooks reports whether the liar reports no problem at all.
func (l *liar) overlooks(settings string, configure bool) bool {
	return l.is("validates settings that are not an object") && !configure && !strings.HasPrefix(settings, "{") ||
		l.is("takes null for an object") && settings == "null"
}

// some leaves out or spoils problems.
func (l *liar) some(problems []*pluginv1.Problem, configure bool) []*pluginv1.Problem {
	if l.is("reports wrong types before names that do not exist") || l.is("validates wrong types before names that do not exist") && !configure {
		for _, p := range problems {
			if p.GetPath() == "url" {
				return []*pluginv1.Problem{p}
			}
		}
	}
	for _, p := range problems {
		switch {
		case l.is("begins its problems with a capital"):
			p.Message = "Must be another"
		case l.is("says nothing of its problems"):
			p.Message = ""
		case l.is("names an unknown setting as the nearest") && p.GetPath() != "url":
			p.Nearest = p.GetPath()
		case l.is("names a nearest setting for a wrong type") && p.GetPath() == "url":
			p.Nearest = "uri"
		}
	}
	return problems
}

// validated runs the side effects of Validate.
func (l *liar) validated(req *pluginv1.ValidateRequest, problems []*pluginv1.Problem) {
	switch {
	case l.is("makes the data directory as it validates"):
		_ = os.MkdirAll(req.GetDataDir(), 0o700)
	case l.is("tries the data directory by writing as it validates"):
		_ = os.WriteFile(filepath.Join(req.GetDataDir(), "try"), nil, 0o600)
	case l.is("logs the settings that it validates"):
		fmt.Fprintln(os.Stderr, req.GetSettingsJson())
	case l.is("takes the settings that it validates"):
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken = len(problems) > 0
	}
}

// leaveLate delays the end of the process.
func (l *liar) leaveLate() {
	if l.is("takes its time to end") || l.is("takes its time to end once it is configured") && l.workers != nil {
		time.Sleep(5 * time.Second) //nolint:forbidigo // the lie
	}
}

func (l *liar) Get(ctx context.Context, _ *sessionstorev1.GetRequest) (*sessionstorev1.GetResponse, error) {
	none := status.Error(codes.NotFound, "no session")
	switch {
	case l.is("is not healthy once it was called"):
		l.unhealthy()
	case l.is("fails calls of its kind with a code of its own"):
		return nil, status.Error(codes.FailedPrecondition, "not now")
	case l.is("has no words for its errors"):
		return nil, status.Error(codes.NotFound, "")
	case l.is(refusesCrowd):
		return nil, l.crowded(none)
	case l.is(keepsWorker):
		return nil, l.work(ctx, none)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	switch {
	case l.is("prints at the fifth call of its kind") && l.calls == 5:
		fmt.Println("that was the fifth")
	case l.is("prints two seconds after a call") && l.calls == 1:
		time.AfterFunc(2*time.Second, func() { fmt.Println("cleaned up") })
	case l.is("keeps 20 KB of each call of its kind"):
		l.kept = append(l.kept, append(make([]byte, 0, 20<<10), make([]byte, 20<<10)...))
		l.kept[len(l.kept)-1][1] = 1
	case l.is("prints at each hundredth call of its kind") && l.calls%100 == 0:
		fmt.Println(l.calls, "calls")
	case l.is("starts a child at each hundredth call") && l.calls%100 == 0:
		_ = exec.CommandContext(context.Background(), "sleep", "30").Start()
	case l.is("writes a file at each call"):
		_ = os.WriteFile(filepath.Join(l.dir, strconv.Itoa(l.calls)), nil, 0o600)
	case l.broken:
		return nil, status.Error(codes.Unavailable, "no backend")
	}
	return nil, none
}

// crowded rejects the call if 50 calls are in flight. Otherwise it returns answer once a call has been rejected, or
// after two seconds.
func (l *liar) crowded(answer error) error {
	l.mu.Lock()
	if l.inFlight >= 50 {
		select {
		case <-l.crowd:
		default:
			close(l.crowd)
		}
		l.mu.Unlock()
		return status.Error(codes.ResourceExhausted, "too many calls")
	}
	l.inFlight++
	l.mu.Unlock()
	select {
	case <-l.crowd:
	case <-time.After(2 * time.Second):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	return answer
}

// work takes one of eight workers for a moment, and keeps it for good if the caller gives up.
func (l *liar) work(ctx context.Context, answer error) error {
	l.workers <- struct{}{}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Millisecond):
		<-l.workers
		return answer
	}
}

func (l *liar) Verify(_ context.Context, req *authv1.VerifyRequest) (*authv1.VerifyResponse, error) {
	if l.is(logsToken) {
		fmt.Fprintln(os.Stderr, "refused", req.GetToken())
	}
	if l.is(encodesToken) {
		fmt.Fprintln(os.Stderr, "refused", base64.StdEncoding.EncodeToString([]byte("Bearer "+req.GetToken())))
	}
	if l.is(repeatsToken) {
		return nil, status.Error(codes.Unauthenticated, "refused "+req.GetToken())
	}
	return nil, status.Error(codes.Unauthenticated, "refused")
}
