// SPDX-License-Identifier: GPL-2.0
/*
 * A filesystem of four files, with a fault planted in each of three: its tests fail as the schedule decides.
 *
 * counter  each write adds 1; between reading and writing it back nothing is locked: updates get lost
 * forth    a write takes one lock, then the other;
 * back     a write takes them the other way round
 * session  + opens it, - closes it. One that is open already is an error, whose path frees what is still in the list
 */
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define MAGIC 0x706c616e

static long counter;
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static ssize_t add(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	long seen = READ_ONCE(counter);
	char word;

	if (get_user(word, from))
		return -EFAULT;
	WRITE_ONCE(counter, seen + 1);
	*at += size;
	return size;
}

static ssize_t show(struct file *file, char __user *to, size_t size, loff_t *at)
{
	char text[24];
	int length = scnprintf(text, sizeof(text), "%ld\n", READ_ONCE(counter));

	return simple_read_from_buffer(to, size, at, text, length);
}

static ssize_t take_both(struct mutex *one, struct mutex *other, size_t size)
{
	mutex_lock(one);
	mutex_lock(other);
	mutex_unlock(other);
	mutex_unlock(one);
	return size;
}

static ssize_t forth(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	return take_both(&first, &second, size);
}

static ssize_t back(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	return take_both(&second, &first, size);
}

struct session {
	struct list_head list;
};

static LIST_HEAD(sessions);
static DEFINE_MUTEX(listed);
static bool opened;

static int open_session(void)
{
	struct session *session = kzalloc(sizeof(*session), GFP_KERNEL);
	bool busy;

	if (!session)
		return -ENOMEM;
	mutex_lock(&listed);
	list_add(&session->list, &sessions);
	busy = opened;
	opened = true;
	mutex_unlock(&listed);
	if (!busy)
		return 0;
	kfree(session);
	mutex_lock(&listed);
	list_del(&session->list);
	mutex_unlock(&listed);
	return -EBUSY;
}

static int close_session(void)
{
	struct session *session;

	mutex_lock(&listed);
	session = list_first_entry_or_null(&sessions, struct session, list);
	if (session)
		list_del(&session->list);
	opened = false;
	mutex_unlock(&listed);
	kfree(session);
	return 0;
}

static ssize_t session(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char word;
	int error;

	if (get_user(word, from))
		return -EFAULT;
	error = word == '+' ? open_session() : close_session();
	return error ? error : size;
}

static const struct file_operations counting = { .owner = THIS_MODULE, .read = show, .write = add };
static const struct file_operations going_forth = { .owner = THIS_MODULE, .write = forth };
static const struct file_operations going_back = { .owner = THIS_MODULE, .write = back };
static const struct file_operations in_session = { .owner = THIS_MODULE, .write = session };

static int fill(struct super_block *sb, struct fs_context *fc)
{
	static const struct tree_descr files[] = {
		[2] = { "counter", &counting, 0600 },
		[3] = { "forth", &going_forth, 0200 },
		[4] = { "back", &going_back, 0200 },
		[5] = { "session", &in_session, 0200 },
		{ "" },
	};

	return simple_fill_super(sb, MAGIC, files);
}

static int get_tree(struct fs_context *fc)
{
	return get_tree_single(fc, fill);
}

static const struct fs_context_operations context = { .get_tree = get_tree };

static int initialise(struct fs_context *fc)
{
	fc->ops = &context;
	return 0;
}

static struct file_system_type planted = {
	.owner = THIS_MODULE,
	.name = "planted",
	.init_fs_context = initialise,
	.kill_sb = kill_litter_super,
};

static int __init begin(void)
{
	return register_filesystem(&planted);
}

static void __exit end(void)
{
	unregister_filesystem(&planted);
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A filesystem with planted faults");
