package protocoltest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

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
func steady(b *bench) error {
	p, err := b.serving("")
	if err != nil {
		return err
	}
	if p.usage()[1] == 0 {
		return kit.CannotJudge("this system does not show what a process uses: run the kit on Linux")
	}
	step, rounds := max(600, b.trial.Count(2000)), 5
	if err := p.callOften(step); err != nil {
		return err
	}
	points := [][5]int{p.usage()}
	for len(points) <= 8*rounds {
		if err := p.callOften(step); err != nil {
			return err
		}
		if err := kit.Pause(b.ctx, 50*time.Millisecond); err != nil { // closing connections may take a moment
			return err
		}
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
			return nil
		}
		if first, last := points[0][leak], points[len(points)-1][leak]; len(points) > 8*rounds || last-first > 16*resources[leak].floor {
			return failure(fmt.Sprintf("from %d to %d %s, still growing", first, last, resources[leak].name), "use that does not grow with the calls",
				sentenceGrowth, fmt.Sprintf("%d calls", step*len(points)))
		}
	}
	return nil
}

// callOften makes n calls on several goroutines.
func (p *process) callOften(n int) error {
	const callers = 8
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	service, every := pluginv1.NewPluginServiceClient(conn), 2 // every second call is to the kind's own service
	if p.Kind == plugins.KindRegistry {
		every = 50 // its calls may reach a server that others use too
	}
	var all sync.WaitGroup
	errs := make(chan error, callers)
	for i := range callers {
		all.Go(func() {
			for j := range n / callers {
				ctx, cancel := p.limited()
				var err error
				switch {
				case j%10 == 1:
					_, _ = service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: p.goodSettings(), DataDir: p.data}) // the plugin may not implement it
				case j%every == 0:
					_ = p.Probe(ctx, conn, strconv.Itoa(i)+"-"+strconv.Itoa(j)) // other properties check the result
				default:
					_, err = service.Info(ctx, &pluginv1.InfoRequest{})
				}
				cancel()
				if err != nil {
					errs <- failure(err.Error(), "an answer", sentenceGood, "Info, one of many calls")
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// silent checks that the plugin prints nothing on standard output while it is configured, called and ended, and for 2.5
// seconds after the calls.
func silent(b *bench) error {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p, err := b.start("1", "")
		if err != nil {
			return err
		}
		if _, err := p.ask(true, []byte(`{"noPluginHasThisSetting": true}`)); err != nil {
			return err
		}
		if _, err := p.ask(true, b.Settings); err != nil {
			return err
		}
		if err := p.callOften(max(600, b.trial.Count(2000))); err != nil {
			return err
		}
		if end == syscall.SIGKILL { // only once, because a plugin that prints late does so every time
			if err := kit.Pause(b.ctx, 2500*time.Millisecond); err != nil {
				return err
			}
		}
		if err := p.cmd.Process.Signal(end); err != nil {
			return err
		}
		_, _ = p.exits(b.patience)
		p.stop() // all of its output has been read then
		if lines := p.printed(); len(lines) > 0 {
			return failure(fmt.Sprintf("%q", lines[:min(len(lines), 3)]), "nothing", sentenceSilent, "Configure", "calls", end.String())
		}
	}
	b.trial.Cover("%d calls, SIGTERM, and 2.5 s without calls", 2*max(600, b.trial.Count(2000)))
	return nil
}

// endTime is the contract's two seconds, plus an allowance for a busy machine.
const endTime = 4 * time.Second

// endTries is how many attempts a process that ends late gets: the machine may have been busy.
const endTries = 3

// ending ends the plugin through Shutdown and SIGTERM: right after the start, while it serves, while its health is
// watched, and while it is called.
func ending(b *bench) error {
	ends := map[string]func(*process) error{
		"Shutdown": func(p *process) error {
			ctx, cancel := context.WithTimeout(b.ctx, b.trial.Limit(endTime))
			defer cancel()
			_ = p.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // the process may end before it responds
			return nil
		},
		"SIGTERM": func(p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) },
	}
	for name, end := range ends {
		for _, state := range []string{"started", "serving", "watched", "called"} {
			late, err := b.endOnce(name, state, end)
			for try := 1; late && try < endTries; try++ {
				late, err = b.endOnce(name, state, end)
			}
			if err != nil {
				return err
			}
		}
	}
	b.trial.Cover("Shutdown and SIGTERM in 4 states")
	return nil
}

// endOnce ends a process in a given state. late reports whether the failure is that it ended late.
func (b *bench) endOnce(name, state string, end func(*process) error) (late bool, err error) {
	p, err := b.start("1", "")
	if err != nil {
		return false, err
	}
	if state != "started" {
		if _, err := p.ask(true, b.Settings); err != nil {
			return false, err
		}
		if _, err := p.probe("x"); err != nil {
			return false, err
		}
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
	if err := end(p); err != nil {
		return false, err
	}
	limit := b.trial.Limit(endTime)
	_, gone := p.exits(limit)
	cancel()
	calls.Wait()
	sentence := sentenceShutdown
	if name == "SIGTERM" {
		sentence = sentenceSIGTERM
	}
	if !gone {
		return true, failure(fmt.Sprintf("it still ran after %v", limit), "its end within two seconds", sentence, "it is "+state, name)
	}
	left, _ := os.ReadDir(p.socketDir())
	children = slices.DeleteFunc(children, func(pid int) bool { return syscall.Kill(pid, 0) != nil })
	if len(left) > 0 || len(children) > 0 {
		return false, failure(fmt.Sprintf("%d files in its socket directory and %d processes are left", len(left), len(children)), "nothing is left", sentence, "it is "+state, name)
	}
	return false, nil
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
func sharing(b *bench) error {
	first, err := b.serving("")
	if err != nil {
		return err
	}
	info, err := first.info()
	if err != nil {
		return err
	}
	exclusive := slices.Contains(info.GetCapabilities(), plugins.CapabilityExclusive)
	next := func(step, sentence string) (*process, error) {
		p, err := b.serving(first.data)
		if err == nil {
			_, err = p.probe("x")
		}
		if err != nil {
			err = failure(err.Error(), "the next process serves with the same settings and data_dir", sentence, step)
		}
		return p, err
	}
	if !exclusive {
		if _, err := next("another process serves", sentenceShared); err != nil {
			return err
		}
	}
	free := sentenceOutlives
	if exclusive {
		free = sentenceFree
	}
	p := first
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(end); err != nil {
			return err
		}
		_, _ = p.exits(b.patience)
		if p, err = next(end.String()+" ends the process", free); err != nil {
			return err
		}
	}
	b.trial.Cover("5 processes with one directory, ended by SIGKILL and SIGTERM")
	return nil
}
