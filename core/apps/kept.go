package apps

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// An app that may sleep is asleep when the server starts, and its stored lists are shown. They were stored with a hash
// of everything that determines them. If the hash has changed since, the app starts with the server, like an app that
// never sleeps.

// keptLists are a process's lists, byte for byte.
type keptLists struct {
	Lists        map[core.Kind][][]byte `json:"lists"`
	Instructions string                 `json:"instructions,omitempty"`
	Dynamic      bool                   `json:"dynamic,omitempty"` // the app announces changes to its tools
	ServesSkills bool                   `json:"skilled,omitempty"` // the app serves skills
}

// List implements offer.Lister.
func (k *keptLists) List(_ context.Context, kind core.Kind) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, len(k.Lists[kind]))
	for i, raw := range k.Lists[kind] {
		list[i] = raw
	}
	return list, nil
}

// maySleep reports whether the app is put to sleep when it is not in use.
func (a *app) maySleep() bool {
	limit, _ := a.idleLimit()
	return limit > 0
}

// filesSum identifies the current files of a local app. Files that are checked at each start are identified by their
// hash. A directory that is used in place is identified by its Fingerprint, together with the programs and scripts of
// its command. The result is "" if it is not known whether files have changed.
func (a *app) filesSum() string {
	m, record := a.manager, a.now.Load().record
	if record.Sum != "" || record.Dir == "" || record.Remote != nil {
		return record.Sum
	}
	manifest, err := bundle.ParseManifest(record.Manifest)
	if err != nil {
		return ""
	}
	launch, err := manifest.Launch(bundle.LaunchInput{
		Dir: record.Dir, Home: m.o.HostEnv["HOME"], Values: record.Env, Lookup: bundle.Lookup(m.o.HostEnv["PATH"]),
	})
	if err != nil {
		return ""
	}
	return m.files.Fingerprint(record.Dir, append(launch.Args, launch.Path)...)
}

// listsSum returns a hash of everything that determines the lists of a local app: its files, settings, permissions and
// sandbox, and the server's version. It is "" if the files are not known. The hash is keyed with the record's ID, so
// that the settings cannot be guessed from it.
func (a *app) listsSum(files string) (string, error) {
	m, record := a.manager, a.now.Load().record
	if files == "" || record.Remote != nil {
		return "", nil
	}
	env := make(map[string]string, len(record.Env))
	for name, value := range record.Env {
		env[name] = value.Reveal()
	}
	states := make([]string, len(record.Permissions))
	for i, p := range record.Permissions {
		states[i], _ = m.stateOf(record, p)
	}
	settings := m.sandboxOf(a.key)
	all, err := json.Marshal([]any{
		m.o.Version, record.BundleName, record.Version, files, env, record.Permissions, states, settings, m.o.Confinement.Level(settings).String(),
	})
	if err != nil {
		return "", err
	}
	hash := hmac.New(sha256.New, []byte(record.ID))
	hash.Write(all)
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// keepLists stores the lists of an instance if the app may sleep. Only the holder of the turn or the supervisor may
// call it.
func (a *app) keepLists(in instance.Instance) {
	listed := a.recorded.Load()
	local, ok := in.(measured)
	if !ok || listed == nil || !a.maySleep() {
		return
	}
	if _, seen := local.Activity(); !seen { // without known activity, the app never sleeps
		return
	}
	if err := a.storeLists(listed, in); err != nil && a.manager.life.Err() == nil {
		a.log.Warn("could not store an app's lists; the app will start with the server next time", "error", err)
	}
}

func (a *app) storeLists(listed *recorder, in instance.Instance) error {
	sum, err := a.listsSum(listed.files) // not the current files, because somebody may be editing them
	if err != nil || sum == "" {
		return err
	}
	kept, complete := listed.kept()
	if !complete {
		return nil
	}
	kept.Instructions, kept.Dynamic, kept.ServesSkills = in.Info().Instructions, announcesTools(in), servesSkills(in)
	record, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if whole := sha256.Sum256(append([]byte(sum), record...)); whole != a.stored {
		if err := a.manager.o.Records.PutKeptLists(a.manager.life, a.key.Workspace, a.key.Name, sum, string(record)); err != nil {
			return err
		}
		a.stored = whole
	}
	return nil
}

// startAsleep shows an app that is about to start as asleep if its lists are known.
func (a *app) startAsleep(ctx context.Context) {
	if !a.maySleep() {
		return
	}
	kept, lists, err := a.findLists(ctx)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return
	case err != nil:
		a.log.Warn("cannot use an app's stored lists; starting it", "error", err)
		return
	}
	a.transition(core.StateRunning, func(v *view) {
		v.since, v.asleep, v.instructions, v.servesSkills = time.Now(), true, kept.Instructions, kept.ServesSkills
		v.setOffer(lists)
	})
	a.checkPinsIfDecided()
}

// findLists returns the stored lists of the app, without the tools that are currently held back. It returns
// core.CodeNotFound if there are none.
func (a *app) findLists(ctx context.Context) (kept keptLists, lists core.Offer, err error) {
	sum, err := a.listsSum(a.filesSum())
	if err != nil {
		return kept, lists, err
	}
	if sum == "" {
		return kept, lists, core.Errorf(core.CodeNotFound, "the lists of app %s are not stored", a.key.Name)
	}
	record, err := a.manager.o.Records.KeptLists(ctx, a.key.Workspace, a.key.Name, sum)
	if err != nil {
		return kept, lists, err
	}
	if err := json.Unmarshal([]byte(record), &kept); err != nil {
		return kept, lists, fmt.Errorf("reading the stored lists: %w", err)
	}
	lists, err = offer.Reader{Server: a.key.Name, Logger: a.log, Tools: a.now.Load().record.Tools}.ReadAll(ctx, &kept)
	if err != nil {
		return kept, lists, err
	}
	a.pins.mu.Lock()
	defer a.pins.mu.Unlock()
	if err := a.acceptSize(&lists); err != nil {
		return kept, lists, err
	}
	a.pins.key, a.pins.listed, a.pins.dynamic, a.pins.instructions = a.pinKeyOf(""), &lists, kept.Dynamic, kept.Instructions
	lists, err = a.pinned(ctx)
	return kept, lists, err
}
