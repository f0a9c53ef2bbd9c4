// SPDX-License-Identifier: GPL-2.0
/*
 * A modelled drive as a block device: one hardware queue, the kernel's merging and I/O scheduler before it.
 *
 * A request's data is copied once, when the drive takes it up; its completion waits for the model's time. So the
 * copy, which DMA would not have cost, overlaps the service time.
 */
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include "block.h"

struct command {
	struct list_head entry;
	struct hrtimer timer;
	u64 arrived;
	blk_status_t status;
};

static LIST_HEAD(drives);
static DEFINE_MUTEX(drives_lock);

#define block_of(the_drive) container_of(the_drive, struct block, drive)

/* ---- time: the drive's is the machine's, of which the guest's clock is a multiple (harness/dilation.py) ---- */

#define PARTS 1000000
static unsigned int dilation = PARTS;
module_param(dilation, uint, 0600);
MODULE_PARM_DESC(dilation, "nanoseconds of the machine in a million of the guest's clock, set before drives are made");

static u64 machine_now(void)
{
	return mul_u64_u32_div(ktime_get_ns(), dilation, PARTS);
}

/* The first moment of the guest's clock at which the machine's is not before ``ns``. */
static ktime_t guest_time(u64 ns)
{
	return ns_to_ktime(mul_u64_u32_div(ns, PARTS, dilation) + (dilation != PARTS));
}

static void prepare_timer(struct hrtimer *timer, enum hrtimer_restart (*expired)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = expired;
#endif
}

/* ---- serving ---- */

static u64 service(struct block *block, struct request *rq, u64 now)
{
	struct drive *drive = &block->drive;

	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		return drive_flush(drive, now);
	case REQ_OP_DISCARD:
		return drive_discard(drive, blk_rq_pos(rq), blk_rq_sectors(rq), now);
	case REQ_OP_WRITE:
		return drive_write(drive, blk_rq_pos(rq), blk_rq_sectors(rq), rq->cmd_flags & REQ_FUA, now);
	default:
		return drive_read(drive, blk_rq_pos(rq), blk_rq_sectors(rq), now);
	}
}

static bool moves_data(struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

static bool stays_in_cache(struct block *block, struct request *rq)
{
	return write_cache_takes(&block->drive, blk_rq_pos(rq), blk_rq_sectors(rq), rq->cmd_flags & REQ_FUA);
}

/* How long the kernel waits for a drive that does not answer (SCSI's command timeout). */
#define PATIENCE_NS (30 * NSEC_PER_SEC)

static void take_up(struct block *block, struct request *rq, u64 now)
{
	struct command *command = blk_mq_rq_to_pdu(rq);
	u64 done;

	if (block->failed) {
		command->status = BLK_STS_IOERR;
		hrtimer_start(&command->timer, guest_time(greater(block->given_up, now)), HRTIMER_MODE_ABS);
		return;
	}
	done = service(block, rq, now);
	command->status = BLK_STS_OK;
	if (moves_data(rq)) {
		block->drive.stat.queue_sum += block->depth;
		now = machine_now();
		command->status = store_copy(&block->store, rq);
		block->drive.stat.copy_stolen_ns += machine_now() - now;
	}
	record_request(&block->record, rq, command->arrived, done);
	if (req_op(rq) == REQ_OP_DISCARD || (req_op(rq) == REQ_OP_WRITE && !stays_in_cache(block, rq)))
		record_kept(&block->record, blk_rq_pos(rq), blk_rq_pos(rq) + blk_rq_sectors(rq), done);
	now = machine_now();
	if (now > done)
		block->drive.stat.copy_late_ns += now - done;
	hrtimer_start(&command->timer, guest_time(done), HRTIMER_MODE_ABS);
}

/* Positioning time that a request is let off for the time that it has waited: or a stream would starve the others. */
#define PATIENCE 32

static s64 cost(struct block *block, struct command *command, u64 now)
{
	struct request *rq = blk_mq_rq_from_pdu(command);
	s64 waited = (now - command->arrived) / PATIENCE;

	if (req_op(rq) == REQ_OP_WRITE && stays_in_cache(block, rq))
		return -waited;
	return (s64)drive_reach(&block->drive, blk_rq_pos(rq), now) - waited;
}

/* The request that the drive can reach first; a flush waits for nobody, and nobody overtakes it. */
static struct request *choose(struct block *block, u64 now)
{
	struct command *command, *best = NULL;
	s64 least = 0;

	list_for_each_entry(command, &block->waiting, entry) {
		s64 this;

		if (req_op(blk_mq_rq_from_pdu(command)) == REQ_OP_FLUSH) {
			if (!best)
				best = command;
			break;
		}
		this = cost(block, command, now);
		if (!best || this < least) {
			best = command;
			least = this;
		}
	}
	list_del(&best->entry);
	return blk_mq_rq_from_pdu(best);
}

static void serve_next(struct block *block, u64 now)
{
	if (list_empty(&block->waiting))
		return;
	if (list_is_singular(&block->waiting)) {
		struct command *only = list_first_entry(&block->waiting, struct command, entry);

		list_del(&only->entry);
		block->serving = blk_mq_rq_from_pdu(only);
	} else {
		block->serving = choose(block, now);
	}
	take_up(block, block->serving, now);
}

/* What the drive does by itself is looked at when a request comes, and at this pace while none does. */
#define PACE_NS (20 * NSEC_PER_MSEC)

static void schedule_background(struct block *block, u64 now)
{
	u64 next = block->drive.set.kind == DISK ? write_cache_next(&block->drive) : 0;

	if (next && !block->serving)
		hrtimer_start(&block->background, guest_time(greater(next, now + PACE_NS)), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart command_done(struct hrtimer *timer)
{
	struct command *command = container_of(timer, struct command, timer);
	struct request *rq = blk_mq_rq_from_pdu(command);
	struct block *block = rq->q->queuedata;
	u64 now = machine_now();
	unsigned long flags;

	spin_lock_irqsave(&block->lock, flags);
	block->depth--;
	if (block->drive.set.kind == DISK) {
		write_cache_advance(&block->drive, now);
		block->serving = NULL;
		serve_next(block, now);
		schedule_background(block, now);
	}
	spin_unlock_irqrestore(&block->lock, flags);
	blk_mq_end_request(rq, command->status);
	return HRTIMER_NORESTART;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct block *block = hctx->queue->queuedata;
	struct request *rq = data->rq;
	struct command *command = blk_mq_rq_to_pdu(rq);
	unsigned long flags;

	if (!moves_data(rq) && req_op(rq) != REQ_OP_FLUSH && req_op(rq) != REQ_OP_DISCARD)
		return BLK_STS_NOTSUPP;
	prepare_timer(&command->timer, command_done);
	blk_mq_start_request(rq);
	spin_lock_irqsave(&block->lock, flags);
	command->arrived = machine_now();
	block->depth++;
	if (block->drive.set.kind != DISK) {
		take_up(block, rq, command->arrived);
	} else {
		list_add_tail(&command->entry, &block->waiting);
		if (!block->serving)
			serve_next(block, command->arrived);
	}
	spin_unlock_irqrestore(&block->lock, flags);
	return BLK_STS_OK;
}

static enum hrtimer_restart background_done(struct hrtimer *timer)
{
	struct block *block = container_of(timer, struct block, background);
	u64 now = machine_now();
	unsigned long flags;

	spin_lock_irqsave(&block->lock, flags);
	if (!block->serving) {
		write_cache_advance(&block->drive, now);
		schedule_background(block, now);
	}
	spin_unlock_irqrestore(&block->lock, flags);
	return HRTIMER_NORESTART;
}

static void written(struct drive *drive, u64 first, u64 end, u64 when)
{
	record_kept(&block_of(drive)->record, first, end, when);
}

static const struct blk_mq_ops operations = {
	.queue_rq = queue_rq,
};

static const struct block_device_operations device_operations = {
	.owner = THIS_MODULE,
};

/* ---- statistics: /sys/block/<name>/drive/stat ---- */

#define LINE(field) #field " %llu\n"

/* What a solid-state drive's flash did. */
static ssize_t show_flash(char *page, const struct statistics *stat)
{
	return scnprintf(page, PAGE_SIZE,
		LINE(flash_reads) LINE(units_programmed) LINE(units_moved) LINE(units_discarded) LINE(blocks_erased)
		LINE(gc_wait_ns),
		stat->flash_reads, stat->units_programmed, stat->units_moved, stat->units_discarded, stat->blocks_erased,
		stat->gc_wait_ns);
}

static ssize_t stat_show(struct device *device, struct device_attribute *attribute, char *page)
{
	struct block *block = dev_to_disk(device)->private_data;
	struct statistics stat;
	unsigned long flags;
	ssize_t shown;

	spin_lock_irqsave(&block->lock, flags);
	stat = block->drive.stat;
	spin_unlock_irqrestore(&block->lock, flags);
	shown = scnprintf(page, PAGE_SIZE,
		LINE(requests) LINE(reads) LINE(writes) LINE(sectors_read) LINE(sectors_written) LINE(sequential)
		LINE(blocks) LINE(seeks) LINE(seek_cylinders) LINE(busy_overhead_ns) LINE(busy_seek_ns) LINE(busy_rotation_ns)
		LINE(busy_transfer_ns) LINE(cache_hits) LINE(queue_sum) LINE(flushes) LINE(copy_late_ns)
		LINE(copy_stolen_ns),
		stat.requests, stat.reads, stat.writes, stat.sectors_read, stat.sectors_written, stat.sequential,
		stat.blocks, stat.seeks, stat.seek_cylinders, stat.busy_overhead_ns, stat.busy_seek_ns, stat.busy_rotation_ns,
		stat.busy_transfer_ns, stat.cache_hits, stat.queue_sum, stat.flushes, stat.copy_late_ns,
		stat.copy_stolen_ns);
	return shown + (block->drive.set.kind == SSD ? show_flash(page + shown, &stat) : 0);
}

#undef LINE

static DEVICE_ATTR_RO(stat);

static struct attribute *drive_attributes[] = {
	&dev_attr_stat.attr,
	NULL,
};

static const struct attribute_group drive_group = {
	.name = "drive",
	.attrs = drive_attributes,
};

static const struct attribute_group *drive_groups[] = {
	&drive_group,
	NULL,
};

/* ---- making a drive ---- */

static bool has_fua(const struct block *block)
{
	/* As libata has it: a FUA write is a command of NCQ, and without that Linux does not use it. */
	return block->drive.set.write_back && block->drive.set.depth > 1;
}

/* A discard's sectors at most: the drive forgets them in one go. */
#define DISCARD_MOST (1U << 20)

static int make_disk(struct block *block)
{
	const struct settings *set = &block->drive.set;
	struct gendisk *disk;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	struct queue_limits limits = {
		.logical_block_size = SECTOR_BYTES,
		.physical_block_size = SECTOR_BYTES,
		.max_hw_sectors = set->max_request / SECTOR_BYTES,
		.max_segments = BLK_MAX_SEGMENTS,
		.features = (set->kind == DISK ? BLK_FEAT_ROTATIONAL : 0) |
			    (set->write_back ? BLK_FEAT_WRITE_CACHE : 0) | (has_fua(block) ? BLK_FEAT_FUA : 0),
		.max_hw_discard_sectors = set->discard ? DISCARD_MOST : 0,
		.discard_granularity = set->discard ? UNIT * SECTOR_BYTES : 0,
	};

	disk = blk_mq_alloc_disk(&block->tags, &limits, block);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	block->queue = disk->queue;
#else
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	disk = blk_mq_alloc_disk(&block->tags, NULL, block);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	block->queue = disk->queue;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
	disk = blk_mq_alloc_disk(&block->tags, block);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	block->queue = disk->queue;
#else
	block->queue = blk_mq_init_queue(&block->tags);
	if (IS_ERR(block->queue))
		return PTR_ERR(block->queue);
	block->queue->queuedata = block;
	disk = alloc_disk(0);
	if (!disk)
		return -ENOMEM;
	disk->flags |= GENHD_FL_EXT_DEVT;
	disk->queue = block->queue;
#endif
	blk_queue_max_hw_sectors(block->queue, set->max_request / SECTOR_BYTES);
	blk_queue_max_segments(block->queue, BLK_MAX_SEGMENTS);
	blk_queue_write_cache(block->queue, set->write_back, has_fua(block));
	if (set->kind != DISK)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, block->queue);
	if (set->discard) {
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
		blk_queue_flag_set(QUEUE_FLAG_DISCARD, block->queue);
#endif
		block->queue->limits.discard_granularity = UNIT * SECTOR_BYTES;
		blk_queue_max_discard_sectors(block->queue, DISCARD_MOST);
	}
#endif
	disk->fops = &device_operations;
	disk->private_data = block;
	strscpy(disk->disk_name, block->name, DISK_NAME_LEN);
	set_capacity(disk, set->sectors);
	block->disk = disk;
	return 0;
}

static int add_disk_groups(struct gendisk *disk)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
	return device_add_disk(NULL, disk, drive_groups);
#else
	device_add_disk(NULL, disk, drive_groups);
	return 0;
#endif
}

/* Its map lies behind its data, where it outlives the guest. */
static int attach_map(struct block *block)
{
	void *memory = memremap(block->table, ftl_bytes(&block->drive.set), MEMREMAP_WB);

	if (!memory)
		return -ENXIO;
	ftl_attach(&block->drive, memory);
	return 0;
}

static int start(struct block *block)
{
	const char *wrong = block->name[0] ? drive_init(&block->drive) : "name must be given";
	int error;

	if (wrong) {
		pr_err("agedrive: %s\n", wrong);
		return -EINVAL;
	}
	block->drive.written = written;
	spin_lock_init(&block->lock);
	INIT_LIST_HEAD(&block->waiting);
	prepare_timer(&block->background, background_done);
	error = store_init(&block->store);
	if (!error && block->drive.set.kind == SSD)
		error = attach_map(block);
	if (!error)
		error = record_init(&block->record);
	if (error)
		return error;
	block->tags.ops = &operations;
	block->tags.nr_hw_queues = 1;
	block->tags.queue_depth = block->drive.set.depth;
	block->tags.numa_node = NUMA_NO_NODE;
	block->tags.cmd_size = sizeof(struct command);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	block->tags.flags = BLK_MQ_F_SHOULD_MERGE;
#endif
	error = blk_mq_alloc_tag_set(&block->tags);
	if (!error)
		error = make_disk(block);
	return error ? error : add_disk_groups(block->disk);
}

/* A drive that could not be made stays half made: the guest ends with an error then, and its memory with it. */
static int add(const char *text, const struct kernel_param *parameter)
{
	struct block *block = vzalloc(sizeof(*block));
	char *copy = kstrdup(text, GFP_KERNEL);
	int error = -ENOMEM;

	if (block && copy)
		error = settings_parse(block, copy);
	kfree(copy);
	if (!error)
		error = start(block);
	if (error)
		return error;
	mutex_lock(&drives_lock);
	list_add_tail(&block->all, &drives);
	mutex_unlock(&drives_lock);
	return 0;
}

static const struct kernel_param_ops add_operations = { .set = add };
module_param_cb(add, &add_operations, NULL, 0200);
MODULE_PARM_DESC(add, "the settings of a drive to make");

/* The power goes. What each drive has done by itself until now is in its record; nothing is written back, no device told. */
static int cut(const char *text, const struct kernel_param *parameter)
{
	struct block *block;

	mutex_lock(&drives_lock);
	local_irq_disable();
	list_for_each_entry(block, &drives, all) {
		spin_lock(&block->lock);	/* for good: no drive does anything any more */
		drive_advance(&block->drive, machine_now());
	}
	emergency_restart();
	return 0;
}

static const struct kernel_param_ops cut_operations = { .set = cut };
module_param_cb(cut, &cut_operations, NULL, 0200);
MODULE_PARM_DESC(cut, "written to, resets the machine as a power cut does");

static struct block *named(const char *text)
{
	struct block *block;

	list_for_each_entry(block, &drives, all)
		if (sysfs_streq(text, block->name))
			return block;
	return NULL;
}

/* A new drive of the same kind: one with flash has never been written. */
static void make_new(struct drive *drive)
{
	if (drive->set.kind != SSD)
		return;
	memset(drive->ftl.state, 0, ftl_bytes(&drive->set));
	ftl_attach(drive, drive->ftl.state);
}

/* What it is at is answered, what waits is not. A drive in its place is a new one. */
static int set_failed(const char *text, bool failed)
{
	struct block *block;
	unsigned long flags;

	mutex_lock(&drives_lock);
	block = named(text);
	if (block) {
		spin_lock_irqsave(&block->lock, flags);
		block->failed = failed;
		block->given_up = machine_now() + PATIENCE_NS;
		drive_settle(&block->drive);
		if (!failed)
			make_new(&block->drive);
		spin_unlock_irqrestore(&block->lock, flags);
	}
	mutex_unlock(&drives_lock);
	return block ? 0 : -ENODEV;
}

static int fail(const char *text, const struct kernel_param *parameter)
{
	return set_failed(text, true);
}

static int renew(const char *text, const struct kernel_param *parameter)
{
	return set_failed(text, false);
}

static const struct kernel_param_ops fail_operations = { .set = fail };
module_param_cb(fail, &fail_operations, NULL, 0200);
MODULE_PARM_DESC(fail, "the name of a drive that stops answering");

static const struct kernel_param_ops renew_operations = { .set = renew };
module_param_cb(renew, &renew_operations, NULL, 0200);
MODULE_PARM_DESC(renew, "the name of a drive in whose place a new one comes");

/* An orderly end flushes every drive, as a disk's driver does: the next boot finds everything. */
static int ending(struct notifier_block *notifier, unsigned long action, void *data)
{
	struct block *block;
	unsigned long flags;

	mutex_lock(&drives_lock);
	list_for_each_entry(block, &drives, all) {
		spin_lock_irqsave(&block->lock, flags);
		drive_settle(&block->drive);
		spin_unlock_irqrestore(&block->lock, flags);
	}
	mutex_unlock(&drives_lock);
	return NOTIFY_DONE;
}

static struct notifier_block reboot_notifier = { .notifier_call = ending };

static int __init agedrive_init(void)
{
	return register_reboot_notifier(&reboot_notifier);
}

module_init(agedrive_init);
MODULE_DESCRIPTION("A modelled drive in guest time");
MODULE_LICENSE("GPL");
