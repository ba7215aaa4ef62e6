package clients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestAGeneratedPythonClientTypeChecksAndCallsAToolWithArguments(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(testenv.Python(t, filepath.Join("test", "clients")), "bin")
	dir := t.TempDir()
	copyFile(t, "python.py", filepath.Join(dir, "python.py"))
	s := serve(t, "models: "+models(t)+"\n")
	path := []string{"PATH=" + bin + ":" + os.Getenv("PATH")} // the generator runs ruff
	program(t, dir, path, filepath.Join(bin, "openapi-python-client"), "generate", "--url", s.URL+"/v1/openapi.json",
		"--meta", "none", "--output-path", "ropewalk_client", "--fail-on-warning")
	program(t, dir, path, filepath.Join(bin, "python"), "-W", "error", "-m", "compileall", "-q", "ropewalk_client")
	// Type errors inside the generated code are ignored, but the types that python.py uses are checked.
	program(t, dir, path, filepath.Join(bin, "mypy"), "--strict", "--follow-imports=silent", "--no-incremental", "python.py")
	checkOutput(t, program(t, dir, path, filepath.Join(bin, "python"), "python.py", facts(t, s)))
}
