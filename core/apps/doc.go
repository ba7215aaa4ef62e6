// Package apps manages the life cycle of installed apps.
//
// Manager installs, starts, supervises, stops and uninstalls the apps of all workspaces, calls them, and reconciles the
// servers of a cluster with the records. Each app has one supervisor. Every state change goes through app.transition,
// which rejects what core.State forbids. Readers see immutable views and never wait.
//
// The packages below own the rest: where bundles come from (source), client configurations (pasted), the files of
// bundles on this server (files, cleanup), and one running process or connection (instance) with its log (logs). They
// also own the lists that apps offer (offer), the requests that apps send to their clients (interact), and what may be
// granted beyond the sandbox (permit). Elsewhere in core, process owns process trees, link owns the MCP protocol,
// bundle owns the bundle format, tools and access own the names and permissions of tools, and store owns the records.
package apps
