// SPDX-License-Identifier: MIT

// scaling: the limit. N stacks laid out as those of ums are, switched round robin by nothing but
// the instructions that the ABI demands: callee-saved registers, MXCSR, x87 control word, stack
// pointer. There is no queue, no state, no scheduler. At N fibers this costs what the memory it
// touches costs.

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "../common/peer.hpp"

// Saves the caller's registers on its stack and its stack pointer in *from, and returns on the
// stack *to. Reads *to last, so that a lone fiber can switch to itself.
extern "C" void bare_switch(void** from, void* const* to) noexcept;
asm(R"(
        .text
        .p2align 4
        .globl bare_switch
        .type bare_switch, @function
bare_switch:
        .cfi_startproc
        endbr64
        pushq %rbp
        pushq %rbx
        pushq %r12
        pushq %r13
        pushq %r14
        pushq %r15
        subq $8, %rsp
        stmxcsr (%rsp)
        fnstcw 4(%rsp)
        movzwl 4(%rsp), %ecx
        movq %rsp, (%rdi)
        movq (%rsi), %rsp
        ldmxcsr (%rsp)
        cmpw 4(%rsp), %cx
        je 1f
        fldcw 4(%rsp)
1:      addq $8, %rsp
        popq %r15
        popq %r14
        popq %r13
        popq %r12
        popq %rbx
        popq %rbp
        ret
        .cfi_endproc
        .size bare_switch, .-bare_switch
)");

namespace {

// 64 KiB of stack and 64 KiB of guard, as ums lays them out; other values show what the geometry
// costs. A stride that is an even number of pages folds all stacks into a few sets of the TLB: at
// 10 to 100 fibers, 128 KiB costs twice what 132 KiB does.
constexpr std::uint64_t default_stride_kib = 132;

// The stack pointers, in order of index; the ring that runs them; and where the clock is read.
std::vector<void*> stacks;
void* main_stack;
std::uint64_t rounds_left;

// Every fiber runs the same endless loop; the first one counts the rounds. There is one call site
// for all, so that the return predictor is right about every switch.
extern "C" void bare_start(std::uint64_t self) {
    void** const here = &stacks[self];
    void* const* const next = &stacks[self + 1 == stacks.size() ? 0 : self + 1];
    for (;;) {
        void* const* to = next;
        if (self == 0) {
            if (rounds_left == 0)
                to = &main_stack;
            else
                --rounds_left;
        }
        asm("" : "+r"(self));  // Keeps the compiler from making a loop of its own for self == 0.
        bare_switch(here, to);
    }
}

// The first switch to a fiber returns here; its index is in the frame's rbx.
extern "C" void bare_entry() noexcept;
asm(R"(
        .text
        .type bare_entry, @function
bare_entry:
        .cfi_startproc
        .cfi_undefined rip
        endbr64
        movq %rbx, %rdi
        call bare_start
        ud2
        .cfi_endproc
        .size bare_entry, .-bare_entry
)");

struct frame {
    std::uint32_t mxcsr;
    std::uint32_t x87;
    std::uint64_t r15, r14, r13, r12;
    std::uint64_t rbx;
    std::uint64_t rbp;
    void (*entry)() noexcept;
    std::uint64_t padding[2];  // bare_entry calls, so its stack pointer must be 16-byte aligned.
};

class arena {
public:
    arena(std::uint64_t fibers, std::uint64_t stride_bytes)
        : stride_bytes_{stride_bytes}, bytes_{fibers * stride_bytes} {
        base_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (base_ == MAP_FAILED)
            throw std::runtime_error{std::string{"mmap: "} + std::strerror(errno)};
        madvise(base_, bytes_, MADV_NOHUGEPAGE);
    }
    ~arena() { munmap(base_, bytes_); }
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    // Coloured, because stacks of equal alignment would all compete for the same sets of the L1
    // cache.
    void* prepare(std::uint64_t index) const {
        char* const top = base_ + (index + 1) * stride_bytes_ - (index * 7 % 48) * 64;
        auto* const first = reinterpret_cast<frame*>(top - sizeof(frame));
        *first = frame{};
        asm volatile("stmxcsr %0" : "=m"(first->mxcsr));
        asm volatile("fnstcw %0" : "=m"(first->x87));
        first->rbx = index;
        first->entry = bare_entry;
        return first;
    }

private:
    std::size_t stride_bytes_;
    std::size_t bytes_;
    char* base_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1);
        const auto fibers = in.number("fibers", 1000);
        const auto yields = in.number("yields", 1000);
        const auto min_ms = in.number("min_ms", 30, 0);
        const auto stride_kib = in.number("stride_kib", default_stride_kib, 8, 1024);
        in.done();

        const arena arena{fibers, stride_kib * 1024};
        for (std::uint64_t i = 0; i < fibers; ++i) stacks.push_back(arena.prepare(i));
        const auto round = [&](std::uint64_t times) {
            rounds_left = times;
            const auto begin = bench::now_ns();
            bare_switch(&main_stack, &stacks[0]);
            return bench::tally{fibers * times, bench::now_ns() - begin};
        };
        round(1);  // Not measured: the first touch of every stack.
        const auto sum = bench::repeat(min_ms, [&] { return round(yields); });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
