package plugins

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"google.golang.org/grpc"
)

// Plugin is an implementation with the gRPC services of its contract. Contract packages create it (see
// sessionstore.Plugin), and packages server and plugintest use it.
type Plugin struct {
	Kind             Kind
	Impl             any              // the implementation; its capabilities are detected by its methods
	ProtocolVersions map[int]Register // protocol version -> its services
	Capabilities     []string         // capabilities of the kind itself, such as CapabilityLogin
	Version          string           // of the executable; "" means that of its module. The version of a Versioned implementation takes precedence
}

// Register registers the services of one protocol version with a gRPC server.
type Register func(grpc.ServiceRegistrar)

// Info describes p.
func (p Plugin) Info() Info {
	info := Info{Kind: p.Kind, Name: executableName(p.Kind), Version: cmp.Or(p.Version, moduleVersion()), Capabilities: slices.Clone(p.Capabilities)}
	if named, ok := p.Impl.(Named); ok {
		info.Name = named.Name()
	}
	if versioned, ok := p.Impl.(Versioned); ok {
		info.Version = versioned.Version()
	}
	for version := range p.ProtocolVersions {
		info.ProtocolVersions = append(info.ProtocolVersions, version)
	}
	if _, ok := p.Impl.(Configurer); ok {
		info.Capabilities = append(info.Capabilities, CapabilityConfigure)
	}
	if _, exclusive := p.Impl.(Exclusive); exclusive {
		info.Capabilities = append(info.Capabilities, CapabilityExclusive)
	}
	_, validates := p.Impl.(Validator)
	if _, holds := p.Impl.(SettingsHolder); validates || holds {
		info.Capabilities = append(info.Capabilities, CapabilityValidate)
	}
	slices.Sort(info.ProtocolVersions)
	slices.Sort(info.Capabilities)
	return info
}

func executableName(kind Kind) string {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "ropewalk-plugin ") // the process title that the server gives to a built-in adapter, which has no path
	return strings.TrimPrefix(WithoutPlatform(name), string(kind)+"-")
}

// WithoutPlatform returns the name of an executable without its platform: auth-okta for auth-okta_linux_amd64,
// auth-okta-darwin-arm64 and auth-okta.exe.
func WithoutPlatform(file string) string { return platform.ReplaceAllString(file, "") }

var platform = regexp.MustCompile(`(?i)([-_.](linux|darwin|macos|windows|freebsd)([-_.](amd64|x86_64|x64|arm64|aarch64|arm|386|riscv64))?)?(\.exe)?$`)

func moduleVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "unknown"
}
