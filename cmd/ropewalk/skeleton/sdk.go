package skeleton

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// sdkModule is the module that contains the SDK.
const sdkModule = "github.com/ropewalk/ropewalk"

// SDK is where a plugin's module gets the SDK from.
type SDK struct {
	Version string // a released version of the module
	Dir     string // a checkout to use instead; "" if there is none
}

var described = regexp.MustCompile(`-[0-9]+-g[0-9a-f]+$|-dirty$`) // output of git describe

// Release returns the module version for a build's version, with or without a leading v, or "" if the build is
// not a release.
func Release(version string) string {
	version = "v" + strings.TrimPrefix(version, "v")
	if !semver.IsValid(version) || semver.Canonical(version) != version || described.MatchString(version) {
		return ""
	}
	return version
}

// Checkout returns the directory of the checkout that the running executable was built in. That is the checkout
// that contains the executable, such as bin/ropewalk, or the one that its source was compiled from, which is
// unknown in a build with -trimpath. Checkout returns "" for a released executable.
func Checkout() string {
	var starts []string
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, dir := range starts {
		for parent := ""; dir != parent; parent, dir = dir, filepath.Dir(dir) {
			if isCheckout(dir) {
				return dir
			}
		}
	}
	return ""
}

func isCheckout(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(raw) == sdkModule
}

// check returns an error unless there is a checkout or a release.
func (s SDK) check() error {
	if s.Dir == "" && Release(s.Version) == "" {
		return fmt.Errorf("this ropewalk is a development build outside a checkout; specify a checkout with --sdk, or a release with --sdk-version, such as v1.2.3%s", got(s.Version))
	}
	if s.Dir != "" && !isCheckout(s.Dir) {
		return fmt.Errorf("%s is not a checkout of %s", s.Dir, sdkModule)
	}
	return nil
}

// writeModule writes go.mod. With a checkout it copies the requirements and go.sum of the checkout, so that the
// plugin builds with the modules already downloaded for it.
func (s SDK) writeModule(dir, module string) error {
	file := &modfile.File{}
	if err := file.AddModuleStmt(module); err != nil {
		return err
	}
	if s.Dir == "" {
		if err := file.AddGoStmt("1.26.0"); err != nil {
			return err
		}
		file.AddNewRequire(sdkModule, Release(s.Version), false)
		return writeFile(dir, file)
	}
	raw, err := os.ReadFile(filepath.Join(s.Dir, "go.mod"))
	if err != nil {
		return err
	}
	own, err := modfile.Parse("go.mod", raw, nil)
	if err != nil {
		return err
	}
	if err := file.AddGoStmt(own.Go.Version); err != nil {
		return err
	}
	file.AddNewRequire(sdkModule, "v0.0.0", false)
	for _, r := range own.Require {
		file.AddNewRequire(r.Mod.Path, r.Mod.Version, true)
	}
	file.SetRequireSeparateIndirect(file.Require)
	if err := file.AddReplace(sdkModule, "", s.Dir, ""); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(s.Dir, "go.sum"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644); err != nil {
		return err
	}
	return writeFile(dir, file)
}

func got(version string) string {
	if version == "" {
		return ""
	}
	return fmt.Sprintf(" (it was %q)", version)
}

func writeFile(dir string, file *modfile.File) error {
	file.Cleanup()
	raw, err := file.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), raw, 0o644)
}
