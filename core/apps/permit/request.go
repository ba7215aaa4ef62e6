package permit

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Definition describes how an app is started, with all variables filled in.
type Definition struct {
	Names   []string          // names of the bundle or package, and of the program
	Program string            // as written in the definition
	Args    []string          // arguments of the program
	Dir     string            // its working directory; "" for the app's own
	Env     map[string]string // set by the definition and the installation
	Paths   []string          // values of user_config fields of type directory and file
	Own     []string          // directories that the app can use without asking
}

// maxRequests limits how much one definition can ask for.
const maxRequests = 32

// Requests returns the access that a definition appears to need and that can be granted, without duplicates.
func (g *Guard) Requests(d Definition) []core.PermissionRequest { return g.read(d).found }

// Refused returns the paths that a definition refers to and that only the configuration can allow.
func (g *Guard) Refused(d Definition) []core.Access { return g.read(d).refused }

func (g *Guard) read(d Definition) reader {
	r := reader{guard: g, own: append(d.Own, g.Home)}
	for _, path := range d.Paths {
		r.path(path, "user_config", "")
	}
	if d.Dir != "" {
		r.directory(d.Dir, "the working directory")
	}
	r.arguments(d)
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		r.text(d.Env[name], "the variable "+name)
	}
	r.hostAndPort(d.Env)
	refused := r.refused
	r.wellKnown(d)
	r.refused = refused // do not report what apps of this kind usually need
	return r
}

type reader struct {
	guard   *Guard
	own     []string
	found   []core.PermissionRequest
	refused []core.Access // see Guard.Refused

	namesService bool // the definition contains the address of a service
}

func (r *reader) add(request core.PermissionRequest) {
	for i, other := range r.found {
		if other.Target != request.Target || other.Kind.IsPath() != request.Kind.IsPath() {
			continue
		}
		if request.Kind == core.PermissionWrite {
			r.found[i].Kind = core.PermissionWrite
		}
		return
	}
	if len(r.found) < maxRequests {
		r.found = append(r.found, request)
	}
}

// arguments reads the arguments of the program, including the script of an interpreter.
func (r *reader) arguments(d Definition) {
	script := scriptOf(d.Program, d.Args)
	for i, arg := range d.Args {
		reason := "its command line"
		switch {
		case i == script:
			r.script(arg, cmp.Or(directoryOption(d.Args), d.Dir), reason)
		case i > 0 && isDirectoryOption(d.Args[i-1]):
			r.directory(arg, "the option "+d.Args[i-1])
		default:
			name, value, isOption := strings.Cut(arg, "=")
			if isOption && strings.HasPrefix(name, "-") && isDirectoryOption(name) {
				r.directory(value, "the option "+name)
				continue
			}
			if isOption && strings.HasPrefix(name, "-") {
				arg, reason = value, "the option "+name
			}
			r.text(arg, reason)
		}
	}
	flags := map[string]string{}
	for i := 0; i+1 < len(d.Args); i++ {
		if strings.HasPrefix(d.Args[i], "--") {
			flags[strings.ReplaceAll(strings.TrimPrefix(d.Args[i], "--"), "-", "_")] = d.Args[i+1]
		}
	}
	r.hostAndPort(flags)
}

// interpreters matches programs that run the file named by their first argument.
var interpreters = regexp.MustCompile(`^(python[0-9.]*|pypy[0-9.]*|node|nodejs|deno|bun|ruby|perl|php|bash|sh|zsh|dash|lua|Rscript|java|tsx|ts-node|uv)$`)

// scriptOf returns the index of the script in the arguments of an interpreter; -1 for none.
func scriptOf(program string, args []string) int {
	if !interpreters.MatchString(filepath.Base(program)) {
		return -1
	}
	for i, arg := range args {
		switch {
		case i > 0 && (isDirectoryOption(args[i-1]) || slices.Contains([]string{"--with", "--python", "-p", "-r", "--require", "--import"}, args[i-1])):
		case slices.Contains([]string{"-c", "-e", "-m", "--eval", "--print"}, arg): // code or a module; the other arguments belong to it
			return -1
		case strings.HasPrefix(arg, "-"), slices.Contains([]string{"run", "--", "-S"}, arg):
		default:
			return i
		}
	}
	return -1
}

// isDirectoryOption reports whether an option takes a working directory or a project.
func isDirectoryOption(arg string) bool {
	return slices.Contains([]string{"--directory", "--project", "--cwd", "--prefix", "--workdir", "-C"}, arg)
}

// directoryOption returns the directory that the arguments change to; "" for none.
func directoryOption(args []string) string {
	for i, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok && isDirectoryOption(name) {
			return value
		}
		if isDirectoryOption(arg) && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// script requests only the script file. It offers the file's directory as a wider choice if that can be granted.
func (r *reader) script(arg, dir, reason string) {
	if !filepath.IsAbs(arg) {
		if !filepath.IsAbs(dir) {
			return
		}
		arg = filepath.Join(dir, arg)
		if isFile(arg) { // the option already requests its directory
			return
		}
	}
	if !isFile(arg) {
		r.text(arg, reason)
		return
	}
	request := core.PermissionRequest{Access: core.Access{Kind: core.PermissionRead, Target: arg}, Reason: reason, Choice: []string{"read"}}
	if parent := (core.Access{Kind: core.PermissionRead, Target: filepath.Dir(arg)}); r.acceptable(parent) {
		request.Also = &parent
	}
	r.ask(request)
}

// directory requests a working directory. A project is requested for writing, because tools keep locks and builds
// there.
func (r *reader) directory(path, reason string) {
	kind := core.PermissionRead
	for _, project := range []string{"pyproject.toml", "package.json", "Cargo.toml", "go.mod", "deno.json"} {
		if isFile(filepath.Join(path, project)) {
			kind = core.PermissionWrite
		}
	}
	r.path(path, reason, kind)
}

// text requests access to everything that a value refers to: one or more paths, a service on this machine, a URL of
// either, or a list or settings that contain these.
func (r *reader) text(value, reason string) {
	value = strings.TrimSpace(value)
	var document any
	switch {
	case value == "" || len(value) > 4096:
	case strings.ContainsRune("[{", rune(value[0])) && json.Unmarshal([]byte(value), &document) == nil:
		r.document(document, reason)
	case strings.HasPrefix(value, "/"):
		parts := []string{value}
		if _, err := os.Stat(value); err != nil && strings.ContainsAny(value, ":,") {
			parts = strings.FieldsFunc(value, func(c rune) bool { return c == ':' || c == ',' })
		}
		for _, part := range parts {
			r.path(part, reason, "")
		}
	case strings.Contains(value, "://"):
		r.namesService = true
		r.address(value, reason)
	case strings.Contains(value, "="):
		r.settings(value, reason)
	default:
		for one := range strings.SplitSeq(value, ",") {
			one, _, _ = strings.Cut(strings.TrimSpace(one), "/")
			if host, port, ok := hostPort(one); ok {
				r.port(host, port, reason)
			}
		}
	}
}

// document requests what the strings in a JSON value refer to.
func (r *reader) document(value any, reason string) {
	switch value := value.(type) {
	case string:
		r.text(value, reason)
	case []any:
		for _, one := range value {
			r.document(one, reason)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			r.document(value[name], reason)
		}
	}
}

// settings requests access to everything named by pairs such as root=/srv, "host=localhost port=5432" or
// "Server=localhost;Port=3306".
func (r *reader) settings(value, reason string) {
	pairs := map[string]string{}
	for _, field := range strings.FieldsFunc(value, func(c rune) bool { return c == ' ' || c == ';' || c == ',' }) {
		name, value, _ := strings.Cut(field, "=")
		if strings.EqualFold(name, "server") {
			name = "host"
		}
		pairs[name] = value
		if !strings.Contains(value, "=") {
			r.text(value, reason)
		}
	}
	r.hostAndPort(pairs)
}

// address reads a URL of a service on this machine or of a file.
func (r *reader) address(value, reason string) {
	scheme, rest, _ := strings.Cut(value, "://")
	if host, port, ok := service(value); ok && !strings.Contains(host, ",") {
		if isLoopback(host) && port != "" {
			r.port(host, port, reason)
		}
		return
	}
	path, _, _ := strings.Cut(rest, "?")
	if path = "/" + strings.TrimLeft(path, "/"); scheme == "file" || strings.HasPrefix(scheme, "sqlite") || scheme == "duckdb" {
		r.path(path, reason, "")
		return
	}
	for _, found := range addresses.FindAllString(rest, -1) { // several hosts, or a password with a #
		if host, port, ok := hostPort(found); ok {
			r.port(host, port, reason)
		}
	}
}

// service returns the host and port of a URL. The port may follow from the scheme; it is "" if unknown.
func service(address string) (host, port string, ok bool) {
	u, err := url.Parse(strings.TrimPrefix(address, "jdbc:"))
	if err != nil || u.Host == "" {
		return "", "", false
	}
	scheme, _, _ := strings.Cut(strings.ToLower(u.Scheme), "+") // mysql+pymysql names a driver
	return u.Hostname(), cmp.Or(u.Port(), defaultPorts()[scheme]), true
}

// addresses matches URLs and host:port pairs in a string.
var addresses = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'\\<>]+|[A-Za-z0-9.\[\]:-]+:[0-9]{1,5}\b`)

// LoopbackPorts returns the ports on this machine that are mentioned in a string, such as a plugin's settings.
func LoopbackPorts(text string) (ports []int) {
	for _, found := range addresses.FindAllString(text, -1) {
		host, port, ok := service(found)
		if !ok {
			host, port, _ = hostPort(found)
		}
		if n, err := strconv.Atoi(port); err == nil && isLoopback(host) {
			ports = append(ports, n)
		}
	}
	return ports
}

// defaultPorts returns the default ports of common services by URL scheme.
func defaultPorts() map[string]string {
	return map[string]string{
		"http": "80", "ws": "80", "https": "443", "wss": "443", "redis": "6379", "rediss": "6379", "valkey": "6379", "postgres": "5432", "postgresql": "5432", "pg": "5432", "mongo": "27017",
		"mysql": "3306", "mariadb": "3306", "mssql": "1433", "sqlserver": "1433", "mongodb": "27017", "amqp": "5672", "nats": "4222", "mqtt": "1883", "bolt": "7687", "neo4j": "7687", "clickhouse": "9000", "ldap": "389", "smtp": "25",
	}
}

func hostPort(value string) (host, port string, ok bool) {
	i := strings.LastIndexByte(value, ':')
	if i <= 0 {
		return "", "", false
	}
	host, port = strings.Trim(value[:i], "[]"), value[i+1:]
	n, err := strconv.Atoi(port)
	return host, port, err == nil && n > 0 && n < 65536 && isLoopback(host)
}

// hostAndPort reads pairs of variables or options such as DB_HOST and DB_PORT.
func (r *reader) hostAndPort(values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		upper := strings.ToUpper(name)
		prefix, ok := hostPrefix(upper)
		if !ok || !isLoopback(values[name]) {
			r.namesService = r.namesService || ok
			continue
		}
		found := false
		for other, port := range values {
			if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 65536 && strings.ToUpper(other) == prefix+"PORT" {
				r.port(values[name], port, name+" and "+other)
				found = true
			}
		}
		if port := defaultPorts()[strings.ToLower(strings.TrimSuffix(prefix, "_"))]; !found && port != "" && port != "80" && port != "443" { // HTTP_HOST is an address to listen on
			r.port(values[name], port, name)
		}
	}
}

// hostPrefix returns what precedes HOST, or a word with the same meaning, in the name of a setting.
func hostPrefix(name string) (prefix string, ok bool) {
	for _, word := range []string{"HOST", "HOSTNAME", "SERVER"} {
		if prefix, ok := strings.CutSuffix(name, word); ok {
			return prefix, true
		}
	}
	return "", false
}

func (r *reader) port(host, port, reason string) {
	r.namesService = true
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		host = "[" + host + "]"
	}
	r.ask(core.PermissionRequest{Access: core.Access{Kind: core.PermissionNet, Target: strings.ToLower(host) + ":" + port}, Reason: reason, Choice: []string{"net"}})
}

// dataFiles matches the names of database files. Programs write to them and keep journals next to them.
var dataFiles = regexp.MustCompile(`(?i)\.(db|db3|sqlite|sqlite3|duckdb|kdbx)$`)

// path requests a path. If kind is "", a directory is requested for writing and a file for reading. For a database
// file, or a file that does not exist yet, the directory is requested instead.
func (r *reader) path(path, reason string, kind core.PermissionKind) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case err != nil || !info.IsDir() && dataFiles.MatchString(path):
		if parent := (core.Access{Kind: core.PermissionWrite, Target: filepath.Dir(path)}); isDir(parent.Target) && r.acceptable(parent) {
			r.ask(core.PermissionRequest{Access: parent, Reason: reason, Choice: []string{"read", "write"}})
			return
		}
		if err != nil { // even if the path does not exist, it may be one that only the configuration can allow
			r.ask(core.PermissionRequest{Access: core.Access{Kind: core.PermissionRead, Target: path}})
			return
		}
		kind = core.PermissionWrite
	case kind != "":
	case info.IsDir():
		kind = core.PermissionWrite
	default:
		kind = core.PermissionRead
	}
	r.ask(core.PermissionRequest{Access: core.Access{Kind: kind, Target: path}, Reason: reason, Choice: []string{"read", "write"}})
}

// ask adds a request, unless the app has access anyway or the access cannot be granted.
func (r *reader) ask(request core.PermissionRequest) {
	if request.Kind.IsPath() {
		real := RealPath(request.Target)
		for _, dir := range append(sandbox.SystemPaths(), r.own...) {
			if sandbox.PathWithin(real, RealPath(dir)) {
				return
			}
		}
	}
	checked, err := r.guard.Check(request.Access)
	if err != nil && request.Kind == core.PermissionWrite {
		request.Kind = core.PermissionRead
		checked, err = r.guard.Check(request.Access)
	}
	if err != nil {
		if core.CodeOf(err) == core.CodeForbidden && request.Kind.IsPath() && len(r.refused) < maxRequests {
			r.refused = append(r.refused, request.Access)
		}
		return
	}
	if _, err := r.guard.Check(core.Access{Kind: core.PermissionWrite, Target: checked.Target}); err != nil && checked.Kind.IsPath() {
		request.Choice = []string{"read"}
	}
	request.Access = checked
	r.add(request)
}

// acceptable reports whether a directory may be requested although the definition does not mention it.
func (r *reader) acceptable(a core.Access) bool {
	if slices.Contains([]string{"/", "/tmp", "/var/tmp", "/home", "/Users", "/srv", "/mnt", "/media", "/opt", os.TempDir()}, filepath.Clean(a.Target)) {
		return false
	}
	_, err := r.guard.Check(a)
	return err == nil
}

// wellKnown requests the access that some kinds of apps need without mentioning it in their arguments.
func (r *reader) wellKnown(d Definition) {
	home := r.guard.Env["HOME"]
	for _, name := range d.Names {
		name = strings.ToLower(name)
		for _, known := range []struct{ words, targets []string }{
			{browsers(), []string{filepath.Join(home, ".cache/ms-playwright"), filepath.Join(home, ".cache/puppeteer"), "/etc/chromium.d", "/etc/chromium"}},
			{[]string{"redis"}, []string{"localhost:6379"}},
			{[]string{"postgres"}, []string{"localhost:5432"}},
			{[]string{"mysql", "mariadb"}, []string{"localhost:3306"}},
			{[]string{"mongodb"}, []string{"localhost:27017"}},
		} {
			if !slices.ContainsFunc(known.words, func(word string) bool { return strings.Contains(name, word) }) {
				continue
			}
			for _, target := range known.targets {
				r.requestUsual(target, known.words[0])
			}
		}
	}
}

// browsers returns words in the names of apps that start a browser.
func browsers() []string { return []string{"playwright", "puppeteer", "chrome-devtools", "browser"} }

// noSandboxFlag matches options that turn off the browser's own sandbox.
var noSandboxFlag = regexp.MustCompile(`(?i)no-?sandbox`)

// NeedsNoSandboxFlag reports whether an app appears to start Chromium with Chromium's own sandbox, which cannot be
// created inside the app's sandbox.
func (d Definition) NeedsNoSandboxFlag() bool {
	starts := slices.ContainsFunc(d.Names, func(name string) bool {
		return !strings.Contains(name, "playwright") && slices.ContainsFunc(browsers(), func(word string) bool { return strings.Contains(strings.ToLower(name), word) })
	})
	given := slices.Concat(d.Args, slices.Collect(maps.Values(d.Env)))
	return starts && !slices.ContainsFunc(given, noSandboxFlag.MatchString)
}

// requestUsual requests what a well-known kind of app usually needs: a path if it exists, or the default port of a
// service, unless the definition already names a service.
func (r *reader) requestUsual(target, what string) {
	if filepath.IsAbs(target) {
		if _, err := os.Stat(target); err == nil {
			r.path(target, "Ropewalk ("+what+" apps usually need it)", core.PermissionRead)
		}
		return
	}
	if r.namesService {
		return
	}
	host, port, _ := strings.Cut(target, ":")
	r.port(host, port, "Ropewalk ("+what+" apps usually need it)")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
