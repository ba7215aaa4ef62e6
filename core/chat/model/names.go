package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// nameLimit is the longest tool name that every provider takes: ^[a-zA-Z0-9_-]{1,64}$.
const nameLimit = 64

// SafeName is a tool's name as every provider takes it: the name itself where it fits, else one
// that is made of it and differs from every other tool's. The same name gives the same one always,
// so that a conversation can go on later.
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
