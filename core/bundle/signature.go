package bundle

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/smallstep/pkcs7"
)

// ErrSignature is wrapped by the error for every rejected signature.
var ErrSignature = fmt.Errorf("%w: its signature is not valid", ErrArchive)

// Signature is the valid signature of a bundle file. It identifies the key that signed the file, and no more:
// Trusted reports whether the signer's name can be believed.
type Signature struct {
	Signer      string // the common name of the certificate, or its whole subject
	Fingerprint string // the SHA-256 of the certificate, in lower-case hex

	certificate *x509.Certificate
	others      []*x509.Certificate // sent along with the signature
}

// Trusted reports whether the signature's certificate is one of trusted, or was issued by one of them, for
// signing code, and is valid now.
func (s *Signature) Trusted(trusted *x509.CertPool) bool {
	if trusted == nil {
		return false
	}
	intermediates := x509.NewCertPool()
	for _, c := range s.others {
		intermediates.AddCert(c)
	}
	_, err := s.certificate.Verify(x509.VerifyOptions{
		Roots: trusted, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
	return err == nil
}

// VerifySignature verifies the signature of a bundle file: PKCS #7 (RFC 5652), detached, over everything before
// it. It returns nil for a file without a signature, and an error that wraps ErrSignature if the file is not
// the one that was signed.
func VerifySignature(ctx context.Context, path string) (*Signature, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	cut := signatureOffset(f, info.Size())
	if cut < 0 {
		return nil, checkUnsigned(f, info.Size())
	}
	der := make([]byte, info.Size()-cut-int64(len(signatureStart)+4+len(signatureEnd)))
	if _, err := f.ReadAt(der, cut+int64(len(signatureStart)+4)); err != nil {
		return nil, err
	}
	content, size := zipPart(f, info.Size())
	s, err := verify(der, func() io.Reader { return cancellable{ctx, io.NewSectionReader(content, 0, size)} })
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return s, err
}

// checkUnsigned rejects a file with part of a signature.
func checkUnsigned(r io.ReaderAt, size int64) error {
	tail := make([]byte, min(size, maxSignature))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	after := tail
	if i := bytes.LastIndex(tail, []byte("PK\x05\x06")); i >= 0 {
		after = tail[min(i+endLen, len(tail)):]
	}
	if bytes.HasSuffix(tail, []byte(signatureEnd)) || bytes.HasPrefix(after, []byte(signatureStart)) {
		return fmt.Errorf("%w: it is cut off or damaged", ErrSignature)
	}
	return nil
}

// verify verifies a signature over the bytes that content reads.
func verify(der []byte, content func() io.Reader) (*Signature, error) {
	signed, err := signedAttributes(der)
	if err != nil {
		return nil, err
	}
	p, err := pkcs7.Parse(der)
	if err != nil {
		return nil, err
	}
	certificate := p.GetOnlySigner()
	if certificate == nil || len(p.Content) > 0 {
		return nil, errors.New("it must have one signer, include the signer's certificate, and have no content of its own")
	}
	signer := p.Signers[0]
	var kind asn1.ObjectIdentifier
	if err := p.UnmarshalSignedAttribute(pkcs7.OIDAttributeContentType, &kind); err != nil || !kind.Equal(pkcs7.OIDData) {
		return nil, errors.New("it does not declare that it signs data")
	}
	if len(signer.UnauthenticatedAttributes) > 0 || !signer.DigestAlgorithm.Algorithm.Equal(pkcs7.OIDDigestAlgorithmSHA256) {
		return nil, errors.New("it must use SHA-256, and have no unsigned attributes")
	}
	if err := checkDigest(p, content()); err != nil {
		return nil, err
	}
	algorithm, err := algorithmOf(certificate, signer.DigestEncryptionAlgorithm.Algorithm)
	if err != nil {
		return nil, err
	}
	if err := certificate.CheckSignature(algorithm, signed, signer.EncryptedDigest); err != nil {
		return nil, err
	}
	for _, c := range p.Certificates { // a self-signed certificate must be intact
		if bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) != nil {
			return nil, fmt.Errorf("the certificate of %.200s is damaged", c.Subject)
		}
	}
	sum := sha256.Sum256(certificate.Raw)
	s := &Signature{Signer: certificate.Subject.CommonName, Fingerprint: hex.EncodeToString(sum[:]), certificate: certificate, others: p.Certificates}
	if s.Signer == "" {
		s.Signer = certificate.Subject.String()
	}
	return s, nil
}

// algorithmOf returns the algorithm of a signature, given the key of its certificate.
func algorithmOf(c *x509.Certificate, named asn1.ObjectIdentifier) (x509.SignatureAlgorithm, error) {
	switch c.PublicKey.(type) {
	case *rsa.PublicKey:
		if named.Equal(pkcs7.OIDEncryptionAlgorithmRSA) || named.Equal(pkcs7.OIDEncryptionAlgorithmRSASHA256) {
			return x509.SHA256WithRSA, nil
		}
	case *ecdsa.PublicKey:
		if named.Equal(pkcs7.OIDDigestAlgorithmECDSASHA256) {
			return x509.ECDSAWithSHA256, nil
		}
	}
	return 0, fmt.Errorf("its algorithm %s is not RSA or ECDSA with SHA-256", named)
}

// checkDigest compares the digest in a signature with the content.
func checkDigest(p *pkcs7.PKCS7, content io.Reader) error {
	var expected []byte
	if err := p.UnmarshalSignedAttribute(pkcs7.OIDAttributeMessageDigest, &expected); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), expected) {
		return errors.New("the file is not the one that was signed")
	}
	return nil
}

// algorithm is an ASN.1 AlgorithmIdentifier.
type algorithm struct {
	OID        asn1.ObjectIdentifier
	Parameters asn1.RawValue `asn1:"optional"`
}

func (a algorithm) isPlain() bool {
	return len(a.Parameters.FullBytes) == 0 || bytes.Equal(a.Parameters.FullBytes, asn1.NullBytes)
}

// signedAttributes returns the signed bytes in their original order, because the official tool signs them
// without sorting. It rejects unsigned parts that a PKCS #7 parser would skip: versions, unused lists, and
// trailing data.
func signedAttributes(der []byte) ([]byte, error) {
	var message struct {
		Type    asn1.ObjectIdentifier
		Content struct {
			Version      int
			Digests      []algorithm `asn1:"set"`
			Inner        struct{ Type asn1.ObjectIdentifier }
			Certificates asn1.RawValue `asn1:"optional,tag:0"`
			Signers      []struct {
				Version    int
				Issuer     asn1.RawValue
				Digest     algorithm
				Attributes asn1.RawValue `asn1:"optional,tag:0"`
				Algorithm  algorithm
				Signature  []byte
			} `asn1:"set"`
		} `asn1:"explicit,tag:0"`
	}
	rest, err := asn1.Unmarshal(der, &message)
	if err != nil {
		return nil, err
	}
	c := message.Content
	if len(rest) > 0 || c.Version != 1 || !message.Type.Equal(pkcs7.OIDSignedData) || !c.Inner.Type.Equal(pkcs7.OIDData) ||
		len(c.Digests) != 1 || !c.Digests[0].OID.Equal(pkcs7.OIDDigestAlgorithmSHA256) || len(c.Signers) != 1 || c.Signers[0].Version != 1 ||
		!c.Digests[0].isPlain() || !c.Signers[0].Digest.isPlain() || !c.Signers[0].Algorithm.isPlain() {
		return nil, errors.New("it is not a detached signature with SHA-256")
	}
	if _, err := x509.ParseCertificates(c.Certificates.Bytes); err != nil { // PKCS #7 parsers accept wrong lengths
		return nil, err
	}
	signed := bytes.Clone(c.Signers[0].Attributes.FullBytes)
	if len(signed) == 0 {
		return nil, errors.New("it has no signed attributes")
	}
	signed[0] = asn1.TagSet | 0x20 // RFC 5652 5.4: the signature is over a SET, although it is encoded with tag [0]
	return signed, nil
}
