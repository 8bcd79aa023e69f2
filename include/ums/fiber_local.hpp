// SPDX-License-Identifier: MIT
#pragma once

// ums/fiber_local.hpp: a variable of which each fiber, and each plain kernel thread, has its own
// value.
//
//   ums::fiber_local<std::string> name{[] { return std::string{"nobody"}; }};
//   name->append("!");    // Changes this fiber's value.
//
// A fiber gets its value when it first asks for it. Unlike a thread_local, the value follows the
// fiber to any kernel thread it runs on.
//
// Blocking:  never, unless the initialiser or a destructor blocks, which they may.
// Lifetime:  when a fiber's function has returned, the fiber destroys its values, the latest made
//            first, before join() returns. A destructor that uses a fiber_local makes a new value,
//            which is destroyed next. A plain thread destroys its values among its thread_local
//            objects. The fiber_local itself may be destroyed while fibers have values, if nobody
//            uses it any more: that destroys the caller's value. Another fiber's value is destroyed
//            when that fiber ends, or earlier, when that fiber makes a value of a later fiber_local
//            in the same place; it is never mistaken for one of that. A reference to a value is
//            valid until the value is destroyed.
// Errors:    the constructor and the making of a value throw std::bad_alloc, and what the
//            initialiser throws (then there is no value). An initialiser that uses its own
//            fiber_local ends the program.
// Cost:      a call and about six loads to find a value. A fiber's first value costs three
//            allocations.

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "ums/impl/local.hpp"
#include "ums/impl/other_than.hpp"

namespace ums {

template <class T>
class fiber_local;

namespace impl {

template <class F, class T>
concept makes_local = other_than<F, fiber_local<T>> &&
    std::is_invocable_r_v<T, std::add_lvalue_reference_t<const std::decay_t<F>>>;

}  // namespace impl

template <class T>
class fiber_local {
    static_assert(std::is_object_v<T>);

public:
    using value_type = T;

    // Each value is T{}.
    fiber_local() requires std::default_initializable<T>
    = default;

    // Each value is what `make` returns. The fibers call it, several of them at once.
    template <impl::makes_local<T> F>
    explicit fiber_local(F&& make) : make_{std::forward<F>(make)} {}

    fiber_local(const fiber_local&) = delete;
    fiber_local& operator=(const fiber_local&) = delete;
    ~fiber_local() {
        reset();
        impl::free_local_key(key_);
    }

    // Returns the caller's value; makes it if there is none.
    [[nodiscard]] T& get() const {
        impl::local_node* found = impl::find_local(key_);
        return found != nullptr ? static_cast<node*>(found)->value : make_value();
    }
    [[nodiscard]] T& operator*() const { return get(); }
    [[nodiscard]] T* operator->() const { return std::addressof(get()); }

    // Whether the caller has a value.
    [[nodiscard]] bool has_value() const noexcept { return impl::find_local(key_) != nullptr; }

    // Destroys the caller's value. The caller may make another.
    void reset() noexcept { impl::destroy_local(key_); }

private:
    struct node : impl::local_node {
        node() : impl::local_node{&destroy_node}, value{} {}
        explicit node(const std::function<T()>& make)
            : impl::local_node{&destroy_node}, value(make()) {}
        T value;
    };

    static void destroy_node(impl::local_node& self) noexcept { delete static_cast<node*>(&self); }

    std::unique_ptr<node> new_node() const {
        if constexpr (std::default_initializable<T>)
            if (!make_) return std::make_unique<node>();
        return std::make_unique<node>(make_);
    }

    [[gnu::noinline]] T& make_value() const {
        std::unique_ptr<node> made = new_node();
        impl::add_local(key_, *made);
        return made.release()->value;
    }

    const std::function<T()> make_;
    const impl::local_key key_ = impl::make_local_key();
};

}  // namespace ums
