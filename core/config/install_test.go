package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARolesRegistriesMustExist(t *testing.T) {
	registries := "registries: [{name: main, adapter: directory, dir: /x}]\n"
	c := mustLoad(t, registries+"install: {allow: ['npm:@acme/*'], registries: {workspaceAdmin: [main]}}", nil)
	equal(t, "pattern", c.Install.Allow[0], "npm:@acme/*")
	if c.Install.Registries.OrganizationAdmin != nil || len(c.Install.Registries.WorkspaceAdmin) != 1 {
		t.Errorf("%+v", c.Install.Registries)
	}
	_, err := load(t, registries+"install: {registries: {organizationAdmin: [main, other]}}", nil)
	if said := said(t, err); !strings.Contains(said, `install.registries.organizationAdmin[1]: there is no registry "other"`) {
		t.Error(said)
	}
	if mustLoad(t, "", nil).Install.Allow != nil || mustLoad(t, "install: {allow: []}", nil).Install.Allow == nil {
		t.Error("a missing list must allow everything, and an empty list nothing")
	}
}

func TestAPatternMustNameAKindOfSource(t *testing.T) {
	for _, pattern := range []string{"'@acme/*'", "'docker:x'", "'npm:'", "''"} {
		_, err := load(t, "install: {allow: ["+pattern+"]}", nil)
		if said := said(t, err); !strings.Contains(said, "install.allow[0]: must be a kind of source and a pattern") {
			t.Errorf("%s: %s", pattern, said)
		}
	}
}

func TestARequiredSignatureNeedsCertificates(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"requireSignature: true":              "install.requireSignature: requires install.trustedSigners",
		"trustedSigners: [/nowhere/acme.pem]": "install.trustedSigners[0]: open /nowhere/acme.pem",
		"trustedSigners: ['" + empty + "']":   "contains no PEM certificate",
	} {
		_, err := load(t, "install: {"+settings+"}", nil)
		if said := said(t, err); !strings.Contains(said, want) {
			t.Errorf("%s: %s", settings, said)
		}
	}
}
