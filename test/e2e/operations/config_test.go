package operations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const brokenConfig = `http:
  prot: 8080
  host: 7
features:
  mcpSever: false
auth:
  adaptor: oidc
sessionStore: reddis
apps:
  Notes: {path: /srv/notes}
  both: {path: /a, url: https://b.example}
mcp:
  maxSessions: many
`

// Every line with a mistake is reported, together with the most similar valid name.
func TestConfigCheckReportsEveryProblem(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ropewalk.yaml")
	harness.WriteFile(t, file, brokenConfig)
	home := filepath.Join(t.TempDir(), "home")
	for what, args := range map[string][]string{
		"config check": {"config", "check", "--home", home, "--config", file},
		"serve":        {"serve", "--port", "0", "--home", home, "--config", file},
	} {
		output, status := harness.Command(t, nil, args...)
		if status != 1 {
			t.Errorf("%s: exit status %d", what, status)
		}
		for _, want := range []string{
			`:2: http\.prot: .*\bport\b`, `:3: http\.host: `, `:5: features\.mcpSever: .*\bmcpServer\b`, `:7: auth\.adaptor: .*\badapter\b`,
			`:8: sessionStore.*: .*\bredis\b`, `:10: apps\.Notes`, `:11: apps\.both: `, `:13: mcp\.maxSessions: `,
		} {
			if !regexp.MustCompile(regexp.QuoteMeta(file) + want).MatchString(output) {
				t.Errorf("the output of %s does not match %q:\n%s", what, want, output)
			}
		}
		if _, err := os.Stat(home); err == nil {
			t.Errorf("%s created a home", what)
		}
	}
	harness.WriteFile(t, file, "http: {port: 8080}\n")
	if output, status := harness.Command(t, nil, "config", "check", "--home", home, "--config", file); status != 0 || !strings.Contains(output, file) {
		t.Errorf("a valid file: exit status %d: %s", status, output)
	}
	if output, status := harness.Command(t, []string{"MCP_MAX_SESSIONS=none"}, "config", "check", "--home", home); status != 1 || !strings.Contains(output, "MCP_MAX_SESSIONS") {
		t.Errorf("an invalid variable: exit status %d: %s", status, output)
	}
}

func TestTheSchemaAcceptsTheExampleInTheREADMEButNoTypos(t *testing.T) {
	t.Parallel()
	output, status := harness.Command(t, nil, "config", "schema")
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, output)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("ropewalk.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("ropewalk.json")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(testenv.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(examples) == 0 {
		t.Fatal("the README has no example")
	}
	for _, example := range examples {
		if err := schema.Validate(asJSON(t, example[1])); err != nil {
			t.Errorf("%v\n%s", err, example[1])
		}
		here := t.TempDir() // replaces the directory in the example
		file := filepath.Join(here, "ropewalk.yaml")
		harness.WriteFile(t, file, strings.ReplaceAll(example[1], "/srv/bundles", here))
		if output, status := harness.Command(t, nil, "config", "check", "--config", file); status != 0 {
			t.Errorf("config check of the README's example: %d %s", status, output)
		}
	}
	if schema.Validate(asJSON(t, brokenConfig)) == nil {
		t.Error("the schema should reject the invalid file")
	}
}

// asJSON decodes a YAML document so that a JSON Schema can validate it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var parsed any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return document
}
