package host

import "strings"

// CommandDir is where a host has its command log: one file a command.
const CommandDir = "/run/sandbox/commands"

// record is the shell command that OpenSSH runs in place of what was asked for: it writes that
// down and then runs it, in the shell that would have run it. A file for each, so that two at the
// same time, or one of many kilobytes, stay whole.
const record = `f="` + CommandDir + `/$(date +%s%N).$$"; ` +
	`printf '%s\n%s' "$LOGNAME" "$SSH_ORIGINAL_COMMAND" >"$f"; ` +
	`if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"; else exec "$SHELL" -l; fi`

func sshdConfig() string {
	lines := []string{
		"Port 22",
		"ListenAddress 0.0.0.0",
		"HostKey /etc/ssh/ssh_host_ed25519_key",
		"HostKey /etc/ssh/ssh_host_ecdsa_key",
		"PidFile /run/sshd.pid",
		"PermitRootLogin prohibit-password",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"UsePAM no",
		"UseDNS no",
		"PrintMotd no",
		"PrintLastLog no",
		"AllowTcpForwarding yes",
		"ForceCommand " + record,
	}
	if p := sftpServer(); p != "" {
		lines = append(lines, "Subsystem sftp "+p)
	}
	return strings.Join(lines, "\n") + "\n"
}
