//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// The tests run again under the rules of a container, where the broker may not take descriptors from apps.
func TestAContainerRunsAppsAndConfinesThem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("switching to an ordinary user takes root")
	}
	out, err := testAgain(t, bundleArg, "container", "-test.run", "TestAnAppUsesTheServicesThatItMay/landlock|TestAnAppWithoutItsOwnNetwork|TestAHostileAppGainsNothing/landlock|TestTheProbeOfAContainer", "-test.v")
	if err != nil || strings.Count(string(out), "--- PASS") < len(allProbes())-len(notAtLandlock) ||
		!strings.Contains(string(out), "\n--- PASS: TestAnAppUses") || !strings.Contains(string(out), "\n--- PASS: TestAnAppWithout") || !strings.Contains(string(out), "\n--- PASS: TestTheProbe") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheProbeOfAContainerFindsLandlock(t *testing.T) {
	if inNamespaces := unix.Unshare(unix.CLONE_NEWUTS); inNamespaces == nil || os.Geteuid() == 0 {
		t.Skip("this is not a container")
	}
	p := process.ProbeSandbox(t.Context())
	if p.Level != sandbox.LevelLandlock || !strings.Contains(p.Reason, "does not allow user namespaces") {
		t.Errorf("%+v", p)
	}
}

// inContainer runs this test binary again, with the default system call filter of container runtimes.
func inContainer(args []string) error {
	runtime.LockOSThread()
	const number, argument = 0, 16
	refused := []uint32{unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_PIVOT_ROOT}
	filter := []bpf.Instruction{bpf.LoadAbsolute{Off: number, Size: 4}}
	for _, call := range refused {
		filter = append(filter, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	filter = append(filter,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 3}, bpf.LoadAbsolute{Off: argument, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_NEWUSER, SkipFalse: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return unix.Exec("/proc/self/exe", append([]string{os.Args[0]}, args...), os.Environ())
}

func TestAnAppUsesTheServicesThatItMay(t *testing.T) {
	stream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	go greet(stream)
	for _, level := range confinedLevels() {
		t.Run(level.String(), func(t *testing.T) {
			c := confined(t, level, "client", stream.Addr().String(), "socket")
			c.Sandbox.Network = sandbox.Network{Also: []string{stream.Addr().String()}}
			local, err := net.Listen("unix", filepath.Join(c.Dir, "socket"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = local.Close() })
			go greet(local)
			want := "blocking: hello\nagain: transport endpoint is already connected\nclose on exec: 1\nnon-blocking: hello\nsocket: hello\n" +
				"closed: permission denied\nname query: <nil>\n"
			if got := output(t, start(t, c)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// greet writes a greeting to every client that connects.
func greet(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.Close()
	}
}

// useServices connects in the ways that programs do: with a blocking socket, with a non-blocking socket, by path, and
// for a name query.
func useServices(stream, socket string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, rawAddress(stream))
	}
	var greeting [5]byte
	if err == nil {
		_, err = unix.Read(fd, greeting[:])
	}
	fmt.Println("blocking:", orError(string(greeting[:]), err))
	fmt.Println("again:", unix.Connect(fd, rawAddress(stream)))
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	fmt.Println("close on exec:", orError(strconv.Itoa(flags), err))
	fmt.Println("non-blocking:", greeted("tcp", stream))
	fmt.Println("socket:", greeted("unix", socket))
	other, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	err = unix.Connect(other, rawAddress("127.0.0.1:1"))
	if errors.Is(err, unix.ECONNREFUSED) { // in the app's own network
		err = unix.EACCES
	}
	fmt.Println("closed:", err)
	query, err := net.Dial("udp", "192.0.2.1:53")
	if err == nil || errors.Is(err, unix.ENETUNREACH) { // on a machine without a network
		err = nil
	}
	if query != nil {
		err = query.Close()
	}
	fmt.Println("name query:", err)
}

func greeted(network, address string) string {
	conn, err := net.Dial(network, address)
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(conn)
	return orError(string(text), errors.Join(err, conn.Close()))
}

func orError(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}
