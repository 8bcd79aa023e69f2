// SPDX-License-Identifier: MIT

// forkjoin: libums, by each of its ways to fork and join. `how` names the way, `launch` how the
// fibers are launched: as they are without options, or by launch::dispatch.

#include "../common/on_ums.hpp"
#include "measure.hpp"

namespace {

const ums::fiber_options dispatched{.launch = ums::launch::dispatch};

// start(options), or start().
template <bool IsDispatched, class Start>
auto launched(Start start) {
    if constexpr (IsDispatched)
        return start(dispatched);
    else
        return start();
}

template <bool IsDispatched>
struct by_fiber : bench::on_ums {
    struct start {
        template <class F>
        ums::fiber operator()(F f) const {
            return launched<IsDispatched>([&](const auto&... how) {
                return ums::fiber{how..., f};
            });
        }
    };
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        return bench::sum_by_group<bench::joined_group<ums::fiber, Most, start>, Most>(n, value);
    }
    static std::uint64_t stacks() { return ums::stats().stacks_made; }
};

template <bool IsDispatched>
struct by_scope : by_fiber<IsDispatched> {
    struct group {
        template <class F>
        void fork(F f) {
            launched<IsDispatched>([&](const auto&... how) { children.spawn(how..., f); });
        }
        void join() { children.join(); }
        ums::scope children;
    };
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        return bench::sum_by_group<group, Most>(n, value);
    }
};

template <bool IsDispatched>
struct by_spawn : by_fiber<IsDispatched> {
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        ums::value_fiber<std::uint64_t> children[Most];
        for (std::size_t i = 0; i + 1 < n; ++i)
            children[i] = launched<IsDispatched>([&](const auto&... how) {
                return ums::spawn(how..., [&value, i] { return value(i); });
            });
        auto all = value(n - 1);
        for (std::size_t i = 0; i + 1 < n; ++i) all += children[i].join();
        return all;
    }
};

// fork_join() takes its functions one by one, so it is called for each number that there can be.
struct by_fork_join : by_fiber<false> {
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        return exactly<Most>(n, value);
    }

private:
    template <std::size_t N, class Value>
    static std::uint64_t exactly(std::size_t n, const Value& value) {
        if constexpr (N > 1)
            if (n < N) return exactly<N - 1>(n, value);
        return all(value, std::make_index_sequence<N>{});
    }
    template <class Value, std::size_t... I>
    static std::uint64_t all(const Value& value, std::index_sequence<I...>) {
        const auto parts = ums::fork_join([&value] { return value(I); }...);
        return (std::get<I>(parts) + ...);
    }
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const bench::forkjoin_cell of{in};
        const auto how = in.word("how", {"fiber", "scope", "spawn", "fork_join"});
        const bool is_dispatched = in.word("launch", {"default", "dispatch"}) == "dispatch";
        in.done();
        if (how == "fiber")
            is_dispatched ? bench::measure_forkjoin<by_fiber<true>>(of, out)
                          : bench::measure_forkjoin<by_fiber<false>>(of, out);
        else if (how == "scope")
            is_dispatched ? bench::measure_forkjoin<by_scope<true>>(of, out)
                          : bench::measure_forkjoin<by_scope<false>>(of, out);
        else if (how == "fork_join")
            bench::measure_forkjoin<by_fork_join>(of, out);
        else
            is_dispatched ? bench::measure_forkjoin<by_spawn<true>>(of, out)
                          : bench::measure_forkjoin<by_spawn<false>>(of, out);
    });
}
