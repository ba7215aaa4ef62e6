package pluginhost

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// clientCert is the variable that passes the server's certificate to a plugin.
const clientCert = "PLUGIN_CLIENT_CERT"

// mutualTLS creates the server's end of one connection to a plugin, and its certificate in PEM. It does what
// go-plugin's AutoMTLS does, which adds the plugin's own certificate after the handshake. The only difference
// is the key: AutoMTLS uses P-521, which BoringSSL does not accept from a client, so plugins whose gRPC is
// built on it (C++, Python, Ruby, PHP) would fail.
func mutualTLS() (*tls.Config, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, "", err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"Ropewalk"}},
		DNSNames:              []string{"localhost"},
		SerialNumber:          serial,
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().AddDate(30, 0, 0), // longer than any plugin process runs
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // self-signed
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      x509.NewCertPool(), // empty until the handshake provides the plugin's certificate
		ServerName:   "localhost",
		MinVersion:   tls.VersionTLS12,
	}
	return config, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}
