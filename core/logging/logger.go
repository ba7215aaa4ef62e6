package logging

import (
	"bytes"
	"io"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options configure New.
type Options struct {
	Levels *Levels
	JSON   bool // one JSON object per line, with the keys time, level, msg and logger
}

// root is the name of the server's logger; the components are its children.
const root = "ropewalk"

// New returns the server's logger.
func New(o Options, w io.Writer) hclog.Logger {
	written := &hclog.LoggerOptions{Name: root, Level: hclog.Trace, Output: w, JSONFormat: o.JSON}
	if o.JSON {
		written.Output = plainKeys{w}
	}
	return &logger{Logger: hclog.New(written), levels: o.Levels}
}

// logger passes on the lines whose level is enabled for its component.
type logger struct {
	hclog.Logger
	levels    *Levels
	component string // without root; "" for root itself
}

// Log writes a line.
func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	if l.enabled(level) {
		l.Logger.Log(level, msg, readable(args)...)
	}
}

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }

func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

func (l *logger) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

func (l *logger) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) IsTrace() bool { return l.enabled(hclog.Trace) }

func (l *logger) IsDebug() bool { return l.enabled(hclog.Debug) }

func (l *logger) IsInfo() bool { return l.enabled(hclog.Info) }

func (l *logger) IsWarn() bool { return l.enabled(hclog.Warn) }

func (l *logger) IsError() bool { return l.enabled(hclog.Error) }

func (l *logger) enabled(level hclog.Level) bool { return level >= l.levels.Of(l.component) }

// With returns a logger that adds args to each line.
func (l *logger) With(args ...any) hclog.Logger {
	return &logger{Logger: l.Logger.With(readable(args)...), levels: l.levels, component: l.component}
}

// Named returns the logger of a child component.
func (l *logger) Named(name string) hclog.Logger { return l.as(l.Logger.Named(name)) }

// ResetNamed returns the logger of another component.
func (l *logger) ResetNamed(name string) hclog.Logger { return l.as(l.Logger.ResetNamed(name)) }

func (l *logger) as(named hclog.Logger) hclog.Logger {
	component := strings.TrimPrefix(strings.TrimPrefix(named.Name(), root), ".")
	l.levels.note(component)
	return &logger{Logger: named, levels: l.levels, component: component}
}

// SetLevel changes the level of the components that do not have their own level.
func (l *logger) SetLevel(level hclog.Level) { l.levels.SetDefault(level) }

// GetLevel returns the level of the component.
func (l *logger) GetLevel() hclog.Level { return l.levels.Of(l.component) }

// StandardLogger returns a standard library logger that writes to this one.
func (l *logger) StandardLogger(o *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(o), "", 0)
}

// StandardWriter returns a writer whose lines are logged at the level set in the options, or else at info.
func (l *logger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	level := hclog.Info
	if o != nil && o.ForceLevel != hclog.NoLevel {
		level = o.ForceLevel
	}
	return lines{l, level}
}

// lines logs each line that is written to it.
type lines struct {
	to    *logger
	level hclog.Level
}

// Write logs a line.
func (w lines) Write(text []byte) (int, error) {
	w.to.Log(w.level, string(bytes.TrimRight(text, " \n\t")))
	return len(text), nil
}

// readable returns args with durations as text, such as 1.36s: JSON has no type for them.
func readable(args []any) []any {
	is := func(v any) bool { _, ok := v.(time.Duration); return ok }
	if !slices.ContainsFunc(args, is) {
		return args
	}
	args = slices.Clone(args)
	for i, v := range args {
		if d, ok := v.(time.Duration); ok {
			args[i] = d.String()
		}
	}
	return args
}
