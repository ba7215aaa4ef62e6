package protocoltest

import (
	"context"
	"slices"
	"syscall"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// answers are promises about what a plugin says, and about its end while somebody still listens.
func answers() []Check {
	return []Check{
		{Name: "a problem says in lower case what is wrong", Contract: "What is wrong and what to do, in lower case", Run: with(problemsSpeak)},
		{Name: "a problem names the nearest setting for an unknown one alone", Contract: "For an unknown setting: the nearest one that exists. Otherwise empty", Run: with(nearestIsAnother)},
		{Name: "Configure without a data directory answers with problems or none", Contract: "Empty when the server has none to give; a plugin that needs one then reports a problem", Run: with(configuresWithoutDirectory)},
		{Name: "an error says what was wrong", Contract: "a message that says what was wrong", Run: with(errorsSpeak)},
		{Name: "Shutdown ends a plugin whose health is watched", Contract: "whose Shutdown ends the process within two seconds", Run: with(endsWhileWatched(shutdown))},
		{Name: "SIGTERM ends a plugin that serves and whose health is watched", Contract: "SIGTERM ends it too", Run: with(endsWhileWatched(terminate))},
	}
}

// wrongSettings configures with settings that do not exist and then with wrong types, and looks at the problems.
func wrongSettings(ctx context.Context, s Subject, p *process, look func(changes map[string]any, unknown bool, problem *pluginv1.Problem) error) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	for i, changes := range slices.Concat(unknownSettings(s), wrongTypes(s)) {
		settings, err := s.changed(changes)
		if err != nil {
			return err
		}
		problems, err := configure(ctx, service, p, settings)
		if err != nil {
			return err
		}
		for _, problem := range problems {
			if err := look(changes, i < len(unknownSettings(s)), problem); err != nil {
				return err
			}
		}
	}
	return nil
}

func problemsSpeak(ctx context.Context, s Subject, p *process) error {
	return wrongSettings(ctx, s, p, func(_ map[string]any, _ bool, problem *pluginv1.Problem) error {
		text := []rune(problem.GetMessage())
		if len(text) == 0 {
			return kit.Failf("the problem with %q must say what is wrong; it has no message", problem.GetPath())
		}
		if len(text) > 1 && unicode.IsUpper(text[0]) && unicode.IsLower(text[1]) { // an acronym may come first
			return kit.Failf("the problem with %q must say what is wrong in lower case; it says %q", problem.GetPath(), problem.GetMessage())
		}
		return nil
	})
}

func nearestIsAnother(ctx context.Context, s Subject, p *process) error {
	return wrongSettings(ctx, s, p, func(changes map[string]any, unknown bool, problem *pluginv1.Problem) error {
		nearest := problem.GetNearest()
		_, changed := changes[problem.GetPath()]
		_, wrong := changes[nearest]
		switch {
		case nearest == "" || !changed:
			return nil
		case !unknown:
			return kit.Failf("the setting %q exists and has a wrong type; the problem with it must name no nearest one, and names %q", problem.GetPath(), nearest)
		case wrong || nearest == problem.GetPath():
			return kit.Failf("the setting %q does not exist; the problem with it must name one that does as the nearest, and names %q", problem.GetPath(), nearest)
		}
		return nil
	})
}

func configuresWithoutDirectory(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	_, err = service.Configure(ctx, &pluginv1.ConfigureRequest{SettingsJson: s.goodSettings()})
	if code := status.Code(err); code != codes.OK && code != codes.Unavailable {
		return kit.Failf("Configure without a data_dir must answer OK, with a problem where the plugin needs one; it failed: %w", err)
	}
	return nil
}

func errorsSpeak(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	call, err := p.kindCall(s)
	if err != nil {
		return err
	}
	if err := call(ctx, "x"); err != nil && status.Convert(err).Message() == "" {
		return kit.Failf("a call of the kind's own service failed with the code %s and no message; it must say what was wrong", status.Code(err))
	}
	return nil
}

// shutdown and terminate ask a process to end.
func shutdown(ctx context.Context, p *process) error {
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	_ = conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // the process may be gone before it answers
	return nil
}

func terminate(_ context.Context, p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// endsWhileWatched asks a process that serves to end, while a stream of its health is open.
func endsWhileWatched(end func(context.Context, *process) error) func(context.Context, Subject, *process) error {
	return func(ctx context.Context, s Subject, p *process) error {
		if _, err := configured(ctx, s, p); err != nil {
			return err
		}
		conn, err := p.dial(true, p.server)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if stream, err := grpc_health_v1.NewHealthClient(conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService}); err == nil {
			_, _ = stream.Recv() // a plugin without Watch ends the stream
		}
		if err := end(ctx, p); err != nil {
			return err
		}
		if _, gone := p.exits(patience); !gone {
			return kit.Failf("it must end although a stream is open; %s later it still ran", patience.Round(time.Second))
		}
		return nil
	}
}
