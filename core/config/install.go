package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Install configures what may be installed through the API, and by whom.
type Install struct {
	Allow      []string // patterns such as npm:@acme/*; nil allows everything
	Registries InstallRegistries

	RequireSignature bool                // whether bundle files must be signed with one of the certificates in Signers
	Signers          []*x509.Certificate // certificates of the trusted signers of bundles
}

// InstallRegistries are the registries that each role may install from; nil means all.
type InstallRegistries struct {
	WorkspaceAdmin    []string `json:"workspaceAdmin"`
	OrganizationAdmin []string `json:"organizationAdmin"`
}

type installSection struct {
	Allow      []string          `json:"allow"`
	Registries InstallRegistries `json:"registries"`

	RequireSignature bool     `json:"requireSignature"`
	TrustedSigners   []string `json:"trustedSigners"`
}

// checkInstall checks that the registries exist, and reads the signers' certificates.
func (k *check) checkInstall() {
	k.readSigners()
	for role, names := range map[string][]string{
		"workspaceAdmin": k.cfg.Install.Registries.WorkspaceAdmin, "organizationAdmin": k.cfg.Install.Registries.OrganizationAdmin,
	} {
		for i, name := range names {
			if !slices.ContainsFunc(k.cfg.Registries, func(r Plugin) bool { return r.Name == name }) {
				at := fmt.Sprintf("install.registries.%s[%d]", role, i)
				k.add(at, "there is no registry %s in registries", k.shown(at, name))
			}
		}
	}
}

// readSigners reads install.trustedSigners.
func (k *check) readSigners() {
	section := k.doc.Install
	for i, path := range section.TrustedSigners {
		at := fmt.Sprintf("install.trustedSigners[%d]", i)
		raw, err := os.ReadFile(absolute(filepath.Dir(k.cfg.File), path))
		if err != nil {
			k.add(at, "%v", err)
			continue
		}
		found, err := parseCertificates(raw)
		if err != nil {
			k.add(at, "%s: %v", k.shown(at, path), err)
		}
		k.cfg.Install.Signers = append(k.cfg.Install.Signers, found...)
	}
	if section.RequireSignature && len(section.TrustedSigners) == 0 {
		k.addUnless("install.requireSignature", []string{"install.trustedSigners"}, "requires install.trustedSigners, because no signature is trusted without a certificate")
	}
}

func parseCertificates(raw []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, errors.New("it contains no PEM certificate")
	}
	return all, nil
}
