// Package app holds the `ropewalk app` commands: install, list, operate and remove apps.
package app
