package main

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
	auditv1 "github.com/ropewalk/ropewalk/proto/ropewalk/audit/v1"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// kindKit defines how `plugin test` handles plugins of one kind.
type kindKit struct {
	open  func(context.Context, config.Plugin) (closer, error) // starts one as a server would
	run   func(context.Context, *report) error                 // runs the kit for the kind
	names []string                                             // of the properties for the kind
	probe protocoltest.Probe
}

func names[S any](properties []kit.Property[S]) (all []string) {
	for _, p := range properties {
		all = append(all, p.Name)
	}
	return all
}

func (t *trial) kits() map[plugins.Kind]kindKit {
	return map[plugins.Kind]kindKit{
		plugins.KindAuth: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) {
				return t.host.Auth(ctx, p)
			},
			run: t.runAuth, names: names(authtest.Properties()),
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
				_, err := authv1.NewAuthServiceClient(conn).Verify(ctx, &authv1.VerifyRequest{Token: "no-token-of-anybody-" + about})
				return err
			},
		},
		plugins.KindSessionStore: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) { return t.host.SessionStore(ctx, p) },
			run:  t.runSessionStore, names: names(sessionstoretest.Properties()),
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
				_, err := sessionstorev1.NewSessionStoreServiceClient(conn).Get(ctx, &sessionstorev1.GetRequest{Id: "no-session-of-anybody-" + about})
				return err
			},
		},
		plugins.KindRegistry: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) {
				return t.host.Registry(ctx, p)
			},
			run: t.runRegistry, names: names(registrytest.Properties()),
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
				_, err := registryv1.NewRegistryServiceClient(conn).Resolve(ctx, &registryv1.ResolveRequest{Name: "no/bundle-" + about, Os: "linux", Arch: "amd64"})
				return err
			},
		},
		plugins.KindAudit: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) {
				return t.host.Audit(ctx, p)
			},
			run: t.runAudit, names: names(audittest.Properties()),
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, _ string) error {
				_, err := auditv1.NewAuditServiceClient(conn).Write(ctx, &auditv1.WriteRequest{Stream: "probe"})
				return err
			},
		},
	}
}
