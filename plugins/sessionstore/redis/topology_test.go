package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestTheContractOnACluster(t *testing.T) {
	t.Parallel()
	store := open(t, map[string]any{"url": "redis+cluster://" + startCluster(t)[0].Addr})
	plugintest.Judge(t, sessionstoretest.Properties()[:2], plugintest.Trial(kit.Quick), sessionstoretest.Subject{Store: store})
}

// startCluster starts three nodes that share the slots and waits until they agree.
func startCluster(t *testing.T) []*testenv.Redis {
	t.Helper()
	slots := [][2]string{{"0", "5460"}, {"5461", "10922"}, {"10923", "16383"}}
	nodes := make([]*testenv.Redis, len(slots))
	for i, s := range slots {
		nodes[i] = testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-config-file", fmt.Sprintf("nodes%d.conf", i), "--cluster-port", freeBusPort(t))
		nodes[i].Do("cluster", "addslotsrange", s[0], s[1])
		nodes[i].Do("config", "set", "cluster-node-timeout", "5000")
	}
	for _, node := range nodes[1:] {
		bus := strings.Fields(node.Do("config", "get", "cluster-port"))[1]
		nodes[0].Do("cluster", "meet", "127.0.0.1", fmt.Sprint(node.Port), bus)
	}
	testkit.Eventually(t, "the cluster agrees", func() bool {
		for _, node := range nodes {
			info := node.Do("cluster", "info")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return nodes
}

func freeBusPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

func TestTheContractBehindSentinels(t *testing.T) {
	t.Parallel()
	master := testenv.StartRedis(t, "--requirepass", "of-the-master")
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	lines := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 1\nsentinel auth-pass main of-the-master\nrequirepass of-the-sentinel\n", master.Port)
	if err := os.WriteFile(conf, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := testenv.StartRedisSentinel(t, conf)
	store := open(t, map[string]any{
		"url":      "redis+sentinel://:of-the-sentinel@" + sentinel.Addr + "?master_name=main",
		"password": "of-the-master",
	})
	plugintest.Judge(t, sessionstoretest.Properties()[:2], plugintest.Trial(kit.Quick), sessionstoretest.Subject{Store: store})
}

func TestAnACLUserWithMinimalRightsIsEnough(t *testing.T) {
	server := testenv.StartRedis(t)
	server.Do("acl", "setuser", "ropewalk", "on", ">pass", "~ropewalk:session:*", "-@all",
		"+ping", "+get", "+set", "+del", "+pexpire", "+pttl", "+eval", "+evalsha")
	server.Do("acl", "setuser", "default", "off")
	url := "redis://" + server.Addr
	store := open(t, map[string]any{"url": url, "username": "ropewalk", "password": "pass"})
	rec := sessionstore.Record{ID: "one"}
	if err := store.Put(t.Context(), rec, time.Minute); err != nil {
		t.Error(err)
	}
	if err := store.Touch(t.Context(), []sessionstore.Touch{{ID: "one", LastAccessedAt: time.Now(), TTL: time.Minute}}); err != nil {
		t.Error(err)
	}
	if _, err := store.Get(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	if err := store.Delete(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	err := redis.New().Configure(t.Context(), plugins.Config{JSON: []byte(`{"url": "` + url + `", "username": "ropewalk", "password": "wrong-canary"}`)})
	if !errors.Is(err, plugins.ErrUnavailable) || strings.Contains(err.Error(), "wrong-canary") {
		t.Errorf("with a wrong password: got %v, want unavailable and no password", err)
	}
}

func TestTLSWithAClientCertificate(t *testing.T) {
	cert, key := selfSigned(t)
	server := testenv.StartRedisTLS(t, cert, cert, key)
	settings := map[string]any{
		"url": "rediss://" + server.Addr,
		"tls": map[string]any{"caFile": cert, "certFile": cert, "keyFile": key, "serverName": "redis.test"},
	}
	store := open(t, settings)
	if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Minute); err != nil {
		t.Error(err)
	}
	untrusting := `{"url": "rediss://` + server.Addr + `", "timeout": "500ms"}`
	if err := redis.New().Configure(t.Context(), plugins.Config{JSON: []byte(untrusting)}); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("without the certificate authority: got %v, want unavailable", err)
	}
}

// selfSigned returns a certificate for redis.test that is valid for a server, a client and an authority.
func selfSigned(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"redis.test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
