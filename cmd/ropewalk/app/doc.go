// Package app contains the `ropewalk app` commands: install, list, operate and uninstall apps.
package app
