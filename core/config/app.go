package config

import "github.com/ropewalk/ropewalk/core"

// App is an app that the configuration declares: it is installed at the start when it is not yet.
// Without a source it declares nothing, and Protected holds for an app of that name, whoever
// installs it.
type App struct {
	Source  core.Source // Kind and Ref; zero for none; a path is absolute, relative ones count from the file's folder
	Version string      // of SourceName; "" means the latest
	Env     map[string]core.Secret
	Remote  *core.Remote // of SourceURL
	// InstallScripts lets npm run the install scripts of packages.
	InstallScripts bool
	Protected      bool     // uninstalling it is refused with 403 protected
	Sandbox        *Sandbox // nil for Config.Sandbox
}
