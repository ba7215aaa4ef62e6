package core

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxToolName is the longest name of a tool in a workspace: what models and clients accept.
const MaxToolName = 64

// shortened is a name of at most MaxToolName bytes. One that is longer keeps its beginning and ends with
// a hash of all of it, so that it is the same on every server and after every restart.
func shortened(name string) string {
	if len(name) <= MaxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := "_" + hex.EncodeToString(sum[:4])
	return name[:MaxToolName-len(hash)] + hash
}
