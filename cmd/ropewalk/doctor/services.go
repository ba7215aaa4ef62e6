package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/server"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// checkAdapters has every configured adapter check its settings.
func (e *examination) checkAdapters(ctx context.Context) {
	if e.config == nil {
		return
	}
	found, err := server.Check(ctx, e.config, e.o.Builtins, hclog.NewNullLogger())
	for _, p := range found.Replaced {
		detail, remedy, _ := strings.Cut(p.String(), "; ")
		e.add("adapters", warning, detail, remedy)
	}
	for _, section := range found.Unchecked {
		e.add("adapters", warning, section+": settings not checked, because the adapter can check them only when it starts", "start the server to check them")
	}
	if err != nil {
		problems, several := errors.AsType[config.Problems](err)
		if !several {
			problems = config.Problems{{Message: err.Error()}}
		}
		for _, p := range problems {
			if strings.Contains(p.Message, context.DeadlineExceeded.Error()) {
				e.add("adapters", warning, p.String(), adapterRemedy(p.Message))
				continue
			}
			e.add("adapters", failed, p.String(), adapterRemedy(p.Message))
		}
	} else if len(found.Unchecked) == 0 {
		e.add("adapters", ok, "every configured adapter accepts its settings", "")
	}
}

// checkPlugins asks a running server for the state of its plugins.
func (e *examination) checkPlugins(ctx context.Context) {
	if e.running == nil {
		return
	}
	list, err := control.Dial(e.home).Plugins(ctx)
	if err != nil {
		e.addError("plugins", "the server's list of plugins", err, "check the server's log")
		return
	}
	for _, p := range list {
		name := string(p.Kind) + " " + p.Name
		if p.Degraded {
			e.add("plugins", warning, name+" is degraded: "+p.LastErr, "check what it connects to; its standard error is in the server's log")
			continue
		}
		switch p.State {
		case "running", "in-process", "attached":
			e.add("plugins", ok, fmt.Sprintf("%s is %s, %d restarts", name, p.State, p.Restarts), "")
		default:
			e.add("plugins", failed, fmt.Sprintf("%s is %s: %s", name, p.State, p.LastErr), "check the server's log for its standard error")
		}
	}
}

// adapterRemedy returns what to do about a problem with an adapter or plugin.
func adapterRemedy(message string) string {
	switch {
	case strings.Contains(message, context.DeadlineExceeded.Error()):
		return "it did not respond in time; run doctor again when this machine is less busy; if nothing changes, check what the adapter connects to"
	case strings.Contains(message, "connection refused"), strings.Contains(message, "no such host"), strings.Contains(message, "network is unreachable"):
		return "check that the service behind the adapter is running and can be reached from here; the settings may be correct"
	case strings.Contains(message, "does not match its sha256"):
		return "the file has changed; restore the original or, if you replaced it on purpose, set sha256 to its new hash (`ropewalk plugin verify`)"
	case strings.Contains(message, "plugin verify --accept"):
		return "restore the original file or, if you replaced it on purpose, accept the new one with that command"
	case strings.Contains(message, "plugin") && strings.Contains(message, "may not be executed"):
		return "give its file the execute permission (chmod u+x), or install the plugin again with `ropewalk plugin install`"
	case strings.Contains(message, "plugin") && strings.Contains(message, "no such file"):
		return "put the plugin's executable there, or correct path"
	case strings.Contains(message, "no such file"):
		return "create, mount or restore it, or correct the setting"
	case strings.Contains(message, "permission denied"):
		return "make it readable by the server's user, or correct the setting"
	}
	return "correct the section; docs/adapters.md lists the settings of the built-in adapters"
}

// checkSessionStore connects to a session store that has an address.
func (e *examination) checkSessionStore(ctx context.Context) {
	var s struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(e.config.SessionStore.Settings.JSON(), &s) == nil && s.URL != "" {
		port := "6379"
		if strings.HasPrefix(s.URL, "postgres") {
			port = "5432"
		}
		e.dial(ctx, "session store", s.URL, port, "check sessionStore.url, that its server is running, and that its firewall lets you in")
	}
}

// checkState examines the database file, or logs in to the database. If a server has the file open, the server
// reports its state instead.
func (e *examination) checkState(ctx context.Context) {
	const check = "database"
	at := database.Location{Path: filepath.Join(e.config.Home, "ropewalk.db"), URL: e.config.Storage.URL}
	where, remedy := at.Path, "the server does not start with it; `ropewalk restore FILE --replace` restores a backup (docs/operations.md)"
	if at.URL != "" {
		where, remedy = "storage.url", "check storage.url, that PostgreSQL is running, and that its firewall lets you in"
	} else if e.running != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	if err := database.Examine(limited, at); err != nil {
		if timedOut(err) {
			e.addError(check, where, err, remedy)
			return
		}
		detail := where + ": " + strings.TrimPrefix(err.Error(), where+": ")
		if at.URL == "" {
			detail, remedy = unexamined(where, detail, remedy, writable(e.config.Home))
		}
		e.add(check, failed, detail, remedy)
		return
	}
	if at.URL != "" {
		e.add(check, ok, "PostgreSQL accepts the login in storage.url", "")
		return
	}
	if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
		where += ": does not exist yet; the first start creates it"
	}
	e.add(check, ok, where, "")
}

// unexamined returns the finding for a database file that could not be opened, given the error from writing
// to its directory. SQLite needs space to open a file, so the file may be fine.
func unexamined(where, detail, remedy string, blocked error) (string, string) {
	if errors.Is(blocked, syscall.ENOSPC) || errors.Is(blocked, syscall.EDQUOT) {
		return where + " cannot be examined: " + blocked.Error(), homeRemedy(blocked)
	}
	return detail, remedy
}

// dial opens a connection to the host of an address.
func (e *examination) dial(ctx context.Context, check, address, port, remedy string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return // its adapter checks an address in another format
	}
	if u.Port() != "" {
		port = u.Port()
	}
	host := net.JoinHostPort(u.Hostname(), port)
	conn, err := dialer().DialContext(ctx, "tcp", host)
	if err != nil {
		e.add(check, failed, host+": "+strings.TrimPrefix(reason(err), host+": "), remedy)
		return
	}
	_ = conn.Close()
	e.add(check, ok, host+" accepts connections", "")
}

func (e *examination) checkProxy() {
	if proxy := e.config.Models.Proxy.Host(); proxy != "" {
		e.add("proxy", ok, "models are reached through "+proxy, "")
	}
}

// modelRemedy returns what to do about a model that does not respond.
func modelRemedy(name string, err error) string {
	p, ok := errors.AsType[*model.Error](err)
	provider, _, _ := strings.Cut(name, ":")
	switch {
	case ok && p.Failure == model.Auth:
		return "set " + chat.KeySetting(name) + " to a key that the provider accepts and that may use this model, then `ropewalk reload`; if the key comes from the environment, restart the server instead"
	case ok && p.Failure == model.Unreachable:
		return "check models.providers." + provider + ".baseUrl, that its server runs, DNS, the firewall and the proxy (models.proxy)"
	}
	return "check models.default and models.providers." + provider + " (docs/models.md)"
}

// checkKeys reports which providers in models.default and models.fast have no key, and whether models.default
// is affected. If only the provider in models.fast has no key, chat works, but conversations get no titles.
func (e *examination) checkKeys() (defaultWithout bool) {
	byDefault, _, _ := strings.Cut(e.config.Models.Default, ":")
	for _, name := range e.config.Models.WithoutKey() {
		result := warning
		if name == byDefault {
			result, defaultWithout = failed, true
		}
		e.add("model", result, e.config.Models.KeyWarning(name), "set the key and restart the server; docs/models.md lists each provider's settings")
	}
	return defaultWithout
}

// checkModel reports whether chat can work. With --deep it asks the model.
func (e *examination) checkModel(ctx context.Context) {
	defaultWithoutKey := e.checkKeys()
	if e.config.Models.Default == "" {
		e.add("model", warning, "no model is configured: chat returns 503", "set models.default and the provider's key (docs/models.md)")
		return
	}
	models, err := chat.NewModels(e.config.Models)
	if err != nil {
		e.add("model", failed, err.Error(), "correct the models section; docs/models.md lists each provider's settings")
		return
	}
	defer models.Close()
	if defaultWithoutKey {
		return
	}
	if err := models.Check(); err != nil {
		e.add("model", failed, e.config.Models.Default+": "+err.Error(), "docs/models.md lists each provider's settings")
		return
	}
	if !e.deep {
		e.add("model", ok, e.config.Models.Default+" is configured; --deep sends it a request", "")
		return
	}
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if name, err := models.Probe(limited); err != nil {
		e.add("model", failed, name+": "+err.Error(), modelRemedy(name, err))
		return
	}
	e.add("model", ok, e.config.Models.Default+" responds", "")
}
