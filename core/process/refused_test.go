//go:build linux

package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// The broker refuses most connections to this machine without connecting.
func TestAnAppReachesItsOwnServiceAsSoonAsThatListens(t *testing.T) {
	want := "refused: connection refused\nown: <nil>\nagain: transport endpoint is already connected\nv6: <nil>\ndatagrams: <nil>\n"
	for name, network := range map[string]sandbox.Network{"by default": {}, "with names": {Also: []string{"localhost:1"}}, "with any port": {Also: []string{"192.0.2.7:*"}}} {
		t.Run(name, func(t *testing.T) {
			c := confined(t, sandbox.LevelNamespaces, "own-service")
			c.Sandbox.Network = network
			if got := output(t, start(t, c)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestAnAppWithoutItsOwnNetworkReachesItsOwnService(t *testing.T) {
	want := "refused: permission denied\nown: <nil>\nagain: transport endpoint is already connected\nv6: <nil>\ndatagrams: permission denied\n"
	if got := output(t, start(t, confined(t, sandbox.LevelLandlock, "own-service"))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func useOwnService() {
	fd, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	_ = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	name, err := unix.Getsockname(fd)
	own, ok := name.(*unix.SockaddrInet4)
	if err != nil || !ok {
		fmt.Println(err)
		return
	}
	client, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	fmt.Println("refused:", unix.Connect(client, own))
	_ = unix.Listen(fd, 5)
	fmt.Println("own:", unix.Connect(client, own))
	fmt.Println("again:", unix.Connect(client, own))
	for range 5 { // another program may be listening on this port of 127.0.0.1
		var v6 net.Listener
		if v6, err = net.Listen("tcp6", "[::1]:0"); err != nil {
			break
		}
		var conn net.Conn
		if conn, err = net.Dial("tcp6", v6.Addr().String()); err == nil {
			err = conn.Close()
			break
		}
	}
	fmt.Println("v6:", err)
	datagrams, _ := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	fmt.Println("datagrams:", unix.Connect(datagrams, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}))
}

// A client that connects to localhost tries ::1 first. It would reach the app instead of a service that listens on
// 127.0.0.1.
func TestAnAppCannotListenOnThePortOfAService(t *testing.T) {
	service, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	_, used, _ := net.SplitHostPort(service.Addr().String())
	stopped, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := stopped.Addr().(*net.TCPAddr).Port
	if err := stopped.Close(); err != nil {
		t.Fatal(err)
	}
	for _, uid := range ownUsers() {
		c := confined(t, sandbox.LevelLandlock, "listen", "[::1]:"+used, "127.0.0.2:"+used, "[::1]:"+strconv.Itoa(taken), "127.0.0.1:0", "[::1]:0", "again", "unix")
		c.Sandbox.Taken = []int{taken}
		giveTo(t, &c, uid)
		if got, want := output(t, start(t, c)), "taken\ntaken\ntaken\nlistens\nlistens\nlistens\nlistens\n"; got != want {
			t.Errorf("user %d: %q, want %q", uid, got, want)
		}
	}
}

// listenOn listens on each of the addresses. "again" stands for a different address with the port of the previous one,
// and "unix" for a Unix socket.
func listenOn(addresses []string) {
	last := ""
	for _, address := range addresses {
		network := "tcp"
		switch address {
		case "again":
			_, port, _ := net.SplitHostPort(last)
			address = "127.0.0.3:" + port
		case "unix":
			network = "unix"
		}
		l, err := net.Listen(network, address)
		switch {
		case err == nil:
			last = l.Addr().String()
			fmt.Println("listens")
		case errors.Is(err, unix.EADDRINUSE):
			fmt.Println("taken")
		default:
			fmt.Println(err)
		}
	}
}

// BenchmarkRefusedConnections reports how much processor time a shim spends on each connection that it refuses to an
// app: to one closed port or to all, with and without its own service.
func BenchmarkRefusedConnections(b *testing.B) {
	for _, level := range []sandbox.Level{sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		for _, ports := range []string{"one port", "all ports"} {
			b.Run(level.String()+"/"+ports, func(b *testing.B) {
				p := start(b, confined(b, level, "refused", strconv.Itoa(b.N), ports))
				shim, err := shimOf(os.Getpid())
				if err != nil {
					b.Fatal(err)
				}
				lines := bufio.NewReader(p.Stdout())
				if line, err := lines.ReadString('\n'); line != "ready\n" {
					b.Fatal(line, err)
				}
				before := processorTime(b, shim)
				b.ResetTimer()
				if _, err := p.Stdin().Write([]byte("\n")); err != nil {
					b.Fatal(err)
				}
				if line, err := lines.ReadString('\n'); line != "done\n" {
					b.Fatal(line, err)
				}
				b.ReportMetric(float64(processorTime(b, shim)-before)/float64(b.N), "shim-ns/op")
			})
		}
	}
}

// refused connects to ports of this machine on which nothing listens.
func refused(times, ports string) {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	n, _ := strconv.Atoi(times)
	for i := range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		to := &unix.SockaddrInet4{Port: 1000, Addr: [4]byte{127, 0, 0, 1}}
		if ports == "all ports" {
			to.Port += i % 1000
		}
		if err := unix.Connect(fd, to); err == nil || !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EACCES) {
			fmt.Println(err)
			return
		}
		_ = unix.Close(fd)
	}
	fmt.Println("done")
}

// shimOf returns the process id of a server's only child.
func shimOf(server int) (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", server))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if pid, err2 := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && err2 == nil {
			return pid, nil
		}
	}
	return 0, errors.Join(errors.New("there is no shim"), err)
}

// processorTime returns the processor time that the threads of a process have used, in nanoseconds.
func processorTime(b *testing.B, pid int) (sum int64) {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) { // the thread has ended
			continue
		}
		var used int64
		if _, failed := fmt.Sscan(string(text), &used); err != nil || failed != nil {
			b.Fatal(err, failed)
		}
		sum += used
	}
	return sum
}
