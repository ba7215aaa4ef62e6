package http

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheDefaultTimeoutIsTheDocumentedOne(t *testing.T) { // docs/adapters.md
	if got := time.Duration(defaults().Timeout); got != 5*time.Second {
		t.Errorf("got %v", got)
	}
}

func TestTLSFilesAreRead(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, empty := inPEM(t, "CERTIFICATE", pair.Certificate[0]), inPEM(t, "PRIVATE KEY", der), inPEM(t, "NOTHING", nil)
	config, err := TLS{CertFile: cert, KeyFile: key, CAFile: cert}.config()
	if err != nil {
		t.Fatal(err)
	}
	if config.MinVersion != tls.VersionTLS12 || config.RootCAs == nil || len(config.Certificates) != 1 || string(config.Certificates[0].Certificate[0]) != string(pair.Certificate[0]) {
		t.Errorf("got version %x, roots %v, %d certificates", config.MinVersion, config.RootCAs != nil, len(config.Certificates))
	}
	for files, want := range map[TLS]string{
		{CAFile: empty}:                 "caFile " + empty + " contains no PEM certificate",
		{CertFile: empty, KeyFile: key}: "certificate",
	} {
		if _, err := files.config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", files, err)
		}
	}
	if config, err := (TLS{}).config(); err != nil || config.RootCAs != nil || config.MinVersion != tls.VersionTLS12 {
		t.Errorf("without files: %+v, %v", config, err)
	}
}

func inPEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
