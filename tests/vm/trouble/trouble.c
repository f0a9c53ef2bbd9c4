// SPDX-License-Identifier: GPL-2.0
/* A kernel in trouble, on purpose: insmod trouble.ko how=oops. */
#include <linux/bug.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/string.h>

static char *how = "";
module_param(how, charp, 0444);

static noinline void trouble_oops(void)
{
	*(volatile int *)8 = 0;
}

static noinline void trouble_bug(void)
{
	BUG();
}

/*
 * Nothing else runs any more, but interrupts are served: the soft lockup detector's timer among them.
 * Long stretches without a jump are what an emulator runs fastest.
 */
static noinline void trouble_spin(void)
{
	preempt_disable();
	for (;;)
		asm volatile(".rept 1000; nop; .endr");
}

/* The processor waits for an interrupt that it does not take. */
static noinline void trouble_freeze(void)
{
	local_irq_disable();
	for (;;)
		asm volatile("hlt");
}

static int __init trouble(void)
{
	if (!strcmp(how, "oops"))
		trouble_oops();
	else if (!strcmp(how, "bug"))
		trouble_bug();
	else if (!strcmp(how, "spin"))
		trouble_spin();
	else if (!strcmp(how, "freeze"))
		trouble_freeze();
	return -EINVAL;
}

module_init(trouble);
MODULE_DESCRIPTION("agelab's tests: a kernel in trouble");
MODULE_LICENSE("GPL");
