// SPDX-License-Identifier: MIT
#include "lock_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "wait_words.hpp"

namespace tool::inspect {

lock_graph::lock_graph(const snapshot& s)
    : of_{s}, next_(s.fibers.size() + s.thread_waits.size(), nobody) {
    const auto fibers = static_cast<std::uint32_t>(s.fibers.size());
    std::map<address, std::uint32_t> threads;
    for (std::uint32_t t = 0; t < s.thread_waits.size(); ++t) {
        threads.emplace(s.thread_waits[t].who, fibers + t);
        next_[fibers + t] = s.thread_waits[t].held_by;
    }
    for (std::uint32_t i = 0; i < fibers; ++i) {
        const fiber_record& f = s.fibers[i];
        next_[i] = f.waits_by;
        if (!f.is_held_by_thread) continue;
        if (const auto t = threads.find(f.holder); t != threads.end()) next_[i] = t->second;
    }
    find_circles();
}

void lock_graph::find_circles() {
    std::vector<std::uint32_t> walk(next_.size(), nobody);  // The walk that has visited the node.
    for (std::uint32_t start = 0; start < next_.size(); ++start) {
        std::uint32_t at = start;
        while (at != nobody && walk[at] == nobody) {
            assert((next_[at] == nobody || next_[at] < next_.size()) && "a node waits for none");
            walk[at] = start;
            at = next_[at];
        }
        if (at == nobody || walk[at] != start) continue;
        std::vector<std::uint32_t> circle;
        for (std::uint32_t i = at; circle.empty() || i != at; i = next_[i]) circle.push_back(i);
        circles_.push_back(std::move(circle));
    }
}

std::string lock_graph::name(std::uint32_t node) const {
    assert(node < next_.size() && "a node is neither a fiber nor a thread");
    if (node < of_.fibers.size()) return fiber_in_words(of_.fibers[node]);
    return fmt::format("plain thread {}", of_.thread_waits[node - of_.fibers.size()].tid);
}

std::string lock_graph::waits(std::uint32_t node) const {
    assert(node < next_.size() && "a node is neither a fiber nor a thread");
    descriptors none;
    if (node < of_.fibers.size()) return wait_in_words(of_, of_.fibers[node], none);
    const thread_wait_record& t = of_.thread_waits[node - of_.fibers.size()];
    return fmt::format(
        "mutex 0x{:x}{}", t.owner,
        t.held_by != nobody ? ", held by " + fiber_in_words(of_.fibers[t.held_by]) : "");
}

std::vector<lock_graph::lock> lock_graph::locks() const {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> held;
    for (std::uint32_t i = 0; i < of_.fibers.size(); ++i) {
        const wait w = of_.fibers[i].waits;
        if (w == wait::mutex || w == wait::shared_mutex || w == wait::shared_mutex_shared)
            held[{next_[i], of_.fibers[i].waits_in}].push_back(i);
    }
    std::vector<lock> all;
    for (auto& [key, waiting] : held) all.push_back({key.first, key.second, std::move(waiting)});
    // Not by std::stable_sort(): clang calls what it uses of the library deprecated.
    std::sort(all.begin(), all.end(), [](const lock& a, const lock& b) {
        return std::tuple{b.waiting.size(), a.holder, a.object} <
               std::tuple{a.waiting.size(), b.holder, b.object};
    });
    return all;
}

std::string lock_graph::json() const {
    const auto node = [&](std::uint32_t n) {
        nlohmann::json j{{"waits", waits(n)}};
        if (n < of_.fibers.size()) {
            j["fiber"] = of_.fibers[n].id;
            j["name"] = of_.fibers[n].name;
        } else {
            j["tid"] = of_.thread_waits[n - of_.fibers.size()].tid;
        }
        return j;
    };
    nlohmann::json all{{"deadlocks", nlohmann::json::array()}, {"locks", nlohmann::json::array()}};
    for (const auto& circle : circles_) {
        nlohmann::json nodes = nlohmann::json::array();
        for (const std::uint32_t n : circle) nodes.push_back(node(n));
        all["deadlocks"].push_back(std::move(nodes));
    }
    for (const lock& one : locks()) {
        assert(!one.waiting.empty() && "a lock is listed that nobody waits for");
        const fiber_record& first = of_.fibers[one.waiting.front()];
        nlohmann::json j{{"kind", name_of(first.waits)},
                         {"object", fmt::format("0x{:x}", one.object)},
                         {"waiting", nlohmann::json::array()}};
        if (one.holder != nobody)
            j["held_by"] = node(one.holder);
        else if (first.detail != 0)
            j["readers"] = first.detail;
        else
            j["held_by_thread"] = first.is_held_by_thread;
        for (const std::uint32_t i : one.waiting) j["waiting"].push_back(of_.fibers[i].id);
        all["locks"].push_back(std::move(j));
    }
    // Names are arbitrary bytes of the program's. ASCII alone cannot drive a terminal.
    return all.dump(1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string lock_graph::in_words() const {
    std::string text;
    for (const auto& circle : circles_) {
        const bool ends = std::any_of(circle.begin(), circle.end(), [&](std::uint32_t n) {
            return n < of_.fibers.size() && of_.fibers[n].deadline != 0;
        });
        const bool moved = std::any_of(circle.begin(), circle.end(), [&](std::uint32_t n) {
            return n < of_.fibers.size() && of_.fibers[n].has_moved;
        });
        text += fmt::format("{}: {} wait for each other in a circle\n",
                            moved  ? "deadlock, perhaps (they moved meanwhile)"
                            : ends ? "deadlock, until a deadline passes"
                                   : "deadlock",
                            circle.size());
        for (const std::uint32_t n : circle)
            text += fmt::format("  {} waits for {}\n", name(n), waits(n));
    }
    for (const auto& [holder, object, waiting] : locks()) {
        const fiber_record& first = of_.fibers[waiting.front()];
        std::string by;
        if (holder != nobody)
            by = "held by " + name(holder);
        else if (first.detail != 0)
            by = fmt::format("held by {} reader(s)", first.detail);
        else
            by = first.is_held_by_thread ? "held by a plain thread" : "free now";
        if (holder != nobody && holder < of_.fibers.size()) {
            const fiber_record& h = of_.fibers[holder];
            const std::string also = waits(holder);
            by += fmt::format(" ({}{})", name_of(h.state), also.empty() ? "" : ": " + also);
        }
        text += fmt::format("{} 0x{:x}, {}: {} wait{}\n", name_of(first.waits), object, by,
                            waiting.size(), waiting.size() == 1 ? "s" : "");
        constexpr std::size_t shown = 10;
        for (std::size_t i = 0; i < std::min(shown, waiting.size()); ++i)
            text += fmt::format("  {}\n", name(waiting[i]));
        if (waiting.size() > shown) text += fmt::format("  and {} more\n", waiting.size() - shown);
    }
    if (text.empty()) text = "nobody waits for a mutex\n";
    return text;
}

}  // namespace tool::inspect
