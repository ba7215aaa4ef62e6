package ropewalk.plugin;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;

/** This process's key and certificate, for localhost. The JDK cannot create certificates, so this class writes the DER. */
record Certificate(PrivateKey key, X509Certificate certificate) {
  static Certificate make() throws GeneralSecurityException {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    KeyPair pair = generator.generateKeyPair();
    byte[] algorithm = der(0x30, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2)); // ecdsa-with-SHA256
    byte[] name = der(0x30, der(0x31, der(0x30, oid(0x55, 4, 3), der(0x0c, ascii("localhost"))))); // CN=localhost
    byte[] alternative = der(0x30, oid(0x55, 0x1d, 0x11), der(4, der(0x30, der(0x82, ascii("localhost")))));
    Instant now = Instant.now();
    byte[] body = der(0x30,
        der(0xa0, der(2, new byte[] {2})), // version 3
        der(2, new BigInteger(126, new SecureRandom()).setBit(126).toByteArray()),
        algorithm,
        name,
        der(0x30, time(now.minus(Duration.ofMinutes(1))), time(now.plus(Duration.ofDays(3650)))),
        name,
        pair.getPublic().getEncoded(),
        der(0xa3, der(0x30, alternative)));
    Signature signature = Signature.getInstance("SHA256withECDSA");
    signature.initSign(pair.getPrivate());
    signature.update(body);
    byte[] whole = der(0x30, body, algorithm, der(3, new byte[] {0}, signature.sign()));
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    return new Certificate(pair.getPrivate(), (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(whole)));
  }

  private static byte[] der(int tag, byte[]... parts) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      content.writeBytes(part);
    }
    int length = content.size();
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.write(tag);
    if (length >= 0x100) {
      all.write(0x82);
      all.write(length >> 8);
    } else if (length >= 0x80) {
      all.write(0x81);
    }
    all.write(length);
    all.writeBytes(content.toByteArray());
    return all.toByteArray();
  }

  private static byte[] oid(int... bytes) {
    byte[] content = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      content[i] = (byte) bytes[i];
    }
    return der(6, content);
  }

  private static byte[] time(Instant at) { // UTCTime, which ends in 2049
    return der(0x17, ascii(DateTimeFormatter.ofPattern("yyMMddHHmmss'Z'").withZone(ZoneOffset.UTC).format(at)));
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  /** Accepts only the client with this certificate, compared byte by byte. */
  static final class OneClient extends X509ExtendedTrustManager {
    private final byte[] accepted;

    OneClient(String pem) throws GeneralSecurityException {
      byte[] bytes = pem.getBytes(StandardCharsets.US_ASCII);
      accepted = CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(bytes)).getEncoded();
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
      if (chain.length == 0 || !Arrays.equals(chain[0].getEncoded(), accepted)) {
        throw new CertificateException("this is not the server that started the plugin");
      }
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
      checkClientTrusted(chain, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
      checkClientTrusted(chain, type);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
      throw new CertificateException("a plugin is not a client");
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
      checkServerTrusted(chain, type);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
      checkServerTrusted(chain, type);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }
}
