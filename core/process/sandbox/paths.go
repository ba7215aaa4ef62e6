package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SystemPaths returns the files that every program may read: programs, libraries, and the parts of /etc used
// for lookups. None of it is secret.
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

// PrivateSystemPaths returns the paths within SystemPaths, below /etc, that not every user may read, such as
// /etc/ssl/private. A program that runs as root, or in a group of the server's user, must not read it either.
func PrivateSystemPaths() []string { return privateIn(SystemPaths()) }

func privateIn(paths []string) (private []string) {
	for _, path := range paths {
		if !strings.HasPrefix(path, "/etc/") && inSystem(path) { // programs and libraries are many, and not secret
			continue
		}
		_ = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error { // never fails
			if entry == nil { // the path does not exist
				return nil
			}
			needed := fs.FileMode(0o004)
			if entry.IsDir() {
				needed = 0o001
			}
			info, infoErr := entry.Info()
			switch {
			case err == nil && entry.Type()&fs.ModeSymlink != 0:
			case err != nil || infoErr != nil || info.Mode().Perm()&needed == 0:
				private = append(private, at)
				if entry.IsDir() {
					return fs.SkipDir
				}
			}
			return nil
		})
	}
	return private
}

// LogOf returns the log that a closed log file belongs to, or path itself if its name does not end like that of a
// closed log: with a dot and at least six digits (package hashchain). Closed files of a hidden log are hidden as well,
// including those that a later rotation creates.
func LogOf(path string) string {
	log := strings.TrimRight(path, "0123456789")
	if len(path)-len(log) < 6 || !strings.HasSuffix(log, ".") {
		return path
	}
	return strings.TrimSuffix(log, ".")
}

// RuntimePaths returns the files that a program needs in addition to the system's files: its interpreters, libraries
// and packages. The server chose the program, for example from its search path. Nothing else in the directories around
// a program is opened, because it belongs to the program's user. Protected directories and their parents are never
// opened.
func RuntimePaths(program string, searchPath, protected []string) []string {
	r := runtimePaths{protected: protected, searchPath: searchPath}
	r.addProgram(program)
	return r.found
}

// ForeignRuntimePaths returns the RuntimePaths of a program named by a bundle. Files next to the program, such as the
// one that names the Python of a virtual environment, come from the bundle. They are followed only if they lead to a
// Python installation. The first protected directory is the server's home, which contains the bundle; the bundle is
// opened as a whole.
func ForeignRuntimePaths(program string, searchPath, protected []string) []string {
	r := runtimePaths{protected: protected, searchPath: searchPath, foreign: true}
	r.addProgram(program)
	return r.found
}

// SearchPathPrograms returns the programs on the search path that do not belong to the system, with the files that each
// needs. Other files in their directories remain closed.
func SearchPathPrograms(searchPath, protected []string) []string {
	r := runtimePaths{protected: protected, searchPath: searchPath}
	for _, dir := range searchPath {
		if filepath.IsAbs(dir) && !inSystem(dir) && !r.inHome(dir) {
			r.addPrograms(dir)
		}
	}
	return r.found
}

// runtimePaths collects paths. It leaves out system paths, which every program may read.
type runtimePaths struct {
	protected  []string
	searchPath []string
	foreign    bool // the program comes from a bundle
	found      []string
	seen       []string // programs
}

// add adds a file or directory, if it exists.
func (r *runtimePaths) add(path string) {
	if _, err := os.Stat(path); err != nil || path == "/" || slices.Contains(r.found, path) || inSystem(path) {
		return
	}
	if slices.ContainsFunc(r.protected, func(p string) bool { return p != "" && PathWithin(p, path) }) {
		return
	}
	r.found = append(r.found, path)
}

// inHome reports whether a file is in the server's home, which is the first protected directory.
func (r *runtimePaths) inHome(file string) bool {
	return len(r.protected) > 0 && PathWithin(file, r.protected[0])
}

func (r *runtimePaths) addFile(file string) {
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !r.inHome(file) {
		r.add(file)
	}
}

// maxPrograms bounds how many programs are opened per directory of the search path.
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

// addProgram adds a program and, if it is a script, its interpreter.
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

// addChain adds a file, the targets of its symbolic links, and the libraries and packages that belong to them.
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

// isOnSearchPath reports whether the server chose the program.
func (r *runtimePaths) isOnSearchPath(file string) bool {
	return slices.Contains(r.searchPath, filepath.Dir(file)) && !r.inHome(file)
}

// runtimes maps a path that identifies a kind of installation to the paths that the installation needs. Paths are
// relative to the parent of the program's directory or, if they begin with a dot, to the program's directory. People do
// not keep their own files in any of these places.
func runtimes() map[string][]string {
	return map[string][]string{
		"lib/node_modules":        {"lib/node_modules"}, // with Node.js, or npm's global packages
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

// addLibraries adds the libraries and packages that belong to a program because of its location.
func (r *runtimePaths) addLibraries(file string) {
	if modules, _, ok := strings.Cut(file, "/node_modules/"); ok { // a package needs its siblings
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
	r.addAll(filepath.Join(dir, "*.so")) // libraries that a program finds in its own directory
	r.addAll(filepath.Join(dir, "*.so.[0-9]*"))
}

// addAll adds the matches of a pattern.
func (r *runtimePaths) addAll(pattern string) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return // nothing is opened
	}
	for _, path := range found {
		r.add(path)
	}
}

// interpreter returns the program named on the first line of a script, or "".
func (r *runtimePaths) interpreter(script string) string {
	file, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	line := make([]byte, 256) // like the kernel's BINPRM_BUF_SIZE
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

// addPython adds the installation that a Python interpreter belongs to, if there is one.
func (r *runtimePaths) addPython(interpreter string) {
	prefix := filepath.Dir(filepath.Dir(interpreter))
	library, err := filepath.Glob(filepath.Join(prefix, "lib", "python3*", "os.py"))
	if err != nil || len(library) == 0 || filepath.Base(filepath.Dir(interpreter)) != "bin" {
		return
	}
	r.addFile(interpreter)
	r.add(filepath.Join(prefix, "lib"))
}

// chain returns a file and the targets of its symbolic links, in order.
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

// environmentConfig is the file that marks a directory as a Python virtual environment.
const environmentConfig = "pyvenv.cfg"

// environmentHome returns the directory of the Python from which the program's virtual environment was created.
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
	return slices.ContainsFunc(SystemPaths(), func(s string) bool { return PathWithin(dir, s) })
}

// nearestDir returns the length of the longest directory that contains a path; 0 for none.
func nearestDir(path string, dirs []string) (length int) {
	for _, dir := range dirs {
		if PathWithin(path, dir) {
			length = max(length, len(dir))
		}
	}
	return length
}

// PathWithin reports whether path is dir or is below it, by name only.
func PathWithin(path, dir string) bool {
	below, found := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return path == dir || dir == "/" || found && strings.HasPrefix(below, "/")
}
