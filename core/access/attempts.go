package access

import (
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

const (
	maxClients   = 10_000 // clients whose attempts are counted
	attemptBurst = 10
	attemptEvery = 6 * time.Second
	siteFactor   = 4  // an IPv6 /48 may have this many times the attempts of one /64: a customer often has a whole /48
	proxyFactor  = 20 // one proxy may forward this many times the attempts of one client, whatever addresses it forwards

	// One client can have at most browserLoginBurst + pendingLife/browserLoginEvery = 800 logins pending at a time on each
	// server.
	browserLoginBurst = 200
	browserLoginEvery = time.Second
)

// CountWrongKey counts a wrong key against a client's address, and against the peer that sent the request if its
// address differs, because in that case it is a proxy. A client may send 10 at once and then one every 6 seconds; a
// proxy may send 20 times as many. Beyond that the error is core.CodeRateLimited with RetryAfter. Correct keys are
// neither counted nor refused: whoever guesses keys must not lock out others behind the same proxy.
func (a *Access) CountWrongKey(client, peer string) error {
	if err := allow(a.attempts, client); err != nil || network(peer) == network(client) {
		return err
	}
	return allow(a.proxyAttempts, peer)
}

// CountBearer is CountWrongKey for a refused bearer that may be a guess at SERVICE_API_KEY. A bearer that looks like a
// token or an API key may simply have expired, and is not counted. Neither is a repetition of the client's last invalid
// bearer: that client is misconfigured, not guessing.
func (a *Access) CountBearer(bearer, client, peer string) error {
	if k := a.gate.Load().key; !k.set() || formOf(bearer) != k.form {
		return nil
	}
	sum := sha256.Sum256([]byte(bearer))
	if last, known := a.invalidBearers.Get(network(client)); known && last == sum {
		return nil
	}
	a.invalidBearers.Add(network(client), sum)
	return a.CountWrongKey(client, peer)
}

// AllowBrowserLogin counts the start of a browser login against a client's address: 200 at once, then one per second.
// Beyond that the error is core.CodeRateLimited with RetryAfter. Call it before BeginLogin.
func (a *Access) AllowBrowserLogin(client string) error { return allow(a.browserLogins, client) }

// allow limits attempts per client, so that a client that guesses does not lock out others, and per IPv6 /48.
func allow(attempts *limits.Rates, client string) error {
	wait := attempts.Allow(network(client), 1)
	if wide := site(client); wait == 0 && wide != network(client) {
		wait = attempts.Allow(wide, siteFactor)
	}
	if wait > 0 {
		return core.Errorf(core.CodeRateLimited, "too many wrong keys or logins").WithRetryAfter(wait)
	}
	return nil
}

// network returns what counts as one client: an IPv4 address, or the /64 prefix of an IPv6 address, which is
// what one customer usually has.
func network(client string) string { return networkOf(client, 64) }

// site returns an IPv4 address, or the /48 prefix of an IPv6 address, which is the most that one customer usually has.
func site(client string) string { return networkOf(client, 48) }

func networkOf(client string, bits int) string {
	addr, err := netip.ParseAddr(client)
	if err != nil {
		return client
	}
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return client
	}
	return prefix.String()
}
