package protocoltest

import (
	"context"
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
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// family returns a process and its descendants, according to Linux.
func family(pid int) []int {
	all := []int{pid}
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	for _, file := range files {
		raw, _ := os.ReadFile(file) // the thread may have ended
		for _, field := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, family(child)...)
			}
		}
	}
	return all
}

// resources is what a plugin may leak, and how much growth is negligible.
var resources = []struct { //nolint:gochecknoglobals // a table
	name  string
	floor int
}{{"bytes of memory", 12 << 20}, {"descriptors", 12}, {"threads", 12}, {"processes", 2}, {"files", 8}}

// usage returns how much of each resource the plugin's processes use.
func (p *process) usage() (u [5]int) {
	for _, pid := range family(p.cmd.Process.Pid) {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		raw, _ := os.ReadFile(filepath.Join(dir, "statm"))
		if fields := strings.Fields(string(raw)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1])
			u[0] += pages * os.Getpagesize()
		}
		descriptors, _ := os.ReadDir(filepath.Join(dir, "fd"))
		threads, _ := os.ReadDir(filepath.Join(dir, "task"))
		u[1], u[2], u[3] = u[1]+len(descriptors), u[2]+len(threads), u[3]+1
	}
	_ = filepath.WalkDir(p.dir, func(string, os.DirEntry, error) error {
		u[4]++
		return nil
	})
	return u
}

// steady measures usage after equal numbers of calls. Growth is a leak only if it continues: a runtime stops growing
// after its first garbage collection, and a pool when it is full.
func steady(b *bench) {
	p := b.serving("")
	if p.usage()[1] == 0 {
		kit.Must(kit.CannotJudge("this system does not show what a process uses: run the kit on Linux"))
	}
	step, rounds := max(600, b.trial.Count(2000)), 5
	p.callOften(step)
	points := [][5]int{p.usage()}
	for len(points) <= 8*rounds {
		p.callOften(step)
		kit.Must(kit.Pause(b.ctx, 50*time.Millisecond)) // closing connections may take a moment
		points = append(points, p.usage())
		if len(points) <= rounds {
			continue
		}
		leak := -1
		for i, r := range resources {
			half := len(points) / 2
			early, late := points[half][i]-points[0][i], points[len(points)-1][i]-points[len(points)-1-half][i]
			if early+late > r.floor && late > early/2 {
				leak = i
			}
		}
		if leak < 0 {
			b.trial.Cover("memory, descriptors, threads, processes and files over %d calls", step*len(points))
			return
		}
		if first, last := points[0][leak], points[len(points)-1][leak]; len(points) > 8*rounds || last-first > 16*resources[leak].floor {
			kit.Reject(fmt.Sprintf("from %d to %d %s, still growing", first, last, resources[leak].name), "use that does not grow with the calls",
				sentenceGrowth, fmt.Sprintf("%d calls", step*len(points)))
		}
	}
}

// callOften makes n calls on several goroutines.
func (p *process) callOften(n int) {
	const callers = 8
	conn := p.dial(true, p.server)
	defer func() { _ = conn.Close() }()
	service, every := pluginv1.NewPluginServiceClient(conn), 2 // every second call is to the kind's own service
	if p.Kind == plugins.KindRegistry {
		every = 50 // its calls may reach a server that others use too
	}
	kit.AtOnce(p.ctx, callers, callers, func(_ context.Context, i int) {
		for j := range n / callers {
			ctx, cancel := p.limited()
			var err error
			switch {
			case j%20 == 1:
				_, _ = service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: p.goodSettings(), DataDir: p.data}) // the plugin may not implement it
			case j%20 == 11:
				_, _ = service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: `{"noPluginHasThisSetting": true}`, DataDir: p.data})
			case j%10 == 3:
				_, err = checkPlugin(ctx, conn)
			case j%10 == 5 && every == 2:
				short, end := context.WithTimeout(ctx, time.Duration(j%3)*time.Millisecond)
				_ = p.Probe(short, conn, "given-up")
				end()
			case j%every == 0:
				_ = p.Probe(ctx, conn, strconv.Itoa(i)+"-"+strconv.Itoa(j)) // other properties check the result
			default:
				_, err = service.Info(ctx, &pluginv1.InfoRequest{})
			}
			if cancel(); err != nil {
				kit.Reject(kit.ErrorText(err), "an answer", sentenceGood, "Info or Health.Check, one of many calls")
			}
		}
	})
}

// silent checks that the plugin prints nothing on standard output while it is configured, called and ended, and for 2.5
// seconds after the calls.
func silent(b *bench) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := b.start("1", "")
		p.ask(true, []byte(`{"noPluginHasThisSetting": true}`))
		p.ask(true, b.Settings)
		p.callOften(max(600, b.trial.Count(2000)))
		if end == syscall.SIGKILL { // only once, because a plugin that prints late does so every time
			kit.Must(kit.Pause(b.ctx, 2500*time.Millisecond))
		}
		kit.Must(p.cmd.Process.Signal(end))
		p.exits(b.patience)
	}
	b.trial.Cover("%d calls, SIGTERM, and 2.5 s without calls", 2*max(600, b.trial.Count(2000)))
}

// endTime is the contract's two seconds, plus an allowance for a busy machine.
const endTime = 4 * time.Second

// endTries is how many attempts a process that ends late gets: the machine may have been busy.
const endTries = 3

// ending ends the plugin through Shutdown and SIGTERM: right after the start, while it serves, while its health is
// watched, and while it is called.
func ending(b *bench) {
	for _, name := range []string{"Shutdown", "SIGTERM"} {
		for _, state := range []string{"started", "serving", "watched", "called"} {
			for try := 1; !b.endOnce(name, state, try == endTries); try++ {
			}
		}
	}
	b.trial.Cover("Shutdown and SIGTERM in 4 states")
}

// endOnce ends a process in a given state, and reports whether it ended in time.
func (b *bench) endOnce(name, state string, must bool) bool {
	p := b.start("1", "")
	if state != "started" {
		p.ask(true, b.Settings)
		p.probe("x")
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	if state == "watched" {
		if stream, err := grpc_health_v1.NewHealthClient(p.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"}); err == nil {
			_, _ = stream.Recv() // a plugin without Watch ends the stream
		}
	}
	var calls sync.WaitGroup
	if state == "called" {
		for range 8 {
			calls.Go(func() { b.callUntilGone(ctx, p.conn) })
		}
	}
	children := family(p.cmd.Process.Pid)[1:]
	limit, sentence := b.trial.Limit(endTime), sentenceSIGTERM
	if name == "SIGTERM" {
		kit.Must(p.cmd.Process.Signal(syscall.SIGTERM))
	} else {
		sentence = sentenceShutdown
		short, cancel := context.WithTimeout(b.ctx, limit)
		_ = p.conn.Invoke(short, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // the process may end before it responds
		cancel()
	}
	gone := p.exits(limit)
	cancel()
	calls.Wait()
	if !gone && must {
		kit.Reject(fmt.Sprintf("it still ran after %v", limit), "its end within two seconds", sentence, "it is "+state, name)
	}
	left, _ := os.ReadDir(p.socketDir())
	children = slices.DeleteFunc(children, func(pid int) bool { return syscall.Kill(pid, 0) != nil })
	if gone && len(left)+len(children) > 0 {
		kit.Reject(fmt.Sprintf("%d files in its socket directory and %d processes are left", len(left), len(children)), "nothing is left", sentence, "it is "+state, name)
	}
	return gone
}

func (b *bench) callUntilGone(ctx context.Context, conn grpc.ClientConnInterface) {
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Second)
		_ = b.Probe(short, conn, "until-gone")
		cancel()
	}
}

// sharing runs processes with the same directory one after another and, unless the plugin is exclusive, at the same
// time.
func sharing(b *bench) {
	p := b.serving("")
	data, free := p.data, sentenceFree
	next := func(step, sentence string) {
		err := kit.Catch(func() {
			p = b.serving(data)
			p.probe("x")
		})
		if failure, ok := errors.AsType[*kit.Failure](err); ok {
			kit.Reject(failure.Answered, "the next process serves with the same settings and data_dir", sentence, append([]string{step}, failure.History...)...)
		}
		kit.Must(err)
	}
	if !slices.Contains(p.info().GetCapabilities(), plugins.CapabilityExclusive) {
		free = sentenceOutlives
		first := p
		next("another process serves", sentenceShared)
		p = first
	}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		kit.Must(p.cmd.Process.Signal(end))
		p.exits(b.patience)
		next(end.String()+" ends the process", free)
	}
	b.trial.Cover("5 processes with one directory, ended by SIGKILL and SIGTERM")
}

// listenerAddress is where a process accepts TCP connections or UDP datagrams.
type listenerAddress struct {
	network string // "tcp" or "udp"
	*net.TCPAddr
}

// String returns the network and the address.
func (a listenerAddress) String() string { return a.network + " " + a.TCPAddr.String() }

// Socket states in /proc/net: a listening TCP socket, and an unconnected UDP socket, which accepts datagrams
// from anyone.
const (
	tcpListens     = 10
	udpUnconnected = 7
)

// listenersOf returns the addresses on which a process and its children listen, according to Linux.
func listenersOf(pid int) (all []listenerAddress, err error) {
	own := map[string]bool{}
	for _, member := range family(pid) {
		proc, err := procfs.NewProc(member)
		if err == nil {
			var targets []string
			targets, err = proc.FileDescriptorTargets()
			for _, target := range targets {
				own[target] = true
			}
		}
		if err != nil && member == pid {
			return nil, err
		}
	}
	fs, err := procfs.NewFS(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return nil, err
	}
	datagrams := func(table func() (procfs.NetUDP, error)) func() (procfs.NetTCP, error) {
		return func() (procfs.NetTCP, error) {
			lines, err := table()
			return procfs.NetTCP(lines), err
		}
	}
	for _, table := range []struct {
		network string
		state   uint64
		read    func() (procfs.NetTCP, error)
	}{{"tcp", tcpListens, fs.NetTCP}, {"tcp", tcpListens, fs.NetTCP6}, {"udp", udpUnconnected, datagrams(fs.NetUDP)}, {"udp", udpUnconnected, datagrams(fs.NetUDP6)}} {
		lines, err := table.read()
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6 has no tcp6
			return nil, err
		}
		for _, l := range lines {
			if l.St == table.state && own[fmt.Sprintf("socket:[%d]", l.Inode)] {
				all = append(all, listenerAddress{table.network, &net.TCPAddr{IP: l.LocalAddr, Port: int(l.LocalPort)}}) //nolint:gosec // a port
			}
		}
	}
	return all, nil
}

// listensNowhereElse looks for listeners other than the one in the handshake line. A DNS query has a datagram socket
// until its answer arrives, so a socket counts only if it stays open.
func (p *process) listensNowhereElse() {
	stay, err := p.otherListeners()
	if err != nil {
		kit.Must(kit.CannotJudge("this system does not show where a process listens: run the kit on Linux"))
	}
	for until := time.Now().Add(lookup); len(stay) > 0 && time.Now().Before(until); {
		kit.Must(kit.Pause(p.ctx, 100*time.Millisecond))
		again := kit.Got(p.otherListeners())
		maps.DeleteFunc(stay, func(at string, _ bool) bool { return !again[at] })
	}
	for at := range stay {
		kit.Reject("it also listens on "+at, p.fields[2]+" "+p.fields[3]+" alone", sentenceNowhere, "Configure", "a call")
	}
}

// lookup is the longest that a DNS query may keep its socket open: resolvers give up after five seconds, and this is one
// second more.
const lookup = 6 * time.Second

// otherListeners returns the addresses that the process listens on, except the one in its handshake line.
func (p *process) otherListeners() (map[string]bool, error) {
	all, err := listenersOf(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, at := range all {
		if p.fields[2] != "tcp" || at.network != "tcp" || at.TCPAddr.String() != p.fields[3] {
			others[at.String()] = true
		}
	}
	return others, nil
}
