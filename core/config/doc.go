// Package config reads the configuration, applies defaults, checks it, and returns one immutable Config.
//
// It defines the meaning of ropewalk.yaml (YAML 1.2, so JSON too) and of the environment variables and flags
// that override it (flag > environment > file > default). It also compares two configurations for a reload.
// Packages layer and schema read and check single values. No other package reads environment variables; they
// take them from Config.Environment.
//
// It does not define the settings of adapters. Keys of auth, sessionStore and registries[] that are not the
// server's own are passed to the adapter as JSON, and the adapter checks them just as strictly. Config.Problem
// assigns an adapter's problem with a setting to the setting's line in the file.
//
// Nothing starts before the whole configuration has been checked. Load reports all problems at once, each with
// its place.
package config
