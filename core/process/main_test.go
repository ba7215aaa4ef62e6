//go:build linux

package process_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/process"
)

// bundleArg turns the test binary into one of the programs below.
const bundleArg = "__bundle"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == bundleArg {
		syscall.Exit(bundle(os.Args[2], os.Args[3:])) // with the race detector, os.Exit takes a second
	}
	goleak.VerifyTestMain(m)
}

// bundle runs the program of that name.
func bundle(kind string, args []string) int {
	switch kind {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "env":
		fmt.Println(strings.Join(syscall.Environ(), "\n"))
		dir, _ := os.Getwd()
		fmt.Println("dir=" + dir)
	case "args":
		fmt.Println(strings.Join(args, "\n"))
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "die":
		n, _ := strconv.Atoi(args[0])
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		select {}
	case "stderr":
		fmt.Fprintln(os.Stderr, "something is wrong")
	case "dial":
		connection, err := net.Dial("tcp", args[0])
		if err != nil {
			return 1
		}
		_, _ = io.Copy(io.Discard, connection)
	case "sleep":
		<-time.After(10 * time.Minute)
	case "ignoring":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		<-time.After(time.Minute)
	case "graceful":
		return graceful()
	case "daemonize": // the second half of a double fork
		launch(true, "sleep", args...)
	case "tree":
		tree(args[0])
		<-time.After(time.Minute)
	case "leave": // exits and leaves its tree behind
		tree(args[0])
	case "protected":
		protected(args[0])
	case "hostile-app":
		hostileApp()
	case "hostile":
		return hostile(args)
	case "allocate":
		allocate()
	case "allocate-shared":
		allocateShared()
	case "allocate-detached":
		allocateDetached()
	case "allocate-tables":
		allocateTables()
	case "semaphores":
		createSemaphores()
	case "messages":
		queueMessages()
	case "share":
		share()
	case "attach":
		attach(args[0])
	case "connect", "connect-later":
		if kind == "connect-later" {
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
		for _, path := range args {
			answer := "refused"
			if conn, err := net.Dial("unix", path); err == nil {
				_, answer = conn.Close(), "connected"
			}
			fmt.Println(filepath.Base(path) + ": " + answer)
		}
	case "bind-later":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		for _, path := range args {
			_, err := net.Listen("unix", path)
			fmt.Println(filepath.Base(path)+":", err == nil)
		}
	case "multiply":
		for started := 0; started < 500; { // bounded: if the limit does not work, other tests still need tasks
			if launch(true, "sleep", args...).Process != nil {
				started++
			}
		}
		<-time.After(time.Minute)
	case "spin":
		spin()
	case "impersonate":
		impersonate(args[0])
	case "daemonize-shim":
		launch(true, "named-shim", args...)
	case "named-shim":
		namedShim()
	case "trick":
		trick(args[0], args[1])
	case "zombies":
		leaveZombies()
	case "threads":
		startThreads()
	case "first-thread":
		firstThread()
	case "stop-shim":
		_ = syscall.Kill(os.Getppid(), syscall.SIGSTOP)
		fmt.Println("ready")
		<-time.After(time.Minute)
	case "chains":
		startChains()
	case "change-limits":
		changeLimits()
	case "abandoned-server":
		if err := abandonedServer(args[0]); err != nil {
			fmt.Println(err)
		}
	case "use-up":
		useUp(args[0], args[1])
	case "thread-bomb":
		bombThreads(args[0])
	case "bombed-server":
		if err := bombedServer(args[0], args[1]); err != nil {
			fmt.Println(err)
		}
	case "name-messages":
		if err := sendMessages(); err != nil {
			fmt.Println(err)
		}
	case "container":
		if err := inContainer(args); err != nil {
			fmt.Println(err)
		}
		return 1
	case "client":
		useServices(args[0], args[1])
	case "own-service":
		useOwnService()
	case "listen":
		listenOn(args)
	case "refused":
		refused(args[0], args[1])
	case "bind-anew":
		bindAnew(args[0])
	case "tricks":
		playTricks(args[0], args[1])
	case "tricks-server":
		serveTricks(args[0], args[1], args[2])
	}
	return 0
}

// graceful exits with status 7 about 50 ms after SIGTERM, and reports that it was asked to stop.
func graceful() int {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("ready")
	<-asked
	fmt.Println("goodbye")
	return 7
}

// tree starts five descendants, each hard to kill in its own way.
func tree(mark string) {
	launch(false, "sleep", mark)
	launch(false, "ignoring", mark)
	launch(true, "sleep", mark)
	launch(true, "ignoring", mark)
	double := launch(false, "daemonize", mark)
	_ = double.Wait()
	fmt.Println("ready")
}

// launch starts a program that inherits this process's standard streams, like a daemon that does not close them.
func launch(session bool, kind string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{bundleArg, kind}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		fmt.Println("cannot start", kind, err)
	}
	return cmd
}

// self returns the path of the test program. process.Self leads a confined shim to the shim's own program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func command(kind string, args ...string) process.Command {
	return process.Command{Path: self(), Args: append([]string{bundleArg, kind}, args...), Env: []string{"PATH=/usr/bin:/bin"}}
}

// awaitLine reads up to the wanted line. It returns false if the stream ends first.
func awaitLine(r io.Reader, want string) bool {
	var line []byte
	one := make([]byte, 1)
	for {
		if _, err := r.Read(one); err != nil {
			return false
		}
		if one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if string(line) == want {
			return true
		}
		line = line[:0]
	}
}

// allocate uses memory until it is stopped.
func allocate() {
	var all [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := range block {
			block[i] = 1
		}
		all = append(all, block)
		<-time.After(time.Duration(len(all)) * time.Millisecond)
	}
}

// spin uses 500 ms of processor time.
func spin() {
	var use syscall.Rusage
	for used := 0.0; used < 0.5; {
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
		used = float64(use.Utime.Sec+use.Stime.Sec) + float64(use.Utime.Usec+use.Stime.Usec)/1e6
	}
}
