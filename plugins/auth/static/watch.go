package static

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// watchInterval is how often the file is checked for removed tokens.
const watchInterval = 500 * time.Millisecond

// Watch implements auth.Revoker. A token is revoked when it is removed from the file, or when its entry changes to
// another subject or organization.
func (a *Adapter) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	before, _ := a.file.current()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		now, err := a.file.current()
		if err != nil { // no tokens are accepted in this state
			continue
		}
		for _, digest := range removed(before, now) {
			if err := revoked(auth.Revocation{Issuer: a.settings.Issuer, TokenSHA256: hex.EncodeToString(digest)}); err != nil {
				return err
			}
		}
		before = now
	}
}

// removed returns the digests of the tokens in before that do not belong to the same person in now.
func removed(before, now entries) [][]byte {
	type person struct{ subject, organization string }
	kept := map[string]person{}
	for _, e := range now {
		kept[string(e.digest[:])] = person{e.Subject, e.Organization}
	}
	var gone [][]byte
	for _, e := range before {
		if kept[string(e.digest[:])] != (person{e.Subject, e.Organization}) {
			gone = append(gone, e.digest[:])
		}
	}
	return gone
}
