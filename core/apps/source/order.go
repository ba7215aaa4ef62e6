package source

import (
	"crypto/x509"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Order describes what to install, whether a client or the configuration requested it.
type Order struct {
	Workspace  string
	ServerName string // "" to derive it from the bundle
	Exact      bool   // use ServerName unchanged
	Source     core.Source
	Version    string   // for a name, an npm package or a PyPI project; "" for the newest
	Args       []string // for a command, an npm package or a PyPI project
	Dir        string   // its working directory, absolute; "" for the default
	Env        map[string]core.Secret
	Patience   time.Duration    // how long the app may take to start; 0 for the default
	Tools      *core.ToolFilter // the tools that the app has; nil for all
	Remote     *core.Remote     // for a URL
	Discover   bool             // the Remote may use linked accounts if it rejects calls without credentials
	TrySSE     bool             // the Remote may speak HTTP+SSE if it does not speak Streamable HTTP

	AllowPrivate   bool // a remote server named by a registry may be on a private address
	Restricted     bool // the caller is an admin of a workspace, not of the organization
	InstallScripts bool // npm runs the lifecycle scripts of packages

	Registries []string // names of the registries that may be used; nil means all

	Signed  bool           // a bundle must have a signature by one of Signers
	Signers *x509.CertPool // certificates trusted to sign bundles; nil for none

	hidden  []string // see Request; its last elements correspond to Args
	secrets map[string]core.Secret

	Caller      core.Caller            // who installs and decides about permissions; zero for the configuration
	Permissions *core.PermissionChange // what the caller decided; nil if the caller was not asked
	Hints       bool                   // whether errors may name files that the sandbox hides

	// Progress reports the progress of the installation; it may be nil.
	Progress func(stage, message string)
}

// report calls Progress if it is set.
func (o Order) report(stage, message string) {
	if o.Progress != nil {
		o.Progress(stage, message)
	}
}

// ShownArgs returns Args without the secret values that a pasted configuration refers to.
func (o Order) ShownArgs() []string {
	shown := slices.Clone(o.sealed().Args)
	if o.hidden == nil {
		return shown
	}
	for i, arg := range shown {
		shown[i] = strings.NewReplacer("${user_config.input.", "${", "${user_config.", "${").Replace(arg)
	}
	return shown
}

// sealed returns the order in the form in which it is recorded: the arguments refer to secret values instead of
// containing them.
func (o Order) sealed() Order {
	if o.hidden == nil || len(o.hidden) < len(o.Args) {
		return o
	}
	o.Args = o.hidden[len(o.hidden)-len(o.Args):]
	env := map[string]core.Secret{}
	maps.Copy(env, o.Env)
	for name, value := range o.secrets {
		if refersTo(o.Args, name) {
			env[name] = value
		}
	}
	o.Env = env
	return o
}

// refersTo reports whether arguments refer to a user_config field.
func refersTo(args []string, field string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "${user_config."+field+"}") })
}

// checkSigned returns core.CodeForbidden if a trusted signature is required and the bundle does not have one.
func (o Order) checkSigned(s *bundle.Signature) error {
	switch {
	case !o.Signed:
		return nil
	case s == nil:
		return core.Errorf(core.CodeForbidden, "the bundle is not signed, and install.requireSignature in the configuration requires a signature")
	case !s.Trusted(o.Signers):
		return core.Errorf(core.CodeForbidden, "the bundle is signed by %.100q (SHA-256 %s), but install.trustedSigners does not list that signer, or the certificate is not currently valid", s.Signer, s.Fingerprint)
	}
	return nil
}

// Order checks the request and converts it to an Order.
func (r Request) Order(workspace string) (Order, error) {
	if err := r.check(); err != nil {
		return Order{}, err
	}
	o := Order{Workspace: workspace, ServerName: r.ServerName, Env: r.Env, Args: r.Args, Dir: r.Dir, Patience: time.Duration(r.StartTimeout) * time.Second, AllowPrivate: r.AllowPrivate, Restricted: r.Restricted, Caller: r.Caller, Permissions: r.Permissions, Hints: r.Hints, Tools: r.Tools, hidden: r.hidden, secrets: r.secrets}
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
		o.Source.Ref, o.Version = splitPyPI(r.PyPI)
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

// splitVersion splits "name@version". The leading @ of an npm scope is not a separator.
func splitVersion(ref string) (name, version string) {
	if at := strings.LastIndexByte(ref, '@'); at > 0 {
		return ref[:at], ref[at+1:]
	}
	return ref, ""
}

// commandOrder completes the order for a command, as it appears in an mcpServers object. A package that npx or uvx
// would run is installed as a package instead, so that starting it needs no network and the version is fixed.
func commandOrder(o Order, command string) (Order, error) {
	o.Source.Ref = command
	runner, args := packageRunner(command, o.Args)
	run, ok := packageOf(runner, args)
	if !ok && run.noPackage {
		return o, badRequest("args: %s has no package to run", runner)
	}
	if !ok {
		return o, nil
	}
	o.Args, o.Source.Bin = run.args, run.bin
	if runner == npx {
		o.Source.Kind = core.SourceNPM
		o.Source.Ref, o.Version = splitVersion(run.name)
		return o, checkNPM(o)
	}
	o.Source.Kind = core.SourcePyPI
	o.Source.Ref, o.Version = splitPyPI(run.name)
	return o, checkPyPI(o)
}

// packageRunner returns npx or uvx, and its arguments, for a command line that does the same as one of them: bunx, npm exec,
// uv tool run and so on. It returns any other command line unchanged.
func packageRunner(command string, args []string) (runner string, rest []string) {
	runner = strings.TrimSuffix(filepath.Base(command), ".cmd")
	if runner == "bunx" || runner == "pnpx" {
		return npx, args
	}
	for _, same := range []struct{ as, words string }{
		{npx, "npm exec"}, {npx, "npm x"}, {npx, "pnpm dlx"}, {npx, "yarn dlx"}, {npx, "bun x"}, {uvx, "uv tool run"}, {uvx, "pipx run"},
	} {
		words := strings.Fields(same.words)
		if n := len(words) - 1; runner == words[0] && len(args) > n && slices.Equal(args[:n], words[1:]) {
			return same.as, args[n:]
		}
	}
	return runner, args
}

const (
	npx = "npx"
	uvx = "uvx"
)

// splitPyPI splits "project==version" and "project@version". uvx accepts @latest for the newest version, as npx does.
func splitPyPI(ref string) (name, version string) {
	name, version = splitVersion(strings.Replace(ref, "==", "@", 1))
	return name, strings.TrimPrefix(version, "latest")
}

// packageRun describes what an npx or uvx command line runs.
type packageRun struct {
	name, bin string   // the package, and which of its commands; "" for the default
	args      []string // arguments for the command
	noPackage bool     // the command line contains no package
}

// packageOf reads the arguments of npx or uvx. ok is false for other commands, and for options that this server does
// not know; such a command is run unchanged.
func packageOf(runner string, args []string) (run packageRun, ok bool) {
	if runner != npx && runner != uvx {
		return packageRun{}, false
	}
	from := map[string][]string{npx: {"-p", "--package"}, uvx: {"--from", "--spec"}}[runner]
	for i := 0; i < len(args); i++ {
		option, value, joined := strings.Cut(args[i], "=")
		switch {
		case slices.Contains([]string{"-y", "--yes", "-q", "--quiet", "--"}, args[i]):
		case slices.Contains(from, option) && run.name == "":
			if !joined {
				if i++; i == len(args) {
					return packageRun{noPackage: true}, false
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
			name, _ := splitPyPI(run.name)
			return run, runner == npx && npmName.MatchString(name) || runner == uvx && pypiName.MatchString(name)
		}
	}
	return packageRun{noPackage: true}, false
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
