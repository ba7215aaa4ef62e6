package config

// FindHome returns the service home, absolute: the flag's, else ROPEWALK_HOME, else ~/.ropewalk.
// It is for commands that need a home and no configuration.
func FindHome(flag string, env Environment) (string, error) {
	return homeDir(Options{Home: flag, Environment: env})
}
