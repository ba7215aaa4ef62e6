package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SystemPaths are the files of the machine that every program may read: programs, libraries, and the
// part of /etc that they look things up in. Nothing of it is secret.
func SystemPaths() []string {
	paths := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap"}
	for _, name := range []string{
		"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf",
		"group", "gtk-3.0", "host.conf", "hosts", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload",
		"locale.alias", "locale.conf", "localtime", "lsb-release", "magic", "mime.types", "networks", "nsswitch.conf", "openssl", "os-release",
		"passwd", "pki", "profile", "protocols", "python3", "resolv.conf", "rpc", "services", "ssl", "terminfo", "timezone", "xdg",
	} {
		paths = append(paths, "/etc/"+name)
	}
	return paths
}

// RuntimePaths are what a program needs besides the system's files: its interpreters, libraries and packages. The program
// is one of the server's choice, such as one on its search path. Of the directories around a program nothing else is
// opened: what lies beside it, or above its directory, belongs to its user. Never opened are protected directories, and
// those above them.
func RuntimePaths(program string, searchPath, protected []string) []string {
	r := runtimePaths{protected: protected, searchPath: searchPath}
	r.addProgram(program)
	return r.found
}

// ForeignRuntimePaths are the RuntimePaths of a program that a bundle names. What a bundle says in files beside the
// program, such as where the Python of a virtual environment lies, is followed only to what is recognized as an
// installation of Python. The first protected directory is the server's home, in which the bundle lies that is opened
// as a whole.
func ForeignRuntimePaths(program string, searchPath, protected []string) []string {
	r := runtimePaths{protected: protected, searchPath: searchPath, foreign: true}
	r.addProgram(program)
	return r.found
}

// SearchPathPrograms are the programs on the search path that do not belong to the system, with what each needs. Other
// files in their directories stay closed.
func SearchPathPrograms(searchPath, protected []string) []string {
	r := runtimePaths{protected: protected, searchPath: searchPath}
	for _, dir := range searchPath {
		if filepath.IsAbs(dir) && !inSystem(dir) && !r.inHome(dir) {
			r.addPrograms(dir)
		}
	}
	return r.found
}

// runtimePaths collects paths. It leaves out those of the system, which every program may read.
type runtimePaths struct {
	protected  []string
	searchPath []string
	foreign    bool // the program is a bundle's
	found      []string
	seen       []string // programs
}

// add adds a file or directory, if there is one.
func (r *runtimePaths) add(path string) {
	if _, err := os.Stat(path); err != nil || path == "/" || slices.Contains(r.found, path) || inSystem(path) {
		return
	}
	if slices.ContainsFunc(r.protected, func(p string) bool { return p != "" && pathWithin(p, path) }) {
		return
	}
	r.found = append(r.found, path)
}

// inHome reports whether a file lies in the server's home, which is the first of the protected directories.
func (r *runtimePaths) inHome(file string) bool {
	return len(r.protected) > 0 && pathWithin(file, r.protected[0])
}

func (r *runtimePaths) addFile(file string) {
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !r.inHome(file) {
		r.add(file)
	}
}

// maxPrograms bounds how many programs of one directory of the search path are opened.
const maxPrograms = 500

func (r *runtimePaths) addPrograms(dir string) {
	r.addLibraries(filepath.Join(dir, "any"))
	if slices.Contains(r.found, dir) {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nothing is opened
	}
	for _, e := range entries[:min(len(entries), maxPrograms)] {
		if file := filepath.Join(dir, e.Name()); !strings.HasPrefix(e.Name(), ".") && isExecutable(file) {
			r.addChain(file)
		}
	}
}

func isExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// addProgram adds a program with what executes it.
func (r *runtimePaths) addProgram(program string) {
	if slices.Contains(r.seen, program) || len(r.seen) > maxChain {
		return
	}
	r.seen = append(r.seen, program)
	r.addChain(program)
	if interpreter := r.interpreter(program); interpreter != "" && (!r.foreign || r.isOnSearchPath(interpreter)) {
		r.addProgram(interpreter)
	}
}

// addChain adds a file, what its symbolic links lead to, and the libraries and packages that belong to these.
func (r *runtimePaths) addChain(program string) {
	for _, file := range chain(program) {
		r.addFile(file)
		home, isEnvironment := environmentHome(file)
		if !r.foreign || r.isOnSearchPath(file) {
			r.addLibraries(file)
		}
		if !isEnvironment {
			continue
		}
		if environment := filepath.Dir(filepath.Dir(file)); !r.inHome(file) {
			for _, name := range []string{environmentConfig, "bin", "lib", "lib64"} {
				r.add(filepath.Join(environment, name))
			}
		}
		for _, name := range []string{"python", "python3", filepath.Base(file)} {
			for _, interpreter := range chain(filepath.Join(home, name)) {
				r.addPython(interpreter)
			}
		}
	}
}

// isOnSearchPath reports whether a program is one of the server's choice.
func (r *runtimePaths) isOnSearchPath(file string) bool {
	return slices.Contains(r.searchPath, filepath.Dir(file)) && !r.inHome(file)
}

// runtimes are kinds of installations by what is recognized in them, from the directory above that of the program or,
// with a dot, from its own; and what they need there. None of it is where people keep files of their own.
func runtimes() map[string][]string {
	return map[string][]string{
		"lib/node_modules":        {"lib/node_modules"}, // with Node.js, or the global packages of npm
		"lib/python3*/os.py":      {"lib"},
		"lib/ruby":                {"lib/ruby", "lib/libruby*"},
		"lib/perl5":               {"lib/perl5"},
		"lib/server/libjvm.so":    {"lib", "conf", "release"},
		"jre/lib":                 {"lib", "jre", "release"},
		"pkg/tool":                {"pkg", "src", "lib", "go.env", "VERSION"}, // Go
		"conda-meta":              {"bin", "lib", "ssl"},
		"libexec/pyenv":           {"libexec", "bin", "shims", "versions", "plugins", "pyenv.d", "version"},
		"asdf.sh":                 {"bin", "lib", "shims", "installs", "plugins"},
		"installs":                {"installs"},                                                              // mise
		"Cellar":                  {"Cellar", "opt", "lib", "share", "etc/openssl@3", "etc/ca-certificates"}, // Homebrew
		"./host/fxr":              {"./host", "./shared", "./sdk", "./packs"},                                // .NET
		"./global/*/node_modules": {"./global"},                                                              // pnpm
	}
}

// addLibraries adds the libraries and packages that belong to a program by where it lies.
func (r *runtimePaths) addLibraries(file string) {
	if modules, _, ok := strings.Cut(file, "/node_modules/"); ok { // a package needs others beside it
		r.add(modules + "/node_modules")
	}
	dir := filepath.Dir(file)
	for mark, paths := range runtimes() {
		base := filepath.Dir(dir)
		if strings.HasPrefix(mark, "./") {
			base = dir
		} else if name := filepath.Base(dir); name != "bin" && name != "sbin" && name != "shims" {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(base, mark)); err != nil || len(found) == 0 {
			continue
		}
		for _, path := range paths {
			r.addAll(filepath.Join(base, path))
		}
	}
	r.addAll(filepath.Join(dir, "*.so")) // libraries that a program finds beside it
	r.addAll(filepath.Join(dir, "*.so.[0-9]*"))
}

// addAll adds what a pattern stands for.
func (r *runtimePaths) addAll(pattern string) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return // nothing is opened
	}
	for _, path := range found {
		r.add(path)
	}
}

// interpreter is the program that the first line of a script names, "" for none.
func (r *runtimePaths) interpreter(script string) string {
	file, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	line := make([]byte, 256) // as the kernel's BINPRM_BUF_SIZE
	n, err := io.ReadFull(file, line)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	text, isScript := strings.CutPrefix(string(line[:n]), "#!")
	text, _, _ = strings.Cut(text, "\n")
	fields := strings.Fields(text)
	if !isScript || len(fields) == 0 || !filepath.IsAbs(fields[0]) {
		return ""
	}
	if filepath.Base(fields[0]) != "env" {
		return fields[0]
	}
	for _, word := range fields[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		for _, dir := range r.searchPath {
			at := filepath.Join(dir, word)
			if isExecutable(at) {
				return at
			}
		}
		return ""
	}
	return ""
}

// addPython adds the installation that a Python interpreter belongs to, when there is one.
func (r *runtimePaths) addPython(interpreter string) {
	prefix := filepath.Dir(filepath.Dir(interpreter))
	library, err := filepath.Glob(filepath.Join(prefix, "lib", "python3*", "os.py"))
	if err != nil || len(library) == 0 || filepath.Base(filepath.Dir(interpreter)) != "bin" {
		return
	}
	r.addFile(interpreter)
	r.add(filepath.Join(prefix, "lib"))
}

// chain is a file and what its symbolic links lead to, one after the other.
func chain(file string) []string {
	files := []string{file}
	for range maxChain {
		target, err := os.Readlink(file)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		file = filepath.Clean(target)
		files = append(files, file)
	}
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
		files = append(files, real)
	}
	return files
}

// maxChain bounds the symbolic links of one program.
const maxChain = 16

// environmentConfig is the file that makes a directory a virtual environment of Python.
const environmentConfig = "pyvenv.cfg"

// environmentHome is the directory of the Python that the virtual environment of a program was made from.
func environmentHome(program string) (string, bool) {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(program)), environmentConfig))
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(raw)) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "home" {
			home := strings.TrimSpace(value)
			return home, filepath.IsAbs(home)
		}
	}
	return "", false
}

func inSystem(dir string) bool {
	return slices.ContainsFunc(SystemPaths(), func(s string) bool { return pathWithin(dir, s) })
}

// pathWithin reports whether path is dir or lies below it.
func pathWithin(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
