package process

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Verified is an executable file with known content. The file is opened once, hashed through that descriptor, and the
// same descriptor is executed. Anything that happens to the path after the check, such as a rename or replacing the
// file, has no effect. The file is verified at every start.
//
// A script (a file that begins with #!) is executed the same way, so its interpreter gets the name /proc/self/fd/N.
// That name is a link to the file. A script can find the files next to it from its resolved path: `readlink -f "$0"` in
// a shell, os.path.realpath(__file__) in Python; Node resolves it on its own. The checksum covers only the script, not
// the files that it loads.
//
// Verified does not protect against someone who can write to the file between hashing and execution: make the
// file writable only by the server's user. On systems other than Linux the path is executed after the check.
type Verified struct {
	Path   string
	SHA256 string // hexadecimal, any case
}

// ErrTampered is wrapped by the error for a file whose content is not the expected one.
var ErrTampered = errors.New("content does not match its sha256")

// open returns the verified file, ready to be executed through its descriptor.
func (v *Verified) open() (*os.File, error) {
	want, err := hex.DecodeString(strings.TrimSpace(v.SHA256))
	if err != nil || len(want) != sha256.Size {
		return nil, fmt.Errorf("sha256 of %q must be 64 hexadecimal digits", v.Path)
	}
	file, err := os.OpenFile(v.Path, os.O_RDONLY|openNonblock, 0) // a FIFO must not block us
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", v.Path, err)
	}
	if err := verify(file, want); err != nil {
		return nil, errors.Join(fmt.Errorf("%q: %w", v.Path, err), file.Close())
	}
	return file, nil
}

func verify(file *os.File, want []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	got := hash.Sum(nil)
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("%w: it is %x, expected %x", ErrTampered, got, want)
	}
	return nil
}
