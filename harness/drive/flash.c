// SPDX-License-Identifier: GPL-2.0
/* Flash: a latency for each command on one of several channels, and one bandwidth for all of them. */
#include "drive.h"

const char *flash_init(const struct settings *set)
{
	if (!set->channels || set->channels > CHANNELS_MOST || !set->read_rate || !set->write_rate)
		return "channels (64 at most), read_rate and write_rate must be given";
	return 0;
}

u64 flash_serve(struct drive *drive, u64 sectors, u64 latency_ns, u64 rate, u64 start)
{
	u64 i, *channel = drive->channel_free;
	u64 transfer = sectors * SECTOR_BYTES * NS_PER_S / lesser(rate, drive->set.interface);

	for (i = 1; i < drive->set.channels; i++)
		if (drive->channel_free[i] < *channel)
			channel = drive->channel_free + i;
	*channel = greater(start, *channel) + latency_ns;
	drive->media_free = greater(start, drive->media_free) + transfer;
	drive->stat.busy_transfer_ns += transfer;
	return greater(*channel + transfer, drive->media_free);
}
