package protocoltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// wrong is invalid settings, with the paths of unknown settings and of settings with a value of the wrong type.
type wrong struct {
	settings       []byte
	unknown, types []string
}

// wrongSettings returns variants of the good settings: with unknown names, with a value of the wrong type for each
// setting, and with all of these at once. It also returns JSON that is not an object.
func (b *bench) wrongSettings() (all []wrong) {
	good := map[string]any{}
	if err := json.Unmarshal([]byte(b.goodSettings()), &good); err != nil {
		kit.Must(fmt.Errorf("the settings must be an object: %w", err))
	}
	add := func(unknown, types map[string]any) {
		raw, _ := json.Marshal(merged(merged(good, types), unknown)) // the values are plain JSON
		all = append(all, wrong{raw, slices.Sorted(maps.Keys(unknown)), slices.Sorted(maps.Keys(types))})
	}
	unknown, types := map[string]any{"noPluginHasThisSetting": true, "norThisOne": "x"}, map[string]any{}
	add(map[string]any{"noPluginHasThisSetting": nil}, nil)
	add(unknown, nil)
	for _, name := range slices.Sorted(maps.Keys(good)) {
		for _, other := range []string{name[:max(0, len(name)-1)] + "Q", strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			if other != name && len(name) > 2 {
				add(map[string]any{other: good[name]}, nil)
			}
		}
		values := []any{map[string]any{"a": 1}, []any{map[string]any{"a": 1}}}
		switch good[name].(type) {
		case map[string]any:
			values = []any{"x", 42}
		case []any:
			values = values[:1]
		}
		for _, value := range values {
			add(nil, map[string]any{name: value})
		}
		types[name] = values[0]
	}
	add(unknown, types)
	for _, text := range []string{`[]`, `"x"`, `42`, `null`, `{"a": `} {
		all = append(all, wrong{settings: []byte(text)})
	}
	return all
}

// check compares the reported problems with the expected ones.
func (w wrong) check(step string, problems []*pluginv1.Problem) {
	step += " " + shown(w.settings)
	if len(problems) == 0 {
		sentence := sentenceObject
		if len(w.unknown)+len(w.types) > 0 {
			sentence = sentencePaths
		}
		kit.Reject("no problem", "problems with the settings", sentence, step)
	}
	for _, path := range slices.Concat(w.unknown, w.types) {
		if !slices.ContainsFunc(problems, func(p *pluginv1.Problem) bool {
			rest, ok := strings.CutPrefix(p.GetPath(), path)
			return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}) {
			kit.Reject(fmt.Sprint(problems), fmt.Sprintf("a problem with the path %q among them", path), sentencePaths, step)
		}
	}
	for _, p := range problems {
		text := []rune(p.GetMessage())
		if len(text) == 0 || len(text) > 1 && unicode.IsUpper(text[0]) && unicode.IsLower(text[1]) { // an acronym may come first
			kit.Reject(fmt.Sprintf("%q", p.GetMessage()), "a message in lower case that says what is wrong", sentenceLower, step)
		}
		nearest := p.GetNearest()
		if nearest != "" && (slices.Contains(w.types, p.GetPath()) || slices.Contains(w.unknown, nearest) || nearest == p.GetPath()) {
			kit.Reject(fmt.Sprintf("the nearest to %q is %q", p.GetPath(), nearest), "a setting that exists, for one that does not", sentenceNearest, step)
		}
	}
}

// checkConfigure tries invalid settings, and valid ones after them.
func checkConfigure(b *bench) {
	all, p := b.wrongSettings(), b.start("1", "")
	for _, w := range all {
		w.check("Configure with", p.ask(true, w.settings))
	}
	if problems := p.ask(true, b.Settings); len(problems) > 0 {
		kit.Reject(fmt.Sprint(problems), "no problems", sentenceAgain, "Configure with invalid settings", "Configure with valid ones")
	}
	p.stop() // it may be using resources that only one process can have
	p = b.start("1", "")
	req := &pluginv1.ConfigureRequest{SettingsJson: b.goodSettings(), DataDir: p.data, HostVersion: "99.0.0-next (a build)", HostCapabilities: []string{"exclusive", "a.word.of.tomorrow"}}
	req.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "a field from a newer version"))
	ctx, cancel := b.limited()
	defer cancel()
	if resp, err := p.service.Configure(ctx, req); err != nil || len(resp.GetProblems()) > 0 {
		kit.Reject(fmt.Sprint(resp.GetProblems(), err), "no problems", sentenceUnknown, "Configure with a version, a capability and a field from a newer server")
	}
	p.stop()
	b.configuresWithoutDirectory()
	b.trial.Cover("%d invalid settings", len(all))
}

// configuresWithoutDirectory checks that a plugin without a data directory does not use the current directory instead.
// If the settings or the executable depend on the current directory, the plugin runs in the kit's own, and files that
// appear there are ignored.
func (b *bench) configuresWithoutDirectory() {
	configure := func(p *process, data string) (problems int, err error) {
		ctx, cancel := b.limited()
		defer cancel()
		resp, err := p.service.Configure(ctx, &pluginv1.ConfigureRequest{SettingsJson: b.goodSettings(), DataDir: data})
		return len(resp.GetProblems()), err
	}
	empty := b.makeDir()
	b.current = empty
	var problems int
	var err error
	started := kit.Catch(func() {
		p := b.start("1", "")
		defer p.stop()
		problems, err = configure(p, p.data)
	})
	if started != nil || err != nil || problems > 0 || len(kit.Got(os.ReadDir(empty))) > 0 {
		b.current, empty = "", b.makeDir()
	}
	p := b.start("1", "")
	_, err = configure(p, "")
	if code := status.Code(err); code != codes.OK && code != codes.Unavailable {
		kit.Reject(p.reason(err), "OK, with a problem if the plugin needs a directory", sentenceNoData, "Configure without a data_dir")
	}
	if files := kit.Got(os.ReadDir(empty)); len(files) > 0 {
		kit.Reject(fmt.Sprintf("it created %q in the current directory", files[0].Name()), "a problem, because the plugin needs a directory", sentenceNoData, "Configure without a data_dir")
	}
}

// goodSettings returns the good settings as a request contains them.
func (b *bench) goodSettings() string {
	if len(b.Settings) == 0 {
		return "{}"
	}
	return string(b.Settings)
}

// checkValidate tries the same settings with Validate, before and after the plugin is configured.
func checkValidate(b *bench) {
	all, p := b.wrongSettings(), b.start("1", "")
	info := p.info()
	declared := slices.Contains(info.GetCapabilities(), plugins.CapabilityValidate) || !slices.Contains(info.GetCapabilities(), plugins.CapabilityConfigure)
	absent := filepath.Join(p.dir, "absent")
	for _, dir := range []string{absent, p.data} {
		ctx, cancel := b.limited()
		resp, err := p.service.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: b.goodSettings(), DataDir: dir})
		cancel()
		switch unimplemented := status.Code(err) == codes.Unimplemented; {
		case unimplemented == declared:
			kit.Reject(fmt.Sprint(err), fmt.Sprintf("as Info declares: %q", info.GetCapabilities()), sentenceDeclared, "Validate")
		case unimplemented:
			b.trial.Cover("that it lacks Validate, as it declares")
			return
		case err != nil || len(resp.GetProblems()) > 0:
			kit.Reject(fmt.Sprint(resp.GetProblems(), err), "no problems, as from Configure", sentenceSame, "Validate of the valid settings")
		}
	}
	_, made := os.Stat(absent)
	if entries := kit.Got(os.ReadDir(p.data)); made == nil || len(entries) > 0 {
		kit.Reject("it created the directory, or wrote into it", "nothing is written", sentenceLook, "Validate")
	}
	p = b.serving("")
	before := p.probe("before")
	for _, w := range append(all, wrong{settings: b.Settings}) {
		problems := p.ask(false, w.settings)
		if string(w.settings) != string(b.Settings) {
			w.check("Validate of", problems)
		} else if len(problems) > 0 {
			kit.Reject(fmt.Sprint(problems), "no problems, as from Configure", sentenceSame, "Configure", "Validate of the valid settings")
		}
		if after := p.probe("after"); after != before {
			kit.Reject(after.String(), before.String()+", as before", sentenceAnytime, "a call", "Validate of "+shown(w.settings), "a call")
		}
	}
	b.trial.Cover("%d settings before and while it serves", len(all)+1)
}
