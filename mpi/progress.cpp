// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sched.h>
#include <utility>
#include <vector>

#include "error_handlers.hpp"
#include "level.hpp"

namespace ums::mpi::progress {

namespace {

// The share of a turn: the others wait for these.
constexpr unsigned most_tested = 512, most_looks = 64;
// Without a call to MPI, and with nothing else to run, for so long: then it pauses.
constexpr std::int64_t restless_ns = 100'000;
constexpr std::int64_t first_pause_ns = 5'000;
constexpr std::int64_t usual_pause_ns = 50'000;
// Then others that share the CPU, such as ranks, are let in at each turn, by a system call.
constexpr unsigned turns_alone = 16;
// MPI runs the schedules of collectives, and the program's operations, on it.
constexpr std::size_t stack_bytes = 256 * 1024;

// A wait that is to end early. It lies on the stack of the fiber that wants that.
struct early_end {
    wait* of;
    ums_event_t is_done;
    early_end* next;
};

constinit ums_mutex_t lock = UMS_MUTEX_INIT;
// Guarded by it:
constinit request_wait* new_requests = nullptr;  // Newest first.
constinit look_wait* new_looks = nullptr;
constinit early_end* taken_back = nullptr;
constinit bool is_served = false;     // There is a progress fiber.
constinit ums_ref_t paused{nullptr};  // It, while it pauses.
constinit ums_cond_t nobody_waits = UMS_COND_INIT;

class guard {
public:
    guard() noexcept { ums_mutex_lock(&lock); }
    ~guard() { ums_mutex_unlock(&lock); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
};

std::int64_t longest_pause_ns() noexcept {
    const char* const text = std::getenv("UMS_MPI_PAUSE_US");
    if (text == nullptr || *text == 0) return usual_pause_ns;
    return std::clamp<std::int64_t>(std::atoll(text), 0, 1'000'000) * 1000;
}

// When to pause.
class pace {
public:
    explicit pace(std::int64_t longest_ns) noexcept : longest_{longest_ns} {}

    void turn(bool found) noexcept {
        const unsigned long calls = taken();
        if (found || calls != calls_) {
            calls_ = calls;
            pause_ = 0;
            alone_ = 0;
            quiet_since_ = 0;
        }
        if (ums_this_fiber_tryyield() || found) return;
        const std::int64_t now = ums_now();
        if (quiet_since_ == 0) quiet_since_ = now;
        if (longest_ == 0 || now - quiet_since_ < restless_ns) {
            if (++alone_ > turns_alone) sched_yield();
            return;
        }
        pause_ = std::clamp(pause_ * 2, std::min(first_pause_ns, longest_), longest_);
        {
            const guard g;
            if (new_requests != nullptr || new_looks != nullptr || taken_back != nullptr) return;
            paused = ums_this_fiber_ref();
        }
        // A wait that comes now finds it paused, and its unpark ends this park or the next one.
        ums_this_fiber_park_until(now + pause_, nullptr);
        const guard g;
        paused = {nullptr};
    }

private:
    const std::int64_t longest_;  // 0: none.
    std::int64_t quiet_since_ = 0, pause_ = 0;
    unsigned long calls_ = 0;
    unsigned alone_ = 0;
};

// What the progress fiber owns.
class waits {
public:
    waits() = default;
    waits(const waits&) = delete;
    waits& operator=(const waits&) = delete;

    // Returns whether a wait was over.
    bool turn() {
        take_in();
        const bool tested = test();
        return look() || tested;
    }

    // Returns whether there is none, and the fiber is to end.
    [[nodiscard]] bool are_over() noexcept {
        if (!of_requests_.empty() || !looks_.empty()) return false;
        const guard g;
        // A wait that is added after this finds that there is no progress fiber, and makes one.
        if (new_requests != nullptr || new_looks != nullptr || taken_back != nullptr) return false;
        is_served = false;
        ums_cond_notify_all(&nobody_waits);
        return true;
    }

private:
    void take_in() {
        request_wait* r;
        look_wait* l;
        early_end* back;
        {
            const guard g;
            r = std::exchange(new_requests, nullptr);
            l = std::exchange(new_looks, nullptr);
            back = std::exchange(taken_back, nullptr);
        }
        for (; r != nullptr; r = r->next) {
            r->at = static_cast<unsigned>(requests_.size());
            requests_.push_back(r->request);
            of_requests_.push_back(r);
        }
        for (; l != nullptr; l = l->next) looks_.push_back(l);
        while (back != nullptr) give_back(*std::exchange(back, back->next));
    }

    // If the wait is not here, it is over already, and its event is set.
    void give_back(early_end& e) noexcept {
        const auto r = std::find(of_requests_.begin(), of_requests_.end(), e.of);
        const auto l = std::find(looks_.begin(), looks_.end(), e.of);
        if (r != of_requests_.end()) remove(**r);
        if (l != looks_.end()) looks_.erase(l);
        ums_event_set(&e.is_done);  // From here on it may be gone, and so may the wait.
    }

    void remove(request_wait& w) noexcept {
        request_wait* const last = of_requests_.back();
        requests_[w.at] = requests_.back();
        of_requests_[w.at] = last;
        last->at = w.at;
        requests_.pop_back();
        of_requests_.pop_back();
    }

    bool test() {
        if (requests_.empty()) return false;
        const auto all = static_cast<unsigned>(requests_.size());
        if (all <= most_tested || first_test_ >= all) first_test_ = 0;
        const unsigned n = std::min(all - first_test_, most_tested);
        indices_.resize(std::max<std::size_t>(indices_.size(), n));
        statuses_.resize(indices_.size());
        int out = 0, error;
        {
            const mpi::turn in;
            error = PMPI_Testsome(static_cast<int>(n), &requests_[first_test_], &out,
                                  indices_.data(), statuses_.data());
        }
        if (out == MPI_UNDEFINED) out = 0;
        over_.clear();
        for (int i = 0; i < out; ++i) {
            request_wait& w = *of_requests_[first_test_ + static_cast<unsigned>(indices_[i])];
            w.request = MPI_REQUEST_NULL;
            if (error == MPI_ERR_IN_STATUS) w.error = statuses_[i].MPI_ERROR;
            copy_status(w.status, statuses_[i]);
            over_.push_back(&w);
        }
        first_test_ += n;
        for (request_wait* w : over_) {
            remove(*w);
            ums_event_set(&w->is_over);  // From here on it may be gone.
        }
        return out != 0;
    }

    bool look() noexcept {
        if (looks_.empty()) return false;
        const quiet_world quiet;
        const mpi::turn in;
        bool any = false;
        const std::size_t n = std::min<std::size_t>(looks_.size(), most_looks);
        for (std::size_t i = 0; i < n; ++i) {
            if (next_look_ >= looks_.size()) next_look_ = 0;
            look_wait& w = *looks_[next_look_];
            if (!w.looks(w)) {
                ++next_look_;
                continue;
            }
            any = true;
            looks_[next_look_] = looks_.back();
            looks_.pop_back();
            ums_event_set(&w.is_over);  // From here on it may be gone.
            if (looks_.empty()) break;
        }
        return any;
    }

    std::vector<MPI_Request> requests_;
    std::vector<request_wait*> of_requests_;  // The waits of these, in the same order.
    std::vector<look_wait*> looks_;
    unsigned first_test_ = 0;    // Where the next turn begins.
    std::size_t next_look_ = 0;  // The same.
    // Kept for their memory:
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
    std::vector<request_wait*> over_;
};

// `argument`: null if the fiber may not pause.
void serve(void* argument) noexcept {
    waits all;
    pace rhythm{argument != nullptr ? longest_pause_ns() : 0};
    for (;;) {
        const bool found = all.turn();
        if (all.are_over()) return;
        rhythm.turn(found);
    }
}

// Call it after a change under the lock, with what was read there. The fiber belongs to the cluster
// that lives as long as the runtime. Without a stack for it, the caller serves all until nobody
// waits, itself included; it does not pause, because an unpark() may be the program's.
void tell(bool was_served, ums_ref_t pausing) noexcept {
    if (pausing.who != nullptr) ums_ref_unpark(pausing);
    if (was_served) return;
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    options.name = "mpi progress";
    options.stack_bytes = stack_bytes;
    options.cluster = ums_cluster_standard();
    ums_fiber_t made;
    if (ums_fiber_create(&made, &options, serve, &is_served) == 0)
        ums_fiber_detach(&made);
    else
        serve(nullptr);
}

template <class Wait>
void add_to(Wait*& list, Wait& w) noexcept {
    bool was_served;
    ums_ref_t pausing;
    {
        const guard g;
        w.next = std::exchange(list, &w);
        was_served = std::exchange(is_served, true);
        pausing = std::exchange(paused, {nullptr});
    }
    tell(was_served, pausing);
}

void take_any_back(wait& w) noexcept {
    early_end e{&w, UMS_EVENT_INIT, nullptr};
    ums_ref_t pausing;
    {
        const guard g;
        if (!is_served) return;  // Then it is over.
        e.next = std::exchange(taken_back, &e);
        pausing = std::exchange(paused, {nullptr});
    }
    tell(true, pausing);
    ums_event_wait(&e.is_done);
}

}  // namespace

void add(request_wait& w) noexcept { add_to(new_requests, w); }
void add(look_wait& w) noexcept { add_to(new_looks, w); }
void take_back(request_wait& w) noexcept { take_any_back(w); }
void take_back(look_wait& w) noexcept { take_any_back(w); }

void until_nobody_waits() noexcept {
    const guard g;
    while (is_served) ums_cond_wait(&nobody_waits, &lock);
}

}  // namespace ums::mpi::progress
