package registrytest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

var hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)

var (
	identifier = regexp.MustCompile(`^(@[^@/\s=<>~!]+/)?[^@/\s=<>~!]+$`)
	ranges     = regexp.MustCompile(`(?i)^v?([0-9]+\.)*[x*](\.[x*])*$|^(latest|next|stable|newest)$`)
)

func kindIsKnown(ctx context.Context, r registry.Registry) error {
	return each(ctx, r, func(p registry.Package) error {
		switch p.Kind {
		case registry.KindMCPB, registry.KindNPM, registry.KindPyPI, registry.KindRemote:
			return nil
		}
		return fmt.Errorf("a package must be of the kind mcpb, npm, pypi or remote; it is of %q", p.Kind)
	})
}

func kindIsWhole(ctx context.Context, r registry.Registry) error {
	return each(ctx, r, func(p registry.Package) error {
		switch p.Kind {
		case registry.KindMCPB:
			if p.Artifact == "" || p.Size < 0 {
				return fmt.Errorf("an mcpb package needs an artifact and no negative size; it has %q and %d", p.Artifact, p.Size)
			}
		case registry.KindNPM, registry.KindPyPI:
			if !identifier.MatchString(p.Identifier) || !exact.MatchString(p.IdentifierVersion) || ranges.MatchString(p.IdentifierVersion) {
				return fmt.Errorf("an %s package needs an identifier, without a version in it, and its exact version; it has %q and %q", p.Kind, p.Identifier, p.IdentifierVersion)
			}
		case registry.KindRemote:
			u, err := url.Parse(p.Remote.URL)
			if err != nil || u.Scheme != "https" && u.Scheme != "http" || p.Remote.Transport != "streamable-http" && p.Remote.Transport != "sse" {
				return fmt.Errorf("a remote needs an http URL and the transport streamable-http or sse; it has %q and %q", p.Remote.URL, p.Remote.Transport)
			}
		}
		return nil
	})
}

func packageTrust(ctx context.Context, r registry.Registry) error {
	return each(ctx, r, func(p registry.Package) error {
		if p.TrustScore < 0 || p.TrustScore > 100 {
			return fmt.Errorf("a trust score must be 0 to 100; it is %d", p.TrustScore)
		}
		return nil
	})
}

func digestIsHex(ctx context.Context, r registry.Registry) error {
	return each(ctx, r, func(p registry.Package) error {
		if p.SHA256 != "" && !hex64.MatchString(p.SHA256) {
			return fmt.Errorf("SHA256 must be 64 lower-case hex digits, or nothing; it is %q", p.SHA256)
		}
		return nil
	})
}

// withVariables runs look on the packages that have variables.
func withVariables(ctx context.Context, r registry.Registry, look func(registry.Package) error) error {
	some := false
	err := each(ctx, r, func(p registry.Package) error {
		some = some || len(p.Variables) > 0
		return look(p)
	})
	if err == nil && !some {
		return kit.Skip("none of the bundles that the kit looked at has variables")
	}
	return err
}

func variablesAreNamed(ctx context.Context, r registry.Registry) error {
	return withVariables(ctx, r, func(p registry.Package) error {
		seen := map[string]bool{}
		for _, v := range p.Variables {
			if v.Name == "" || seen[v.Name] {
				return fmt.Errorf("each variable needs a name of its own; %q is not", v.Name)
			}
			seen[v.Name] = true
		}
		return nil
	})
}

func defaultIsChoice(ctx context.Context, r registry.Registry) error {
	return withVariables(ctx, r, func(p registry.Package) error {
		for _, v := range p.Variables {
			if v.Default != "" && len(v.Choices) > 0 && !slices.Contains(v.Choices, v.Default) {
				return errors.New("the default of the variable " + v.Name + " must be one of its choices")
			}
		}
		return nil
	})
}
