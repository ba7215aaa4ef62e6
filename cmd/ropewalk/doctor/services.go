package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/server"
)

// checkAdapters has every configured adapter judge its settings, and asks a running server how its
// plugins are.
func (e *examination) checkAdapters(ctx context.Context) {
	unchecked, err := server.Check(ctx, e.config, e.o.Builtins, hclog.NewNullLogger())
	for _, section := range unchecked {
		e.add("adapters", warning, section+": settings not checked: the adapter can check them only when it starts", "start the server to check them")
	}
	if err != nil {
		problems, several := errors.AsType[config.Problems](err)
		if !several {
			problems = config.Problems{{Message: err.Error()}}
		}
		for _, p := range problems {
			e.add("adapters", failed, p.String(), "correct the section; docs/adapters.md lists the settings of the built-in adapters")
		}
	} else if len(unchecked) == 0 {
		e.add("adapters", ok, "every configured adapter accepts its settings", "")
	}
	if e.running == nil {
		return
	}
	list, err := control.Dial(e.config.Home).Plugins(ctx)
	if err != nil {
		e.add("plugins", failed, err.Error(), "look into the server's log")
		return
	}
	for _, p := range list {
		name := p.Kind + " " + p.Name
		switch p.State {
		case "running", "in-process":
			e.add("plugins", ok, fmt.Sprintf("%s is %s, %d restarts", name, p.State, p.Restarts), "")
		default:
			e.add("plugins", failed, fmt.Sprintf("%s is %s: %s", name, p.State, p.LastErr), "look into the server's log for its standard error")
		}
	}
}

// checkDatabase connects to the configured servers: the database, and a session store with an address.
func (e *examination) checkDatabase(ctx context.Context) {
	if u := e.config.Storage.URL; u != "" {
		e.dial(ctx, "database", u.Reveal(), "5432", "check storage.url, that PostgreSQL runs, and that its firewall lets you in")
	}
	var s struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(e.config.SessionStore.Settings.JSON(), &s) == nil && s.URL != "" {
		port := "6379"
		if strings.HasPrefix(s.URL, "postgres") {
			port = "5432"
		}
		e.dial(ctx, "session store", s.URL, port, "check sessionStore.url, that its server runs, and that its firewall lets you in")
	}
}

// dial opens a connection to the host of an address.
func (e *examination) dial(ctx context.Context, check, address, port, remedy string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return // an address of another form is judged by its adapter
	}
	if u.Port() != "" {
		port = u.Port()
	}
	host := net.JoinHostPort(u.Hostname(), port)
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		e.add(check, failed, err.Error(), remedy)
		return
	}
	_ = conn.Close()
	e.add(check, ok, host+" accepts connections", "")
}

// checkIdentityProvider reads the provider's discovery document and keys, and compares clocks.
func (e *examination) checkIdentityProvider(ctx context.Context) {
	var s struct {
		Issuer    string `json:"issuer"`
		IDPDomain string `json:"idpDomain"`
	}
	if e.config.Auth.Adapter == "" || json.Unmarshal(e.config.Auth.Settings.JSON(), &s) != nil {
		return
	}
	issuer := strings.TrimSuffix(s.Issuer, "/")
	if issuer == "" && s.IDPDomain != "" {
		issuer = "https://" + s.IDPDomain + ".authkit.app"
	}
	if issuer == "" {
		return
	}
	const remedy = "check auth.issuer, DNS and the firewall; the document must be served at <issuer>/.well-known/openid-configuration"
	var document struct {
		Issuer  string
		JWKSURI string `json:"jwks_uri"`
	}
	date, err := getJSON(ctx, issuer+"/.well-known/openid-configuration", &document)
	switch {
	case err != nil:
		e.add("identity", failed, err.Error(), remedy)
		return
	case strings.TrimSuffix(document.Issuer, "/") != issuer:
		e.add("identity", failed, fmt.Sprintf("the provider calls itself %q", document.Issuer), "set auth.issuer to exactly that")
		return
	}
	var keys struct{ Keys []json.RawMessage }
	if _, err := getJSON(ctx, document.JWKSURI, &keys); err != nil || len(keys.Keys) == 0 {
		e.add("identity", failed, fmt.Sprintf("no keys at %s (%v)", document.JWKSURI, err), "tokens cannot be verified until the provider serves its keys")
		return
	}
	e.add("identity", ok, fmt.Sprintf("%s, %d keys", issuer, len(keys.Keys)), "")
	if skew := time.Since(date).Abs(); !date.IsZero() && skew > clockTolerance {
		e.add("clock", failed, fmt.Sprintf("differs from the provider's by %s", skew.Round(time.Second)), "synchronize the clock (NTP): tokens are refused otherwise")
	}
}

// getJSON decodes a document and returns the time of its server.
func getJSON(ctx context.Context, address string, into any) (time.Time, error) {
	res, err := get(ctx, address)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("%s answers %s", address, res.Status)
	}
	date, _ := http.ParseTime(res.Header.Get("Date")) // without a date clocks are not compared
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(into); err != nil {
		return date, fmt.Errorf("%s: %w", address, err)
	}
	return date, nil
}

func (e *examination) checkProxy() {
	if proxy := e.config.Models.Proxy.Host(); proxy != "" {
		e.add("proxy", ok, "models are reached through "+proxy, "")
	}
}

// checkModel says whether chat can work; with --deep it asks the model.
func (e *examination) checkModel(ctx context.Context) {
	const remedy = "check the provider's key, models.providers.<name>.baseUrl, DNS, the firewall and the proxy (models.proxy)"
	if e.config.Models.Default == "" {
		e.add("model", warning, "no model is configured: chat answers 503", "set models.default and the provider's key (docs/models.md)")
		return
	}
	models, err := chat.NewModels(e.config.Models)
	if err != nil {
		e.add("model", failed, err.Error(), remedy)
		return
	}
	defer models.Close()
	if !e.deep {
		e.add("model", ok, e.config.Models.Default+" is configured; --deep sends it a request", "")
		return
	}
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if name, err := models.Probe(limited); err != nil {
		e.add("model", failed, name+": "+err.Error(), remedy)
		return
	}
	e.add("model", ok, e.config.Models.Default+" answers", "")
}
