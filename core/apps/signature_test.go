package apps

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
)

// TestUnsignedBundlesAreRejectedIfASignatureIsRequired installs an unsigned file, a directory and a file with a
// truncated signature.
func TestUnsignedBundlesAreRejectedIfASignatureIsRequired(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	y.SetInstallPolicy(config.Install{RequireSignature: true})
	file := bundleFile(t, "notes", modeNormal, nil)
	for what, path := range map[string]string{"a file": file, "a folder": bundleDir(t, "notes", modeNormal, nil)} {
		if _, err := y.Install(t.Context(), ws, source.Request{Path: path}); core.CodeOf(err) != core.CodeForbidden {
			t.Errorf("%s: %v", what, err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.mcpb")
	if err := os.WriteFile(damaged, append(raw, "MCPB_SIG_V1\x04\x00\x00\x00abcdMCPB_SIG_END"...), 0o600); err != nil {
		t.Fatal(err)
	}
	y.SetInstallPolicy(config.Install{}) // if there is a signature, it must always be valid
	if _, err := y.Install(t.Context(), ws, source.Request{Path: damaged}); core.CodeOf(err) != core.CodeInstallFailed {
		t.Errorf("a damaged signature: %v", err)
	}
}

// TestASignedBundleIsInstalledAndItsSignerShown installs a file from a trusted signer, one from an untrusted signer,
// and one that was changed after it was signed.
func TestASignedBundleIsInstalledAndItsSignerShown(t *testing.T) {
	raw, err := os.ReadFile(bundleFile(t, "notes", modeNormal, nil))
	if err != nil {
		t.Fatal(err)
	}
	signed, certificate := sign(t, raw)
	path, trusted := filepath.Join(t.TempDir(), "signed.mcpb"), []*x509.Certificate{certificate}
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	try := func(content []byte, signers []*x509.Certificate, name string) error {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		y.SetInstallPolicy(config.Install{RequireSignature: true, Signers: signers})
		_, err := y.Install(t.Context(), ws, source.Request{Path: path, ServerName: name})
		return err
	}
	if err := try(signed, nil, "unknown"); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("from an unknown signer: %v", err)
	}
	changed := append([]byte{}, signed...)
	changed[len(raw)/2] ^= 1
	if err := try(changed, trusted, "changed"); core.CodeOf(err) != core.CodeInstallFailed {
		t.Errorf("changed: %v", err)
	}
	if err := try(signed, trusted, "notes"); err != nil {
		t.Fatal(err)
	}
	d, err := y.Details(ws, "notes")
	if err != nil || d.Signature == nil || d.Signature.Signer != "Acme Apps" || len(d.Signature.Fingerprint) != 64 || !d.Signature.Trusted {
		t.Errorf("details: %+v, %v", d.Signature, err)
	}
	expect(t, "apps", len(y.List(ws)), 1)
}

func TestAnUpdateOfASignedAppMustBeSigned(t *testing.T) {
	raw, err := os.ReadFile(bundleFile(t, "notes", modeNormal, nil))
	if err != nil {
		t.Fatal(err)
	}
	next, err := os.ReadFile(bundleFile(t, "notes", modeNormal, map[string]any{"version": "1.1.0"}))
	if err != nil {
		t.Fatal(err)
	}
	signed, _ := sign(t, raw)
	path := filepath.Join(t.TempDir(), "notes.mcpb")
	put := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	put(signed)
	install(t, y, source.Request{Path: path})
	put(next)
	if _, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{}); core.CodeOf(err) != core.CodeInstallFailed || !strings.Contains(err.Error(), `signed by "Acme Apps"`) {
		t.Errorf("without a signature: %v", err)
	}
	expect(t, "state", state(t, y, "notes"), core.StateRunning)
	signedNext, _ := sign(t, next)
	put(signedNext)
	if _, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{}); err != nil {
		t.Errorf("with a signature: %v", err)
	}
}

// sign signs a bundle file with a self-signed certificate.
func sign(t *testing.T, raw []byte) ([]byte, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Acme Apps"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	data, err := pkcs7.NewSignedData(raw)
	if err != nil {
		t.Fatal(err)
	}
	data.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if err := data.AddSigner(certificate, key, pkcs7.SignerInfoConfig{}); err != nil {
		t.Fatal(err)
	}
	data.Detach()
	signature, err := data.Finish()
	if err != nil {
		t.Fatal(err)
	}
	out := append(append([]byte{}, raw...), "MCPB_SIG_V1"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(signature)))
	return append(append(out, signature...), "MCPB_SIG_END"...), certificate
}
