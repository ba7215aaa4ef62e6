//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// confinedLevels returns the levels that confine.
func confinedLevels() []sandbox.Level {
	return []sandbox.Level{sandbox.LevelNamespaces, sandbox.LevelLandlock}
}

// ownUsers returns the user ids that a test gives its app: the server's, and the app's own if the server is
// root.
func ownUsers() []int {
	if os.Geteuid() != 0 {
		return []int{0}
	}
	return []int{0, process.AppUID("walls")}
}

// giveTo makes the app's user the owner of its directory and program.
func giveTo(t *testing.T, c *process.Command, uid int) {
	t.Helper()
	c.Sandbox.UID = uid
	if uid == 0 {
		return
	}
	if err := process.Own(c.Dir, uid); err != nil {
		t.Fatal(err)
	}
	openWay(t, c.Dir)
	openWay(t, c.Path)
}

// openWay lets every user enter the directories of a path. It is needed because the go command makes the directory of
// the test executable private.
func openWay(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.Mode()&0o011 != 0o011 {
			err = os.Chmod(dir, info.Mode()|0o011)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The test keeps so many connect calls waiting that the shim would run out of descriptors if it had the app's limit.
func TestAnAppCannotReachTheServersAddressesWhenDescriptorsRunOut(t *testing.T) {
	l, err := net.Listen("tcp4", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	full := fullService(t)
	for _, level := range confinedLevels() {
		for _, limit := range []int{24, 64, 300} {
			t.Run(fmt.Sprintf("%v with %d files", level, limit), func(t *testing.T) {
				c := confined(t, level, "use-up", full, l.Addr().String())
				c.Sandbox.Network = sandbox.Network{Also: []string{full}}
				c.Sandbox.Limits.OpenFiles = limit
				if got := output(t, start(t, c)); got != "refused\n" {
					t.Errorf("%q", got)
				}
			})
		}
	}
}

// useUp makes connect calls that wait. In the meantime it tries another address from several threads, which compete
// for descriptors.
func useUp(full, own string) {
	<-time.After(time.Millisecond) // opens the descriptors that the Go runtime needs
	var probes []int
	for range 8 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		probes = append(probes, fd)
	}
	for range 250 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			break
		}
		go func() { _ = unix.Connect(fd, rawAddress(full)) }()
	}
	connected := make(chan bool, len(probes))
	for _, fd := range probes {
		go func() {
			for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
				if unix.Connect(fd, rawAddress(own)) == nil {
					connected <- true
				}
			}
			connected <- false
		}()
	}
	for range probes {
		if <-connected {
			fmt.Println("connected")
			return
		}
	}
	fmt.Println("refused")
}

// Apps start threads until they cannot, under a server with few threads. The server is this test in a separate
// process, so that the limit does not apply to other tests.
func TestAThreadBombLeavesTheServerItsThreads(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		openWay(t, exe)
	}
	for _, apps := range []int{1, 10, 60} {
		if apps == 60 && os.Geteuid() == 0 {
			continue // the machine's limit leaves room for more apps
		}
		for _, level := range confinedLevels() {
			t.Run(fmt.Sprintf("%d apps at %v", apps, level), func(t *testing.T) {
				p := start(t, process.Command{
					Path: self(), Args: []string{bundleArg, "bombed-server", strconv.Itoa(apps), level.String()}, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=" + t.TempDir()},
				})
				want := "alive\n"
				if apps == 60 || apps > 1 && level == sandbox.LevelLandlock && os.Geteuid() != 0 {
					want = "refused\nalive\n"
				}
				if got := output(t, p); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

func TestAnOrdinaryUsersServerKeepsItsThreadsAndEndsLeftovers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests already run as an ordinary user")
	}
	out, err := testAgain(t, "-test.run", "TestAThreadBomb|TestAnAppCannotChange|TestProcessesAreStartedOnly|TestTheNextServerEnds", "-test.v")
	if err != nil || strings.Count(string(out), "\n--- PASS") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The limits apply from the first instruction of a program, so they cannot be set from outside.
func TestAnAppCannotChangeTheLimitsThatItStartsWith(t *testing.T) {
	for _, level := range confinedLevels() {
		for _, uid := range ownUsers() {
			c := confined(t, level, "change-limits")
			c.Sandbox.Limits = sandbox.Limits{Processes: 4, OpenFiles: 100}
			giveTo(t, &c, uid)
			got := output(t, start(t, c))
			var threads, files, locks int
			if _, err := fmt.Sscanf(got, "%d %d %d\n", &threads, &files, &locks); err != nil || files != 100 || locks != 0x726f7065 || c.Sandbox.OwnTasks() && threads != 4*16 {
				t.Errorf("%v, user %d: %q (%v)", level, uid, got, err)
			}
		}
	}
}

// changeLimits tries to change the limits that its shim relies on, and prints them.
func changeLimits() {
	for _, resource := range []int{unix.RLIMIT_NPROC, unix.RLIMIT_NOFILE, unix.RLIMIT_LOCKS} {
		var was, now unix.Rlimit
		err := unix.Getrlimit(resource, &was)
		for _, to := range []unix.Rlimit{{Cur: was.Max, Max: was.Max}, {Cur: 7, Max: 7}} {
			_, _, errno := unix.Syscall(unix.SYS_SETRLIMIT, uintptr(resource), uintptr(unsafe.Pointer(&to)), 0)
			err = errors.Join(err, unix.Prlimit(0, resource, &to, nil))
			if errno != 0 {
				err = errors.Join(err, errno)
			}
		}
		if err = errors.Join(err, unix.Getrlimit(resource, &now)); err != nil || was != now {
			fmt.Println(err, was, now)
		}
		fmt.Print(now.Cur, " ")
	}
	fmt.Println()
}

// fewTasks is the bombed server's limit of threads. Its user has only a few other processes.
const fewTasks = 2000

// bombedServer starts apps. When they have as many threads as they can get, it starts as many threads as the server
// must still be able to start.
func bombedServer(apps, level string) error {
	n, err := strconv.Atoi(apps)
	if err != nil {
		return err
	}
	l, err := sandbox.ParseLevel(level)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 { // root is not subject to this limit
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: fewTasks, Max: fewTasks}); err != nil {
			return err
		}
	}
	var running []*process.Process
	for i := range n {
		c, err := bombCommand(i, l)
		if err != nil {
			return err
		}
		p, err := process.Start(c)
		if err != nil && i > 0 && strings.Contains(err.Error(), "ulimit -u") {
			fmt.Println("refused")
			if err := startAgain(c, running); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return fmt.Errorf("app %d: %w", i, err)
		}
		defer p.Kill()
		if !awaitLine(p.Stdout(), "full") && c.Sandbox.OwnTasks() {
			return fmt.Errorf("app %d ended", i)
		}
		running = append(running, p)
	}
	sum := 0
	for _, p := range running {
		var most unix.Rlimit
		if err := unix.Prlimit(p.PID(), unix.RLIMIT_NPROC, nil, &most); err != nil {
			continue // the app has ended, see above
		}
		if most.Cur > fewTasks-512 && os.Geteuid() != 0 {
			return fmt.Errorf("an app may have %d threads", most.Cur)
		}
		sum += int(min(most.Cur, 1<<32))
	}
	machine, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return err
	}
	budget, err := strconv.Atoi(strings.TrimSpace(string(machine)))
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		budget = fewTasks
	}
	if (os.Geteuid() == 0 || l == sandbox.LevelNamespaces) && sum > budget-512 {
		return fmt.Errorf("the apps may have %d threads, and all together should have %d", sum, budget-512)
	}
	var all sync.WaitGroup
	for range 300 {
		all.Add(1)
		go func() {
			defer all.Done()
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 300_000_000}, nil) // occupies a thread
		}()
	}
	all.Wait()
	fmt.Println("alive")
	return nil
}

// startAgain starts an app that was refused after one of the others has ended.
func startAgain(c process.Command, running []*process.Process) error {
	running[0].Kill()
	<-running[0].Done()
	p, err := process.Start(c)
	if err != nil {
		return fmt.Errorf("after another app has ended: %w", err)
	}
	p.Kill()
	<-p.Done()
	return nil
}

func bombCommand(i int, level sandbox.Level) (process.Command, error) {
	data, err := os.MkdirTemp("", "bomb")
	if err != nil {
		return process.Command{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return process.Command{}, err
	}
	most := 5000
	if os.Geteuid() == 0 {
		most = 200 // the app could exhaust the machine's limit, which other tests need; so the test only compares the limits
	}
	c := command("thread-bomb", strconv.Itoa(most))
	c.Path, c.Dir = exe, data
	c.Sandbox = &sandbox.Profile{Level: level, Read: append(sandbox.SystemPaths(), exe), Write: []string{data}, Limits: sandbox.Limits{Processes: 100_000}} // if its processes were counted, the app would be killed for the attempt
	if os.Geteuid() == 0 {
		c.Sandbox.UID = process.AppUID(strconv.Itoa(i))
		err = errors.Join(os.Chmod(os.TempDir(), 0o711), os.Chmod(filepath.Dir(os.TempDir()), 0o711), process.Own(data, c.Sandbox.UID))
	}
	return c, err
}

// bombThreads starts processes until it cannot start more, and keeps them. The kernel counts processes like threads.
func bombThreads(most string) {
	limit, err := strconv.Atoi(most)
	full := err != nil
	for n := 0; n < limit && !full; n++ {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			for {
				_, _, _ = unix.RawSyscall(unix.SYS_PAUSE, 0, 0, 0)
			}
		}
		full = errno != 0
	}
	fmt.Println("full")
	<-time.After(time.Minute)
}

// The test sends other kinds of messages to an app's name server. The broker answers them itself, so the machine does
// not need a name server.
func TestANameServerReceivesOnlyQueries(t *testing.T) {
	c := confined(t, sandbox.LevelNamespaces, "name-messages")
	if got, want := output(t, start(t, c)), "update: 4\nnotify: 4\ntwo questions: 1\nno question: 1\na query with an additional record: 1\nchaos: 5\nzone transfer: 5\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// sendMessages prints the response codes of messages.
func sendMessages() error {
	question := dnsmessage.Question{Name: dnsmessage.MustNewName("ropewalk.invalid."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	chaos, transfer := question, question
	chaos.Class, transfer.Type = dnsmessage.ClassCHAOS, dnsmessage.TypeAXFR
	record := dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET}, Body: &dnsmessage.TXTResource{TXT: []string{"secret"}},
	}
	for _, m := range []struct {
		name    string
		message dnsmessage.Message
	}{
		{"update", dnsmessage.Message{Header: dnsmessage.Header{OpCode: 5}, Questions: []dnsmessage.Question{question}}},
		{"notify", dnsmessage.Message{Header: dnsmessage.Header{OpCode: 4}, Questions: []dnsmessage.Question{question}}},
		{"two questions", dnsmessage.Message{Questions: []dnsmessage.Question{question, question}}},
		{"no question", dnsmessage.Message{}},
		{"a query with an additional record", dnsmessage.Message{Questions: []dnsmessage.Question{question}, Additionals: []dnsmessage.Resource{record}}},
		{"chaos", dnsmessage.Message{Questions: []dnsmessage.Question{chaos}}},
		{"zone transfer", dnsmessage.Message{Questions: []dnsmessage.Question{transfer}}},
	} {
		raw, err := m.message.Pack()
		if err != nil {
			return err
		}
		conn, err := net.Dial("udp", "127.0.0.1:53")
		if err != nil {
			return err
		}
		_, err = conn.Write(raw)
		answer := make([]byte, 512)
		n, readErr := 0, conn.SetReadDeadline(time.Now().Add(30*time.Second))
		if readErr == nil {
			n, readErr = conn.Read(answer)
		}
		if err := errors.Join(err, readErr, conn.Close()); err != nil || n < 12 {
			fmt.Printf("%s: no answer (%v)\n", m.name, err)
			continue
		}
		fmt.Printf("%s: %d\n", m.name, answer[3]&0xf)
	}
	return nil
}

// The test abandons a connection in progress. The socket then belongs to the server's network.
func TestAConnectedSocketCannotBeBoundAgain(t *testing.T) {
	full := fullService(t)
	for _, uid := range ownUsers() {
		c := confined(t, sandbox.LevelNamespaces, "bind-anew", full)
		c.Sandbox.Network = sandbox.Network{Also: []string{full}}
		giveTo(t, &c, uid)
		if got, want := output(t, start(t, c)), "server's: permission denied\nown: <nil>\nfile: srwxr-x---\nnetlink: <nil>\n"; got != want {
			t.Errorf("user %d: %q, want %q", uid, got, want)
		}
	}
}

func bindAnew(full string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err == nil && !errors.Is(unix.Connect(fd, rawAddress(full)), unix.EINPROGRESS) {
		err = errors.New("the connection is not being made")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	fmt.Println("server's:", unix.Bind(fd, &unix.SockaddrInet4{}))
	own, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	fmt.Println("own:", unix.Bind(own, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	unix.Umask(0o027)
	file, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err := unix.Bind(file, &unix.SockaddrUnix{Name: "relative"}); err != nil {
		fmt.Println("file:", err)
		return
	}
	info, err := os.Stat("relative")
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
		fmt.Println(err, info)
		return
	}
	fmt.Println("file:", strings.Replace(info.Mode().String(), "S", "s", 1))
	netlink, _ := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	fmt.Println("netlink:", unix.Bind(netlink, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// The kernel counts pending signals and timers for the server's user.
func TestAnAppLeavesPendingSignalsToOthers(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &own); err != nil {
		t.Fatal(err)
	}
	for _, level := range confinedLevels() {
		c := confined(t, level, "")
		c.Path, c.Args = "/bin/sh", []string{"-c", "grep 'Max pending signals' /proc/self/limits"}
		got := strings.Fields(output(t, start(t, c)))
		if len(got) < 5 {
			t.Fatalf("%v: %q", level, got)
		}
		if n, err := strconv.ParseUint(got[4], 10, 64); err != nil || n > own.Max/4 {
			t.Errorf("%v: it may have %s of %d", level, got[4], own.Max)
		}
	}
}

// The probes run with the app's own user id at both levels.
func TestAHostileAppWithItsOwnUserGainsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("apps have their own users only if the server runs as root")
	}
	for _, level := range confinedLevels() {
		t.Run(level.String(), func(t *testing.T) {
			victim := newVictim(t)
			for name := range allProbes() {
				if level == sandbox.LevelLandlock && slices.Contains(notAtLandlock, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					c := victim.hostile(t, level, name)
					dir := c.Dir
					c.Dir = victim.Data
					giveTo(t, &c, process.AppUID("hostile"))
					c.Dir = dir
					if out := output(t, start(t, c)); !strings.HasPrefix(out, "HELD") {
						t.Errorf("%q", out)
					}
				})
			}
			victim.unharmed(t)
		})
	}
}
