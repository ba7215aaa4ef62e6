package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// check is one part of an examination.
type check struct {
	name string // what it checks, for people who are waiting
	run  func(e *examination, ctx context.Context)
}

// examine runs every check, most of them concurrently, because a check of something unavailable takes long. Checks
// that a broken configuration makes impossible are skipped.
func (e *examination) examine(ctx context.Context, cmd *cobra.Command, terminal bool) {
	if _, err := os.Lstat(filepath.Join(e.home, "ropewalk.yaml")); errors.Is(err, fs.ErrPermission) {
		e.add("home", failed, "cannot access "+e.home+": permission denied", "run doctor as the server's user, or choose another home with --home or ROPEWALK_HOME")
	} else {
		e.findServer(ctx)
		if flag := cmd.Flags().Lookup("config"); e.running != nil && e.running.Config != "" && flag != nil && !flag.Changed {
			_ = flag.Value.Set(e.running.Config) // the flag accepts any text
		}
		e.checkConfiguration(cmd)
	}
	checks := e.checks()
	waiting := make([]string, len(checks))
	for i, c := range checks {
		waiting[i] = c.name
	}
	w := &wait{waiting: waiting}
	if terminal {
		defer w.show(cmd)()
	}
	e.sideBySide(ctx, checks, w.done)
}

// checks returns the checks to run, in the order of their findings.
func (e *examination) checks() []check {
	all := []check{
		{"the clock", func(e *examination, _ context.Context) { e.checkClock() }},
		{"certificates", func(e *examination, _ context.Context) { e.checkCertificates() }},
	}
	if !e.reported("home") {
		all = append(all,
			check{"the server", (*examination).checkServer},
			check{"the home", func(e *examination, _ context.Context) { e.checkHome() }},
			check{"the disk", func(e *examination, _ context.Context) { e.checkDisk() }},
		)
	}
	for _, r := range runtimes() {
		all = append(all, check{r.name, func(e *examination, ctx context.Context) { e.checkRuntime(ctx, r) }})
	}
	all = append(all,
		check{"the sandbox", (*examination).checkSandbox},
		check{"adapters", (*examination).checkAdapters},
		check{"plugins", (*examination).checkPlugins},
		check{"apps", (*examination).checkApps},
	)
	if e.config == nil {
		return all
	}
	for _, r := range e.config.Registries {
		all = append(all, check{"the registry " + r.Name, func(e *examination, ctx context.Context) { e.checkRegistry(ctx, r) }})
	}
	all = append(all,
		check{"the database", (*examination).checkState},
		check{"the session store", (*examination).checkSessionStore},
		check{"encryption", (*examination).checkEncryption},
	)
	for _, a := range e.config.Auth {
		all = append(all, check{"the identity provider", func(e *examination, ctx context.Context) { e.checkIdentityProvider(ctx, a) }})
	}
	return append(all,
		check{"the proxy", func(e *examination, _ context.Context) { e.checkProxy() }},
		check{"the model", (*examination).checkModel},
	)
}

// sideBySide runs checks concurrently and adds their findings in order.
func (e *examination) sideBySide(ctx context.Context, checks []check, done func(name string)) {
	each := make([]examination, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		each[i] = *e
		each[i].Findings = nil
		group.Go(func() {
			c.run(&each[i], ctx)
			done(c.name)
		})
	}
	group.Wait()
	for i := range each {
		e.Findings = append(e.Findings, each[i].Findings...)
	}
	differs := slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Check == "clock" && f.Result != ok })
	e.Findings = slices.DeleteFunc(e.Findings, func(f Finding) bool { return differs && f.Check == "clock" && f.Result == ok }) // a provider's clock is more informative
}

// How long doctor waits before it shows what it is waiting for.
const patience = time.Second

// wait is the set of unfinished checks.
type wait struct {
	mu      sync.Mutex
	waiting []string
}

func (w *wait) done(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, name); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
}

// line returns what is being waited for, in at most 76 characters, so that it fits on one terminal line.
func (w *wait) line() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	const maxLine = 76
	text := "Waiting for "
	for i, name := range w.waiting {
		rest, width := fmt.Sprintf(" and %d more", len(w.waiting)-i), maxLine
		if i < len(w.waiting)-1 {
			width -= len(rest)
		}
		if i > 0 && len(text)+len(name)+2 > width {
			return text + rest
		}
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return strings.ToValidUTF8(text[:min(len(text), maxLine)], "")
}

// show writes the line to standard error, after patience, until the returned function is called.
func (w *wait) show(cmd *cobra.Command) (done func()) {
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		ticker := time.NewTicker(patience)
		defer ticker.Stop()
		shown := false
		for {
			select {
			case <-ticker.C:
				cmd.PrintErr("\r\x1b[K" + w.line())
				shown = true
			case <-stop:
				if shown {
					cmd.PrintErr("\r\x1b[K")
				}
				return
			}
		}
	})
	return func() {
		close(stop)
		writer.Wait()
	}
}
