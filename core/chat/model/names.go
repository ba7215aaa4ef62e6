package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// nameLimit is the maximum length of a tool name for all providers: ^[a-zA-Z0-9_-]{1,64}$.
const nameLimit = 64

// SafeName returns a tool name that every provider accepts: the name itself if it is valid, or else a unique name
// derived from it. It is deterministic, so that a conversation can be continued later.
func SafeName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if safe == name && name != "" && len(name) <= nameLimit {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	mark := "_" + hex.EncodeToString(digest[:4])
	return safe[:min(len(safe), nameLimit-len(mark))] + mark
}
