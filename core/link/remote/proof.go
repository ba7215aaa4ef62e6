package remote

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// ProofAlgorithm is the algorithm with which proofs are signed (RFC 7518).
const ProofAlgorithm = "ES256"

const (
	headerProof = "Dpop"
	headerNonce = "Dpop-Nonce"
	wantsNonce  = "use_dpop_nonce"
	maxNonce    = 1024
)

// ProofKey is the private key that an account's tokens are bound to. Each request proves that its sender has the key
// (DPoP, RFC 9449), so that a stolen token is useless.
type ProofKey struct {
	key *ecdsa.PrivateKey
	jwk string // the public key, in the form that Thumbprint needs
}

// NewProofKey returns a new key in the form that ParseProofKey reads.
func NewProofKey() (core.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return core.Secret(base64.StdEncoding.EncodeToString(der)), err
}

// ParseProofKey parses a key that NewProofKey returned. It returns nil for "".
func ParseProofKey(text core.Secret) (*ProofKey, error) {
	if text == "" {
		return nil, nil
	}
	der, err := base64.StdEncoding.DecodeString(text.Reveal())
	if err != nil {
		return nil, errors.New("an account's key is not base64")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("an account's key cannot be parsed")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("an account's key cannot be used with " + ProofAlgorithm)
	}
	point, err := key.PublicKey.Bytes() // the byte 4, then two coordinates of 32 bytes each
	if err != nil {
		return nil, err
	}
	return &ProofKey{key, `{"crv":"P-256","kty":"EC","x":"` + encode(point[1:33]) + `","y":"` + encode(point[33:]) + `"}`}, nil
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// Thumbprint identifies the key (RFC 7638).
func (k *ProofKey) Thumbprint() string {
	sum := sha256.Sum256([]byte(k.jwk))
	return encode(sum[:])
}

// proof returns the proof for one request (RFC 9449 section 4.2). token is "" for a request to an authorization server,
// and nonce is the last one that the server sent, or "".
func (k *ProofKey) proof(method string, target *url.URL, token core.Secret, nonce string) (string, error) {
	address := url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath}
	if address.Path == "" {
		address.Path = "/" // the request line also has / for an empty path
	}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": address.String(), "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token.Reveal()))
		claims["ath"] = encode(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encode([]byte(`{"typ":"dpop+jwt","alg":"`+ProofAlgorithm+`","jwk":`+k.jwk+`}`)) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, k.key, digest[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encode(signature), nil
}

// Proving returns a client whose requests to an authorization server carry proofs. If the server rejects a request
// because the nonce is missing, it has not processed the request, so the client sends it again with the nonce. If there
// is no key, Proving returns client itself.
func Proving(client *http.Client, key *ProofKey) *http.Client {
	if key == nil {
		return client
	}
	proving := *client
	proving.Transport = prover{client.Transport, key}
	return &proving
}

type prover struct {
	base http.RoundTripper
	key  *ProofKey
}

// RoundTrip implements http.RoundTripper.
func (p prover) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.send(r, r.Body, "")
	if err != nil || resp.StatusCode != http.StatusBadRequest || r.GetBody == nil {
		return resp, err
	}
	nonce := nonceOf(resp.Header)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if nonce == "" || errorCode(body) != wantsNonce {
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	again, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	return p.send(r, again, nonce)
}

// errorCode returns the error in a token endpoint's response, or "".
func errorCode(body []byte) string {
	var refused struct{ Error string }
	if err := json.Unmarshal(body, &refused); err != nil {
		return ""
	}
	return refused.Error
}

func (p prover) send(r *http.Request, body io.ReadCloser, nonce string) (*http.Response, error) {
	proof, err := p.key.proof(r.Method, r.URL, "", nonce)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	out := r.Clone(r.Context())
	out.Body = body
	out.Header.Set(headerProof, proof)
	return p.base.RoundTrip(out)
}

// nonceOf returns the nonce that a server sent for the next proof, or "".
func nonceOf(h http.Header) string {
	if nonce := h.Get(headerNonce); len(nonce) <= maxNonce {
		return nonce
	}
	return ""
}
