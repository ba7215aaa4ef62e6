package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// request is the body of POST /v1/apps/install (docs/api.md 3.4).
type request struct {
	Name       string            `json:"name,omitempty"`
	Path       string            `json:"path,omitempty"`
	URL        string            `json:"url,omitempty"`
	NPM        string            `json:"npm,omitempty"`
	PyPI       string            `json:"pypi,omitempty"`
	Bin        string            `json:"bin,omitempty"`
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	ServerName string            `json:"serverName,omitempty"`
	Transport  *transport        `json:"transport,omitempty"`
	Env        map[string]string `json:"env,omitempty"`

	Permissions *core.PermissionChange `json:"permissions,omitempty"`

	StartTimeout int `json:"startTimeoutSeconds,omitempty"`
}

type transport struct {
	Type    string            `json:"type,omitempty"`
	Auth    *auth             `json:"auth,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

type auth struct {
	Type  string `json:"type"`
	Token string `json:"token,omitempty"`
}

// installFlags are the flags of `app install`.
type installFlags struct {
	npm, pypi, command, as string
	bin, tokenEnv          string
	env, set, headers      []string
	sse                    bool
	timeout                time.Duration

	permissions decisions
}

func installCommand(c *cli.Connection) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install [NAME | PATH | URL] [-- COMMAND] [ARGUMENTS]",
		Short: "Install an app and start it",
		Long: "Install an app and start it. The source is one of: the name of a bundle in a configured registry; a " +
			"directory (./notes, since notes is a name) or an .mcpb file; the URL of a remote MCP server; an npm or " +
			"PyPI package; a command. Put a command line copied from another client after --.\n\nIf the server is on " +
			"another machine, a file is uploaded. Give secrets as `--env NAME`: the value is taken from your own " +
			"environment and does not show in the process list.",
		Example: "  ropewalk app install @scope/bundle\n  ropewalk app install ./app.mcpb --env API_KEY\n" +
			"  ropewalk app install https://tools.example.com/mcp --bearer-env TOKEN\n" +
			"  ropewalk app install --npm @modelcontextprotocol/server-everything@2025.9.25\n" +
			"  ropewalk app install --npm @modelcontextprotocol/server-filesystem --as files ~/notes\n" +
			"  ropewalk app install --as everything -- npx -y @modelcontextprotocol/server-everything",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return install(cmd, c, &f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.npm, "npm", "", "an npm package, name@version; without a version, the newest one")
	flags.StringVar(&f.pypi, "pypi", "", "a PyPI project, name==version or name[extra]==version; without a version, the newest one")
	flags.StringVar(&f.bin, "bin", "", "with --npm or --pypi: which of the package's commands to run (default the one named after the package, else its only command)")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long the app may take to start, such as 5m (default 1m)")
	flags.StringVar(&f.command, "command", "", "a command on the server's machine; its arguments follow --")
	flags.StringVar(&f.as, "as", "", "server name: the prefix of the app's tools")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE, or NAME for the value in your environment; may be repeated")
	flags.StringArrayVar(&f.set, "set", nil, "a user_config field from the manifest, NAME=VALUE, or NAME for the value in your environment; may be repeated, also for one field that takes several values")
	flags.StringArrayVar(&f.headers, "header", nil, "with a URL: an HTTP header NAME=VALUE; may be repeated")
	flags.StringVar(&f.tokenEnv, "bearer-env", "", "with a URL: the environment variable that contains its bearer token")
	flags.BoolVar(&f.sse, "sse", false, "with a URL: the server uses HTTP+SSE, the transport used before 2025")
	f.permissions.bind(flags)
	return cmd
}

func install(cmd *cobra.Command, c *cli.Connection, f *installFlags, args []string) error {
	r, err := f.request(cmd, args)
	if err != nil {
		return cli.Usage(err)
	}
	if err := r.findPath(); err != nil {
		return err
	}
	if r.Name != "" && exists(r.Name) {
		cmd.PrintErrf("%s is looked up in the registries; write ./%s to install the file or directory with that name in the working directory.\n", r.Name, r.Name)
	}
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	r.Permissions = f.permissions.given(cmd, local(client.Server))
	answer, err := send(cmd, client, f, r)
	if err != nil {
		return suggest(cmd, client, r.Name, err)
	}
	return cli.Print(c, cmd, answer, func(o *cli.Output, a entry) error {
		o.Line("%s %s is %s with %s", a.Name, a.Version, o.State(a.Status), cli.Count(a.ToolCount, "tool"))
		printMissing(cmd, a.Name, a.Permissions.Missing)
		return nil
	})
}

// send sends an installation request.
func send(cmd *cobra.Command, client *apiclient.Client, f *installFlags, r *request) (answer json.RawMessage, err error) {
	err = f.permissions.asking(cmd, client, r.title(), r.Permissions, func() error {
		if r.Path != "" && !local(client.Server) {
			return upload(cmd, client, r, false, &answer)
		}
		return client.Do(cmd.Context(), http.MethodPost, "/v1/apps/install", r, &answer)
	})
	return answer, err
}

// title returns the app's name for questions to the user.
func (r *request) title() string {
	return cmp.Or(r.ServerName, r.Name, r.NPM, r.PyPI, filepath.Base(r.Command), r.Path)
}

// suggest adds similar names from the registries to an error about a name that was not found.
func suggest(cmd *cobra.Command, client *apiclient.Client, name string, err error) error {
	if name == "" || !apiclient.IsCode(err, "install_failed") {
		return err
	}
	names := similar(cmd.Context(), client, name, "")
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(names, ", "))
}

// request parses the command line. It requires exactly one source.
func (f *installFlags) request(cmd *cobra.Command, args []string) (*request, error) {
	r := &request{NPM: f.npm, PyPI: f.pypi, Bin: f.bin, Command: f.command, ServerName: f.as, StartTimeout: int(f.timeout / time.Second)}
	if f.bin != "" && f.npm == "" && f.pypi == "" {
		return nil, errors.New("--bin works only with --npm and --pypi")
	}
	if f.timeout != 0 && (f.timeout < time.Second || f.timeout > time.Hour) {
		return nil, errors.New("--timeout must be between 1s and 1h")
	}
	isPackage := f.command != "" || f.npm != "" || f.pypi != ""
	switch dash := cmd.ArgsLenAtDash(); {
	case isPackage: // all arguments belong to the package
		args, r.Args = nil, args
	case dash == 0 && len(args) > 0: // a pasted command line
		r.Command, args, r.Args = args[0], nil, args[1:]
	case dash > 0:
		return nil, errors.New("arguments after -- work only with --command, --npm and --pypi")
	}
	if len(args) > 1 {
		return nil, fmt.Errorf("%d sources were given; install one app at a time, and put a command with its arguments after --, as in `ropewalk app install -- npx -y PACKAGE ARGUMENTS`", len(args))
	}
	given := 0
	for _, s := range append([]string{f.npm, f.pypi, r.Command}, args...) {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("give exactly one source: a name, a path, a URL, --npm, --pypi or --command")
	}
	if len(args) == 1 {
		r.source(args[0])
	}
	return r, f.settings(r)
}

// source determines what an argument means: an address, something on disk, or a name. The contents of the working
// directory do not change the meaning of a name that has a scope or no slash.
func (r *request) source(arg string) {
	switch {
	case strings.HasPrefix(arg, "http://"), strings.HasPrefix(arg, "https://"):
		r.URL = arg
	case strings.HasPrefix(arg, "."), filepath.IsAbs(arg), strings.HasSuffix(arg, ".mcpb"),
		strings.ContainsRune(arg, filepath.Separator) && !strings.HasPrefix(arg, "@") && exists(arg):
		r.Path = arg
	default:
		r.Name = arg
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// findPath checks that a path exists, and makes it absolute.
func (r *request) findPath() error {
	if r.Path == "" {
		return nil
	}
	_, err := os.Stat(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: give the path of a directory with a manifest.json, or of an .mcpb file", r.Path)
	}
	if err != nil {
		return err
	}
	r.Path, err = filepath.Abs(r.Path)
	return err
}

// settings fills in the environment and the transport.
func (f *installFlags) settings(r *request) (err error) {
	if r.Env, err = environment(slices.Concat(f.env, listed(f.set))); err != nil { // the API takes both in one object
		return err
	}
	if r.URL == "" {
		if f.sse || f.tokenEnv != "" || len(f.headers) > 0 {
			return errors.New("--sse, --header and --bearer-env work only with a URL")
		}
		return nil
	}
	t := &transport{}
	if f.sse {
		t.Type = "sse"
	}
	if t.Headers, err = environment(f.headers); err != nil {
		return err
	}
	if f.tokenEnv != "" {
		token := os.Getenv(f.tokenEnv)
		if token == "" {
			return fmt.Errorf("--bearer-env: the environment variable %s is empty", f.tokenEnv)
		}
		t.Auth = &auth{Type: "bearer", Token: token}
	}
	r.Transport = t
	return nil
}

// listed joins the values of a name that is given more than once into one JSON list, for fields that take several
// values.
func listed(given []string) (all []string) {
	values := map[string][]string{}
	for _, g := range given {
		name, value, _ := strings.Cut(g, "=")
		values[name] = append(values[name], value)
	}
	for _, g := range given {
		name, _, _ := strings.Cut(g, "=")
		if several := values[name]; len(several) > 1 {
			list, _ := json.Marshal(several) // encoding strings cannot fail
			g = name + "=" + string(list)
		}
		all = append(all, g)
	}
	return all
}

// environment parses NAME=VALUE, or NAME for a value from this process's environment.
func environment(given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, g := range given {
		name, value, explicit := strings.Cut(g, "=")
		if !explicit {
			var set bool
			if value, set = os.LookupEnv(name); !set {
				return nil, fmt.Errorf("--env %s: the variable is not set in your environment; write NAME=VALUE or set it", name)
			}
		}
		if name == "" {
			return nil, fmt.Errorf("%q has no name before the =", g)
		}
		all[name] = value
	}
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // an empty environment is valid
	}
	return all, nil
}

// local reports whether a server is on this machine, so that a path means the same to both.
func local(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// upload sends a bundle file to a server on another machine.
func upload(cmd *cobra.Command, client *apiclient.Client, r *request, replace bool, answer *json.RawMessage) error {
	file, err := os.Open(r.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return fmt.Errorf("%[1]s is a directory, and only files can be uploaded: pack its contents into an .mcpb file first, which is a ZIP archive (cd %[1]s && zip -r ../app.mcpb .)", r.Path)
	}
	query := url.Values{}
	if r.ServerName != "" {
		query.Set("serverName", r.ServerName)
	}
	if replace {
		query.Set("replace", "true")
	}
	if r.Permissions != nil && !isEmpty(*r.Permissions) {
		return errors.New("--allow and --deny do not work with an upload; install first, then `ropewalk app allow`")
	}
	if len(r.Env) > 0 {
		return errors.New("--env does not work with an upload; install first, then `ropewalk app configure`")
	}
	var body io.Reader = file
	return client.Send(cmd.Context(), http.MethodPost, "/v1/apps/upload?"+query.Encode(), "application/octet-stream", body, answer)
}
