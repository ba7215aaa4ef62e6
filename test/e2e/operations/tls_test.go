package operations

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestTheHTTPSCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writeCertificate(t, certFile, keyFile)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("http: {tls: {certFile: "+certFile+", keyFile: "+keyFile+"}}\n"))
	if !strings.HasPrefix(s.URL, "https://") {
		t.Fatalf("the server reports the address %s", s.URL)
	}
	address := strings.TrimPrefix(s.URL, "https://")

	// Open an event stream, whose connection is hijacked, and make a call at the same time.
	events := request(t, first, http.MethodGet, s.URL+"/v1/events", "")
	reader := bufio.NewReader(events.Body)
	if line, err := reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "event:") && !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "id:") && !strings.HasPrefix(line, "retry:") {
		t.Errorf("the event stream begins with %q, %v", line, err)
	}
	testkit.Eventually(t, "the sample app answers over HTTPS", func() bool {
		response := request(t, first, http.MethodPost, s.URL+"/v1/tools/call", `{"server":"sample","tool":"echo","arguments":{"text":"hello"}}`)
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode == http.StatusOK && strings.Contains(string(body), "hello")
	})

	if output, status := harness.Command(t, nil, "status", "--home", s.Home); status != 0 || !strings.Contains(output, s.URL) {
		t.Errorf("the command does not reach the server with the same home: status %d\n%s", status, output)
	}
	if output, _ := harness.Command(t, nil, "doctor", "--home", s.Home); !strings.Contains(output, "GET /v1/health returns 200 OK") {
		t.Errorf("doctor prints\n%s", output)
	}

	plain, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	_, _ = io.WriteString(plain, "GET / HTTP/1.1\r\nHost: "+address+"\r\n\r\n")
	if output, _ := io.ReadAll(plain); !strings.Contains(string(output), "This server uses HTTPS") {
		t.Errorf("a client that uses plain HTTP gets %q", output)
	}

	second := writeCertificate(t, certFile, keyFile)
	testkit.Eventually(t, "the new certificate is served", func() bool {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool(second), ServerName: "localhost"})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func TestAClientThatDisconnectsOverTLSCancelsItsCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate := writeCertificate(t, certFile, keyFile)
	s := harness.Serve(t, harness.Config("http: {tls: {certFile: "+certFile+", keyFile: "+keyFile+"}}\n"))
	bundle := harness.GoBundle(t, "patient", harness.Plain)
	response := request(t, certificate, http.MethodPost, s.URL+"/v1/apps/install", `{"path":`+harness.Quote(bundle)+`}`)
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("install: %s %s", response.Status, body)
	}
	file := s.SharedFile("patient", "file")
	body := `{"server":"patient","tool":"last","arguments":{"text":` + harness.Quote(file) + `}}`
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/tools/call", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := client(certificate).Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	testkit.Eventually(t, "the call has begun", harness.Exists(file+".begun"))
	leave()
	<-ended
	testkit.Eventually(t, "the app's call is cancelled", harness.Exists(file+".cancelled"))
}

func TestAWrongCertificateIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, certFile, filepath.Join(dir, "other.pem"))
	writeCertificate(t, filepath.Join(dir, "unused.pem"), keyFile)
	config := filepath.Join(dir, "ropewalk.yaml")
	harness.WriteFile(t, config, "http: {port: 0, tls: {certFile: cert.pem, keyFile: key.pem}}\n")
	output, status := harness.Command(t, nil, "serve", "--home", filepath.Join(dir, "home"), "--config", config)
	if status == 0 || !strings.Contains(output, "http.tls") || !strings.Contains(output, certFile) {
		t.Errorf("with another certificate's key: status %d\n%s", status, output)
	}
}

func writeCertificate(t *testing.T, certFile, keyFile string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	harness.WriteFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return der
}

func pool(der []byte) *x509.CertPool {
	all := x509.NewCertPool()
	if certificate, err := x509.ParseCertificate(der); err == nil {
		all.AddCert(certificate)
	}
	return all
}

func client(der []byte) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(der)}, DisableKeepAlives: true}}
}

func request(t *testing.T, certificate []byte, method, address, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client(certificate).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
