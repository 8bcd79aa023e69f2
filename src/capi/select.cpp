// SPDX-License-Identifier: MIT
#include "ums/select.hpp"

#include <optional>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "capi/channel.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

class c_case : public select_case {
public:
    explicit c_case(const ums_select_case_t& given)
        : select_case{given.kind == UMS_SELECT_SEND ? kind::send : kind::receive},
          element_{given.element} {
        channel_ = &given.channel->state;
        value_ = [](select_case& self) { return static_cast<c_case&>(self).element_; };
    }
    explicit c_case(deadline at) : select_case{kind::time} { at_ = at; }
    explicit c_case(std::stop_token token) : select_case{kind::stop} { token_ = std::move(token); }
    explicit c_case(std::nullopt_t) : select_case{kind::otherwise} {}
    c_case(c_case&&) = default;

private:
    void* element_ = nullptr;
};

// Says what it means if one of the cases after the caller's happened.
struct last_case {
    std::optional<c_case> at;
    int error;
};

template <class... Last>
int select_with(const ums_select_case_t* given, std::size_t count, std::size_t* index,
                Last&&... last) {
    for (std::size_t i = 0; i < count; ++i)
        if (!is_kind(given[i].kind, UMS_SELECT_SEND)) return -EINVAL;
    return call([&] {
        std::vector<c_case> cases;
        std::vector<int> errors;
        cases.reserve(count + sizeof...(last));
        for (std::size_t i = 0; i < count; ++i) cases.emplace_back(given[i]);
        const auto add = [&](last_case& one) {
            if (!one.at) return;
            cases.push_back(std::move(*one.at));
            errors.push_back(one.error);
        };
        (add(last), ...);
        const selected happened = select(std::span<c_case>{cases});
        UMS_DEBUG_ASSERT(happened.index < cases.size(), "select() chose a case it was not given");
        if (happened.index >= count) return errors[happened.index - count];
        if (index != nullptr) *index = happened.index;
        return error_of(happened.status);
    });
}

}  // namespace

int ums_select(const ums_select_case_t* cases, size_t count, size_t* index) {
    return ums_select_until(cases, count, index, UMS_NEVER, nullptr);
}

int ums_select_until(const ums_select_case_t* cases, size_t count, size_t* index, int64_t deadline,
                     ums_stop_t* stop) {
    // A case that can happen at once takes precedence over a deadline that has passed; a select
    // alone would choose any.
    if (const int error = ums_tryselect(cases, count, index); error != -EAGAIN) return error;
    last_case stopped{std::nullopt, -ECANCELED};
    if (stop != nullptr) stopped.at.emplace(stop->source.get_token());
    return select_with(cases, count, index, last_case{c_case{to_deadline(deadline)}, -ETIMEDOUT},
                       std::move(stopped));
}

int ums_tryselect(const ums_select_case_t* cases, size_t count, size_t* index) {
    return select_with(cases, count, index, last_case{c_case{std::nullopt}, -EAGAIN});
}
