// SPDX-License-Identifier: MIT
#include "ums/parallel_for.hpp"

#include <algorithm>
#include <cxxabi.h>
#include <exception>
#include <system_error>

#include "sched/life/spawn.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/here.hpp"
#include "ums/impl/outcome.hpp"
#include "ums/impl/spawn.hpp"

namespace ums {

namespace {

// On the stack of the caller of the loop, as is all that its parts share.
struct work {
    const impl::loop& loop;
    const std::size_t grain;
    base::atomic<std::uint32_t> has_failed{};
    std::exception_ptr first{};  // Belongs to whoever set has_failed, until all fibers have ended.
    // In the child of a fork(): pieces have not ended, nor will they. Written by the fiber that
    // forked, and read if that is the caller.
    bool is_left_behind = false;
};

// On the stack of the fiber that goes on with the other half. It waits for this one.
struct part {
    work& of;
    std::size_t begin, end;
};

class joined {
public:
    explicit joined(work& w) noexcept : of_{w} {}
    ~joined() {
        if (fiber_ != nullptr && !impl::join_part(fiber_)) of_.is_left_behind = true;
    }
    joined(const joined&) = delete;
    joined& operator=(const joined&) = delete;

    // Returns false if there is no stack for it.
    [[nodiscard]] bool begin(part& p) {
        try {
            fiber_ = impl::fork_part(of_.loop.run, &p);
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::resource_unavailable_try_again) throw;
            return false;
        }
        return true;
    }

private:
    work& of_;
    sched::fiber* fiber_ = nullptr;
};

void run_piece(work& w, std::size_t begin, std::size_t end) {
    // relaxed: a piece that still begins is as if it had begun before.
    if (w.has_failed.load(base::relaxed) != 0) return;
    try {
        w.loop.turns(w.loop, begin, end);
    }
#if defined(__GLIBCXX__)
    catch (abi::__forced_unwind&) {
        throw;
    }
#endif
    catch (...) {
        // relaxed: the joins order the exception before its reader.
        if (w.has_failed.exchange(1, base::relaxed) == 0) w.first = std::current_exception();
    }
}

void run_part(work& w, std::size_t begin, std::size_t end) {
    if (w.has_failed.load(base::relaxed) != 0) return;  // relaxed: a hint.
    const std::size_t pieces = (end - begin - 1) / w.grain + 1;
    if (pieces == 1) return run_piece(w, begin, end);
    const std::size_t middle = begin + pieces / 2 * w.grain;
    part half{w, begin, middle};
    joined child{w};
    if (!child.begin(half)) run_part(w, begin, middle);
    run_part(w, middle, end);
}

// Eight pieces for each processor, so that all of them end at about the same time.
std::size_t usual_grain(std::size_t count) noexcept {
    const sched::here at;
    const sched::cluster* const home = at.self != nullptr
                                           ? at.self->home_cluster.get()
                                           // sync(runtime): sees the cluster.
                                           : sched::default_cluster.load(base::acquire);
    const std::size_t pieces = home != nullptr ? std::size_t{8} * home->size() : 1;
    return (count - 1) / std::max<std::size_t>(pieces, 1) + 1;
}

}  // namespace

void impl::run_loop(const loop& l, std::size_t count, std::size_t grain) {
    work all{l, grain != 0 ? grain : usual_grain(count)};
    run_part(all, 0, count);
    if (all.is_left_behind) throw_left_behind();
    if (all.first) std::rethrow_exception(std::move(all.first));
}

void impl::run_loop_part(void* p) {
    const part& mine = *static_cast<part*>(p);
    run_part(mine.of, mine.begin, mine.end);
}

}  // namespace ums
