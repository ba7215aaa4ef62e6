//go:build unix

package testenv

import (
	"bufio"
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis is a test's own Redis server. It does not write to disk: after Stop and Start it is empty.
type Redis struct {
	*Server
	Addr string // host:port
	Port int
}

// StartRedis starts a Redis server, which stops when the test ends. args are added to its command line: StartRedis(t,
// "--requirepass", "secret").
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	return startRedis(t, func(port string) []string { return append(inMemory(t, "--port", port), args...) })
}

// StartRedisTLS is like StartRedis, for a server that accepts only TLS on Addr.
func StartRedisTLS(t testing.TB, caFile, certFile, keyFile string, args ...string) *Redis {
	t.Helper()
	return startRedis(t, func(port string) []string {
		line := inMemory(t, "--port", "0", "--tls-port", port,
			"--tls-ca-cert-file", caFile, "--tls-cert-file", certFile, "--tls-key-file", keyFile)
		return append(line, args...)
	})
}

// StartRedisSentinel starts a sentinel with a configuration file, which it rewrites as it runs.
func StartRedisSentinel(t testing.TB, conf string) *Redis {
	t.Helper()
	return startRedis(t, func(port string) []string {
		return []string{conf, "--sentinel", "--port", port, "--bind", "127.0.0.1"}
	})
}

func inMemory(t testing.TB, args ...string) []string {
	return append(args, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no")
}

func startRedis(t testing.TB, line func(port string) []string) *Redis {
	t.Helper()
	path := Program(t, "redis-server")
	for range attempts {
		port := freePort(t)
		args := line(strconv.Itoa(port))
		r := &Redis{Addr: address(port), Port: port}
		r.Server = &Server{t: t, quit: syscall.SIGTERM, ready: func(ctx context.Context) bool { return redisAnswers(ctx, r.Addr) }}
		r.command = func() *exec.Cmd {
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...) // Kill stops it
			cmd.Env = []string{}
			return cmd
		}
		t.Cleanup(r.Kill)
		if r.start() {
			return r
		}
		t.Logf("redis-server did not start on port %d, trying another:\n%s", port, r.output)
	}
	t.Fatal("redis-server did not start")
	return nil
}

// redisAnswers accepts any response, including one that requires a password; a TLS server only has to listen.
func redisAnswers(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err != nil || !strings.HasPrefix(line, "-LOADING")
}

// Do runs one command with redis-cli and returns its output. The test fails if the command does.
func (r *Redis) Do(args ...string) string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), "redis-cli", append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(r.Port)}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
