// Package apps manages the life cycle of installed apps.
//
// Manager installs, starts, supervises, stops and uninstalls the apps of all workspaces, calls them,
// and keeps the servers of a cluster equal to what is recorded. Each app has one supervisor, each
// change of state goes through app.transition, which refuses what core.State forbids, and readers see
// immutable views without waiting.
//
// The packages below own the rest: where bundles come from (source), one running process or
// connection (instance), its log (logs), the lists that apps offer (offer), and the requests of apps
// to their clients (interact). Process trees belong to process, the MCP wire to link, what a bundle
// is to bundle, names and permissions of tools to tools and access, and records to store.
package apps
