package examples

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
)

// servesOnlyItsServer starts an executable by hand. Started without a server, the executable must say what it is.
// Otherwise it must communicate only with the holder of the certificate that it was started with, and exit when that
// holder asks it to.
func servesOnlyItsServer(t *testing.T, kind plugins.Kind, path string) {
	t.Helper()
	for _, cookie := range []string{"", "registry"} {
		cmd := exec.CommandContext(t.Context(), path)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), host.Cookie + "=" + cookie}
		out, err := cmd.CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "of kind "+string(kind)) {
			t.Errorf("started as %q, the plugin exits with %v and prints %q", cookie, err, out)
		}
	}
	server, stranger := certificate(t), certificate(t)
	sockets := t.TempDir()
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), host.Cookie + "=" + string(kind), "PLUGIN_PROTOCOL_VERSIONS=1,2", "PLUGIN_UNIX_SOCKET_DIR=" + sockets,
		"PLUGIN_CLIENT_CERT=" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]})),
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // in case the test ends early
	ended := make(chan error, 1)
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		err := cmd.Wait()
		t.Fatalf("the plugin printed nothing on standard output: %v\n%s", err, &log)
	}
	fields := strings.Split(lines.Text(), "|")
	if len(fields) != 6 || strings.Join(fields[:3], "|") != "1|1|unix" || !strings.HasPrefix(fields[3], sockets) || fields[4] != "grpc" {
		t.Fatalf("the handshake line is %q", lines.Text())
	}
	own, err := base64.RawStdEncoding.DecodeString(fields[5])
	if err != nil {
		t.Fatalf("the sixth field is not base64 without padding: %v", err)
	}
	for name, certs := range map[string][]tls.Certificate{"another certificate": {*stranger}, "no certificate": nil} {
		if err := health(t, fields[3], own, certs, "plugin"); err == nil {
			t.Errorf("a client with %s should be refused", name)
		}
	}
	if err := health(t, fields[3], own, []tls.Certificate{*server}, "plugin"); err != nil {
		t.Errorf("the server got no response: %v", err)
	}
	go func() {
		if lines.Scan() {
			t.Errorf("after the handshake line, the plugin printed %q", lines.Text())
		}
		ended <- cmd.Wait()
	}()
	conn := dial(t, fields[3], own, []tls.Certificate{*server})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after Shutdown, the plugin exited with %v", err)
		}
	case <-time.After(patience):
		t.Error("the plugin should exit after Shutdown")
		_ = cmd.Process.Kill()
	}
	if left, err := os.ReadDir(sockets); err != nil || len(left) > 0 {
		t.Errorf("the plugin left %v behind (%v)", left, err)
	}
}

func health(t *testing.T, socket string, own []byte, certs []tls.Certificate, service string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response, err := grpc_health_v1.NewHealthClient(dial(t, socket, own, certs)).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err == nil && response.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return errors.New(response.GetStatus().String())
	}
	return err
}

func dial(t *testing.T, socket string, own []byte, certs []tls.Certificate) *grpc.ClientConn {
	t.Helper()
	cert, err := x509.ParseCertificate(own)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: roots, Certificates: certs, ServerName: "localhost", MinVersion: tls.VersionTLS12,
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// certificate returns a new self-signed certificate.
func certificate(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, // Java rejects one without a subject
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
