package permit

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// protectedPath is a path to which only the configuration may allow access.
type protectedPath struct {
	path, why string
	write     bool // protected only against writing
}

// protects returns why only the configuration may allow access to a path, or "" if others may. The reason is that the
// path is protected, contains a protected path or is inside one. path must not contain symbolic links. Files are
// compared by identity as well, because a path can have other names through bind mounts and on file systems that ignore
// case.
func (g *Guard) protects(path string, write bool) (why string) {
	above, parents := ancestors(path), map[string]place{}
	own, ownErr := os.Stat(path)
	for _, c := range g.protectedPaths() {
		if c.write && !write {
			continue
		}
		dir := filepath.Dir(c.path)
		parent, known := parents[dir]
		if !known {
			parent = placeOf(dir)
			parents[dir] = parent
		}
		real := filepath.Join(parent.real, filepath.Base(c.path))
		info, err := os.Lstat(real)
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			real = RealPath(real)
			parent = placeOf(filepath.Dir(real))
			info, err = os.Stat(real)
		}
		if sandbox.PathWithin(path, real) || sandbox.LogOf(path) == real || err == nil && isAmong(info, above) {
			return c.why
		}
		if sandbox.PathWithin(real, path) || ownErr == nil && (isAmong(own, parent.above) || err == nil && os.SameFile(own, info)) {
			return "it contains " + c.path + ": " + c.why
		}
	}
	return ""
}

// place is a directory without symbolic links, together with the directories above it.
type place struct {
	real  string
	above []os.FileInfo
}

func placeOf(dir string) place {
	real := RealPath(dir)
	return place{real, ancestors(real)}
}

// ancestors returns a path and the directories above it, excluding the root.
func ancestors(path string) (all []os.FileInfo) {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil {
			all = append(all, info)
		}
	}
	return all
}

func isAmong(info os.FileInfo, files []os.FileInfo) bool {
	return slices.ContainsFunc(files, func(f os.FileInfo) bool { return os.SameFile(f, info) })
}

const (
	whySystem   = "it is part of the system"
	whySockets  = "it leads to sockets of the system or its users"
	whySecrets  = "it contains someone's keys, passwords or cookies"
	whyStartup  = "files written there are executed outside the sandbox"
	whyServer   = "it belongs to the server"
	whyPassword = "it contains the machine's passwords or keys"
)

// protectedPaths lists the paths to which only the configuration may allow access.
func (g *Guard) protectedPaths() (all []protectedPath) {
	add := func(why string, write bool, paths ...string) {
		for _, path := range paths {
			if filepath.IsAbs(path) {
				all = append(all, protectedPath{filepath.Clean(path), why, write})
			}
		}
	}
	add(whyServer, false, g.Home)
	add(whySystem, false, "/dev", "/proc", "/sys", "/boot", "/lost+found", "/var/lib/docker", "/var/lib/containerd", "/var/spool")
	add(whySockets, false, "/run/docker.sock", "/run/user", "/run/dbus", "/run/systemd", "/run/containerd", "/run/podman", "/run/secrets", "/tmp/.X11-unix", "/tmp/.ICE-unix", "/var/run/docker.sock")
	add(whyPassword, false, "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/kubernetes", "/var/lib/kubelet", "/Library/Keychains")
	add(whySystem, true, append(sandbox.SystemPaths(), "/etc", "/var/lib", "/Library", "/System", "/Applications")...)
	add(whyServer, false, g.Protected...)
	for _, name := range []string{"SSH_AUTH_SOCK", "GPG_AGENT_INFO", "XAUTHORITY", "XDG_RUNTIME_DIR", "DOCKER_CONFIG", "KUBECONFIG", "GNUPGHOME", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "CLOUDSDK_CONFIG", "NETRC", "NPM_CONFIG_USERCONFIG", "PGPASSFILE"} {
		for _, path := range filepath.SplitList(g.Env[name]) {
			add(whySecrets, false, path)
		}
	}
	for _, name := range []string{"DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS"} {
		for _, part := range strings.FieldsFunc(g.Env[name], func(r rune) bool { return r == ',' || r == ';' }) {
			add(whySockets, false, strings.TrimPrefix(strings.TrimPrefix(part, "unix:path="), "unix://"))
		}
	}
	for _, home := range g.homes() {
		for _, name := range secretNames() {
			add(whySecrets, false, filepath.Join(home, name))
		}
		for _, name := range startupNames() {
			add(whyStartup, true, filepath.Join(home, name))
		}
	}
	return all
}

// secretNames returns where people and their programs keep secrets, relative to a home directory.
func secretNames() []string {
	return []string{
		".ssh", ".aws", ".azure", ".kube", ".gnupg", ".docker", ".config/containers", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials",
		".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/op", ".config/doctl", ".config/rclone", ".config/sops", ".config/age", ".terraform.d", ".terraformrc",
		".vault-token", ".password-store", ".pgpass", ".my.cnf", ".mylogin.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml",
		".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet", ".pki", ".config/keepassxc", ".config/Bitwarden", ".config/1Password", ".config/Signal",
		".mozilla", ".thunderbird", ".librewolf", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
		"snap", ".var/app", ".Xauthority", ".ICEauthority", ".dbus", ".config/Slack", ".config/discord", ".config/Code/User/globalStorage", ".config/Claude", ".claude.json", ".claude", ".codex", ".cursor",
		".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".psql_history", ".ropewalk",
		"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Mail", "Library/Messages", "Library/Application Support/Google", "Library/Application Support/Firefox", "Library/Application Support/BraveSoftware", "Library/Application Support/Microsoft Edge", "Library/Application Support/com.apple.TCC",
	}
}

// startupNames returns the files and directories from which shells, desktops and tools run code or read settings,
// relative to a home directory.
func startupNames() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/fish", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc",
		".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", ".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/applications", ".local/share/systemd", ".local/bin", "bin",
		".gitconfig", ".config/git", ".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".tmux.conf", ".config/tmux", ".screenrc", ".gdbinit", ".forward", ".procmailrc", ".mailcap",
		".cargo", ".rustup", ".nvm", ".fnm", ".volta", ".pyenv", ".rbenv", ".asdf", ".sdkman", ".deno", ".bun", ".local/share/mise", ".config/mise", ".config/pipx", ".local/share/uv", ".local/lib", ".npm", ".cache/uv", ".vscode", ".config/Code", "Library/LaunchAgents",
	}
}

// homes returns the home directories of people on this machine, and the one of the server's user.
func (g *Guard) homes() []string {
	all := []string{g.Env["HOME"]}
	if file, err := os.Open("/etc/passwd"); err == nil {
		defer func() { _ = file.Close() }()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Split(lines.Text(), ":")
			if len(fields) < 6 {
				continue
			}
			if uid, err := strconv.Atoi(fields[2]); err == nil && (uid == 0 || uid >= 1000 && uid < 65000) {
				all = append(all, fields[5])
			}
		}
	}
	for _, dir := range []string{"/home", "/Users"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(dir string) bool { return !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" })
}
