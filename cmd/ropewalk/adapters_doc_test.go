package main_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/audit/file"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

func TestEverySettingOfABuiltInAdapterIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	for section, settings := range map[string]any{
		"### oidc": oidc.Settings{}, "### workos": workos.Settings{}, "### static": static.Settings{},
		"### redis": redis.Config{}, "### postgres": postgres.Config{},
		"### directory": directory.Settings{}, "### mcp-registry": mcpregistry.Settings{}, "and mpak": mpak.Settings{},
		"### file": file.Settings{}, "### http": http.Settings{},
	} {
		_, text, found := strings.Cut(string(document), section)
		if !found {
			t.Errorf("there is no section %s", section)
		}
		text, _, _ = strings.Cut(text, "\n##")
		for field := range reflect.TypeOf(settings).Fields() {
			if name := field.Tag.Get("json"); !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%s does not tell of %s", section, name)
			}
		}
	}
}
