package source

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

func TestOnlySourcesThatAPatternAllowsAreInstalled(t *testing.T) {
	p := NewPolicy(config.Install{Allow: []string{
		"name:@acme/*", "npm:@acme/*", "npm:left-pad", "pypi:acme-*", "url:https://*.acme.com/**", "url:http://127.0.0.1:8080/mcp", "path:/srv/bundles/**", "command:uv?",
	}})
	for _, c := range []struct {
		kind    core.SourceKind
		ref     string
		allowed bool
	}{
		{core.SourceName, "@acme/notes", true},
		{core.SourceName, "@acme/notes/more", false},
		{core.SourceName, "@evil/@acme/notes", false},
		{core.SourceName, "acme", false},
		{core.SourceNPM, "@acme/notes", true},
		{core.SourceNPM, "left-pad", true},
		{core.SourceNPM, "left-pad-2", false},
		{core.SourceNPM, "acme-notes", false},
		{core.SourcePyPI, "acme-notes", true},
		{core.SourcePyPI, "xacme-notes", false},
		{core.SourceURL, "https://mcp.acme.com/", true},
		{core.SourceURL, "https://mcp.acme.com", true},
		{core.SourceURL, "HTTPS://MCP.Acme.Com/a/b?x=1", true},
		{core.SourceURL, "https://evil.com/.acme.com/", false},
		{core.SourceURL, "https://evil.com?x.acme.com/", false},
		{core.SourceURL, "https://evil.com#.acme.com/", false},
		{core.SourceURL, "https://mcp.acme.com.evil.com/", false},
		{core.SourceURL, "http://mcp.acme.com/", false},
		{core.SourceURL, "http://127.0.0.1:8080/mcp?token=x", true},
		{core.SourceURL, "http://127.0.0.1:8080/mcp/more", false},
		{core.SourcePath, "/srv/bundles/a/b.mcpb", true},
		{core.SourcePath, "/srv/bundlesx/b.mcpb", false},
		{core.SourceCommand, "uvx", false}, // ? is not a wildcard
		{core.SourceUpload, "file", false},
	} {
		_, err := p.Check(Order{Source: core.Source{Kind: c.kind, Ref: c.ref}})
		if (err == nil) != c.allowed || err != nil && core.CodeOf(err) != core.CodeForbidden {
			t.Errorf("%s %s: %v, want allowed %v", c.kind, c.ref, err, c.allowed)
		}
	}
}

func TestWithoutPatternsEverythingIsAllowedAndWithAnEmptyListNothing(t *testing.T) {
	o := Order{Source: core.Source{Kind: core.SourceName, Ref: "x"}}
	if _, err := NewPolicy(config.Install{}).Check(o); err != nil {
		t.Error(err)
	}
	if _, err := NewPolicy(config.Install{Allow: []string{}}).Check(o); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("%v", err)
	}
}
