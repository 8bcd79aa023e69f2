// SPDX-License-Identifier: MIT
//
// Each type meets the named requirements that its twin in std meets, and has the same traits. The
// compiler checks that; the one test runs the guards of std over the types.
//
// A new type is one line: static_assert(is_twin<ums::T, std::T>), and those of the concepts below
// that std names for it.

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <type_traits>

#include <gtest/gtest.h>

#include "ums/condition_variable.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/shared_mutex.hpp"

namespace {

using namespace std::chrono;

// --- The named requirements, [thread.req.lockable] and [thread.mutex.requirements]: ---

template <class L>
concept basic_lockable = requires(L l) {
    { l.lock() } -> std::same_as<void>;
    { l.unlock() } -> std::same_as<void>;
};

template <class L>
concept lockable = basic_lockable<L> && requires(L l) {
    { l.try_lock() } -> std::same_as<bool>;
};

template <class L, class Clock>
concept timed_by = requires(L l, time_point<Clock, milliseconds> t, time_point<Clock> exact) {
    { l.try_lock_until(t) } -> std::same_as<bool>;
    { l.try_lock_until(exact) } -> std::same_as<bool>;
};
template <class L>
concept timed_lockable = lockable<L> && timed_by<L, steady_clock> && timed_by<L, system_clock> &&
    requires(L l, duration<double> fraction) {
    { l.try_lock_for(1h) } -> std::same_as<bool>;
    { l.try_lock_for(fraction) } -> std::same_as<bool>;
};

template <class L>
concept shared_lockable = requires(L l) {
    { l.lock_shared() } -> std::same_as<void>;
    { l.try_lock_shared() } -> std::same_as<bool>;
    { l.unlock_shared() } -> std::same_as<void>;
};

template <class L, class Clock>
concept shared_timed_by = requires(L l, time_point<Clock, milliseconds> t) {
    { l.try_lock_shared_until(t) } -> std::same_as<bool>;
};
template <class L>
concept shared_timed_lockable = shared_lockable<L> && shared_timed_by<L, steady_clock> &&
    shared_timed_by<L, system_clock> && requires(L l, duration<double> fraction) {
    { l.try_lock_shared_for(1h) } -> std::same_as<bool>;
    { l.try_lock_shared_for(fraction) } -> std::same_as<bool>;
};

// Can be neither copied nor moved; is made without arguments.
template <class T>
concept stays = std::is_default_constructible_v<T> && std::is_destructible_v<T> &&
                !std::is_copy_constructible_v<T> &&
                !std::is_move_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                !std::is_move_assignable_v<T>;

template <class T>
concept mutex_type = lockable<T> && stays<T>;

template <class T>
concept shared_mutex_type = mutex_type<T> && shared_lockable<T>;

// --- Constant initialisation: ---

template <class T, auto = (T{}, 0)>
constexpr bool constexpr_made(int) {
    return true;
}
template <class T>
constexpr bool constexpr_made(...) {
    return false;
}

// --- A type and its twin: ---

// Everything that one can or cannot do with a twin is the same, and ours promises what std's does.
template <class Ours, class Std>
constexpr bool is_twin =
    std::is_standard_layout_v<Ours> >=
            std::is_standard_layout_v<Std>&& std::is_copy_constructible_v<Ours> ==
        std::is_copy_constructible_v<Std>&& std::is_move_constructible_v<Ours> ==
        std::is_move_constructible_v<Std>&& std::is_copy_assignable_v<Ours> ==
        std::is_copy_assignable_v<Std>&& std::is_move_assignable_v<Ours> ==
        std::is_move_assignable_v<Std>&& std::is_nothrow_move_constructible_v<Ours> ==
        std::is_nothrow_move_constructible_v<Std>&& std::is_nothrow_move_assignable_v<Ours> ==
        std::is_nothrow_move_assignable_v<Std>&& std::is_swappable_v<Ours> ==
        std::is_swappable_v<Std>&& std::is_default_constructible_v<Ours> ==
        std::is_default_constructible_v<Std>&& std::is_nothrow_default_constructible_v<Ours> >=
            std::is_nothrow_default_constructible_v<Std>&& constexpr_made<Ours>(0) >=
            constexpr_made<Std>(0) &&
    std::is_nothrow_destructible_v<Ours> ==
        std::is_nothrow_destructible_v<Std>&& std::is_class_v<Ours> ==
        std::is_class_v<Std>&& std::is_final_v<Ours> ==
        std::is_final_v<Std>&& std::is_polymorphic_v<Ours> ==
        std::is_polymorphic_v<Std>&& basic_lockable<Ours> == basic_lockable<Std>&& lockable<Ours> ==
        lockable<Std>&& timed_lockable<Ours> == timed_lockable<Std>&& shared_lockable<Ours> ==
        shared_lockable<Std>&& shared_timed_lockable<Ours> == shared_timed_lockable<Std>;

static_assert(is_twin<ums::mutex, std::mutex>);
static_assert(is_twin<ums::timed_mutex, std::timed_mutex>);
static_assert(is_twin<ums::fair_mutex, std::timed_mutex>);
static_assert(is_twin<ums::recursive_mutex, std::recursive_mutex>);
static_assert(is_twin<ums::recursive_timed_mutex, std::recursive_timed_mutex>);
static_assert(is_twin<ums::shared_mutex, std::shared_mutex>);
static_assert(is_twin<ums::shared_timed_mutex, std::shared_timed_mutex>);
static_assert(is_twin<ums::condition_variable, std::condition_variable>);
static_assert(is_twin<ums::condition_variable_any, std::condition_variable_any>);

// What the text of std says, whatever the standard library at hand makes of it.
template <class... Mutexes>
constexpr bool all_are_mutexes = ((mutex_type<Mutexes> && std::is_standard_layout_v<Mutexes>)&&...);
static_assert(
    all_are_mutexes<ums::mutex, ums::timed_mutex, ums::fair_mutex, ums::recursive_mutex,
                    ums::recursive_timed_mutex, ums::shared_mutex, ums::shared_timed_mutex>);
static_assert(timed_lockable<ums::timed_mutex> && timed_lockable<ums::fair_mutex> &&
              timed_lockable<ums::recursive_timed_mutex> &&
              timed_lockable<ums::shared_timed_mutex>);
static_assert(shared_mutex_type<ums::shared_mutex> && shared_mutex_type<ums::shared_timed_mutex> &&
              shared_timed_lockable<ums::shared_timed_mutex>);
static_assert(stays<ums::condition_variable> && stays<ums::condition_variable_any> &&
              std::is_standard_layout_v<ums::condition_variable>);
// Usable before any constructor runs and after all destructors have.
template <class... T>
constexpr bool are_static_friendly = ((constexpr_made<T>(0) &&
                                       std::is_trivially_destructible_v<T>)&&...);
static_assert(
    are_static_friendly<ums::mutex, ums::timed_mutex, ums::fair_mutex, ums::recursive_mutex,
                        ums::recursive_timed_mutex, ums::shared_mutex, ums::shared_timed_mutex,
                        ums::condition_variable, ums::condition_variable_any>);

// --- noexcept and results, member by member, as in std: ---

template <class Ours, class Std>
constexpr bool notifies_alike =
    noexcept(std::declval<Ours&>().notify_one()) ==
    noexcept(std::declval<Std&>().notify_one()) && noexcept(std::declval<Ours&>().notify_all()) ==
    noexcept(std::declval<Std&>().notify_all());
static_assert(notifies_alike<ums::condition_variable, std::condition_variable>);
static_assert(notifies_alike<ums::condition_variable_any, std::condition_variable_any>);

// All calls that a condition variable of std takes, with the same results.
template <class C, class Lock>
concept condition = requires(C c, Lock lock, bool (*is_true)(), steady_clock::time_point steady,
                             time_point<system_clock, seconds> wall, duration<float> d) {
    { c.notify_one() } -> std::same_as<void>;
    { c.notify_all() } -> std::same_as<void>;
    { c.wait(lock) } -> std::same_as<void>;
    { c.wait(lock, is_true) } -> std::same_as<void>;
    { c.wait_until(lock, steady) } -> std::same_as<std::cv_status>;
    { c.wait_until(lock, wall) } -> std::same_as<std::cv_status>;
    { c.wait_until(lock, steady, is_true) } -> std::same_as<bool>;
    { c.wait_until(lock, wall, is_true) } -> std::same_as<bool>;
    { c.wait_for(lock, d) } -> std::same_as<std::cv_status>;
    { c.wait_for(lock, d, is_true) } -> std::same_as<bool>;
};
template <class C, class Lock>
concept stoppable_condition = condition<C, Lock> &&
    requires(C c, Lock lock, bool (*is_true)(), std::stop_token stop,
             steady_clock::time_point steady) {
    { c.wait(lock, stop, is_true) } -> std::same_as<bool>;
    { c.wait_until(lock, stop, steady, is_true) } -> std::same_as<bool>;
    { c.wait_for(lock, stop, 1h, is_true) } -> std::same_as<bool>;
};
static_assert(condition<std::condition_variable, std::unique_lock<std::mutex>>);
static_assert(
    stoppable_condition<std::condition_variable_any, std::shared_lock<std::shared_mutex>>);
static_assert(stoppable_condition<ums::condition_variable, std::unique_lock<ums::mutex>>);
static_assert(stoppable_condition<ums::condition_variable_any, std::unique_lock<ums::mutex>>);
static_assert(
    stoppable_condition<ums::condition_variable_any, std::shared_lock<ums::shared_mutex>>);
static_assert(stoppable_condition<ums::condition_variable_any, ums::recursive_timed_mutex>);
static_assert(!condition<ums::condition_variable, std::unique_lock<ums::timed_mutex>> &&
              !condition<ums::condition_variable, std::unique_lock<std::mutex>>);

static_assert(std::same_as<ums::cv_status, std::cv_status>);

template <class Mutex>
void lock_two() {
    Mutex one, other;
    const std::scoped_lock both{one, other};
}
template <class... Mutexes>
void lock_all() {
    (lock_two<Mutexes>(), ...);
}

TEST(requirements_test, the_guards_of_std_lock_all_mutexes) {
    auto body = [] {
        lock_all<ums::mutex, ums::timed_mutex, ums::fair_mutex, ums::recursive_mutex,
                 ums::recursive_timed_mutex, ums::shared_mutex, ums::shared_timed_mutex>();
        ums::mutex a;
        ums::shared_timed_mutex b;
        ums::recursive_timed_mutex c;
        const std::scoped_lock of_all_kinds{a, b, c};
    };
    body();
    ums::run({.processors = 1}, body);
}

}  // namespace
