package source

import (
	"errors"
	"fmt"
	"strings"
)

// No code from a package runs during its install, even without a sandbox: package managers read the operator's
// settings, which may contain credentials.

// noGit sets npm's git option. npm prepares a package from a git repository with the settings in that repository, and
// these settings can name the program to run as git. --ignore-scripts does not prevent that.
const noGit = "--git=" + missingGit

// missingGit is a program that does not exist. It appears in npm's error message when npm tries to run git.
const missingGit = "/nonexistent/git"

// noCompile keeps uv from starting the Python of the environment that it has just filled. That Python would run code
// that packages put into .pth files. Setting the equivalent environment variable as well would be an error.
const noCompile = "--no-compile-bytecode"

// pipWithoutPrograms runs pip and keeps it from starting any program, because building a package runs code from it.
// --only-binary does not cover packages that another package requires by URL (PEP 508). An audit hook (PEP 578) cannot
// be removed, and pip always builds in another process.
const pipWithoutPrograms = `import runpy, sys
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"):
        raise OSError("` + buildRefused + `")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`

// buildRefused is part of pip's error message when pip tries to build a package.
const buildRefused = "ropewalk: no program may be started while packages are installed"

// pipInstall returns the arguments that make Python run pip install.
func pipInstall(options ...string) []string {
	return append([]string{"-c", pipWithoutPrograms, "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"}, options...)
}

// explainRefusal replaces the error of a package manager that tried to run code from a package.
func explainRefusal(err error, app string) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), missingGit):
		return fmt.Errorf("the npm package, or one that it depends on, comes from a git repository, where npm would run code from the package: "+
			"only packages from a registry are installed; an organization admin can allow it with apps.%s.installScripts: true", app)
	case strings.Contains(err.Error(), buildRefused):
		return errors.New("the PyPI project, or one that it depends on, would have to be built, which runs code from the package: only wheels are installed, and pip may not start other programs, such as a keyring helper")
	}
	return err
}
