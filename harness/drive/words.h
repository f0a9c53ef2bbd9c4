/* SPDX-License-Identifier: GPL-2.0 */
/* The words of a drive's settings that are one number, as the host derived them (agelab/machine/drive/geometry.py). */
#ifndef AGEDRIVE_WORDS_H
#define AGEDRIVE_WORDS_H

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <stddef.h>
#include <string.h>
#endif
#include "drive.h"

#define WORD(field) { #field, offsetof(struct settings, field) }

static const struct {
	const char *name;
	size_t at;
} words[] = {
	WORD(sectors), WORD(depth), WORD(max_request), WORD(interface), WORD(overhead_ns), WORD(hit_overhead_ns),
	WORD(write_overhead_ns), WORD(revolution_ns), WORD(phase_ns), WORD(heads), WORD(cylinders), WORD(seek_min_ns),
	WORD(seek_sqrt_ns), WORD(seek_linear_ns), WORD(write_settle_ns), WORD(head_switch_ns), WORD(track_skew_ns),
	WORD(cylinder_skew_ns), WORD(any_order), WORD(cache_bytes), WORD(segments), WORD(read_ahead_bytes),
	WORD(write_back), WORD(write_segments), WORD(read_ahead_tracks),
	WORD(bus_after_percent), WORD(write_after_percent), WORD(read_ns), WORD(write_ns), WORD(channels),
	WORD(read_rate), WORD(write_rate), WORD(base), WORD(units), WORD(dies), WORD(planes), WORD(page_units),
	WORD(cell_bits), WORD(program_units), WORD(channel_rate), WORD(program_ns), WORD(erase_ns), WORD(suspend_ns),
	WORD(discard_ns), WORD(link_ns), WORD(lines), WORD(line_units), WORD(reserve), WORD(fast_lines), WORD(fast_program_ns),
	WORD(buffer_units), WORD(map_pages), WORD(discard),
};

#undef WORD

/* Where a word's number is, or NULL; some are signed. */
static inline u64 *word_of(struct settings *set, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i].name, name))
			return (u64 *)((char *)set + words[i].at);
	return NULL;
}

#endif
