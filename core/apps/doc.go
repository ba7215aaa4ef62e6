// Package apps manages the life cycle of installed apps.
//
// Manager installs, starts, supervises, stops and uninstalls the apps of all workspaces, calls them,
// and keeps the servers of a cluster equal to what is recorded. Each app has one supervisor, each
// change of state goes through app.transition, which refuses what core.State forbids, and readers see
// immutable views without waiting.
//
// The packages below own the rest: where bundles come from (source), one running process or
// connection (instance), its log (logs), when apps are started (schedule), the files of bundles on this
// server (files), the lists that apps offer (offer), the requests of apps to their clients (interact),
// and what clients receive outside their calls (notify). Process trees belong to process, the MCP wire to link, what a bundle
// is to bundle, names and permissions of tools to tools and access, and records to store.
package apps
