package source

import (
	"context"
	"fmt"
	"regexp"

	"github.com/ropewalk/ropewalk/core/bundle"
)

// What package managers say when the machine lacks something.
var (
	npmCertificate  = regexp.MustCompile(`SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED|CERT_HAS_EXPIRED|ERR_TLS_CERT`)
	pypiCertificate = regexp.MustCompile(`CERTIFICATE_VERIFY_FAILED|invalid peer certificate`)
	partialPython   = regexp.MustCompile(`ensurepip is not\s+available|No module named '?(?:venv|pip|ensurepip)\b`)
)

// remedyFor says what a machine lacks on which a package manager has failed, and what to do; "" when its output names nothing
// of the kind.
func remedyFor(output string) string {
	switch {
	case npmCertificate.MatchString(output):
		return "npm does not trust the certificate of its registry, or of a proxy: set NODE_EXTRA_CA_CERTS to the PEM file of the authority in the server's environment, and restart the server"
	case pypiCertificate.MatchString(output):
		return "the certificate of the package index, or of a proxy, is not trusted: set SSL_CERT_FILE to the PEM file of the authority in the server's environment, and restart the server"
	case partialPython.MatchString(output):
		return "this Python comes without venv or pip: on Debian and Ubuntu, apt-get install python3-venv python3-pip; or install uv"
	}
	return ""
}

// ensurePython makes sure that uv has a Python to ask with: it fetches one where the machine has none, outside of the
// sandbox, in which it could not.
func (r *Resolver) ensurePython(ctx context.Context, p program) error {
	p.trusted = true
	if r.runProgram(ctx, p, "uv", "python", "find", "--quiet") == nil {
		return nil
	}
	if err := r.runProgram(ctx, p, "uv", "python", "install", "--quiet"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("this machine has no Python, and uv could not fetch one: install Python 3.10 or newer: %w", err)
	}
	return nil
}

// hasUV reports whether uv is installed.
func (r *Resolver) hasUV() bool {
	_, err := bundle.Lookup(r.HostEnv["PATH"])("uv")
	return err == nil
}
