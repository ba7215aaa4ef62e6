package plugins

import (
	"context"

	"google.golang.org/grpc"

	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// Control is a host's hold on a plugin of any kind: who it is, and its settings.
type Control struct {
	client pluginv1.PluginServiceClient
}

// NewControl speaks to the plugin behind conn.
func NewControl(conn grpc.ClientConnInterface) *Control {
	return &Control{client: pluginv1.NewPluginServiceClient(Wrap(conn))}
}

// Info asks who the plugin is.
func (c *Control) Info(ctx context.Context) (Info, error) {
	resp, err := c.client.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil {
		return Info{}, err
	}
	info := Info{Name: resp.GetName(), Version: resp.GetVersion(), Kind: Kind(resp.GetKind()), Powers: resp.GetPowers()}
	for _, wire := range resp.GetWireVersions() {
		info.Wires = append(info.Wires, int(wire))
	}
	return info, nil
}

// Configure gives the plugin its settings, once. Wrong settings are a *ConfigError.
func (c *Control) Configure(ctx context.Context, config Config) error {
	resp, err := c.client.Configure(ctx, &pluginv1.ConfigureRequest{SettingsJson: settings(config), DataDir: config.DataDir})
	if err != nil {
		return err
	}
	return configError(resp.GetProblems())
}

// Validate asks the plugin to judge settings. Wrong ones are a *ConfigError; ErrUnimplemented when
// the plugin cannot judge settings without taking them.
func (c *Control) Validate(ctx context.Context, config Config) error {
	resp, err := c.client.Validate(ctx, &pluginv1.ValidateRequest{SettingsJson: settings(config)})
	if err != nil {
		return err
	}
	return configError(resp.GetProblems())
}

func settings(c Config) string {
	if len(c.JSON) == 0 {
		return "{}"
	}
	return string(c.JSON)
}

func configError(wire []*pluginv1.Problem) error {
	e := &ConfigError{}
	for _, p := range wire {
		e.Problems = append(e.Problems, Problem{Path: p.GetPath(), Message: p.GetMessage(), Nearest: p.GetNearest()})
	}
	return e.Err()
}
