package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestEverySettingOfABuiltInAdapterIsDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range adapters() {
		for name, a := range of {
			if a.settings == nil {
				continue
			}
			section := regexp.MustCompile(`(?ms)^### (?:[\w-]+ and )?` + name + `\b.*?(^##|\z)`).FindString(string(document))
			if section == "" {
				t.Errorf("docs/adapters.md: there is no section %s", name)
			}
			for field := range reflect.TypeOf(a.settings).Fields() {
				if setting := field.Tag.Get("json"); !strings.Contains(section, "`"+setting+"`") {
					t.Errorf("docs/adapters.md: the setting %s of the adapter %s is missing", setting, name)
				}
			}
		}
	}
}
