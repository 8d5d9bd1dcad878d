// CUDA on the CPU, for tests of kernels: each thread of a block is a fiber, and a kernel runs as one block.
#pragma once
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

#define __device__ static
#define __global__
#define __shared__ static
#define __launch_bounds__(...)

struct uint4 {
    unsigned x, y, z, w;
};
struct double2 {
    double x, y;
};
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static double2 make_double2(double x, double y) { return {x, y}; }
using std::ceil;
using std::sqrt;

// ---- Fibers and barriers -------------------------------------------------------------------------
struct Barrier {
    int arrived = 0;
    long generation = 0;
};
struct Fiber {
    ucontext_t context;  // where it starts; from then on it is resumed by a jump, which takes no system call
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    bool started = false, done = false;
};
static std::vector<Fiber> fibers;
static std::vector<Barrier> warp_barriers;
static Barrier block_barrier;
static jmp_buf scheduler;
static std::function<void()> kernel_body;
static int current;
static struct {
    struct {
        operator int() const { return current; }
    } x;
} threadIdx;

static void wait_for(Barrier& barrier, int expected) {
    const long generation = barrier.generation;
    if (++barrier.arrived == expected) {
        barrier.arrived = 0;
        barrier.generation++;
        return;
    }
    while (barrier.generation == generation)
        if (!_setjmp(fibers[current].place)) _longjmp(scheduler, 1);
}

static void run_fiber() {
    kernel_body();
    fibers[current].done = true;
    _longjmp(scheduler, 1);
}

static void run_block(int threads, const std::function<void()>& body) {
    kernel_body = body;
    fibers = std::vector<Fiber>(threads);
    warp_barriers.assign((threads + 31) / 32, Barrier());
    block_barrier = Barrier();
    for (Fiber& fiber : fibers) {
        fiber.stack.reset(new char[1 << 16]);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = 1 << 16;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (volatile bool running = true; running;) {
        running = false;
        for (current = 0; current < threads; current++) {
            if (fibers[current].done) continue;
            running = true;
            if (_setjmp(scheduler)) continue;
            if (fibers[current].started) _longjmp(fibers[current].place, 1);
            fibers[current].started = true;
            setcontext(&fibers[current].context);
        }
    }
}

// ---- What threads of a block say to each other ---------------------------------------------------
static unsigned char exchanged[1024][8];

static void __syncthreads() { wait_for(block_barrier, (int)fibers.size()); }
static void __syncwarp() { wait_for(warp_barriers[current / 32], 32); }
static bool __syncthreads_or(bool value) {
    static bool any;
    any = false;
    __syncthreads();
    if (value) any = true;
    __syncthreads();
    const bool result = any;
    __syncthreads();
    return result;
}
template <typename T> static T __shfl_sync(unsigned, T value, int source) {
    std::memcpy(exchanged[current], &value, sizeof(T));
    __syncwarp();
    T result;
    std::memcpy(&result, exchanged[current / 32 * 32 + source], sizeof(T));
    __syncwarp();
    return result;
}
template <typename T> static T __shfl_xor_sync(unsigned mask, T value, int distance) {
    return __shfl_sync(mask, value, (current % 32) ^ distance);
}
static unsigned __ballot_sync(unsigned mask, bool value) {
    unsigned result = 0;
    for (int lane = 0; lane < 32; lane++) result |= (unsigned)__shfl_sync(mask, value, lane) << lane;
    return result;
}
static int __ffs(unsigned value) { return __builtin_ffs((int)value); }
static int __popc(unsigned value) { return __builtin_popcount(value); }
template <typename T> static T atomicAdd(T* at, T value) {
    const T before = *at;
    *at += value;
    return before;
}
static int atomicCAS(int* at, int expected, int value) {
    const int before = *at;
    if (before == expected) *at = value;
    return before;
}
