package registrytest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// files runs look on up to three packages that can be fetched; a registry may have none.
func files(ctx context.Context, r registry.Registry, look func(registry.Package) error) error {
	left := 3
	err := each(ctx, r, func(p registry.Package) error {
		if p.Kind != registry.KindMCPB || left == 0 {
			return nil
		}
		left--
		return look(p)
	})
	if err == nil && left == 3 {
		return kit.Skip("none of the bundles that the kit looked at is a file to fetch")
	}
	return err
}

// fetch reads a whole bundle, without keeping it.
func fetch(ctx context.Context, r registry.Registry, p registry.Package) (sum string, size int64, err error) {
	body, err := r.Fetch(ctx, p)
	if err != nil {
		return "", 0, fmt.Errorf("what Resolve gave could not be fetched: %w", err)
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	return digest(body)
}

// digest reads to the end.
func digest(body io.Reader) (sum string, size int64, err error) {
	h := sha256.New()
	if size, err = io.Copy(h, body); err != nil {
		return "", size, fmt.Errorf("reading what Fetch gave failed: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

func bytesAreTrue(ctx context.Context, r registry.Registry) error {
	return files(ctx, r, func(p registry.Package) error {
		sum, size, err := fetch(ctx, r, p)
		switch {
		case err != nil:
			return err
		case p.SHA256 != "" && sum != strings.ToLower(p.SHA256):
			return fmt.Errorf("the sha256 must be %s, as Resolve promised; the %d bytes of Fetch have %s", p.SHA256, size, sum)
		case p.Size > 0 && size != p.Size:
			return fmt.Errorf("the size must be %d bytes, as Resolve promised; Fetch gave %d", p.Size, size)
		}
		return nil
	})
}

func fetchesTheSame(ctx context.Context, r registry.Registry) error {
	return files(ctx, r, func(p registry.Package) error {
		first, _, err := fetch(ctx, r, p)
		if err != nil {
			return err
		}
		second, _, err := fetch(ctx, r, p)
		if err == nil && first != second {
			return errors.New("the same package must be the same bytes each time; the second time Fetch gave others")
		}
		return err
	})
}

func refusesOtherKinds(ctx context.Context, r registry.Registry) error {
	for _, kind := range []registry.Kind{registry.KindNPM, registry.KindPyPI, registry.KindRemote, ""} {
		body, err := r.Fetch(ctx, registry.Package{Name: "x", Version: "1.0.0", Kind: kind, Identifier: "x", Artifact: "x.mcpb"})
		if err == nil {
			_ = body.Close()
		}
		if err := mustBe(err, plugins.ErrInvalid, fmt.Sprintf("Fetch of a package of the kind %q", kind)); err != nil {
			return err
		}
	}
	return nil
}

func refusesArtifacts(ctx context.Context, r registry.Registry) error {
	for _, artifact := range []string{"", "..", "/etc/passwd", "../../../../../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1:1/x.mcpb", "qqzzxxjjwwkk.mcpb", nobody + "@1.0.0"} {
		body, err := r.Fetch(ctx, registry.Package{Name: "x", Version: "1.0.0", Kind: registry.KindMCPB, Artifact: artifact})
		if err != nil {
			continue
		}
		n, err := io.Copy(io.Discard, body)
		_ = body.Close()
		if err == nil {
			return fmt.Errorf("the artifact %q, which Resolve never gave, must be an error of Fetch; it gave %d bytes", artifact, n)
		}
	}
	return nil
}

func givesUp(ctx context.Context, r registry.Registry) error {
	return files(ctx, r, func(p registry.Package) error {
		body, err := r.Fetch(ctx, p)
		if err != nil {
			return fmt.Errorf("what Resolve gave could not be fetched: %w", err)
		}
		if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
			return fmt.Errorf("a bundle has at least one byte; reading it failed: %w", err)
		}
		if err := body.Close(); err != nil {
			return fmt.Errorf("a download that is not over could not be closed: %w", err)
		}
		if _, _, err := fetch(ctx, r, p); err != nil {
			return fmt.Errorf("after a download was given up: %w", err)
		}
		return nil
	})
}
