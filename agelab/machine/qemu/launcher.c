/*
 * Starts the QEMU that lies unpacked beside this program, with the dynamic linker and the libraries of its own suite:
 * those of the host are others on each distribution, and QEMU would run with them or not.
 *
 * The linker has a name and a place by which the process is known as QEMU (/proc/<pid>/comm), and by which QEMU finds
 * its modules and firmware: it looks for them from the directory of /proc/self/exe, which is the linker. LD_PRELOAD is
 * for QEMU alone: this program is static, so nothing is loaded into it.
 */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINKER "/root/usr/bin/qemu-system-x86_64"
#define PROGRAM "/root/usr/lib/qemu/qemu-system-x86_64"
#define LIBRARIES "/root/usr/lib/x86_64-linux-gnu"
#define OWN_WORDS 6 /* before the user's: the linker's name, three options, of which one has a value, and QEMU's path */

static char *below(const char *top, const char *name)
{
	char *path;

	if (asprintf(&path, "%s%s", top, name) < 0)
		exit(127);
	return path;
}

int main(int count, char **words)
{
	static char self[PATH_MAX];
	char **command = calloc(count + OWN_WORDS, sizeof(*command));
	char *top, *linker;
	int at = 0;

	if (!command || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
		perror("/proc/self/exe");
		return 127;
	}
	top = dirname(self);
	linker = below(top, LINKER);
	command[at++] = linker;
	command[at++] = "--inhibit-cache";
	command[at++] = "--library-path";
	command[at++] = below(top, LIBRARIES);
	command[at++] = below(top, PROGRAM);
	while (*++words)
		command[at++] = *words;
	execv(linker, command);
	perror(linker);
	return 127;
}
