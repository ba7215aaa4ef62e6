package sandbox

import "golang.org/x/sys/unix"

// attributesHere adds the calls that only this architecture has.
func (b *Broker) attributesHere() {
	b.calls[unix.SYS_CHMOD] = func(n notification) error {
		return b.changeNamed(n, fileName{currentDir(), n.args[0], 0}, changeMode(n.args[1]))
	}
	b.calls[unix.SYS_CHOWN] = func(n notification) error {
		return b.changeNamed(n, fileName{currentDir(), n.args[0], 0}, changeOwner(n.args[1], n.args[2]))
	}
	b.calls[unix.SYS_LCHOWN] = func(n notification) error {
		return b.changeNamed(n, fileName{currentDir(), n.args[0], unix.AT_SYMLINK_NOFOLLOW}, changeOwner(n.args[1], n.args[2]))
	}
}
