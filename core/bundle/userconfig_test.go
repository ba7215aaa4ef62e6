package bundle

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func configured(t testing.TB) *Manifest {
	doc := with(minimal(), "user_config", map[string]any{
		"api_key":    map[string]any{"type": "string", "title": "Key", "description": "from the console", "required": true, "sensitive": true},
		"githubUser": map[string]any{"type": "string", "title": "User", "required": true},
		"token":      map[string]any{"type": "string", "required": true},
		"region":     map[string]any{"type": "string", "required": true, "default": "eu"},
		"limit":      map[string]any{"type": "number", "min": 1, "max": 10},
		"verbose":    map[string]any{"type": "boolean"},
		"dirs":       map[string]any{"type": "directory", "multiple": true},
	})
	return parse(t, with(doc, "server.mcp_config.env", map[string]any{"ACME_TOKEN": "${user_config.token}", "USER_LINE": "u=${user_config.githubUser}"}))
}

func TestAFieldCanBeSetByEachOfItsNames(t *testing.T) {
	supplied := configured(t).Supplied(map[string]core.Secret{"api_key": "", "githubUser": "u", "ACME_TOKEN": "t", "LIMIT": "3"})
	for key, want := range map[string]bool{"api_key": false, "githubUser": true, "token": true, "limit": true, "region": false, "verbose": false, "dirs": false} {
		if got, known := supplied[key]; got != want || !known {
			t.Errorf("%s is supplied: %v, want %v", key, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]core.Secret
		want   []string
	}{
		"nothing supplied":    {nil, []string{"api_key", "githubUser", "token"}},
		"by key":              {map[string]core.Secret{"api_key": "k", "githubUser": "u", "token": "t"}, nil},
		"in upper snake case": {map[string]core.Secret{"API_KEY": "k", "GITHUB_USER": "u", "TOKEN": "t"}, nil},
		"by the variable that the manifest fills": {map[string]core.Secret{"API_KEY": "k", "githubUser": "u", "ACME_TOKEN": "t"}, nil},
		"a variable that only contains it":        {map[string]core.Secret{"API_KEY": "k", "USER_LINE": "u", "token": "t"}, []string{"githubUser"}},
		"an empty value is not a value":           {map[string]core.Secret{"api_key": "", "githubUser": "u", "token": "t"}, []string{"api_key"}},
		"a key in the wrong case is not a key":    {map[string]core.Secret{"Api_Key": "k", "githubUser": "u", "token": "t"}, []string{"api_key"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range configured(t).Missing(c.values) {
				got = append(got, v.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
	want := MissingValue{Name: "api_key", Title: "Key", Description: "from the console", Sensitive: true}
	if got := configured(t).Missing(nil)[0]; got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestLaunchAsksForMissingValues(t *testing.T) {
	_, err := configured(t).Launch(input(t, nil))
	if core.CodeOf(err) != core.CodeCredentialsRequired {
		t.Fatalf("got %v, want credentials_required", err)
	}
	e, _ := errors.AsType[*core.Error](err)
	details, _ := e.Details.(map[string]any)
	if missing, _ := details["missing"].([]MissingValue); len(missing) != 3 {
		t.Fatalf("details are %v", details)
	}
}

func TestCheckValuesChecksTypes(t *testing.T) {
	m := configured(t)
	for name, c := range map[string]struct {
		key, value string
		ok         bool
	}{
		"a number":                               {"limit", "5", true},
		"a number with a fraction":               {"limit", "5.5", true},
		"a word in place of a number":            {"limit", "many", false},
		"infinity":                               {"limit", "Inf", false},
		"less than the minimum":                  {"limit", "0", false},
		"above the maximum":                      {"limit", "11", false},
		"above the maximum, in upper snake case": {"LIMIT", "11", false},
		"true":                                   {"verbose", "true", true},
		"yes":                                    {"verbose", "yes", false},
		"a NUL in a string":                      {"api_key", "a\x00", false},
		"a refused variable":                     {"LD_PRELOAD", "x", false},
		"an empty number is not a value":         {"limit", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := m.CheckValues(map[string]core.Secret{c.key: core.Secret(c.value)})
			if c.ok != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if err != nil && (core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.key))) {
				t.Fatalf("got %v, want bad_request naming %s", err, c.key)
			}
		})
	}
}

func TestUpperSnake(t *testing.T) {
	for in, want := range map[string]string{"api_key": "API_KEY", "apiKey": "API_KEY", "api-key": "API_KEY", "api.key": "API_KEY", "key2Name": "KEY2_NAME", "K": "K"} {
		if got := upperSnake(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
