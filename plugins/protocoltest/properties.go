package protocoltest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// The sentences of the contract that failures cite.
const (
	sentenceCookie    = "An executable that does not serve that kind, or is started without the variable, prints a message to stderr and nothing to stdout, and exits with status 1"
	sentenceHandshake = "prints one line to stdout"
	sentenceLine      = "the version of this handshake (always 1), the protocol version of its kind"
	sentenceVersion   = "a plugin chooses the highest one that both support"
	sentenceListens   = "listens on a unix socket or on 127.0.0.1"
	sentenceNowhere   = "It listens nowhere else, neither for connections nor for datagrams"
	sentenceClient    = "requires a client certificate and accepts only the server's"
	sentenceOwn       = "The plugin then creates its own certificate"
	sentenceHealth    = `returns SERVING for the service "plugin"`
	sentenceInfo      = "It responds even before Configure was called, asks no backend, and always returns the same result"
	sentenceName      = `The plugin's own name, such as "redis": lower-case letters, digits and "-"`
	sentenceGood      = "after a response without problems it can serve"
	sentenceProblems  = "Wrong settings are reported as problems, all of them at once; that is an OK response"
	sentencePaths     = "A setting that does not exist and a value of the wrong type are problems with the path of that setting"
	sentenceObject    = "The settings as one JSON object"
	sentenceLower     = "What is wrong and what to do, in lower case"
	sentenceNearest   = "For an unknown setting: the closest existing one. Otherwise empty"
	sentenceAgain     = "After a failure it may be called again"
	sentenceUnknown   = "Ignore unknown words"
	sentenceNoData    = "Empty if the server has none to give; a plugin that needs one then reports a problem"
	sentenceSame      = "Validate reports the problems that Configure would report, but changes nothing and starts nothing"
	sentenceAnytime   = "It may be called at any time, even on a plugin that is already serving"
	sentenceLook      = "for reading only; it may not exist yet"
	sentenceDeclared  = `A plugin with the capability "validate" never returns UNIMPLEMENTED; one without it always does`
	sentenceSecret    = "They may contain secrets, which must not appear in any error, log line, problem, process argument or file that others can read"
	sentenceMessage   = "a message that explains what was wrong and contains no secret"
	sentenceLarge     = "A plugin accepts messages of up to 16 MiB"
	sentenceHundred   = "at least 100 calls at once"
	sentenceGivenUp   = "and the plugin stops working on it"
	sentenceGrowth    = "The use of memory, file descriptors, threads, processes and files does not grow with the number of calls"
	sentenceHostile   = "Whatever else it receives, it keeps serving the server"
	sentenceSilent    = "After the handshake line, nothing is ever printed to stdout"
	sentenceShutdown  = "its Shutdown ends the process within two seconds"
	sentenceSIGTERM   = "SIGTERM ends it too"
	sentenceOutlives  = "A directory for this plugin alone, which outlives it"
	sentenceShared    = `A process of a plugin without "exclusive" can be configured while another one serves with the same settings and data_dir`
	sentenceFree      = `The backend of a plugin with "exclusive" is free again once its process has ended, even by kill -9`
)

// The names of the properties.
const (
	Cookie     = "it serves only the kind it was started as"
	Handshake  = "every start prints one handshake line, with one address and its own key"
	Guarded    = "it responds only to the server"
	Introduced = "Info and health always give the same results"
	Configured = "wrong settings are reported with their paths, all at once, and correct ones work"
	Validated  = "Validate reports what Configure would, and changes nothing"
	Secretive  = "secrets appear in no error, output, argument or file"
	Loaded     = "it keeps serving after many, large, abandoned and hostile calls"
	Steady     = "its use of resources does not grow with the number of calls"
	Silent     = "nothing follows the handshake line on standard output"
	Ending     = "it ends when it must, and leaves nothing behind"
	Sharing    = "its backend and directory pass from process to process as it declares"
)

// Properties returns everything that must hold for a plugin of any kind.
func Properties() []kit.Property[Subject] {
	contract := kit.Contract("plugin")
	property := func(name string, try func(*bench)) kit.Property[Subject] {
		return kit.Property[Subject]{Name: name, Sentences: contract, Try: func(ctx context.Context, trial *kit.Trial, s Subject) {
			b := &bench{Subject: s, ctx: ctx, trial: trial, patience: max(10*time.Second, trial.Start)}
			defer b.close()
			try(b)
			b.silence()
		}}
	}
	return []kit.Property[Subject]{
		property(Cookie, checkKind), property(Handshake, checkHandshakes), property(Guarded, checkGuard), property(Introduced, checkInfo), property(Configured, checkConfigure), property(Validated, checkValidate),
		property(Secretive, checkSecrets), property(Loaded, checkLoad), property(Steady, checkUsage), property(Silent, checkSilence), property(Ending, checkExit), property(Sharing, checkSharing),
	}
}

// bench is what a property uses to test the plugin. It stops all processes that it started.
type bench struct {
	Subject
	ctx       context.Context //nolint:containedctx // of one property
	trial     *kit.Trial
	patience  time.Duration // how long the plugin may take to start
	processes []*process
	dirs      []string
	current   string // the current directory of processes; "" for the kit's own
}

// silence stops all processes, and looks for lines that they have printed.
func (b *bench) silence() {
	for _, p := range b.processes {
		p.stop() // by then, all of its output has been read
		if lines := p.printed(); len(lines) > 0 {
			kit.Reject(fmt.Sprintf("%q", lines[:min(len(lines), 3)]), "nothing", sentenceSilent, "the calls of this property")
		}
	}
}

func (b *bench) close() {
	for _, p := range b.processes {
		p.stop()
	}
	for _, dir := range b.dirs {
		_ = os.RemoveAll(dir)
	}
}

// serving starts a process and configures it with valid settings.
func (b *bench) serving(data string) *process {
	p := b.start("1", data)
	if problems := p.ask(true, b.Settings); len(problems) > 0 {
		kit.Reject(fmt.Sprint(problems), "no problems with the settings that should be valid", sentenceGood, "Configure")
	}
	return p
}

// makeDir makes a directory that is removed when the property ends.
func (b *bench) makeDir() string {
	dir := kit.Got(os.MkdirTemp("", "ropewalk-kit-"))
	b.dirs = append(b.dirs, dir)
	return dir
}

// limited returns the context for one call.
func (b *bench) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, b.patience)
}
