package bundle

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signedBundle returns a bundle that the official tool packed and signed, and a pool with the certificate of
// the authority that issued the signer's certificate.
func signedBundle(t *testing.T) (path string, trusted *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	path, cert, key := filepath.Join(dir, "signed.mcpb"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority := certificate(t, "Authority", nil)
	signer := certificate(t, "Acme Apps", authority)
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: signer.Certificate[0]},
		key:  {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(signer.PrivateKey.(*rsa.PrivateKey))},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mcpb(t, "pack", source(t), path)
	mcpb(t, "sign", "--cert", cert, "--key", key, path)
	trusted = x509.NewCertPool()
	trusted.AddCert(authority.Leaf)
	return path, trusted
}

// certificate returns a code signing certificate that is signed by issuer, or self-signed if issuer is nil.
func certificate(t *testing.T, name string, issuer *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true, IsCA: issuer == nil,
	}
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey.(crypto.Signer)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestASignatureByTheOfficialToolIsVerified(t *testing.T) {
	path, trusted := signedBundle(t)
	s, err := VerifySignature(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil || s.Signer != "Acme Apps" || len(s.Fingerprint) != 64 || !s.Trusted(trusted) || s.Trusted(nil) || s.Trusted(x509.NewCertPool()) {
		t.Errorf("got %+v", s)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.LastIndex(string(raw), signatureStart)
	unsigned := filepath.Join(t.TempDir(), "unsigned.mcpb")
	if err := os.WriteFile(unsigned, raw[:cut], 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := VerifySignature(t.Context(), unsigned); s != nil || err != nil {
		t.Errorf("without a signature: %+v, %v", s, err)
	}
	counted := append([]byte{}, raw...) // newer tools treat the signature as the zip comment
	binary.LittleEndian.PutUint16(counted[cut-2:], uint16(len(raw)-cut))
	if err := os.WriteFile(unsigned, counted, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := VerifySignature(t.Context(), unsigned); err != nil || !s.Trusted(trusted) {
		t.Errorf("with the signature as a comment: %+v, %v", s, err)
	}
}

// TestOneFlippedByteOfASignedBundleIsRefused flips a bit in each byte, including those of the signature.
func TestOneFlippedByteOfASignedBundleIsRefused(t *testing.T) {
	path, trusted := signedBundle(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "changed.mcpb")
	for i := range raw {
		raw[i] ^= 1
		if err := os.WriteFile(changed, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		// If only the certificate has changed, its issuer's signature may be the only thing that is wrong. It
		// must not be trusted.
		switch s, err := VerifySignature(t.Context(), changed); {
		case err != nil && !errors.Is(err, ErrSignature):
			t.Errorf("byte %d of %d: %v", i, len(raw), err)
		case err == nil && s == nil:
			t.Errorf("byte %d of %d: mistaken for a bundle without a signature", i, len(raw))
		case err == nil && s.Trusted(trusted):
			t.Errorf("byte %d of %d: trusted", i, len(raw))
		}
		raw[i] ^= 1
	}
}
