package protocoltest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// validates are further promises of settings.
func validates() []Check {
	const all, same = "Settings that are wrong are reported as problems, all of them at once", "Validate reports the problems that Configure would report"
	return []Check{
		{Name: "Configure ignores a version and capabilities of the server that it does not know", Contract: "Unknown words are to be ignored", Run: with(ignoresNews)},
		{Name: "Configure reports problems of every kind at once", Contract: all, Run: with(reportsAllKinds(true))},
		{Name: "Validate reports problems of every kind at once", Contract: same, Run: with(reportsAllKinds(false))},
		{Name: "Validate reports settings that are no object", Contract: same, Run: with(refusesNoObject(false))},
		{Name: "Validate writes nothing", Contract: "to look at and not to write to; it may not exist yet", Run: with(validateWritesNothing)},
		{Name: "Validate changes nothing of a plugin that serves", Contract: "It may be called at any time, also on a plugin that already serves", Run: with(validateChangesNothing)},
		{Name: "no problem of Validate and no log line after it repeats a value of the settings", Contract: "It never repeats the value of a setting", Run: with(validateRepeatsNoValue)},
	}
}

func ignoresNews(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	req := &pluginv1.ConfigureRequest{
		SettingsJson: s.goodSettings(), DataDir: p.data,
		HostVersion: "99.0.0-next (a build)", HostCapabilities: []string{"exclusive", "a.word.of.tomorrow"},
	}
	req.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "a field of tomorrow"))
	resp, err := service.Configure(ctx, req)
	if err != nil || len(resp.GetProblems()) > 0 {
		return kit.Failf("with a version, a capability and a field that it does not know, Configure of good settings answered %v (%w)", resp.GetProblems(), errors.Join(err))
	}
	return nil
}

// hasProblem reports whether there is a problem with a setting or a part of it.
func hasProblem(problems []*pluginv1.Problem, path string) bool {
	return slices.ContainsFunc(problems, func(p *pluginv1.Problem) bool {
		rest, ok := strings.CutPrefix(p.GetPath(), path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && p.GetMessage() != ""
	})
}

// reportsAllKinds has every setting of the wrong type and two that do not exist in the same settings.
func reportsAllKinds(byConfigure bool) func(context.Context, Subject, *process) error {
	return func(ctx context.Context, s Subject, p *process) error {
		service, err := p.service()
		if err != nil {
			return err
		}
		changes := map[string]any{"noPluginHasThisSetting": true, "norThisOne": canary}
		for _, wrong := range wrongTypes(s) {
			maps.Copy(changes, wrong)
		}
		if len(changes) == 2 {
			return kit.Skip("the settings that were given are empty")
		}
		settings, err := s.changed(changes)
		if err != nil {
			return err
		}
		problems, err := ask(ctx, service, p, byConfigure, settings)
		if err != nil {
			return err
		}
		for path := range changes {
			if !hasProblem(problems, path) {
				return kit.Failf("the settings have values of the wrong type and names that do not exist; there is no problem with the path %q: %v", path, problems)
			}
		}
		return nil
	}
}

func validateWritesNothing(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	absent := filepath.Join(p.dir, "absent")
	for _, dir := range []string{absent, p.data} {
		_, err := service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: s.goodSettings(), DataDir: dir})
		if status.Code(err) == codes.Unimplemented {
			return kit.Skip(`the plugin has not the capability "validate"`)
		}
		if err != nil {
			return kit.Failf("Validate of good settings failed: %w", err)
		}
	}
	if _, err := os.Stat(absent); err == nil {
		return kit.Failf("Validate made the data directory that did not exist")
	}
	entries, err := os.ReadDir(p.data)
	if err == nil && len(entries) > 0 {
		return kit.Failf("Validate wrote %q into the data directory", entries[0].Name())
	}
	return err
}

// validateChangesNothing validates other settings while the plugin serves.
func validateChangesNothing(ctx context.Context, s Subject, p *process) error {
	service, err := configured(ctx, s, p)
	if err != nil {
		return err
	}
	call, err := p.kindCall(s)
	if err != nil {
		return err
	}
	before := status.Code(call(ctx, "before"))
	bad, err := s.changed(map[string]any{"noPluginHasThisSetting": true})
	if err != nil {
		return err
	}
	for _, settings := range [][]byte{bad, []byte("{}"), []byte(s.goodSettings())} {
		if _, err := ask(ctx, service, p, false, settings); err != nil {
			return err
		}
		if err := s.asAlone(before, call(ctx, "after")); err != nil {
			return kit.Failf("after Validate of other settings a call is not answered as before: %w", err)
		}
	}
	return nil
}

func validateRepeatsNoValue(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	settings, err := s.changed(map[string]any{"noPluginHasThisSetting": canary, "nested": map[string]any{"secret": canary}})
	if err != nil {
		return err
	}
	problems, err := ask(ctx, service, p, false, settings)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		if strings.Contains(problem.String(), canary) {
			return kit.Failf("the problem of Validate with %q repeats the value of the setting", problem.GetPath())
		}
	}
	p.stop() // after which all of its output has been read
	if err := p.wroteCanary("a value of the settings"); err != nil {
		return kit.Failf("of what the plugin wrote to standard error as it validated: %w", err)
	}
	return nil
}
