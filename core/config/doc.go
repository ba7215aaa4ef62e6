// Package config reads, defaults and checks the configuration, and gives one frozen Config.
//
// It owns ropewalk.yaml (YAML 1.2, so JSON too), the environment variables and the flags that
// override it (flag > environment > file > default), the JSON Schema that editors use and that
// the check itself runs on, and the comparison of two configurations for a reload. It is the one
// room that reads environment variables: whoever needs one gets it from Config.Environment.
//
// It does not own the settings of adapters: the keys of auth, sessionStore and registries[] that
// are not the server's own are handed to the adapter as JSON, and the adapter checks them as
// strictly. Config.Problem puts the adapter's complaint about a field on its line of the file.
//
// It is apart because everything else may then trust what it is given: nothing starts before
// every problem of the configuration is known, and all are told at once, each with its place.
package config
