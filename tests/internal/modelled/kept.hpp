// SPDX-License-Identifier: MIT
#pragma once

// internal/modelled/kept.hpp: a plain variable of the text: the model checks that only one strand
// uses it at a time, and that it is there, and counts it as memory. Using it is no step of the
// search, because nothing but that check could come of it.

#include <type_traits>

#include "internal/tso_model.hpp"

namespace ums::tso {

// `is_fixed`: it is written once, then read by many.
template <class T, bool is_fixed = false>
class kept {
public:
    kept() noexcept : kept{T{}} {}
    kept(T v) noexcept {
        model& m = model::running();
        at_ = m.is_on_strand() ? m.take_cell() : m.make(0);
        lies_on_stack_ = m.is_on_strand();
        *this = v;
    }
    kept(const kept&) = delete;
    ~kept() {
        is_there_ = 0;
        if (lies_on_stack_ && model::running().is_on_strand()) model::running().give_cell_back();
    }

    T get() const noexcept {
        if (!use("a variable that is read", !is_fixed)) return T{};
        model& m = model::running();
        m.note(m.at(at_));
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<T>(m.at(at_));
        else
            return static_cast<T>(m.at(at_));
    }
    void set(T v) noexcept {
        if (!use("a variable that is written")) return;
        if constexpr (std::is_pointer_v<T>)
            model::running().at(at_) = reinterpret_cast<model::value>(v);
        else
            model::running().at(at_) = static_cast<model::value>(v);
    }
    void add(T n) noexcept { set(static_cast<T>(get() + n)); }
    // A use after this is wrong.
    void end() noexcept {
        if (use("a variable that ends")) is_there_ = 0;
    }

    operator T() const noexcept { return get(); }
    T operator->() const noexcept { return get(); }
    kept& operator=(T v) noexcept {
        set(v);
        return *this;
    }
    kept& operator=(const kept& other) noexcept { return *this = other.get(); }
    void operator++() noexcept { add(1); }
    void operator--() noexcept { set(static_cast<T>(get() - 1)); }

private:
    static constexpr unsigned there = 0x5eed;

    bool use(const char* how, bool writes = true) const noexcept {
        model& m = model::running();
        // What lies on a stack may be anything by now.
        if (is_there_ != there || !m.has(at_))
            return m.fail("a variable is used that is gone"), false;
        m.touch(at_, how, writes);
        return true;
    }

    volatile unsigned is_there_ = there;  // Lies on a stack that others may still name.
    bool lies_on_stack_ = false;
    model::cell at_;
};

template <class T>
using fixed = kept<T, true>;

}  // namespace ums::tso
