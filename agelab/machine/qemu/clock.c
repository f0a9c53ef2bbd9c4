/*
 * Takes the host's clock away from QEMU.
 *
 * QEMU resizes its software TLB by how much of it was used in the last 100 ms of host time
 * (accel/tcg/cputlb.c, tlb_mmu_resize_locked). A page's accessed bit is set when the TLB is filled, so a
 * TLB of another size sets other bits at other moments, and a guest that reclaims memory sees them: two
 * runs with the same inputs part ways. With this library before it, QEMU's wall clock advances by a
 * millisecond a call, counted in each thread by itself, and the TLB follows the guest alone.
 *
 * No header and no library: it is all there is to it.
 */
struct timeval {
    long seconds;
    long microseconds;
};

static __thread long calls;

int gettimeofday(struct timeval *now, void *zone)
{
    (void)zone;
    calls++;
    now->seconds = 1577836800 + calls / 1000;
    now->microseconds = calls % 1000 * 1000;
    return 0;
}
