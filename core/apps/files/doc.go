// Package files keeps the files of installed apps on this server.
//
// It owns where the files of a bundle are below the home, whether they are complete, their copy for the
// other servers of a cluster, and the removal of files that no record names. How a bundle is found and
// unpacked for the first time is source's; which apps are installed is apps'.
//
// Each server of a cluster runs its own process of an app, from files in its own home. The server that
// installs an app stores its files with the records, and one that starts an app without having its
// files takes them from there. So all servers run the same files, even when their source changes or
// disappears.
//
// Python virtual environments contain their own path in many files and cannot be moved: they are
// installed again from their registry, in the recorded version.
package files
