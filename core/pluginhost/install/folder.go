package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// isCompanion reports whether a file only accompanies a plugin, such as a signature, a checksum or a document.
func isCompanion(path string) bool {
	return slices.Contains([]string{".minisig", ".sha256", ".sig", ".pem", ".asc", ".txt", ".md", ".json", ".yaml", ".yml", ".sbom"}, filepath.Ext(path))
}

// pluginIn finds the only plugin in a directory.
func pluginIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return choose(dir, files)
}

// choose decides which of files is the plugin: the one named <kind>-<name>, or else the only executable. If there
// are several such files, it is the one for this system and architecture.
func choose(where string, files []string) (string, error) {
	named := slices.DeleteFunc(slices.Clone(files), func(path string) bool {
		_, ok := pluginhost.KindOf(path)
		return !ok || isCompanion(path)
	})
	if len(named) == 0 {
		named = slices.DeleteFunc(slices.Clone(files), func(path string) bool { return !isExecutable(path) })
	}
	if len(named) > 1 {
		if here := slices.DeleteFunc(slices.Clone(named), func(path string) bool { return !forThisPlatform(path) }); len(here) > 0 {
			named = here
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return "", fmt.Errorf("%s does not contain a plugin, which is an executable named <kind>-<name>, such as auth-okta, with or without the platform (auth-okta_%s_%s)", where, runtime.GOOS, runtime.GOARCH)
	}
	names := make([]string, len(named))
	for i, path := range named {
		names[i] = filepath.Base(path)
	}
	return "", fmt.Errorf("%s contains several plugins (%s); specify one of the files", where, strings.Join(names, ", "))
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&fs.FileMode(0o111) != 0
}

// forThisPlatform reports whether a file name contains this system and architecture, such as linux_amd64 or
// linux-amd64.
func forThisPlatform(path string) bool {
	name := strings.ReplaceAll(strings.ToLower(filepath.Base(path)), "-", "_")
	arch := runtime.GOARCH
	return strings.Contains(name, runtime.GOOS+"_"+arch) ||
		arch == "amd64" && strings.Contains(name, runtime.GOOS+"_x86_64") ||
		arch == "arm64" && strings.Contains(name, runtime.GOOS+"_aarch64")
}
