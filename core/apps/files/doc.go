// Package files manages the files of installed apps on this server.
//
// It owns the location of a bundle's files in the home, and the checks that they are complete and unchanged. It
// also owns their copy for the other servers of a cluster, and the removal of files that no record refers to. Package
// source finds a bundle and unpacks it for the first time; package apps knows which apps are installed.
//
// Each server of a cluster runs its own process of an app, from files in its own home. The server that installs an app
// stores the files together with the records. A server that starts an app without having its files gets them from
// there. This way, all servers run the same files, even if the original source changes or disappears.
//
// Python virtual environments contain their own path in many files and cannot be moved. They are installed again from
// their registry, in the recorded version.
package files
