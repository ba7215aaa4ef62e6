//go:build linux

package process_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// ordinaryUser is the user for the tests that run without privileges.
const ordinaryUser = 65534

// notAtLandlock are the probes that LevelLandlock does not stop. Without a network namespace, nothing checks
// the destination of a datagram, apps may listen, and there is a single share of inotify.
var notAtLandlock = []string{
	"a datagram to loopback", "a datagram through a disconnected socket", "a port of the server's network", "all inotify instances",
}

func TestAHostileAppGainsNothing(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelNamespaces, sandbox.LevelLandlock} {
		t.Run(level.String(), func(t *testing.T) {
			if level == sandbox.LevelNamespaces {
				testenv.NeedsNamespaces(t)
			}
			victim := newVictim(t)
			for name := range allProbes() {
				if level == sandbox.LevelLandlock && slices.Contains(notAtLandlock, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					out := output(t, start(t, victim.hostile(t, level, name)))
					if !strings.HasPrefix(out, "HELD") {
						t.Errorf("%q", out)
					}
				})
			}
			victim.unharmed(t)
		})
	}
}

// The tests of the sandbox run again, without root privileges.
func TestAHostileAppRunByAnOrdinaryUserGainsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests already run as an ordinary user")
	}
	out, err := testAgain(t, "-test.run", "TestAHostileApp|TestAConfined|TestATreeThatExceeds|TestMemoryThat", "-test.v")
	confining := len(allLevels()) - 1 // without LevelNone
	if err != nil || strings.Count(string(out), "--- PASS") < confining*(len(allProbes())-len(notAtLandlock)) || !strings.Contains(string(out), "--- PASS: TestATreeThatExceedsItsLimit") {
		t.Errorf("%v\n%s", err, out)
	}
}

// testAgain runs tests of this package as an ordinary user.
func testAgain(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ordinary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, ordinaryUser, ordinaryUser)); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "process.test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	return cmd.CombinedOutput()
}

// victim is a server with everything that a hostile app could try to get.
type victim struct {
	target
	other *process.Process
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	v := &victim{target: target{
		Home: home, Config: filepath.Join(home, "config.yaml"), Tokens: filepath.Join(home, "tokens"), Database: filepath.Join(home, "ropewalk.db"),
		OtherData: filepath.Join(home, "apps/other/data/notes"), Plugins: filepath.Join(home, "plugins"),
		Bundle: filepath.Join(home, "apps/hostile/bundle/1"), Data: filepath.Join(home, "apps/hostile/data"), Server: os.Getpid(),
	}}
	for _, dir := range []string{v.Plugins, v.Bundle, v.Data, filepath.Dir(v.OtherData)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v.share(t)
	for _, file := range []string{v.Config, v.Tokens, v.Database, v.Database + "-wal", v.OtherData, v.Temporary, v.SharedMemory} {
		if err := os.WriteFile(file, []byte(canary), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SECRET", canary)
	other := command("sleep")
	other.Env = append(other.Env, "SECRET="+canary)
	v.other = start(t, other)
	v.Other = v.other.PID()
	v.listen(t)
	return v
}

// share creates the files and shared memory that a server and other programs of its user may leave in shared places.
func (v *victim) share(t *testing.T) {
	t.Helper()
	mark := newMark(t)
	v.Temporary, v.SharedMemory = filepath.Join("/tmp", mark), filepath.Join("/dev/shm", mark)
	t.Cleanup(func() { _, _ = os.Remove(v.Temporary), os.Remove(v.SharedMemory) })
	var err error
	if v.Segment, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(v.Segment, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(v.Segment, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, canary)
	if err := unix.SysvShmDetach(memory); err != nil {
		t.Fatal(err)
	}
}

// fullService returns the address of a service whose queue of connections is full, so that connecting to it takes a
// long time.
func fullService(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(client) })
		_ = unix.Connect(client, name)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port))
}

// listen starts the server's services, which send the canary to every client.
func (v *victim) listen(t *testing.T) {
	t.Helper()
	serve := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte(canary))
				_ = conn.Close()
			}
		}()
		return l.Addr().String()
	}
	short, err := os.MkdirTemp("", "s") // a socket's path is at most 107 bytes long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	v.Control = serve("unix", filepath.Join(short, "control.sock"))
	v.Plugin = serve("unix", filepath.Join(short, "plugin123"))
	v.Abstract = newMark(t)
	_ = serve("unix", "@"+v.Abstract)
	v.TCP, v.Allowed = serve("tcp4", "127.0.0.1:0"), serve("tcp4", "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(serve("tcp", "[::]:0")) // IPv4 as well
	v.Full = fullService(t)
	v.Postgres, v.PostgresSocket = v.TCP, v.Control
	v.TCPOwn = net.JoinHostPort(ownAddress(t), port)
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	go func() {
		buffer := make([]byte, 16)
		for {
			_, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte(canary), from)
		}
	}()
	v.UDP = packets.LocalAddr().String()
}

// ownAddress returns an address of this machine that is not loopback, if there is one.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "127.0.0.2"
}

func (v *victim) hostile(t *testing.T, level sandbox.Level, probe string) process.Command {
	t.Helper()
	knows, err := json.Marshal(v.target)
	if err != nil {
		t.Fatal(err)
	}
	c := confined(t, level, "hostile", probe, string(knows))
	c.Sandbox.Read = append(c.Sandbox.Read, v.Bundle)
	c.Sandbox.Write, c.Dir = []string{v.Data}, v.Bundle
	c.Sandbox.Network = sandbox.Network{Allow: []string{v.Allowed, v.Full}}
	c.Sandbox.Limits = sandbox.Limits{FileSize: 1 << 20}
	return c
}

// unharmed fails the test if the probes changed anything.
func (v *victim) unharmed(t *testing.T) {
	t.Helper()
	for _, file := range []string{v.Config, v.Tokens, v.Database, v.Database + "-wal", v.OtherData, v.Temporary, v.SharedMemory} {
		raw, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || string(raw) != canary || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %q (%v, %v)", file, raw, info.Mode(), err)
		}
	}
	select {
	case <-v.other.Done():
		t.Error("the other app ended")
	default:
	}
}

func TestAConfinedTreeThatKillsItsShimLeavesNoProcesses(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelNamespaces, sandbox.LevelLandlock} {
		t.Run(level.String(), func(t *testing.T) {
			mark := newMark(t)
			p := start(t, confined(t, level, "impersonate", mark))
			select {
			case <-p.Done():
			case <-time.After(300 * time.Millisecond):
				p.Kill()
				<-p.Done()
			}
			if left, _ := soon(mark); len(left) > 0 {
				t.Errorf("survivors: %v", left)
			}
		})
	}
}

func TestATreeThatExceedsItsLimitEndsWithTheReason(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelNamespaces, sandbox.LevelLandlock} {
		for kind, limits := range map[string]sandbox.Limits{
			"allocate":          {Memory: 64 << 20},
			"allocate-shared":   {Memory: 64 << 20},
			"allocate-detached": {Memory: 64 << 20},
			"allocate-tables":   {Memory: 64 << 20},
			"semaphores":        {Memory: 64 << 20},
			"messages":          {Memory: 64 << 20},
			"multiply":          {Processes: 16},
			"zombies":           {Processes: 16},
			"threads":           {Processes: 16},
		} {
			if level == sandbox.LevelLandlock && slices.Contains([]string{"allocate-detached", "semaphores", "messages"}, kind) {
				continue // landlock prevents such memory
			}
			if level == sandbox.LevelNamespaces && kind == "threads" {
				continue // the kernel refuses to start them
			}
			t.Run(level.String()+" "+kind, func(t *testing.T) {
				mark := newMark(t)
				c := confined(t, level, kind, mark)
				c.Sandbox.Limits = limits
				endsOverItsLimit(t, c, mark)
			})
		}
	}
}

// endsOverItsLimit starts a program that exceeds its limit, and waits until its whole tree is killed for that.
func endsOverItsLimit(t *testing.T, c process.Command, mark string) {
	t.Helper()
	p := start(t, c)
	<-p.Done()
	exit, ok := errors.AsType[*process.ExitError](p.Err())
	if !ok || !strings.Contains(exit.Limit, "the limit is") {
		t.Errorf("ended with %v", p.Err())
	}
	if left, _ := soon(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}

func TestMemoryThatProcessesShareIsCountedOnce(t *testing.T) {
	c := confined(t, sandbox.LevelNamespaces, "share")
	c.Sandbox.Limits = sandbox.Limits{Memory: 400 << 20} // the sum over all processes is higher
	p := start(t, c)
	out := output(t, p)
	<-p.Done()
	if p.Err() != nil || strings.Count(out, "attached") != sharers {
		t.Errorf("%d processes that share %d MiB ended with %v: %s", sharers, sharedBytes>>20, p.Err(), out)
	}
}

// The app can see the socket of this test, but only the server's user may connect to it.
func TestAnAppConnectsWithItsOwnPermissions(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("apps have their own users only if the server runs as root")
	}
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, mode := range map[string]os.FileMode{"open": 0o666, "closed": 0o600} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if err := errors.Join(os.Chmod(filepath.Join(dir, name), mode), os.Chmod(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	c := confined(t, sandbox.LevelNamespaces, "connect", filepath.Join(dir, "open"), filepath.Join(dir, "closed"))
	c.Sandbox.Write, c.Sandbox.UID, c.Dir = []string{dir}, process.AppUID("a"), dir
	if got := output(t, start(t, c)); got != "open: connected\nclosed: refused\n" {
		t.Errorf("%q", got)
	}
}

func TestATreeThatExceedsItsProcessorTimeIsSlowedDown(t *testing.T) {
	c := confined(t, sandbox.LevelNamespaces, "spin")
	c.Sandbox.Limits.CPU = 0.25
	began := time.Now()
	p := start(t, c)
	<-p.Done()
	if took := time.Since(began); took < time.Second || p.Err() != nil {
		t.Errorf("500 ms of work took %v (%v), want about 2 s", took, p.Err())
	}
}
