package source

import (
	"errors"
	"fmt"
	"strings"
)

// Nothing of a package runs during its install, also where no sandbox holds: package managers read the operator's
// settings, which may have credentials.

// noGit is npm's setting git. npm prepares a package of a git repository with the settings that lie in the
// repository, which may name the program that is run as git: --ignore-scripts does not prevent that.
const noGit = "--git=" + missingGit

// missingGit is a program that does not exist. npm's message names it when npm wanted to run git.
const missingGit = "/nonexistent/git"

// noCompile keeps uv from starting the Python of the environment that it has filled, which runs what packages put
// into .pth files. The environment variable of the same meaning would be an error beside it.
const noCompile = "--no-compile-bytecode"

// executingSettings are environment variables with which a package manager starts programs of what it installs, or
// installs links that lead nowhere later.
func executingSettings() []string { return []string{"UV_COMPILE_BYTECODE", "UV_LINK_MODE"} }

// pipWithoutPrograms runs pip, which may start no program: to build a package is to run what lies in it, and
// --only-binary is not about packages that another one requires by an address (PEP 508). The hook
// (PEP 578) cannot be removed, and building is always done in another process.
const pipWithoutPrograms = `import runpy, sys
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"):
        raise OSError("` + buildRefused + `")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`

// buildRefused is a part of pip's message when it wanted to build a package.
const buildRefused = "ropewalk: no program may be started while packages are installed"

// pipInstall returns the arguments of Python for pip's install.
func pipInstall(options ...string) []string {
	return append([]string{"-c", pipWithoutPrograms, "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"}, options...)
}

// explainRefusal replaces the error of a package manager that wanted to run something of the package of an app.
func explainRefusal(err error, app string) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), missingGit):
		return fmt.Errorf("the npm package, or one that it depends on, is taken from a git repository, where npm would run what lies in it: "+
			"only packages of a registry are installed; an organization admin can allow it with apps.%s.installScripts: true", app)
	case strings.Contains(err.Error(), buildRefused):
		return errors.New("the PyPI project, or one that it depends on, would have to be built, which runs what lies in it: only wheels are installed (pip may start no program, such as one that holds its passwords, either)")
	}
	return err
}
