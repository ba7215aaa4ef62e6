package sandbox

import (
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

// RuntimePaths are what a program needs beside the system's files: its own installation and those of the
// programs that it is started through. The program is one of the server's choice, such as one on its
// search path. A program that lies in a directory named bin or shims belongs to the directory above; never
// are protected directories, or those above them, opened that way: of a program that lies there only its
// file is.
func RuntimePaths(program string, searchPath, protected []string) []string {
	r := runtimePaths{protected: protected}
	r.addSearchPath(searchPath)
	for _, file := range chain(program) {
		r.addInstallation(file)
		if !slices.Contains(r.found, filepath.Dir(file)) {
			r.addFile(file)
		}
		if home, ok := environmentHome(file); ok {
			for _, base := range chain(filepath.Join(home, filepath.Base(file))) {
				r.addInstallation(base)
			}
			r.addInstallation(filepath.Join(home, "python"))
		}
	}
	return r.found
}

// ForeignRuntimePaths are the RuntimePaths of a program that a bundle names. The bundle must not open a
// directory by naming a program in it, or by what it says in files beside the program: of the program's
// directory nothing but the program is opened, and of a Python that a virtual environment was made from,
// what is recognized as an installation of Python. The first protected directory is the server's home.
func ForeignRuntimePaths(program string, searchPath, protected []string) []string {
	r := runtimePaths{protected: protected}
	r.addSearchPath(searchPath)
	for _, file := range chain(program) {
		r.addFile(file)
		home, ok := environmentHome(file)
		if !ok {
			continue
		}
		if environment := filepath.Dir(filepath.Dir(file)); !r.inHome(file) {
			r.addFile(filepath.Join(environment, environmentConfig))
			r.add(filepath.Join(environment, "bin"))
			r.add(filepath.Join(environment, "lib"))
		}
		for _, name := range []string{"python", "python3", filepath.Base(file)} {
			r.addPython(filepath.Join(home, name))
		}
	}
	return r.found
}

// runtimePaths collects paths. It leaves out those of the system, which every program may read.
type runtimePaths struct {
	protected []string
	found     []string
}

func (r *runtimePaths) add(dir string) {
	if dir == "" || dir == "/" || slices.Contains(r.found, dir) || inSystem(dir) {
		return
	}
	if slices.ContainsFunc(r.protected, func(p string) bool { return p != "" && pathWithin(p, dir) }) {
		return
	}
	r.found = append(r.found, dir)
}

// inHome reports whether a file lies in the server's home, which is the first of the protected directories.
// The bundle is opened as a whole there, and nothing else.
func (r *runtimePaths) inHome(file string) bool {
	return len(r.protected) > 0 && pathWithin(file, r.protected[0])
}

func (r *runtimePaths) addFile(file string) {
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !r.inHome(file) {
		r.add(file)
	}
}

func (r *runtimePaths) addSearchPath(searchPath []string) {
	for _, dir := range searchPath {
		if filepath.IsAbs(dir) {
			r.addInstallation(filepath.Join(dir, "program"))
		}
	}
}

func (r *runtimePaths) addInstallation(file string) {
	dir := filepath.Dir(file)
	switch filepath.Base(dir) {
	case "bin", "sbin", "shims":
		if prefix := filepath.Dir(dir); filepath.Base(prefix) != ".local" {
			r.add(prefix)
		}
	}
	r.add(dir)
}

// addPython adds the installation that a Python interpreter belongs to, when there is one.
func (r *runtimePaths) addPython(interpreter string) {
	for _, file := range chain(interpreter) {
		dir := filepath.Dir(file)
		prefix := filepath.Dir(dir)
		library, err := filepath.Glob(filepath.Join(prefix, "lib", "python3*", "os.py"))
		if err != nil || len(library) == 0 || filepath.Base(dir) != "bin" {
			continue
		}
		r.addFile(file)
		r.add(dir)
		r.add(filepath.Join(prefix, "lib"))
	}
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
