/*
 * A program whose calls are watched (ptrace(2)): after each that changes the filesystem, or makes a part of it persist, it
 * stands still until that was told. Of a large tree only the calls of the second kind are followed by a look at it; of the
 * others the paths are told, so that nobody takes what they change for a loss.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define TASKS 256
#define WORD 1024
#define LARGE 64 /* entries of a tree */

/* A call, and which of its arguments lead to files: a path, or the descriptor of an open file. */
static const struct watched {
	long number;
	const char *name, *arguments;	/* p: path, f: descriptor, d: a directory's descriptor for the path behind it, - none */
} watched[] = {
	{ SYS_fsync, "fsync", "f" }, { SYS_fdatasync, "fdatasync", "f" }, { SYS_sync, "sync", "" },
	{ SYS_syncfs, "syncfs", "f" }, { SYS_write, "write", "f" }, { SYS_pwrite64, "pwrite64", "f" },
	{ SYS_writev, "writev", "f" }, { SYS_pwritev, "pwritev", "f" }, { SYS_pwritev2, "pwritev2", "f" },
	{ SYS_ftruncate, "ftruncate", "f" }, { SYS_truncate, "truncate", "p" }, { SYS_fallocate, "fallocate", "f" },
	{ SYS_open, "open", "p" }, { SYS_openat, "openat", "dp" }, { SYS_creat, "creat", "p" },
	{ SYS_mkdir, "mkdir", "p" }, { SYS_mkdirat, "mkdirat", "dp" }, { SYS_rmdir, "rmdir", "p" },
	{ SYS_unlink, "unlink", "p" }, { SYS_unlinkat, "unlinkat", "dp" }, { SYS_rename, "rename", "pp" },
	{ SYS_renameat, "renameat", "dpdp" }, { SYS_renameat2, "renameat2", "dpdp" }, { SYS_link, "link", "pp" },
	{ SYS_linkat, "linkat", "dpdp" }, { SYS_symlink, "symlink", "-p" }, { SYS_symlinkat, "symlinkat", "-dp" },
	{ SYS_mknod, "mknod", "p" }, { SYS_mknodat, "mknodat", "dp" }, { SYS_setxattr, "setxattr", "p" },
	{ SYS_lsetxattr, "lsetxattr", "p" }, { SYS_fsetxattr, "fsetxattr", "f" },
	{ SYS_removexattr, "removexattr", "p" }, { SYS_lremovexattr, "lremovexattr", "p" },
	{ SYS_fremovexattr, "fremovexattr", "f" }, { SYS_copy_file_range, "copy_file_range", "--f" },
	{ SYS_sendfile, "sendfile", "f" },
};

static struct task {
	pid_t id;
	const struct watched *call;	/* NULL: none, or one that nobody waits for */
	char words[2 * WORD + 32];
} tasks[TASKS];

static struct task *task_of(pid_t id)
{
	struct task *free = NULL;

	for (struct task *task = tasks; task < tasks + TASKS; task++) {
		if (task->id == id)
			return task;
		if (!task->id)
			free = task;
	}
	if (!free) {
		errno = EAGAIN;
		die("more tasks than are watched");
	}
	*free = (struct task){ .id = id };
	return free;
}

/* What an open file of a task is, or its working directory (AT_FDCWD). */
static void opened_as(pid_t id, int descriptor, char *path, size_t room)
{
	char link[64];
	ssize_t size;

	if (descriptor == AT_FDCWD)
		snprintf(link, sizeof link, "/proc/%d/cwd", (int)id);
	else
		snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)id, descriptor);
	size = readlink(link, path, room - 1);
	path[size > 0 ? size : 0] = 0;
}

/* As it is named below the mount; false for a file elsewhere. */
static bool below_mount(char *path)
{
	size_t above = strlen(WHERE);

	if (strncmp(path, WHERE, above) || (path[above] && path[above] != '/'))
		return false;
	if (path[above])
		memmove(path, path + above + 1, strlen(path + above));
	else
		strcpy(path, ".");
	return true;
}

static void read_word(pid_t id, uint64_t address, char *word, size_t room)
{
	char path[64];
	ssize_t size = -1;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/mem", (int)id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		size = pread(fd, word, room - 1, address);
		close(fd);
	}
	word[size > 0 ? size : 0] = 0;
}

/* The path that a word means, seen from a directory. */
static void path_at(pid_t id, int directory, uint64_t address, char *path)
{
	char word[WORD], whole[2 * WORD + 2] = "", *rest = whole, *part;

	read_word(id, address, word, sizeof word);
	if (*word != '/')
		opened_as(id, directory, whole, WORD);
	strcat(strcat(whole, "/"), word);
	*path = 0;
	while ((part = strsep(&rest, "/"))) {
		char *last = strrchr(path, '/');

		if (!strcmp(part, "..") && last)
			*last = 0;
		else if (*part && strcmp(part, ".") && strcmp(part, "..") && strlen(path) + strlen(part) + 2 < WORD)
			strcat(strcat(path, "/"), part);
	}
}

static void entered(struct task *task, const struct __ptrace_syscall_info *info)
{
	int directory = AT_FDCWD;
	char word[WORD];
	size_t kept;

	task->call = NULL;
	for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
		if (watched[i].number == (long)info->entry.nr)
			task->call = watched + i;
	if (!task->call)
		return;
	if (info->entry.nr == SYS_open && !(info->entry.args[1] & (O_CREAT | O_TRUNC)))
		task->call = NULL;
	if (info->entry.nr == SYS_openat && !(info->entry.args[2] & (O_CREAT | O_TRUNC)))
		task->call = NULL;
	kept = task->call ? snprintf(task->words, sizeof task->words, "%s", task->call->name) : 0;
	for (int i = 0; task->call && task->call->arguments[i]; i++) {
		char kind = task->call->arguments[i];

		if (kind == 'd')
			directory = info->entry.args[i];
		if (kind != 'p' && kind != 'f')
			continue;
		if (kind == 'p')
			path_at(task->id, directory, info->entry.args[i], word);
		else
			opened_as(task->id, info->entry.args[i], word, sizeof word);
		if (!below_mount(word)) {
			task->call = NULL;	/* a file elsewhere: a pipe, the standard output */
			return;
		}
		if (kept < sizeof task->words)
			kept += snprintf(task->words + kept, sizeof task->words - kept, " %s", word);
	}
}

static bool untold;

static void returned(int number, const struct task *task, int error)
{
	if (tree_size <= LARGE || strstr(task->call->name, "sync")) {
		untold = false;
		tell(number, task->words, error);
	} else if (!error) {
		untold = true;
		fprintf(out, "{\"event\":\"unseen\",\"workload\":%d,\"call\":", number);
		text(task->words);
		end_line();
	}
}

/* Run it in the filesystem to its end, and that of all that it began. */
static void run_watched(int number, const char *program)
{
	const int options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			    PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int status, result = 0;
	pid_t first = fork(), id;

	if (first < 0)
		die("fork");
	if (!first) {
		int null = open("/dev/null", O_RDWR);

		if (chdir(WHERE) || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(127);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	if (waitpid(first, &status, 0) < 0 || ptrace(PTRACE_SETOPTIONS, first, 0, options))
		die("watching the program");
	ptrace(PTRACE_SYSCALL, first, 0, 0);
	while ((id = waitpid(-1, &status, __WALL)) > 0) {
		struct __ptrace_syscall_info info;
		struct task *task = task_of(id);
		int signal = 0;

		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (id == first)
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
			task->id = 0;
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) > 0) {
				if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
					entered(task, &info);
				} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && task->call) {
					returned(number, task, info.exit.is_error ? (int)-info.exit.rval : 0);
					task->call = NULL;
				}
			}
		} else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, id, 0, signal);
	}
	if (untold)
		tell(number, "exit", 0);
	fprintf(out, "{\"event\":\"program\",\"workload\":%d,\"status\":%d", number, result);
	end_line();
}
