// Package config reads, defaults and checks the configuration, and returns one frozen Config.
//
// It owns the meaning of ropewalk.yaml (YAML 1.2, so JSON too), of the environment variables and of the
// flags that override it (flag > environment > file > default), and the comparison of two configurations
// for a reload. Packages layer and schema read and check single values. It is the only package that reads
// environment variables: others take one from Config.Environment.
//
// It does not own the settings of adapters: the keys of auth, sessionStore and registries[] that are not
// the server's own are passed to the adapter as JSON, and the adapter checks them as strictly.
// Config.Problem puts an adapter's problem with a setting on its line of the file.
//
// Nothing starts before the whole configuration was checked. Load reports all problems at once, each
// with its place.
package config
