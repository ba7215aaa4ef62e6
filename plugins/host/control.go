package host

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// Control is a client of the plugin service that every plugin has: its description and its settings.
type Control struct {
	client pluginv1.PluginServiceClient
}

// NewControl returns a Control for the plugin behind conn.
func NewControl(conn grpc.ClientConnInterface) *Control {
	return &Control{client: pluginv1.NewPluginServiceClient(Wrap(conn))}
}

// Info asks the plugin for its name, version, kind, protocol versions and capabilities.
func (c *Control) Info(ctx context.Context) (plugins.Info, error) {
	resp, err := c.client.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		return plugins.Info{}, err
	}
	info := plugins.Info{Name: resp.GetName(), Version: resp.GetVersion(), Kind: plugins.Kind(resp.GetKind()), Capabilities: resp.GetCapabilities()}
	for _, v := range resp.GetProtocolVersions() {
		info.ProtocolVersions = append(info.ProtocolVersions, int(v))
	}
	return info, nil
}

// Configure passes the settings to the plugin. It must be called once. Invalid settings are a *plugins.ConfigError.
func (c *Control) Configure(ctx context.Context, config plugins.Config) error {
	resp, err := c.client.Configure(ctx, &pluginv1.ConfigureRequest{
		SettingsJson: settings(config), DataDir: config.DataDir, HostVersion: config.HostVersion, HostCapabilities: config.HostCapabilities,
	})
	if err != nil {
		return err
	}
	return configError(resp.GetProblems())
}

// Validate asks the plugin to check settings. Invalid settings are a *plugins.ConfigError. The error is
// plugins.ErrUnimplemented if the plugin can check settings only by applying them.
func (c *Control) Validate(ctx context.Context, config plugins.Config) error {
	resp, err := c.client.Validate(ctx, &pluginv1.ValidateRequest{
		SettingsJson: settings(config), DataDir: config.DataDir, HostVersion: config.HostVersion, HostCapabilities: config.HostCapabilities,
	})
	if err != nil {
		return err
	}
	return configError(resp.GetProblems())
}

func settings(c plugins.Config) string {
	if len(c.JSON) == 0 {
		return "{}"
	}
	return string(c.JSON)
}

func configError(wire []*pluginv1.Problem) error {
	e := &plugins.ConfigError{}
	for _, p := range wire {
		e.Problems = append(e.Problems, plugins.Problem{Path: p.GetPath(), Message: p.GetMessage(), Nearest: p.GetNearest()})
	}
	return e.Err()
}
