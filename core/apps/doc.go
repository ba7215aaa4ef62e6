// Package apps is the manager of running apps: it installs them, keeps them running and calls them.
//
// It owns every app's life (spec part 3): one supervisor per app writes its state, each change
// goes through one function that refuses what core.State forbids, and readers see immutable
// snapshots without waiting. It owns where an app's files lie, what its process may see of the
// host, the restart policy, and the snapshot of what each workspace's apps offer.
//
// It owns whose client an app's question reaches. Callers share one instance of an app; one that
// asks its clients gets an instance for each session, and one that speaks both eras of MCP another
// for the other era. Between the eras a question becomes a result and a result a question.
//
// Of servers that share their records each follows what was done through the others (follow.go), with
// the same files (files.go).
//
// It does not own process trees (process), the MCP wire (link), what a bundle is (bundle), who
// may call what and under which names (tools, access) or how records are kept (store). It is apart
// because life cycle and supervision must be right without a network, a database or a door in the room.
package apps
