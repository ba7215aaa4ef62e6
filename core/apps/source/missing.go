package source

import (
	"context"
	"fmt"
	"regexp"

	"github.com/ropewalk/ropewalk/core/bundle"
)

// These expressions match what package managers print when something is missing on the machine.
var (
	npmCertificate  = regexp.MustCompile(`SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED|CERT_HAS_EXPIRED|ERR_TLS_CERT`)
	pypiCertificate = regexp.MustCompile(`CERTIFICATE_VERIFY_FAILED|invalid peer certificate`)
	partialPython   = regexp.MustCompile(`ensurepip is not\s+available|No module named '?(?:venv|pip|ensurepip)\b`)
)

// remedyFor explains what is missing on the machine, given the output of a package manager that failed, and what to do
// about it. It returns "" if the output shows no such cause.
func remedyFor(output string) string {
	switch {
	case npmCertificate.MatchString(output):
		return "npm does not trust the certificate of its registry, or of a proxy: set NODE_EXTRA_CA_CERTS to the PEM file of the authority in the server's environment, and restart the server"
	case pypiCertificate.MatchString(output):
		return "the certificate of the package index, or of a proxy, is not trusted: set SSL_CERT_FILE to the PEM file of the authority in the server's environment, and restart the server"
	case partialPython.MatchString(output):
		return "this Python comes without venv or pip: on Debian and Ubuntu, run apt-get install python3-venv python3-pip, or install uv"
	}
	return ""
}

// ensurePython makes sure that uv has a Python interpreter to query. If the machine has none, uv fetches one. It runs
// outside the sandbox, because a sandboxed uv could not do this.
func (r *Resolver) ensurePython(ctx context.Context, p program) error {
	p.trusted = true
	if r.runProgram(ctx, p, "uv", "python", "find", "--quiet") == nil {
		return nil
	}
	if err := r.runProgram(ctx, p, "uv", "python", "install", "--quiet"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("this machine has no Python, and uv could not fetch one; install Python 3.10 or newer: %w", err)
	}
	return nil
}

// hasUV reports whether uv is on the host's PATH.
func (r *Resolver) hasUV() bool {
	_, err := bundle.Lookup(r.HostEnv["PATH"])("uv")
	return err == nil
}

// CheckRuntime returns an error if the version of this machine's runtime is not one that the bundle supports.
func (r *Resolver) CheckRuntime(ctx context.Context, c *Candidate) error {
	if c.Manifest == nil {
		return nil
	}
	name, _ := c.Manifest.Runtime()
	command := map[string]string{"node": "node", "python": "python3"}[name]
	if own := c.Manifest.Server.MCPConfig; command == "" || own != nil && own.Command != command && own.Command != name {
		return nil // nothing is required, or the bundle names its own runtime
	}
	var version limitedBuffer
	if err := r.install(ctx, c, program{trusted: true, stdout: &version}, command, "--version"); err != nil {
		return nil //nolint:nilerr // without a version, there is nothing to check
	}
	return c.Manifest.CheckRuntime(string(version.data))
}
