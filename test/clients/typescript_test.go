package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clientOutput is what a generated client prints.
type clientOutput struct {
	Installed     string
	Listed        []string
	Env           []string
	Sum           string
	Echoed        string
	Refused       string
	Response      string
	Metadata      float64
	Forked        bool
	Conversations int
	Restored      string
	Planned       string
	OpenAPI       string
}

func TestAGeneratedTypeScriptClientCompilesAndCallsAToolWithArguments(t *testing.T) {
	t.Parallel()
	modules := packages(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "package.json"), `{"type":"module"}`)
	if err := os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"typescript.ts", "tsconfig.json"} {
		copyFile(t, name, filepath.Join(dir, name))
	}
	s := serve(t, "models: "+models(t)+"\n")
	bin := filepath.Join(modules, "node_modules", ".bin")
	program(t, dir, nil, filepath.Join(bin, "openapi-typescript"), s.URL+"/v1/openapi.json", "-o", "schema.d.ts")
	checkNothingIsNever(t, filepath.Join(dir, "schema.d.ts"))
	program(t, dir, nil, filepath.Join(bin, "tsc"), "-p", ".")
	checkOutput(t, program(t, dir, nil, "node", "typescript.js", facts(t, s)))
}

// checkNothingIsNever fails the test if the generated types have objects whose members the generator could not name.
// Those schemas need additionalProperties.
func checkNothingIsNever(t *testing.T, schema string) {
	t.Helper()
	content, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(content), "\n") {
		if strings.Contains(line, "Record<string, never>") && !strings.HasPrefix(line, "export type") {
			t.Errorf("schema.d.ts:%d: %s", i+1, strings.TrimSpace(line))
		}
	}
}
