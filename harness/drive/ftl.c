// SPDX-License-Identifier: GPL-2.0
/*
 * Flash behind a translation layer: the sectors lie wherever there was room (docs/drives.md, "A solid-state drive").
 *
 * A line is a block of every plane of every die. Units of 4 KiB are written one behind the other into a line, as much as
 * a die programs at once and then on the next die. What is overwritten or discarded stays behind as garbage; a line
 * that is to be erased is emptied into another one first.
 */
#include "drive.h"

#define NONE 0xffffffffU
#define MAPPED_BY_PAGE 1024U	/* units whose places are in one page of the map */
#define GROUP 64U		/* neighbouring lines of which the first to take is remembered */
#define IDLE_NS 10000000ULL	/* without a command, until a fast line is emptied */

enum { FREE, CLOSED, OPEN };
enum { HOST, MOVED };		/* the line that the host's units go into, and that of moved ones */

static u64 groups_of(const struct settings *set)
{
	return (set->lines + GROUP - 1) / GROUP;
}

u64 ftl_bytes(const struct settings *set)
{
	return sizeof(struct ftl_state) + (set->units + set->lines * set->line_units) * sizeof(u32) +
	       set->lines * sizeof(struct line) + groups_of(set) * sizeof(struct group);
}

const char *ftl_init(const struct settings *set)
{
	u64 stripe = set->dies * set->program_units, normal = (set->lines - set->fast_lines) * set->line_units;

	if (!set->channels || set->channels > CHANNELS_MOST || !set->channel_rate || set->dies > DIES_MOST ||
	    set->dies < set->channels)
		return "channels (64 at most), channel_rate and dies (one a channel, 256 at most) must be given";
	if (!set->page_units || !set->cell_bits || !set->program_units || set->program_units % (set->page_units * set->cell_bits))
		return "program_units must be whole pages of each of cell_bits";
	if (!set->line_units || set->line_units % stripe)
		return "a line must be as much as all dies program at once, or a multiple of it";
	if (set->reserve < 2 || set->fast_lines >= set->lines)
		return "reserve must be 2 lines at least, and fast_lines fewer than lines";
	if (!set->units || set->units >= NONE || set->lines * set->line_units >= NONE)
		return "units must be given, and fewer than 2^32";
	if (normal < set->units + (set->reserve + 3) * set->line_units)
		return "no line could be freed: over-provisioning must be more than the reserve and three lines";
	if (set->buffer_units < 2 * set->program_units || set->buffer_units > BUFFER_MOST)
		return "buffer_units must be twice what a die programs at once, and 16384 at most";
	if (!set->planes || set->planes > PLANES_MOST)
		return "planes must be 1 to 4";
	if (set->map_pages > MAP_PAGES_MOST)
		return "map_pages must be 1024 at most";
	return 0;
}

/* ---- where a unit lies ---- */

static u32 line_of(const struct settings *set, u32 place)
{
	return place / (u32)set->line_units;
}

static u32 bits_of(const struct settings *set, u32 line)
{
	return line < set->fast_lines ? (u32)set->cell_bits : 1;
}

/* A fast line holds one bit a cell. */
static u32 end_of(const struct settings *set, u32 line)
{
	return line * (u32)set->line_units + (u32)set->line_units / bits_of(set, line);
}

/* Units that a die programs at once there. */
static u32 at_once(const struct settings *set, u32 line)
{
	return (u32)set->program_units / bits_of(set, line);
}

/* A line is a multiple of what all dies program at once, so that places can be divided as they are. */
static u32 die_of(const struct settings *set, u32 place)
{
	return place / at_once(set, line_of(set, place)) % (u32)set->dies;
}

static u32 plane_of(const struct settings *set, u32 place)
{
	return place % at_once(set, line_of(set, place)) / (u32)set->page_units % (u32)set->planes;
}

/* With this place a die has all that it programs at once. */
static bool is_whole(const struct settings *set, u32 place)
{
	return (place + 1) % at_once(set, line_of(set, place)) == 0;
}

/* ---- what dies and channels do ---- */

/* Units over a die's channel; when they were moved. What is read for the host goes first. */
static u64 over_channel(struct drive *drive, u32 die, u64 units, u64 now, bool first)
{
	const struct settings *set = &drive->set;
	u64 ns = units * UNIT * SECTOR_BYTES * NS_PER_S / set->channel_rate;
	u64 *all = drive->channel_free + die % set->channels, *reads = drive->ftl.channel_reads + die % set->channels;

	*all = greater(*all, now) + ns;
	if (!first)
		return *all;
	*reads = greater(*reads, now) + ns;
	return *reads;
}

/* What nothing overtakes; `collecting` says for whom. */
static void occupy(struct drive *drive, u32 die, u64 ns, u64 now, bool collecting)
{
	struct die *at = drive->ftl.dies + die;

	at->free = greater(greater(at->free, at->read), now) + ns;
	if (collecting)
		at->collecting += ns;
}

/* A read for the host waits for those of its plane, but no longer than `suspend_ns` for a program or an erase. */
static u64 read_page(struct drive *drive, u32 die, u32 plane, u64 now)
{
	const struct settings *set = &drive->set;
	struct die *at = drive->ftl.dies + die;
	u64 waits = at->free > now ? at->free - now : 0;
	u64 start = greater(now + lesser(waits, set->suspend_ns), at->reads[plane]), done = start + set->read_ns;

	drive->stat.flash_reads++;
	drive->stat.gc_wait_ns += lesser(lesser(waits, set->suspend_ns), at->collecting);
	at->reads[plane] = done;
	at->read = greater(at->read, done);
	if (waits)
		at->free += set->read_ns;
	return done;
}

static u64 program(struct drive *drive, u32 place, u32 units, u64 now, bool collecting)
{
	const struct settings *set = &drive->set;
	u32 line = line_of(set, place), die = die_of(set, place);
	u64 ns = bits_of(set, line) > 1 ? set->fast_program_ns : set->program_ns;

	drive->stat.units_programmed += at_once(set, line);
	occupy(drive, die, ns, over_channel(drive, die, units, now, false), collecting);
	return drive->ftl.dies[die].free;
}

/* ---- lines ---- */

/* A line that holds less goes first, and of those that hold as much the least worn, so that all wear evenly. */
static u64 rank(const struct line *line)
{
	return (u64)line->valid << 32 | line->erased;
}

static u32 first_of(const struct line *lines, u32 one, u32 other)
{
	u64 ranks, than;

	if (one == NONE || other == NONE || one == other)
		return one == NONE ? other : one;
	ranks = rank(lines + one);
	than = rank(lines + other);
	if (ranks != than)
		return ranks < than ? one : other;
	return lesser(one, other);
}

static void set_state(struct drive *drive, u32 line, u32 state)
{
	struct line *lines = drive->ftl.lines;
	u32 *first = drive->ftl.groups[line / GROUP].first, other = line / GROUP * GROUP;
	u32 end = lesser(other + GROUP, drive->set.lines);

	lines[line].state = state;
	first[FREE] = first[CLOSED] = NONE;
	for (; other < end; other++)
		if (lines[other].state != OPEN)
			first[lines[other].state] = first_of(lines, first[lines[other].state], other);
}

/* The first of these lines in a state, or none. */
static u32 first_in(const struct drive *drive, u32 state, u32 line, u32 end)
{
	const struct line *lines = drive->ftl.lines;
	u32 first = NONE;

	while (line < end) {
		bool group = line % GROUP == 0 && line + GROUP <= end;

		if (group)
			first = first_of(lines, first, drive->ftl.groups[line / GROUP].first[state]);
		else if (lines[line].state == state)
			first = first_of(lines, first, line);
		line += group ? GROUP : 1;
	}
	return first;
}

static void invalidate(struct drive *drive, u32 unit)
{
	struct ftl *ftl = &drive->ftl;
	u32 at = ftl->map[unit], line, *emptiest;

	if (!at)
		return;
	line = line_of(&drive->set, at - 1);
	emptiest = ftl->groups[line / GROUP].first + CLOSED;
	ftl->map[unit] = 0;
	ftl->lines[line].valid--;
	if (ftl->lines[line].state == CLOSED)
		*emptiest = first_of(ftl->lines, *emptiest, line);
}

static void open_line(struct drive *drive, u32 stream)
{
	const struct settings *set = &drive->set;
	struct ftl_state *state = drive->ftl.state;
	u32 line = stream == HOST && set->fast_lines ? first_in(drive, FREE, 0, set->fast_lines) : NONE;

	if (line == NONE) {
		line = first_in(drive, FREE, set->fast_lines, set->lines);
		state->free--;
	}
	set_state(drive, line, OPEN);
	state->next[stream] = line * (u32)set->line_units;
	state->end[stream] = end_of(set, line);
}

/* A unit's next place in a stream, whose line is there. */
static u32 put(struct drive *drive, u32 stream, u32 unit)
{
	struct ftl_state *state = drive->ftl.state;
	u32 place = state->next[stream]++, line = line_of(&drive->set, place);

	if (unit != NONE) {
		invalidate(drive, unit);
		drive->ftl.map[unit] = place + 1;
		drive->ftl.lines[line].valid++;
	}
	drive->ftl.owner[place] = unit;
	if (state->next[stream] == state->end[stream])
		set_state(drive, line, CLOSED);
	return place;
}

static void move(struct drive *drive, struct emptied *emptied, u32 from, u64 now)
{
	const struct settings *set = &drive->set;
	struct ftl_state *state = drive->ftl.state;
	u32 die = die_of(set, from), page = from / (u32)set->page_units, place;

	if (page != emptied->page) {
		drive->stat.flash_reads++;
		occupy(drive, die, set->read_ns, now, true);
		emptied->page = page;
	}
	over_channel(drive, die, 1, now, false);
	if (state->next[MOVED] == state->end[MOVED])
		open_line(drive, MOVED);
	place = put(drive, MOVED, drive->ftl.owner[from]);
	drive->stat.units_moved++;
	if (is_whole(set, place))
		program(drive, place, set->program_units, now, true);
}

static void erase(struct drive *drive, u32 line, u64 now)
{
	const struct settings *set = &drive->set;
	u32 die;

	for (die = 0; die < set->dies; die++)
		occupy(drive, die, set->erase_ns, now, true);
	drive->stat.blocks_erased += set->dies * set->planes;
	drive->ftl.lines[line].erased++;
	set_state(drive, line, FREE);
	drive->ftl.state->free += line >= set->fast_lines;
}

/* Move so many units out of a line; when none is left it is erased. */
static void empty(struct drive *drive, struct emptied *emptied, u64 units, u64 now)
{
	u32 end = end_of(&drive->set, emptied->line);

	for (; drive->ftl.lines[emptied->line].valid && emptied->next < end; emptied->next++) {
		u32 from = emptied->next, unit = drive->ftl.owner[from];

		if (unit == NONE || drive->ftl.map[unit] != from + 1)
			continue;
		if (!units--)
			return;
		move(drive, emptied, from, now);
	}
	erase(drive, emptied->line, now);
	emptied->line = NONE;
}

/* The line that is being emptied, or another one; false where there is none. */
static bool choose(struct drive *drive, struct emptied *emptied, u32 first, u32 end)
{
	u32 line, units = drive->set.line_units, valid;

	if (emptied->line != NONE)
		return true;
	line = first_in(drive, CLOSED, first, end);
	if (line == NONE)
		return false;
	valid = drive->ftl.lines[line].valid;
	*emptied = (struct emptied){ line, line * units, NONE, valid < units ? valid / (units - valid) + 1 : units };
	return true;
}

static bool choose_garbage(struct drive *drive)
{
	return choose(drive, &drive->ftl.state->garbage, drive->set.fast_lines, drive->set.lines);
}

static void make_room(struct drive *drive, u32 lines, u64 now)
{
	while (drive->ftl.state->free < lines && choose_garbage(drive))
		empty(drive, &drive->ftl.state->garbage, drive->set.line_units, now);
}

/*
 * From the reserve on as many units are moved for each one written as the emptied line makes room for. The last free
 * line is for moved units alone: before the host has it, another one is emptied at once.
 */
static void collect(struct drive *drive, u64 now)
{
	struct ftl_state *state = drive->ftl.state;

	if (state->garbage.line == NONE && state->free > drive->set.reserve)
		return;
	if (choose_garbage(drive))
		empty(drive, &state->garbage, state->garbage.pace, now);
	make_room(drive, 2, now);
}

/* ---- the write buffer ---- */

static bool is_buffered(const struct drive *drive, u32 place)
{
	const struct ftl *ftl = &drive->ftl;
	u32 i;

	if (!ftl->buffered)
		return false;
	if (place >= ftl->state->next[HOST] - ftl->open_units && place < ftl->state->next[HOST])
		return true;
	for (i = 0; i < ftl->pending_count; i++) {
		const struct pending *pending = ftl->pending + (ftl->oldest + i) % PENDING_MOST;

		if (place >= pending->place && place < pending->place + pending->units)
			return true;
	}
	return false;
}

/* Of a unit that was written again since then, nothing is said: a power cut takes back both. */
static void programmed(struct drive *drive)
{
	struct ftl *ftl = &drive->ftl;
	struct pending *oldest = ftl->pending + ftl->oldest;
	u32 i;

	for (i = 0; i < oldest->units; i++) {
		u64 unit = ftl->buffer[ftl->buffer_begins++ % BUFFER_MOST];
		u32 newest = ftl->map[unit] - 1;

		if (newest == oldest->place + i || !is_buffered(drive, newest))
			drive->written(drive, drive->set.base + unit * UNIT, drive->set.base + (unit + 1) * UNIT, oldest->done);
	}
	ftl->buffered -= oldest->units;
	ftl->oldest = (ftl->oldest + 1) % PENDING_MOST;
	ftl->pending_count--;
}

static u64 wait_for_oldest(struct drive *drive, u64 start)
{
	struct pending *oldest = drive->ftl.pending + drive->ftl.oldest;

	if (oldest->done > start)
		drive->stat.gc_wait_ns += lesser(oldest->done - start, oldest->collecting);
	start = greater(start, oldest->done);
	programmed(drive);
	return start;
}

/* What the open stripe has of the host's is programmed. */
static void program_host(struct drive *drive, u32 last, u64 now)
{
	const struct settings *set = &drive->set;
	struct ftl *ftl = &drive->ftl;
	struct pending *newest = ftl->pending + (ftl->oldest + ftl->pending_count++) % PENDING_MOST;
	struct die *die = ftl->dies + die_of(set, last);

	newest->units = ftl->open_units;
	newest->place = last / at_once(set, line_of(set, last)) * at_once(set, line_of(set, last));
	newest->collecting = lesser(die->collecting, die->free > now ? die->free - now : 0);
	die->collecting = 0;
	newest->done = program(drive, newest->place, newest->units, now, false);
	ftl->latest = greater(ftl->latest, newest->done);
	ftl->open_units = 0;
}

/* Returns when the write buffer had room for a unit. */
static u64 write_unit(struct drive *drive, u32 unit, u64 start)
{
	const struct settings *set = &drive->set;
	struct ftl *ftl = &drive->ftl;
	struct ftl_state *state = drive->ftl.state;
	u32 place;

	while (ftl->pending_count && (ftl->buffered >= set->buffer_units || ftl->pending_count == PENDING_MOST))
		start = wait_for_oldest(drive, start);
	if (state->next[HOST] == state->end[HOST])
		open_line(drive, HOST);
	place = put(drive, HOST, unit);
	ftl->buffer[(ftl->buffer_begins + ftl->buffered++) % BUFFER_MOST] = unit;
	ftl->open_units++;
	if (is_whole(set, place))
		program_host(drive, place, start);
	if (line_of(set, place) >= set->fast_lines)
		collect(drive, start);
	return start;
}

/* The rest of what a die programs at once is left empty. */
static void fill_stripe(struct drive *drive)
{
	u32 *next = drive->ftl.state->next + HOST;

	while (*next % at_once(&drive->set, line_of(&drive->set, *next)))
		put(drive, HOST, NONE);
}

static void close_stripe(struct drive *drive, u64 now)
{
	fill_stripe(drive);
	if (drive->ftl.open_units)
		program_host(drive, drive->ftl.state->next[HOST] - 1, now);
}

/* While no command comes, what the fast lines hold goes into others. */
void ftl_advance(struct drive *drive, u64 now)
{
	const struct settings *set = &drive->set;
	struct ftl *ftl = &drive->ftl;
	u32 die;

	while (ftl->pending_count && ftl->pending[ftl->oldest].done <= now)
		programmed(drive);
	if (!set->fast_lines)
		return;
	ftl->idle = greater(ftl->idle, ftl->busy_until + IDLE_NS);
	while (ftl->idle <= now && choose(drive, &ftl->state->fast, 0, set->fast_lines)) {
		make_room(drive, set->reserve, ftl->idle);
		empty(drive, &ftl->state->fast, set->program_units, ftl->idle);
		for (die = 0; die < set->dies; die++)
			ftl->idle = greater(ftl->idle, ftl->dies[die].free);
	}
}

/* ---- commands ---- */

/* One link moves the data of all commands. */
static u64 over_link(struct drive *drive, u64 sectors, u64 start)
{
	u64 ns = interface_ns(&drive->set, sectors) + drive->set.link_ns;

	drive->stat.busy_transfer_ns += ns;
	drive->media_free = greater(start, drive->media_free) + ns;
	return drive->media_free;
}

/* There is flash behind the units alone: elsewhere a drive reads zeros. */
static bool is_mapped(const struct settings *set, u64 first, u64 sectors)
{
	return first >= set->base && first + sectors <= set->base + set->units * UNIT;
}

static u64 finish(struct drive *drive, u64 done)
{
	drive->ftl.busy_until = greater(drive->ftl.busy_until, done);
	return done;
}

/* Without memory for all of the map, its page is read first, and the one in its place is written if it has changed. */
static u64 look_up(struct drive *drive, u64 unit, bool change, u64 now)
{
	const struct settings *set = &drive->set;
	u32 page = unit / MAPPED_BY_PAGE, die = page % set->dies;
	struct map_page *held = drive->ftl.map_pages + page % greater(set->map_pages, 1);

	if (!set->map_pages)
		return now;
	if (held->page != page + 1) {
		if (held->changed) {
			drive->stat.units_programmed += set->page_units;
			occupy(drive, die, set->fast_lines ? set->fast_program_ns : set->program_ns, now, false);
		}
		*held = (struct map_page){ page + 1, false };
		now = read_page(drive, die, page % set->planes, now);
	}
	held->changed |= change;
	return now;
}

u64 ftl_read(struct drive *drive, u64 first, u64 sectors, u64 start)
{
	const struct settings *set = &drive->set;
	u64 unit = (first - set->base) / UNIT, end = (first + sectors - set->base + UNIT - 1) / UNIT;
	u64 done = start, came = start;
	u32 last = NONE;

	for (; is_mapped(set, first, sectors) && unit < end; unit++) {
		u64 known = look_up(drive, unit, false, start);
		u32 place = drive->ftl.map[unit] - 1, page = place / (u32)set->page_units, die;

		done = greater(done, known);
		if (place == NONE || is_buffered(drive, place))
			continue;
		die = die_of(set, place);
		if (page != last)
			came = read_page(drive, die, plane_of(set, place), known);
		last = page;
		came = greater(came + UNIT * SECTOR_BYTES * NS_PER_S / set->channel_rate, over_channel(drive, die, 1, known, true));
		done = greater(done, came);
	}
	drive->stat.cache_hits += last == NONE;
	return finish(drive, over_link(drive, sectors, done));
}

u64 ftl_write(struct drive *drive, u64 first, u64 sectors, bool through, u64 start)
{
	const struct settings *set = &drive->set;
	u64 from = first - set->base, unit = from / UNIT, end = (from + sectors + UNIT - 1) / UNIT;

	start = over_link(drive, sectors, start);
	for (; is_mapped(set, first, sectors) && unit < end; unit++) {
		u32 place = drive->ftl.map[unit] - 1;

		look_up(drive, unit, true, start);
		/* What a part of a unit is written into is read first. */
		if ((unit * UNIT < from || (unit + 1) * UNIT > from + sectors) && place != NONE && !is_buffered(drive, place))
			read_page(drive, die_of(set, place), plane_of(set, place), start);
		start = write_unit(drive, unit, start);
	}
	if (through) {
		close_stripe(drive, start);
		start = greater(start, drive->ftl.latest);
	}
	return finish(drive, start);
}

u64 ftl_flush(struct drive *drive, u64 start)
{
	close_stripe(drive, start);
	while (drive->ftl.pending_count)
		start = wait_for_oldest(drive, start);
	return finish(drive, start);
}

/* Only whole units can be forgotten. */
u64 ftl_discard(struct drive *drive, u64 first, u64 sectors, u64 start)
{
	const struct settings *set = &drive->set;
	u64 unit = (first - set->base + UNIT - 1) / UNIT, end = (first + sectors - set->base) / UNIT;

	for (; is_mapped(set, first, sectors) && unit < end; unit++) {
		look_up(drive, unit, true, start);
		invalidate(drive, unit);
		drive->stat.units_discarded++;
	}
	return finish(drive, start + set->discard_ns);
}

void ftl_attach(struct drive *drive, void *memory)
{
	const struct settings *set = &drive->set;
	struct ftl *ftl = &drive->ftl;
	u32 line;

	ftl->state = memory;
	ftl->map = (u32 *)(ftl->state + 1);
	ftl->owner = ftl->map + set->units;
	ftl->lines = (struct line *)(ftl->owner + set->lines * set->line_units);
	ftl->groups = (struct group *)(ftl->lines + set->lines);
	if (ftl->state->began) {
		fill_stripe(drive);	/* one that was open when the power went */
		return;
	}
	for (line = 0; line < set->lines; line += GROUP)
		set_state(drive, line, FREE);
	ftl->state->free = set->lines - set->fast_lines;
	ftl->state->garbage.line = ftl->state->fast.line = NONE;
	ftl->state->began = 1;
}
