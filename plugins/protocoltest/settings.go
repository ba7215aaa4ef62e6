package protocoltest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// canary is a value that must not be repeated.
const canary = "canary-4711-must-not-be-repeated"

// wroteCanary returns an error if what a process wrote to standard error holds the canary, however it is
// written. The process must have ended.
func (p *process) wroteCanary(what string) error {
	return kit.Tells(p.stderr.String(), []kit.Secret{{What: what, Text: canary}})
}

func takesSettings() []Check {
	const unknown = "A setting that does not exist and a value of the wrong type are problems with the path of that setting"
	return []Check{
		{Name: "Configure accepts good settings", Contract: "after an answer without problems it can serve", Run: with(acceptsGood)},
		{Name: "Configure reports settings that do not exist, each with its path", Contract: unknown, Run: with(reports(true, unknownSettings))},
		{Name: "Validate reports settings that do not exist, each with its path", Contract: "Validate reports the problems that Configure would report", Run: with(reports(false, unknownSettings))},
		{Name: "Configure reports values of the wrong type with their path", Contract: unknown, Run: with(reports(true, wrongTypes))},
		{Name: "Validate reports values of the wrong type with their path", Contract: "Validate reports the problems that Configure would report", Run: with(reports(false, wrongTypes))},
		{Name: "settings that are no object are a problem", Contract: "The settings as one JSON object", Run: with(refusesNoObject(true))},
		{Name: "Validate accepts good settings", Contract: "Validate reports the problems that Configure would report", Run: with(validatesGood)},
		{Name: "Validate is there exactly when Info says so", Contract: `has the capability "validate" never answers UNIMPLEMENTED, one that has not always does`, Run: with(validateAsSaid)},
		{Name: "after settings that were refused Configure accepts good ones", Contract: "After a failure it may be called again", Run: with(recovers)},
		{Name: "no problem, error or log line repeats a value of the settings", Contract: "It never repeats the value of a setting", Run: with(repeatsNoValue)},
	}
}

// goodSettings are the good settings as a request has them.
func (s Subject) goodSettings() string {
	if len(s.Settings) == 0 {
		return "{}"
	}
	return string(s.Settings)
}

func configure(ctx context.Context, service pluginv1.PluginServiceClient, p *process, settings []byte) ([]*pluginv1.Problem, error) {
	if len(settings) == 0 {
		settings = []byte("{}")
	}
	resp, err := service.Configure(ctx, &pluginv1.ConfigureRequest{SettingsJson: string(settings), DataDir: p.data})
	if err != nil {
		return nil, kit.Failf("Configure must answer OK, with problems where settings are wrong; it failed: %w", err)
	}
	return resp.GetProblems(), nil
}

// ask configures or validates; skipped without the capability to validate.
func ask(ctx context.Context, service pluginv1.PluginServiceClient, p *process, byConfigure bool, settings []byte) ([]*pluginv1.Problem, error) {
	if byConfigure {
		return configure(ctx, service, p, settings)
	}
	if len(settings) == 0 {
		settings = []byte("{}")
	}
	resp, err := service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: string(settings), DataDir: p.data})
	if status.Code(err) == codes.Unimplemented {
		return nil, kit.Skip(`the plugin has not the capability "validate"`)
	}
	if err != nil {
		return nil, kit.Failf("Validate must answer OK, with problems where settings are wrong; it failed: %w", err)
	}
	return resp.GetProblems(), nil
}

// changed is the good settings with some replaced or added.
func (s Subject) changed(changes map[string]any) ([]byte, error) {
	all := map[string]any{}
	if len(s.Settings) > 0 {
		if err := json.Unmarshal(s.Settings, &all); err != nil {
			return nil, kit.Failf("the settings must be an object: %w", err)
		}
	}
	maps.Copy(all, changes)
	return json.Marshal(all)
}

func acceptsGood(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	problems, err := configure(ctx, service, p, s.Settings)
	if err == nil && len(problems) > 0 {
		return kit.Failf("Configure reports problems with the settings that were given as good: %v", problems)
	}
	return err
}

func validatesGood(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	for range 2 { // before and after Configure
		problems, err := ask(ctx, service, p, false, s.Settings)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return kit.Failf("Validate reports problems with settings that Configure accepts: %v", problems)
		}
		if _, err := configure(ctx, service, p, s.Settings); err != nil && status.Code(err) == codes.Unimplemented {
			return err
		}
	}
	return nil
}

func unknownSettings(Subject) []map[string]any {
	return []map[string]any{{"noPluginHasThisSetting": true, "norThisOne": canary}}
}

// wrongTypes gives each setting values of other types, one at a time.
func wrongTypes(s Subject) []map[string]any {
	good := map[string]any{}
	_ = json.Unmarshal(s.Settings, &good)
	var all []map[string]any
	for _, name := range slices.Sorted(maps.Keys(good)) {
		wrong := []any{map[string]any{"a": 1}, []any{map[string]any{"a": 1}}}
		switch good[name].(type) {
		case map[string]any:
			wrong = []any{canary, 42}
		case []any:
			wrong = wrong[:1]
		}
		for _, value := range wrong {
			all = append(all, map[string]any{name: value})
		}
	}
	return all
}

func reports(byConfigure bool, wrong func(Subject) []map[string]any) func(context.Context, Subject, *process) error {
	return func(ctx context.Context, s Subject, p *process) error {
		service, err := p.service()
		if err != nil {
			return err
		}
		all := wrong(s)
		if len(all) == 0 {
			return kit.Skip("the settings that were given are empty")
		}
		for _, changes := range all {
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
					return kit.Failf("one of the problems must have the path %q; they are: %v", path, problems)
				}
			}
		}
		return nil
	}
}

func refusesNoObject(byConfigure bool) func(context.Context, Subject, *process) error {
	return func(ctx context.Context, _ Subject, p *process) error {
		service, err := p.service()
		if err != nil {
			return err
		}
		for _, text := range []string{`[]`, `"x"`, `42`, `null`, `{"a": `} {
			problems, err := ask(ctx, service, p, byConfigure, []byte(text))
			if err != nil {
				return err
			}
			if len(problems) == 0 {
				return kit.Failf("the settings %s are no object, and there is no problem with them", text)
			}
		}
		return nil
	}
}

func validateAsSaid(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	info, err := service.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		return kit.Failf("Info failed: %w", err)
	}
	said := slices.Contains(info.GetPowers(), plugins.CapabilityValidate) || !slices.Contains(info.GetPowers(), plugins.CapabilityConfigure)
	_, err = service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: s.goodSettings()})
	if is := status.Code(err) != codes.Unimplemented; is != said {
		return kit.Failf("Info names the capabilities %q, and Validate answers with: %w", info.GetPowers(), err)
	}
	return nil
}

func recovers(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	bad, err := s.changed(map[string]any{"noPluginHasThisSetting": true})
	if err != nil {
		return err
	}
	if _, err := configure(ctx, service, p, bad); err != nil {
		return err
	}
	return acceptsGood(ctx, s, p)
}

func repeatsNoValue(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	changes := map[string]any{"noPluginHasThisSetting": canary, "nested": map[string]any{"secret": canary}}
	good := map[string]any{}
	_ = json.Unmarshal(s.Settings, &good)
	for name, value := range good {
		if _, text := value.(string); !text {
			changes[name] = canary
		}
	}
	settings, err := s.changed(changes)
	if err != nil {
		return err
	}
	problems, err := configure(ctx, service, p, settings)
	if err != nil && strings.Contains(err.Error(), canary) {
		return kit.Failf("the error of Configure repeats a value of the settings")
	}
	for _, problem := range problems {
		if strings.Contains(problem.String(), canary) {
			return kit.Failf("the problem with %q repeats the value of the setting", problem.GetPath())
		}
	}
	p.stop() // after which all of its output has been read
	if err := p.wroteCanary("a value of the settings"); err != nil {
		return kit.Failf("of what the plugin wrote to standard error: %w", err)
	}
	return nil
}
