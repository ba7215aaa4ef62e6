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
// programs that it is started through. A program that lies in a directory named bin or shims belongs to
// the directory above; never are protected directories, or those above them, opened that way.
func RuntimePaths(program string, searchPath []string, protected []string) []string {
	var found []string
	add := func(dir string) {
		if dir == "" || dir == "/" || slices.Contains(found, dir) || inSystem(dir) {
			return
		}
		if slices.ContainsFunc(protected, func(p string) bool { return p != "" && pathWithin(p, dir) }) {
			return
		}
		found = append(found, dir)
	}
	installation := func(file string) {
		dir := filepath.Dir(file)
		switch filepath.Base(dir) {
		case "bin", "sbin", "shims":
			if prefix := filepath.Dir(dir); filepath.Base(prefix) != ".local" {
				add(prefix)
			}
		}
		add(dir)
	}
	for _, dir := range searchPath {
		if filepath.IsAbs(dir) {
			installation(filepath.Join(dir, "program"))
		}
	}
	for _, file := range chain(program) {
		installation(file)
		if home, ok := environmentHome(filepath.Join(filepath.Dir(filepath.Dir(file)), "pyvenv.cfg")); ok {
			for _, base := range chain(filepath.Join(home, filepath.Base(file))) {
				installation(base)
			}
			installation(filepath.Join(home, "python"))
		}
	}
	return found
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

// environmentHome is the directory of the Python that a virtual environment was made from.
func environmentHome(config string) (string, bool) {
	raw, err := os.ReadFile(config)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(raw)) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "home" {
			return strings.TrimSpace(value), true
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
