// SPDX-License-Identifier: GPL-2.0
/*
 * The price of a byte: how long a processor waits for memory when it copies out of the page cache or into it.
 *
 * The virtual clock counts instructions and knows no memory. So a probe on each function that copies executes as many
 * instructions more as the wait is long, and the clock counts them like all others. A page of a pipe has no mapping:
 * it was written a moment ago, is in the processor's cache and costs nothing more. Nor does what is read for the kernel
 * itself: a loop device, which no studied machine had before its data.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/uio.h>
#include <linux/version.h>

#define SLED 128		/* instructions of a turn, which the emulator translates to a few of its own */

struct price {
	unsigned int per_kib;	/* instructions for 1024 bytes */
	u64 owed;		/* 1024ths of an instruction, less than a whole one */
};

static struct price read_price, written_price;

struct copier {
	struct kprobe probe;
	struct price *price;
	unsigned int bytes;	/* which of its arguments says how many, from 0 */
};

/* Linux 5.14 renamed the second of those that write, and a later one gave it a folio. */
static int copies(struct kprobe *probe, struct pt_regs *regs);
#define COPIER(name, its_price, argument) \
	{ .probe = { .symbol_name = name, .pre_handler = copies }, .price = its_price, .bytes = argument }
static struct copier copiers[] = {
	COPIER("copy_page_to_iter", &read_price, 2),
	COPIER("iov_iter_copy_from_user_atomic", &written_price, 3),
	COPIER("copy_page_from_iter_atomic", &written_price, 2),
	COPIER("copy_folio_from_iter_atomic", &written_price, 2),
};

/* Aligned, so that a turn is in one page and thus one block of the emulator's. */
static noinline notrace __aligned(256) void spend(unsigned long turns, unsigned long pairs)
{
	if (turns)
		asm volatile("1: .rept 126\n\tnop\n\t.endr\n\tdec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
	if (pairs)
		asm volatile("1: dec %0\n\tjnz 1b" : "+r"(pairs) : : "cc");
}

static bool in_page_cache(unsigned long page)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0)
	return ((struct folio *)page)->mapping;
#else
	return ((struct page *)page)->mapping;
#endif
}

static bool for_a_program(const struct iov_iter *iter)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
	return user_backed_iter(iter);
#else
	return iter_is_iovec(iter);
#endif
}

/* What is written by the kernel itself (splice) is copied for a program. */
static bool costs(const struct price *price, struct pt_regs *regs)
{
	return price->per_kib && in_page_cache(regs_get_kernel_argument(regs, 0)) &&
	       (price == &written_price || for_a_program((void *)regs_get_kernel_argument(regs, 3)));
}

static int copies(struct kprobe *probe, struct pt_regs *regs)
{
	struct copier *copier = container_of(probe, struct copier, probe);
	struct price *price = copier->price;
	u64 whole;

	if (costs(price, regs)) {
		price->owed += regs_get_kernel_argument(regs, copier->bytes) * price->per_kib;
		whole = price->owed >> 11 << 1;	/* in pairs */
		price->owed -= whole << 10;
		spend(whole / SLED, whole % SLED / 2);
	}
	return 0;
}
NOKPROBE_SYMBOL(copies);

/* The probes are there once a price is set, if it is 0. A kernel has each of the functions under one of its names. */
static int attach(struct price *price)
{
	unsigned int i;
	bool attached = false;

	for (i = 0; i < ARRAY_SIZE(copiers); i++)
		if (copiers[i].price == price)
			attached |= copiers[i].probe.addr || !register_kprobe(&copiers[i].probe);
	return attached ? 0 : -ENOENT;
}

static int set_price(const char *text, const struct kernel_param *parameter)
{
	struct price *price = parameter->arg;
	int error = kstrtouint(text, 0, &price->per_kib);

	return error ? error : attach(price);
}

static const struct kernel_param_ops price_operations = { .set = set_price };
module_param_cb(read_price, &price_operations, &read_price, 0200);
MODULE_PARM_DESC(read_price, "instructions that 1024 bytes cost more which are copied out of the page cache");
module_param_cb(written_price, &price_operations, &written_price, 0200);
MODULE_PARM_DESC(written_price, "instructions that 1024 bytes cost more which are copied into the page cache");
