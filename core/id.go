package core

import (
	"crypto/rand"
	"encoding/hex"
)

// RandomID returns prefix followed by 16 random hexadecimal digits.
func RandomID(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
