// SPDX-License-Identifier: MIT
#include "capi/policy.hpp"

#include <cstddef>

#include "base/assert.hpp"
#include "capi/call.hpp"

namespace ums::capi {

namespace {

class policy_of_calls final : public policy {
public:
    explicit policy_of_calls(const ums_policy_calls_t& calls, void* argument)
        : calls_{calls}, self_{argument} {
        if (calls.make == nullptr) return;
        self_ = calls.make(argument);
        if (self_ == nullptr) throw std::bad_alloc{};
    }
    ~policy_of_calls() override {
        if (calls_.destroy != nullptr) calls_.destroy(self_);
    }

    void attach(unsigned processor) override { calls_.attach(self_, processor); }
    void detach(unsigned processor) override { calls_.detach(self_, processor); }
    void ready(fiber_ref f, unsigned processor) noexcept override {
        calls_.ready(self_, to_c(f), processor);
    }
    fiber_ref next(unsigned processor) noexcept override {
        return from_c(calls_.next(self_, processor));
    }
    fiber_ref steal(unsigned thief, unsigned victim) noexcept override {
        return calls_.steal != nullptr ? from_c(calls_.steal(self_, thief, victim)) : fiber_ref{};
    }
    [[nodiscard]] bool empty(unsigned processor) const noexcept override {
        return calls_.empty(self_, processor);
    }
    fiber_ref instead_of(fiber_ref f, unsigned processor) noexcept override {
        return calls_.instead_of != nullptr ? from_c(calls_.instead_of(self_, to_c(f), processor))
                                            : next(processor);
    }
    void left(fiber_ref f, unsigned processor) noexcept override {
        if (calls_.left != nullptr) calls_.left(self_, to_c(f), processor);
    }
    [[nodiscard]] bool has_priorities() const noexcept override {
        return calls_.has_priorities != nullptr && calls_.has_priorities(self_);
    }
    void raised(fiber_ref f) noexcept override {
        if (calls_.raised != nullptr) calls_.raised(self_, to_c(f));
    }
    bool set_group_weight(unsigned group, unsigned weight) noexcept override {
        return calls_.set_group_weight != nullptr && calls_.set_group_weight(self_, group, weight);
    }
    void placed(fiber_ref f, unsigned processor) noexcept override {
        if (calls_.placed != nullptr) calls_.placed(self_, to_c(f), processor);
    }

private:
    const ums_policy_calls_t calls_;
    void* self_;
};

constexpr std::size_t smallest = offsetof(ums_policy_calls_t, instead_of);

}  // namespace

static_assert(policy::outside == UMS_OUTSIDE);
static_assert(static_cast<int>(policy_kind::fair_share) == UMS_POLICY_FAIR_SHARE);

int check_policy(const ums_policy_calls_t* given, ums_policy_t kind) noexcept {
    if (!is_kind(kind, UMS_POLICY_FAIR_SHARE)) return -EINVAL;
    if (given == nullptr) return 0;
    ums_policy_calls_t calls = UMS_POLICY_CALLS_INIT;
    if (const int error = copy_sized(calls, given, smallest); error != 0) return error;
    const bool complete = calls.attach != nullptr && calls.detach != nullptr &&
                          calls.ready != nullptr && calls.next != nullptr && calls.empty != nullptr;
    return complete ? 0 : -EINVAL;
}

std::function<std::unique_ptr<policy>()> policy_maker(const ums_policy_calls_t* given,
                                                      void* argument) {
    if (given == nullptr) return {};
    return [given, argument] {
        ums_policy_calls_t calls = UMS_POLICY_CALLS_INIT;
        [[maybe_unused]] const int error = copy_sized(calls, given, smallest);
        UMS_ASSERT(error == 0 && calls.next != nullptr,
                   "a policy's functions changed after they were checked");
        return std::make_unique<policy_of_calls>(calls, argument);
    };
}

}  // namespace ums::capi

using namespace ums;
using namespace ums::capi;

ums_policy_t ums_policy_named(const char* name) {
    const auto found = name != nullptr ? policy_named(name) : std::nullopt;
    return found ? static_cast<ums_policy_t>(*found) : -EINVAL;
}

void ums_fiber_queue_push_back(ums_fiber_queue_t* queue, ums_ref_t fiber) {
    UMS_DEBUG_ASSERT(fiber.who != nullptr, "a policy queued a reference to no fiber");
    object<fiber_queue>(queue).push_back(from_c(fiber));
}

void ums_fiber_queue_push_front(ums_fiber_queue_t* queue, ums_ref_t fiber) {
    object<fiber_queue>(queue).push_front(from_c(fiber));
}

ums_ref_t ums_fiber_queue_pop_front(ums_fiber_queue_t* queue) {
    return to_c(object<fiber_queue>(queue).pop_front());
}

size_t ums_fiber_queue_size(const ums_fiber_queue_t* queue) {
    return object<const fiber_queue>(queue).size();
}

void ums_ordered_queue_push(ums_ordered_queue_t* queue, ums_ref_t fiber, uint64_t key) {
    UMS_DEBUG_ASSERT(fiber.who != nullptr, "a policy ordered a reference to no fiber");
    object<ordered_fiber_queue>(queue).push(from_c(fiber), key);
}

ums_ref_t ums_ordered_queue_pop_front(ums_ordered_queue_t* queue) {
    return to_c(object<ordered_fiber_queue>(queue).pop_front());
}

uint64_t ums_ordered_queue_front_key(const ums_ordered_queue_t* queue) {
    return object<const ordered_fiber_queue>(queue).front_key();
}

size_t ums_ordered_queue_size(const ums_ordered_queue_t* queue) {
    return object<const ordered_fiber_queue>(queue).size();
}
