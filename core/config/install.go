package config

import (
	"fmt"
	"slices"
)

// Install says what may be installed over the API, and by whom.
type Install struct {
	Allow      []string // patterns such as npm:@acme/*; nil allows everything
	Registries InstallRegistries
}

// InstallRegistries are the registries that each role may install from; nil means all.
type InstallRegistries struct {
	WorkspaceAdmin    []string `json:"workspaceAdmin"`
	OrganizationAdmin []string `json:"organizationAdmin"`
}

type installSection struct {
	Allow      []string          `json:"allow"`
	Registries InstallRegistries `json:"registries"`
}

func (s installSection) install() Install {
	return Install(s)
}

// checkInstall makes sure that the registries exist.
func (k *check) checkInstall() {
	for role, names := range map[string][]string{
		"workspaceAdmin": k.cfg.Install.Registries.WorkspaceAdmin, "organizationAdmin": k.cfg.Install.Registries.OrganizationAdmin,
	} {
		for i, name := range names {
			if !slices.ContainsFunc(k.cfg.Registries, func(r Registry) bool { return r.Name == name }) {
				at := fmt.Sprintf("install.registries.%s[%d]", role, i)
				k.add(at, "there is no registry %s in registries", k.shown(at, name))
			}
		}
	}
}
