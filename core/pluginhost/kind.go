package pluginhost

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
)

// kind describes a kind of plugin to the host.
type kind[T any] struct {
	name    plugins.Kind
	clients map[int]func(grpc.ClientConnInterface) T // by protocol version
	probe   func(context.Context, T) error           // a call without side effects that fails if the plugin cannot serve
}

// holder is a handle of a kind.
type holder[T any] interface{ self() *slot[T] }

func (s *slot[T]) self() *slot[T] { return s }

// open starts the plugin configured in a section. The error is a *plugins.ConfigError for invalid settings, and a
// *StartError for anything else that prevents a start. old are the handles that the caller closes once the new one is
// in use; see exclusive.go for what happens to them.
func open[T any, H holder[T]](ctx context.Context, h *Host, k kind[T], p config.Plugin, old []H) (*slot[T], error) {
	t, err := h.find(k.name, p)
	if err != nil {
		return nil, err
	}
	var slots []*slot[T]
	for _, other := range old {
		slots = append(slots, other.self())
	}
	return load(ctx, h, t, k, slots)
}

// newClient returns the contract's client for the negotiated protocol version.
func (s *slot[T]) newClient(conn *grpc.ClientConn, version int) (client T, err error) {
	newClient, ok := s.kind.clients[version]
	if !ok {
		return client, s.target.failed(fmt.Sprintf("it speaks protocol version %d, which this server does not", version), "rebuild it with this server's SDK")
	}
	return newClient(conn), nil
}

// ask returns the result of a call that is made through do: slot.call or slot.once.
func ask[T, A any](ctx context.Context, do func(context.Context, func(context.Context, T) error) error, call func(context.Context, T) (A, error)) (result A, err error) {
	err = do(ctx, func(ctx context.Context, plugin T) (err error) {
		result, err = call(ctx, plugin)
		return err
	})
	return result, err
}

// capable makes a call that requires the plugin's capability C. If the plugin does not have it, the
// result is plugins.ErrUnimplemented.
func capable[C, T, A any](call func(context.Context, C) (A, error)) func(context.Context, T) (A, error) {
	return func(ctx context.Context, plugin T) (result A, err error) {
		with, ok := any(plugin).(C)
		if !ok {
			return result, plugins.ErrUnimplemented
		}
		return call(ctx, with)
	}
}

// declares reports whether a plugin has a capability. An in-process implementation has it if it implements C.
func declares[C, T any](s *slot[T], capability string) bool {
	return s.has(capability, func(plugin T) bool {
		_, has := any(plugin).(C)
		return has
	})
}
