package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// FileSHA256 returns the SHA-256 of a file in lower-case hex, and its size in bytes.
func FileSHA256(ctx context.Context, path string) (sum string, size int64, err error) {
	f, err := openRegular(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if size, err = io.Copy(h, cancellable{ctx, f}); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
