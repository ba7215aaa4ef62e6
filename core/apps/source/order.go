package source

import (
	"crypto/x509"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Order is what is to be installed, whether a client or the configuration asked for it.
type Order struct {
	Workspace  string
	ServerName string // "" to derive it from the bundle
	Exact      bool   // ServerName is used as it is
	Source     core.Source
	Version    string   // of a name, an npm package or a PyPI project; "" for the newest
	Args       []string // of a command, an npm package or a PyPI project
	Env        map[string]core.Secret
	Patience   time.Duration // how long the app may take to start; 0 for the usual time
	Remote     *core.Remote  // of a URL
	Discover   bool          // the Remote may be called with linked accounts, if it refuses calls without credentials
	TrySSE     bool          // the Remote may speak HTTP+SSE, if it does not speak Streamable HTTP

	AllowPrivate   bool // a remote server that a registry names may be on a private address
	Restricted     bool // for a caller who is an admin of a workspace, not of the organization
	InstallScripts bool // npm runs the lifecycle scripts of packages

	Registries []string // the names of those that may be used; nil means all

	Signed  bool           // a bundle must have a signature by one of Signers
	Signers *x509.CertPool // certificates that are trusted to sign bundles; nil for none

	Caller      core.Caller            // who installs, and decides about permissions; zero for the configuration
	Permissions *core.PermissionChange // what the caller decided; nil when nothing was asked
	Hints       bool                   // whether a failure says what the sandbox hides

	// Progress reports what an installation does; nil to not report it.
	Progress func(stage, message string)
}

// report calls Progress.
func (o Order) report(stage, message string) {
	if o.Progress != nil {
		o.Progress(stage, message)
	}
}

// checkSigned refuses a bundle without a signature that is trusted, where one is needed.
func (o Order) checkSigned(s *bundle.Signature) error {
	switch {
	case !o.Signed:
		return nil
	case s == nil:
		return core.Errorf(core.CodeForbidden, "the bundle is not signed, and install.requireSignature of the configuration demands it")
	case !s.Trusted(o.Signers):
		return core.Errorf(core.CodeForbidden, "the bundle is signed by %.100q (SHA-256 %s), which install.trustedSigners of the configuration does not name, or whose certificate is not valid now", s.Signer, s.Fingerprint)
	}
	return nil
}

// Order checks a request and returns what it asks for.
func (r Request) Order(workspace string) (Order, error) {
	if err := r.check(); err != nil {
		return Order{}, err
	}
	o := Order{Workspace: workspace, ServerName: r.ServerName, Env: r.Env, Args: r.Args, Patience: time.Duration(r.StartTimeout) * time.Second, AllowPrivate: r.AllowPrivate, Restricted: r.Restricted, Caller: r.Caller, Permissions: r.Permissions, Hints: r.Hints}
	var err error
	if o.Source.Kind, err = r.Kind(); err != nil {
		return Order{}, err
	}
	switch o.Source.Kind {
	case core.SourcePath:
		if o.Source.Ref, err = filepath.Abs(r.Path); err != nil {
			err = badRequest("path cannot be made absolute: %v", err)
		}
	case core.SourceName:
		o.Source.Ref, o.Version = splitVersion(r.Name)
	case core.SourceNPM:
		o.Source.Bin = r.Bin
		o.Source.Ref, o.Version = splitVersion(r.NPM)
		err = checkNPM(o)
	case core.SourcePyPI:
		o.Source.Bin = r.Bin
		o.Source.Ref, o.Version = splitVersion(strings.Replace(r.PyPI, "==", "@", 1))
		err = checkPyPI(o)
	case core.SourceCommand:
		o, err = commandOrder(o, r.Command)
	default:
		o.Source.Ref = r.URL
		o.Remote, err = r.remote()
		o.TrySSE = r.Transport == nil || r.Transport.Type == ""
		o.Discover = r.Transport == nil || r.Transport.Auth == nil
	}
	return o, err
}

// splitVersion splits "name@version". The @ of an npm scope does not count.
func splitVersion(ref string) (name, version string) {
	if at := strings.LastIndexByte(ref, '@'); at > 0 {
		return ref[:at], ref[at+1:]
	}
	return ref, ""
}

// commandOrder returns the order for a command, as an mcpServers object has it. A package that npx or
// uvx would run is installed as a package, so that a start needs no network and the version is fixed.
func commandOrder(o Order, command string) (Order, error) {
	o.Source.Ref = command
	runner := strings.TrimSuffix(filepath.Base(command), ".cmd")
	run, ok := packageOf(runner, o.Args)
	if !ok && run.nothing {
		return o, badRequest("args: %s is given no package to run", runner)
	}
	if !ok {
		return o, nil
	}
	o.Args, o.Source.Bin = run.args, run.bin
	if runner == "npx" {
		o.Source.Kind = core.SourceNPM
		o.Source.Ref, o.Version = splitVersion(run.name)
		return o, checkNPM(o)
	}
	o.Source.Kind = core.SourcePyPI
	o.Source.Ref, o.Version = splitVersion(strings.Replace(run.name, "==", "@", 1))
	return o, checkPyPI(o)
}

// packageRun is what npx or uvx is to run.
type packageRun struct {
	name, bin string   // the package, and which of its commands; "" for the usual one
	args      []string // of the command
	nothing   bool     // no package is named
}

// packageOf reads the arguments of npx or uvx. ok is false for other commands, and for options that this server does
// not know: the command is run as it is then.
func packageOf(runner string, args []string) (run packageRun, ok bool) {
	if runner != "npx" && runner != "uvx" {
		return packageRun{}, false
	}
	from := map[string][]string{"npx": {"-p", "--package"}, "uvx": {"--from"}}[runner]
	for i := 0; i < len(args); i++ {
		option, value, joined := strings.Cut(args[i], "=")
		switch {
		case slices.Contains([]string{"-y", "--yes", "-q", "--quiet", "--"}, args[i]):
		case slices.Contains(from, option) && run.name == "":
			if !joined {
				if i++; i == len(args) {
					return packageRun{nothing: true}, false
				}
				value = args[i]
			}
			run.name = value
		default:
			run.args = args[i+1:]
			if run.name == "" {
				run.name = args[i]
			} else if run.bin = args[i]; checkBin("args", run.bin) != nil {
				return run, false
			}
			name, _ := splitVersion(strings.Replace(run.name, "==", "@", 1))
			return run, runner == "npx" && npmName.MatchString(name) || runner == "uvx" && pypiName.MatchString(name)
		}
	}
	return packageRun{nothing: true}, false
}

func checkNPM(o Order) error {
	if !npmName.MatchString(o.Source.Ref) || o.Version != "" && !packageVersionForm.MatchString(o.Version) {
		return badRequest("npm: %.200q is not a package name with an optional version", o.Source.Ref+"@"+o.Version)
	}
	return nil
}

func checkPyPI(o Order) error {
	if !pypiName.MatchString(o.Source.Ref) || o.Version != "" && !packageVersionForm.MatchString(o.Version) {
		return badRequest("pypi: %.200q is not a project name with an optional version", o.Source.Ref+"@"+o.Version)
	}
	return nil
}
