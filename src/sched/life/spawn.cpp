// SPDX-License-Identifier: MIT
#include "sched/life/spawn.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "os/errno.hpp"
#include "sched/block/keep.hpp"
#include "sched/fiber/exit_request.hpp"
#include "sched/life/end.hpp"
#include "sched/life/recycle.hpp"
#include "sched/record/describe.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/here.hpp"
#include "sched/run/ready.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"

namespace ums::sched {

constinit base::atomic<cluster*> default_cluster;

namespace {

constexpr std::size_t most_name_bytes = 256;
static_assert(impl::most_kept_bytes + most_name_bytes + 1 + 16 <= fiber::top_bytes);
static_assert(alignof(fiber) % impl::most_kept_alignment == 0);
// A function that fits onto a stack of any size.
constexpr std::size_t most_small_bytes = mem::stack_depot::min_bytes / 4;

char* align_down(char* at, std::size_t alignment) noexcept {
    return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(at) & ~(alignment - 1));
}

// What the first switch to a fiber must finish. It runs in the processor's TSan context from entry
// to return.
#if defined(UMS_TSAN)
[[gnu::noinline]] void arrive(carrier_core* c, const after_switch* h) noexcept;
#endif
void arrive(carrier_core* c, const after_switch* h) noexcept {
    if (h != nullptr) h->finish(*h, *c);
    c->ownership.publish();
}

void report_and_terminate(const fiber& f) noexcept {
    char who[320];
    describe(f, who, sizeof who);
    const char* what = nullptr;
    try {
        throw;
    } catch (const std::exception& e) {
        what = e.what();
    } catch (...) {
    }
    const std::type_info* type = abi::__cxa_current_exception_type();
    // Not given back, since the program ends. Null if there is no memory.
    const char* name = "unknown";
    if (type != nullptr) {
        name = abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
        if (name == nullptr) name = type->name();
    }
    std::fprintf(stderr,
                 "ums: an exception left the function of %s: %s%s%s (catch it there; from a fiber "
                 "that ums::spawn() makes, join() rethrows it)\n",
                 who, name, what != nullptr ? ": " : "", what != nullptr ? what : "");
    std::terminate();
}

[[noreturn]] void refuse_thread_end(const fiber& f) noexcept {
    char who[320];
    describe(f, who, sizeof who);
    std::fprintf(
        stderr,
        "ums: pthread_exit(), or a cancellation of the kernel thread, in %s: that thread is "
        "not the fiber's. Return from the fiber's function, or request a stop "
        "(ums::jfiber); in C ums_pthread_exit(), of a fiber made by ums_pthread_create()\n",
        who);
    std::abort();
}

// What a discarded fiber runs next: it drops what it keeps.
void drop_next(fiber& f) noexcept {
    f.joiner.store(fiber::detached, base::relaxed);  // Nobody else has the handle any more.
    f.run = f.drop;
    f.callable = &f;
}

[[noreturn, gnu::noinline]] void run_function(fiber* f, int* errno_at) noexcept {
    os::write_errno(errno_at, 0);
    f->is_new.set(false);
    for (;;) {
        try {
            f->run(f->callable);
        } catch (const exit_request&) {
        }
#if defined(__GLIBCXX__)  // Elsewhere it has no name, and no handler.
        catch (const abi::__forced_unwind&) {
            refuse_thread_end(*f);
        }
#endif
        catch (...) {
            report_and_terminate(*f);
        }
        if (!f->belongings.is_empty()) {
            run_hooks(f->belongings);
            if (f->belongings.keeps != 0) keep::end(*f);
        }
        // sync(join): sees `drop`.
        if (f->joiner.load(base::acquire) != fiber::discarded) [[likely]]
            break;
        drop_next(*f);
    }
    end(f);
}

// The first function on a fiber's stack. No instrumented frame may be entered here: see
// arch/sanitizer.hpp.
UMS_UNINSTRUMENTED void fiber_main(void* carrier_, void* after_, void* fiber_) noexcept {
    auto* f = static_cast<fiber*>(fiber_);
    arch::finish_switch(f->shadow);
    arrive(static_cast<carrier_core*>(carrier_), static_cast<const after_switch*>(after_));
    f->race.resume();
    arch::happens_after(carrier_);  // As in leave().
    static_cast<carrier_core*>(carrier_)->ownership.let_go();
    run_function(f, static_cast<carrier_core*>(carrier_)->errno_at);
}

// Takes a stack of the default class from the calling processor's cache, which the depot refills.
[[gnu::noinline]] mem::stack_head* take_default_stack(here at) noexcept {
    mem::stack_head* list = nullptr;
    if (processor* p = at.enter()) {
        mem::stack_head* cached = p->stacks.take();
        at.leave();
        if (cached != nullptr) return cached;
    }
    const std::uint32_t n = depot().take(depot().default_class(), stack_cache::batch, list);
    if (n == 0) return nullptr;
    UMS_ASSERT(n <= stack_cache::batch && list != nullptr,
               "the depot gave other stacks than it says");
    mem::stack_head* head = list;
    list = list->next_free;
    if (processor* p = at.enter()) {
        p->stacks.adopt(list, n - 1);
        at.leave();
    } else if (list != nullptr) {
        depot().give(list);
    }
    return head;
}

[[noreturn]] void throw_error(std::errc code, const char* what) {
    throw std::system_error{std::make_error_code(code), what};
}

struct origin {
    mem::stack_head* head;
    std::uint64_t id;
};

// Inside `p`. Null if its cache is empty.
UMS_ALWAYS_INLINE origin take_cached(processor& p) noexcept {
    mem::stack_head* const head = p.stacks.take();
    if (head == nullptr) [[unlikely]]
        return {nullptr, 0};
    p.counters.spawned.add(1);
    return {head, p.ids.take()};
}

// Slow path: anything but a default stack for a fiber of the caller's own cluster.
[[gnu::noinline]] origin take_stack_slow(const fiber_options* options, cluster*& home) {
    const here at;
    if (home == nullptr)
        // sync(runtime): sees the cluster.
        home =
            at.self != nullptr ? at.self->home_cluster.get() : default_cluster.load(base::acquire);
    if (home == nullptr)
        throw_error(std::errc::operation_not_permitted,
                    "ums: no runtime is running: create fibers inside ums::run()");
    if (home->is_left_behind())
        throw_error(std::errc::no_such_process, "ums: the cluster was left behind by fork()");
    const std::size_t wanted = options != nullptr ? options->stack_bytes : 0;
    if (wanted > mem::stack_depot::max_bytes)
        throw_error(std::errc::invalid_argument, "ums: a fiber's stack is at most 1 GiB");
    const std::uint32_t size_class =
        wanted == 0 ? depot().default_class() : mem::stack_depot::class_of(wanted);
    origin from{nullptr, fiber_ids::take_outside()};
    if (at.self != nullptr && size_class == depot().default_class())
        from.head = take_default_stack(at);
    else
        depot().take(size_class, 1, from.head);
    if (from.head == nullptr)
        throw_error(std::errc::resource_unavailable_try_again,
                    "ums: no stack for another fiber (address space or, with mprotect guards, "
                    "vm.max_map_count)");
    home->spawned_outside.fetch_add(1, base::relaxed);
    return from;
}

UMS_ALWAYS_INLINE origin take_stack(here at, const fiber_options* options, cluster*& home) {
    if (at.self != nullptr && (options == nullptr || options->stack_bytes == 0)) [[likely]] {
        sched::cluster* own = at.self->home_cluster.get();
        if (home == nullptr) home = own;
        if (home == own) [[likely]] {
            if (processor* const p = at.enter()) [[likely]] {
                const origin from = take_cached(*p);
                at.leave();
                if (from.head != nullptr) [[likely]]
                    return from;
            }
        }
    }
    return take_stack_slow(options, home);
}

// For a new fiber that its maker's processor does not take.
[[gnu::noinline]] void ready_from_outside(fiber& f) noexcept {
    if (is_trace_wanted()) [[unlikely]]
        trace_new_outside(f);
    ready::at_home(f);
}

// Enters the carrier's processor if `f` may run there. Null if it was made ready elsewhere.
UMS_ALWAYS_INLINE processor* enter_for(here at, fiber& f) noexcept {
    processor* p = at.enter();
    if (p != nullptr) [[likely]] {
        if (p->may_run(f)) [[likely]]
            return p;
        at.leave();
    }
    ready_from_outside(f);
    return nullptr;
}

// For the creator of a dispatched fiber, if there is a policy of the user's: others see it there at
// once.
void finish_dispatch(const after_switch& h, carrier_core& c) noexcept {
    c.proc.get()->make_ready(*h.self, processor::place::back);
    c.proc.get()->wake_help();
}

// Runs `f` at once, as a call would. The creator of `f` goes to the queue's front, so it continues
// when `f` stops. A tree of dispatched fibers is walked depth first, with as many stacks as it is
// deep.
[[gnu::noinline]] void dispatch(here at, fiber* f) noexcept {
    depart(at.on, at.self, [at, f](auto leaving) UMS_INLINED {
        processor* p = enter_for(at, *f);
        if (p == nullptr) return;
        if (p->trace != nullptr) [[unlikely]]
            trace_new(*p->trace, *f);
        leaving.record(*p, trace_event::yield, f);
        if (p->has_policy()) return leaving.to(f, leaving.then(&finish_dispatch));
        // No other thread sees it there before its registers are saved, because the ownership is
        // left after that.
        // A round that would end now ends with the next switch.
        static_cast<void>(p->ready.count_within_round());
        p->ready.push_caller(*at.self);
        p->wake_help();
        leaving.to(f, nullptr);
    });
}

[[gnu::noinline]] void post(here at, fiber* f) noexcept {
    processor* p = at.enter();
    if (p == nullptr) [[unlikely]]
        return ready_from_outside(*f);
    if (p->trace != nullptr || !p->make_next_new(*f)) [[unlikely]] {
        if (!p->may_run(*f)) {
            at.leave();
            return ready_from_outside(*f);
        }
        if (p->trace != nullptr) trace_new(*p->trace, *f);
        p->make_ready(*f, processor::place::next_new);
    }
    at.leave();
    p->wake_help(true);
}

// Whether check() and apply() have anything to do. One comparison in place of the twelve of both.
UMS_ALWAYS_INLINE bool says_more(const fiber_options& o) noexcept {
    const std::uint64_t changed = o.name.size() | o.tag | static_cast<unsigned>(o.priority) |
                                  (o.weight ^ usual_weight) | o.group |
                                  static_cast<std::uint64_t>(o.pinned);
    return changed != 0 || o.deadline != deadline::max();
}

void check(const fiber_options& options) {
    if (options.priority < least_priority || options.priority > most_priority ||
        options.weight == 0 || options.weight > most_weight || options.group >= group_count)
        throw_error(
            std::errc::invalid_argument,
            "ums: fiber_options: expected a priority from -4 to 3, a weight from 1 to 10,000, "
            "a group below 64");
}

// Applies the name, the pin, and what the policy uses. Returns the new top of the stack.
[[gnu::noinline]] char* apply(const fiber_options& options, fiber& f, cluster* home,
                              char* top) noexcept {
    if (const std::size_t n = std::min(options.name.size(), most_name_bytes); n != 0) {
        top -= n + 1;
        std::memcpy(top, options.name.data(), n);
        top[n] = 0;
        f.name = top;
    }
    f.tag.set(options.tag);
    f.wanted.priority.set(static_cast<std::int8_t>(options.priority));
    f.wanted.set_deadline(options.deadline);
    f.wanted.weight.set(options.weight);
    f.wanted.group.set(static_cast<std::uint8_t>(options.group));
    if (options.pinned) {
        const here at;
        processor* p = at.self != nullptr ? at.at() : nullptr;
        f.pin(p != nullptr && &p->home() == home ? p : &home->at(0));
    }
    return top;
}

// The function of a fiber on whose stack it does not fit. Freed when the fiber ends.
struct room_on_heap : impl::exit_hook {
    std::align_val_t alignment;

    // Throws what operator new does.
    static void* make(fiber& f, std::size_t bytes, std::size_t alignment) {
        alignment = std::max(alignment, alignof(room_on_heap));
        const std::size_t before = (sizeof(room_on_heap) + alignment - 1) & ~(alignment - 1);
        void* const block = ::operator new (before + bytes, std::align_val_t{alignment});
        auto* const room = ::new (block) room_on_heap{{}, std::align_val_t{alignment}};
        room->run = [](exit_hook& self) noexcept {
            ::operator delete(&self, static_cast<room_on_heap&>(self).alignment);
        };
        f.belongings.first_stage = room;
        return static_cast<char*>(block) + before;
    }
};

}  // namespace

void run_again_to_drop(fiber& f, processor& p) noexcept {
    drop_next(f);
    char* const top = reinterpret_cast<char*>(&f) - fiber::top_bytes;
    arch::unpoison(f.bottom(), static_cast<std::size_t>(top - f.bottom()));
    f.shadow = {};  // The last switch has dropped what it named.
    arch::set_bounds(f.shadow, f.bottom(), f.usable_bytes());
    const arch::control_words own = f.context.controls;  // What runs here is another fiber.
    arch::make_context(f.context, top, &fiber_main, &f);
    f.context.controls = own;
    if (p.trace != nullptr) [[unlikely]]
        trace_new(*p.trace, f);
    if (ready::at(p, f, processor::place::next)) p.wake_help();
}

}  // namespace ums::sched

namespace ums::impl {

using namespace sched;

namespace {

// Builds the descriptor of a fiber on its stack. Others see it once it has its id.
UMS_ALWAYS_INLINE sched::fiber* build(mem::stack_head* head, sched::cluster* home,
                                      const sched::fiber* spawner, const void* spawned_at) {
    arch::happens_after(head);
    const std::size_t usable = head->home->usable();
    arch::unpoison(head->bottom(), usable);
    auto* f = new (static_cast<void*>(head)) sched::fiber{mem::stack_head{*head}};
    f->home_cluster.set(home);
    f->name = "";
    f->is_new.set(true);
    f->spawner = spawner != nullptr ? spawner->id.get() : 0;  // 0 stands for a plain thread.
    f->spawned_at = spawned_at;
    arch::set_bounds(f->shadow, f->bottom(), usable);
    return f;
}

// On a stack of the processor's cache. Null if there is none, or somebody asks for the processor.
// Requires: the function fits onto any stack. (Returns the storage apart: gcc packs the two into a
// vector, and takes them out again.)
UMS_ALWAYS_INLINE sched::fiber* spawn_begin_usually(here at, std::size_t bytes,
                                                    std::size_t alignment, std::size_t kept,
                                                    const void* spawned_at,
                                                    void*& storage) noexcept {
    processor* const p = at.on->try_enter();
    if (p == nullptr) [[unlikely]]
        return nullptr;
    const origin from = take_cached(*p);
    at.leave();
    if (from.head == nullptr) [[unlikely]]
        return nullptr;
    sched::fiber* const f = build(from.head, at.self->home_cluster.get(), at.self, spawned_at);
    char* const top =
        align_down(reinterpret_cast<char*>(f) - kept - bytes, std::max<std::size_t>(alignment, 16));
    arch::make_context(f->context, top, &fiber_main, f);
    f->id.set(from.id);
    storage = top;
    return f;
}

[[gnu::noinline]] new_fiber spawn_begin_anyhow(const fiber_options* options, std::size_t bytes,
                                               std::size_t alignment, std::size_t kept,
                                               const void* spawned_at) {
    sched::cluster* home = nullptr;
    const bool more = options != nullptr && says_more(*options);
    if (options != nullptr) {
        if (more) check(*options);
        if (options->cluster != nullptr) home = cluster_access::of(*options->cluster);
    }
    const here at;
    const origin from = take_stack(at, options, home);
    sched::fiber* const f = build(from.head, home, at.self, spawned_at);
    char* top = reinterpret_cast<char*>(f) - kept;
    if (more) top = apply(*options, *f, home, top);
    void* storage = nullptr;
    if ((bytes <= most_small_bytes || bytes <= from.head->home->usable() / 4) &&
        alignment <= os::page_bytes)
        storage = top = align_down(top - bytes, std::max<std::size_t>(alignment, 16));
    else
        top = align_down(top, 16);
    arch::make_context(f->context, top, &fiber_main, f);
    f->id.set(from.id);
    if (storage == nullptr) {
        try {
            storage = room_on_heap::make(*f, bytes, alignment);
        } catch (...) {
            spawn_abort(f);
            throw;
        }
    }
    return {f, storage};
}

}  // namespace

// The usual way calls no function, so next to nothing is saved and restored.
new_fiber spawn_begin(const fiber_options* options, std::size_t bytes, std::size_t alignment,
                      std::size_t kept) {
    const void* const spawned_at = __builtin_return_address(0);
    const here at;
    if (options == nullptr && at.self != nullptr && bytes <= most_small_bytes &&
        alignment <= os::page_bytes) [[likely]] {
        void* storage;
        sched::fiber* const f =
            spawn_begin_usually(at, bytes, alignment, kept, spawned_at, storage);
        if (f != nullptr) [[likely]]
            return {f, storage};
    }
    return spawn_begin_anyhow(options, bytes, alignment, kept, spawned_at);
}

void spawn_commit(sched::fiber* f, void (*run)(void*), void* callable, launch when) noexcept {
    f->run = run;
    f->callable = callable;
    f->race.create(f->name[0] != 0 ? f->name : "fiber");
    const here at;
    if (at.self == nullptr) return ready_from_outside(*f);
    when == launch::dispatch ? dispatch(at, f) : post(at, f);
}

void spawn_detached(sched::fiber* f, void (*run)(void*), void* callable, launch when) noexcept {
    f->joiner.store(sched::fiber::detached, base::relaxed);  // Nobody else knows it yet.
    spawn_commit(f, run, callable, when);
}

sched::fiber* fork_part(void (*run)(void*), void* callable) {
    const void* const spawned_at = __builtin_return_address(0);
    const here at;
    sched::fiber* f = nullptr;
    void* storage;  // For nothing.
    if (at.self != nullptr) [[likely]]
        f = spawn_begin_usually(at, 0, 1, 0, spawned_at, storage);
    if (f == nullptr) [[unlikely]]
        f = spawn_begin_anyhow(nullptr, 0, 1, 0, spawned_at).fiber;
    if (at.self == nullptr) [[unlikely]] {
        // Held until join_part(), like a fiber of its own: the caller may run code of the program
        // in between, and the runtime is there for it. The new fiber is counted, so no drain() is
        // over.
        f->home_cluster.get()->spawned_outside.fetch_add(1, base::relaxed);
    } else {
        f->wanted.follow(at.self->wanted);
        f->tag.set(at.self->tag.get());
    }
    spawn_commit(f, run, callable, launch::dispatch);
    return f;
}

void spawn_batch::add(sched::fiber* f, void (*run)(void*), void* callable) noexcept {
    f->run = run;
    f->callable = callable;
    f->joiner.store(sched::fiber::detached, base::relaxed);  // As above.
    f->link.set(nullptr);
    last_ != nullptr ? last_->link.set(f) : void(first_ = f);
    last_ = f;
}

sched::fiber* spawn_batch::take(void (*&run)(void*), void*& callable) noexcept {
    sched::fiber* const f = first_;
    if (f == nullptr) return nullptr;
    first_ = f->link.get();
    if (first_ == nullptr) last_ = nullptr;
    run = f->run;
    callable = f->callable;
    return f;
}

void spawn_batch::commit() noexcept {
    const bool is_traced = is_trace_wanted();
    for (sched::fiber* f = first_; f != nullptr; f = f->link.get()) {
        f->race.create(f->name[0] != 0 ? f->name : "fiber");
        if (is_traced) [[unlikely]]
            trace_new_outside(*f);
    }
    last_ = nullptr;
    ready::all(std::exchange(first_, nullptr));
}

void spawn_abort(sched::fiber* f) noexcept {
    run_hooks(f->belongings);  // The function's room on the heap, if there is one.
    sched::cluster* const home = f->home_cluster.get();
    f->race.create("aborted");
    free_fiber(*f, here{});
    // This comes last: until then it keeps the cluster, and the runtime, from being stopped.
    home->take_back_spawn();
}

}  // namespace ums::impl
