// Package app holds the `ropewalk app` commands: install, list, operate and uninstall apps.
package app
