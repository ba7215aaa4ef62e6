package config

// The names of the feature flags.
const (
	FlagMCPServer           = "mcpServer"
	FlagBundleManagement    = "bundleManagement"
	FlagBundleDiscovery     = "bundleDiscovery"
	FlagToolDiscovery       = "toolDiscovery"
	FlagSkillManagement     = "skillManagement"
	FlagDelegation          = "delegation"
	FlagUserManagement      = "userManagement"
	FlagWorkspaceManagement = "workspaceManagement"
	FlagFileContext         = "fileContext"
)

// Features are the feature flags by name. All are on by default, so one that is not in the map is
// on, and the nil map is everything on.
type Features map[string]bool

// Enabled reports whether a flag is on.
func (f Features) Enabled(flag string) bool {
	on, set := f[flag]
	return on || !set
}
