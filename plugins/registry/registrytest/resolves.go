package registrytest

import (
	"context"
	"fmt"
	"reflect"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

const nobody = "io.example.nobody/no-bundle-is-called-qqzzxxjjwwkk"

func resolvesFound(ctx context.Context, r registry.Registry) error {
	_, err := resolved(ctx, r)
	return err
}

func unknownName(ctx context.Context, r registry.Registry) error {
	for _, name := range []string{nobody, "@nobody/qqzzxxjjwwkk", "qqzzxxjjwwkk"} {
		_, err := r.Resolve(ctx, ref(name, ""))
		if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve of the name %q", name)); err != nil {
			return err
		}
	}
	return nil
}

func unknownVersion(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	if err != nil {
		return err
	}
	for _, version := range []string{"999.999.999", "latest-but-one", "../1.0.0", "^1.0.0", "*"} {
		_, err := r.Resolve(ctx, ref(found[0].pkg.Name, version))
		if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve of %s in the version %q", found[0].pkg.Name, version)); err != nil {
			return err
		}
	}
	return nil
}

func strangeNames(ctx context.Context, r registry.Registry) error {
	for _, name := range []string{"..", "../../etc/passwd", "/etc/passwd", "@../..", "a/../../b", "x?y=z", "x#y", "http://127.0.0.1/x", "a\x00b", "%2e%2e/%2e%2e"} {
		_, err := r.Resolve(ctx, ref(name, ""))
		if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve of the name %q", name)); err != nil {
			return err
		}
	}
	return nil
}

func refusesEmptyName(ctx context.Context, r registry.Registry) error {
	_, err := r.Resolve(ctx, ref("", ""))
	return mustBe(err, plugins.ErrInvalid, "Resolve of an empty name")
}

func keepsName(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	for _, p := range found {
		if p.pkg.Name != p.entry.Name {
			return fmt.Errorf("a package must have the name that was asked for, %s; it has %q", p.entry.Name, p.pkg.Name)
		}
	}
	return err
}

func latestIsLatest(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	for _, p := range found {
		if p.pkg.Version != p.entry.Version {
			return fmt.Errorf("without a version, %s must resolve to the latest, which a search said is %q; it resolved to %q", p.entry.Name, p.entry.Version, p.pkg.Version)
		}
	}
	return err
}

// again resolves what was resolved once more, by the version that came back.
func again(ctx context.Context, r registry.Registry, look func(first, second registry.Package) error) error {
	return each(ctx, r, func(first registry.Package) error {
		second, err := r.Resolve(ctx, ref(first.Name, first.Version))
		if err != nil {
			return fmt.Errorf("the version %q, which Resolve itself named, could not be resolved: %w", first.Version, err)
		}
		return look(first, second)
	})
}

func keepsVersion(ctx context.Context, r registry.Registry) error {
	return again(ctx, r, func(first, second registry.Package) error {
		if !exact.MatchString(second.Version) || second.Version != first.Version {
			return fmt.Errorf("the version %q, asked for, must come back exactly; %q did", first.Version, second.Version)
		}
		return nil
	})
}

func resolvesTheSame(ctx context.Context, r registry.Registry) error {
	return again(ctx, r, func(first, second registry.Package) error {
		second.Version = first.Version
		if !reflect.DeepEqual(first, second) {
			return fmt.Errorf("the same name and version must resolve to the same package; they did to\n  %+v\nand then to\n  %+v", first, second)
		}
		return nil
	})
}
