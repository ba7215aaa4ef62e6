package source

import (
	"crypto/x509"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// Policy determines what may be installed, and from which registries. It does not apply to apps that the configuration
// declares.
type Policy struct {
	allow      []*regexp.Regexp
	everything bool
	registries config.InstallRegistries
	signed     bool // bundles must have a trusted signature
	signers    *x509.CertPool
}

// NewPolicy returns the policy of a configuration whose patterns were already validated.
func NewPolicy(c config.Install) *Policy {
	p := &Policy{everything: c.Allow == nil, registries: c.Registries, signed: c.RequireSignature, signers: x509.NewCertPool()}
	for _, certificate := range c.Signers {
		p.signers.AddCert(certificate)
	}
	for _, pattern := range c.Allow {
		p.allow = append(p.allow, compilePattern(pattern))
	}
	return p
}

// compilePattern converts a pattern to a regular expression: ** matches any text, * any text without a slash.
func compilePattern(pattern string) *regexp.Regexp {
	var b strings.Builder
	for i, part := range strings.Split(pattern, "**") {
		if i > 0 {
			b.WriteString(".*")
		}
		for j, literal := range strings.Split(part, "*") {
			if j > 0 {
				b.WriteString("[^/]*")
			}
			b.WriteString(regexp.QuoteMeta(literal))
		}
	}
	return regexp.MustCompile(`(?s)\A` + b.String() + `\z`) // always valid because everything else is quoted
}

// Check returns core.CodeForbidden for an order that no pattern allows. Otherwise it returns the order with the
// signature rules and the registries that apply to its caller.
func (p *Policy) Check(o Order) (Order, error) {
	o.Signed, o.Signers = p.signed, p.signers
	o.Registries = p.registries.OrganizationAdmin
	if o.Restricted {
		o.Registries = p.registries.WorkspaceAdmin
	}
	subject := string(o.Source.Kind) + ":" + o.Source.Ref
	if o.Source.Kind == core.SourcePyPI {
		subject = string(o.Source.Kind) + ":" + Project(o.Source.Ref)
	}
	if o.Source.Kind == core.SourceURL {
		subject = string(o.Source.Kind) + ":" + withoutQuery(o.Source.Ref)
	}
	if p.everything || slices.ContainsFunc(p.allow, func(r *regexp.Regexp) bool { return r.MatchString(subject) }) {
		return o, nil
	}
	return o, core.Errorf(core.CodeForbidden, "no pattern in install.allow in the configuration matches %.200s", subject)
}

// withoutQuery returns a server's address without query and fragment, because a pattern for a host could match text in
// these. Scheme and host are converted to lower case.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // an order with such an address was rejected earlier
	}
	u = &url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// usableRegistries returns the registries that an order may use.
func (o Order) usableRegistries(all []NamedRegistry) []NamedRegistry {
	if o.Registries == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(r NamedRegistry) bool { return !slices.Contains(o.Registries, r.Name) })
}
