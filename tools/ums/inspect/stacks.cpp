// SPDX-License-Identifier: MIT
#include "stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "live_process.hpp"

namespace tool::inspect {

namespace {

// Deeper frames are read one by one.
constexpr std::size_t copied_most = 32 * 1024;
constexpr std::size_t batch_bytes = 1024 * 1024;

registers saved(const fiber_record& f) {
    registers r;
    r.set(registers::sp, f.sp);
    r.set(registers::ip, f.ip);
    r.set(registers::bp, f.bp);
    return r;
}

std::size_t bytes_to_copy(const fiber_record& f) {
    if (f.sp < f.stack_begin || f.sp >= f.at) return 0;
    return std::min<std::uint64_t>(f.at - f.sp, copied_most);
}

call_stack of_running(const snapshot& s, const fiber_record& f, unwinder& by) {
    assert(f.carrier < s.carriers.size() && "a fiber runs on a carrier that was not read");
    const carrier_record& c = s.carriers[f.carrier];
    return stack_of_running(
        s.of(), c.thread, f.stack_begin, f.at,
        [&] { return s.of().get<address>(c.running_at).value_or(0) == f.at; }, by);
}

}  // namespace

call_stack stack_of_running(const process& of, const std::optional<thread_state>& thread,
                            address begin, address end, const std::function<bool()>& is_still,
                            unwinder& by) {
    if (!thread) return {};
    // A thread in a system call is left alone: its registers are known well enough.
    const bool in_call = thread->call.value_or(-1) >= 0;
    const bool is_known = thread->at.is_known[registers::ip];
    const auto* live = dynamic_cast<const live_process*>(&of);
    if (live == nullptr || in_call || (is_known && thread->at.is_known[registers::bp]))
        return is_known ? by.unwind(thread->at, {}) : call_stack{};
    registers then;
    std::vector<char> bytes;
    live->glimpse(thread->tid, [&](const registers& now) {
        if (!is_still()) return;
        then = now;
        const address sp = now.value[registers::sp];
        if (sp < begin || sp >= end) return;
        bytes.resize(std::min<std::uint64_t>(end - sp, copied_most));
        if (!of.read(sp, bytes.data(), bytes.size())) bytes.clear();
    });
    return by.unwind(then, {then.value[registers::sp], bytes});
}

std::vector<call_stack> stacks_of(const snapshot& s, std::span<const std::uint32_t> fibers,
                                  unwinder& by) {
    std::vector<call_stack> all(fibers.size());
    std::vector<char> bytes;
    std::vector<piece> pieces;
    for (std::size_t first = 0; first < fibers.size();) {
        std::size_t end = first, total = 0;
        while (end < fibers.size() && (end == first || total < batch_bytes))
            total += bytes_to_copy(s.fibers[fibers[end++]]);
        bytes.resize(total);
        pieces.clear();
        std::size_t at = 0;
        for (std::size_t i = first; i < end; ++i) {
            const fiber_record& f = s.fibers[fibers[i]];
            const std::size_t n = f.carrier == nobody ? bytes_to_copy(f) : 0;
            pieces.push_back({f.sp, bytes.data() + at, n, false});
            at += n;
        }
        assert(at <= bytes.size() && "the stacks are larger than the room for them");
        s.of().read(pieces);
        for (std::size_t i = first; i < end; ++i) {
            const fiber_record& f = s.fibers[fibers[i]];
            if (f.carrier != nobody) {
                all[i] = of_running(s, f, by);
            } else if (f.state != fiber_state::ended) {
                const piece& p = pieces[i - first];
                stack_copy copy;
                if (p.is_read) copy = {p.at, {static_cast<const char*>(p.into), p.bytes}};
                all[i] = by.unwind(saved(f), copy);
            }
        }
        first = end;
    }
    return all;
}

std::vector<stack_group> grouped(const snapshot& s, std::span<const std::uint32_t> fibers,
                                 std::vector<call_stack> stacks, bool each) {
    assert(fibers.size() == stacks.size() && "fibers and their stacks are out of step");
    std::vector<stack_group> all;
    using key = std::tuple<call_stack, fiber_state, wait>;
    std::map<key, std::size_t> index;
    for (std::size_t i = 0; i < fibers.size(); ++i) {
        const fiber_record& f = s.fibers[fibers[i]];
        std::size_t at = all.size();
        if (!each)
            at = index.try_emplace(key{stacks[i], f.state, f.waits}, all.size()).first->second;
        if (at == all.size()) all.push_back({std::move(stacks[i]), f.state, f.waits, {}});
        all[at].fibers.push_back(fibers[i]);
    }
    if (!each)
        std::sort(all.begin(), all.end(), [](const stack_group& a, const stack_group& b) {
            return a.fibers.size() != b.fibers.size() ? a.fibers.size() > b.fibers.size()
                                                      : a.fibers.front() < b.fibers.front();
        });
    return all;
}

namespace {

// Before the program's first frame, and after its last.
void leave_out_libums(std::vector<source_frame>& frames) {
    const auto is = [](owner of) { return [of](const source_frame& f) { return f.of == of; }; };
    const auto is_program = is(owner::program);
    const auto last = std::find_if(frames.rbegin(), frames.rend(), is_program).base();
    if (last == frames.begin()) return;  // Nothing tells which frames are the program's.
    frames.erase(last, frames.end());
    // What libums calls of the C library comes before libums itself, and has no file.
    auto first = std::find_if(frames.begin(), frames.end(), [&](const source_frame& f) {
        return is_program(f) && !f.file.empty();
    });
    if (first == frames.end()) first = std::find_if(frames.begin(), frames.end(), is_program);
    const auto own =
        std::find_if(std::make_reverse_iterator(first), frames.rend(), is(owner::libums)).base();
    if (own != frames.begin())
        frames.erase(frames.begin(), std::find_if_not(own, first, is(owner::standard_library)));
}

}  // namespace

std::string headline(const snapshot& s, const stack_group& g, descriptors& fds) {
    assert(!g.fibers.empty() && g.fibers.front() < s.fibers.size() && "a group has no fiber");
    const fiber_record& first = s.fibers[g.fibers.front()];
    if (g.fibers.size() == 1) {
        const std::string why = wait_in_words(s, first, fds);
        return fmt::format("{}: {}{}{}", fiber_in_words(first), name_of(g.state),
                           why.empty() ? "" : ", " + why,
                           first.has_moved ? " (it moved meanwhile)" : "");
    }
    std::string text = fmt::format("{} fibers: {}{}{}: ", g.fibers.size(), name_of(g.state),
                                   g.waits == wait::none ? "" : ", ", name_of(g.waits));
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < std::min(shown, g.fibers.size()); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : " ", s.fibers[g.fibers[i]].id);
    return text + (g.fibers.size() > shown ? " .." : "");
}

std::vector<std::string> lines_of(const call_stack& stack, symbols& names, bool whole) {
    std::vector<source_frame> frames;
    for (const address pc : stack.frames) {
        const std::vector<source_frame>& here = names.frames(pc);
        frames.insert(frames.end(), here.begin(), here.end());
    }
    if (!whole) leave_out_libums(frames);
    std::vector<std::string> lines;
    for (const source_frame& f : frames)
        lines.push_back(fmt::format("{}{}{}", f.function.empty() ? "?" : f.function,
                                    f.file.empty() ? "" : fmt::format(" at {}:{}", f.file, f.line),
                                    f.is_inlined ? " (inlined)" : ""));
    if (stack.is_cut_off) lines.push_back("(from here on it cannot be followed)");
    return lines;
}

}  // namespace tool::inspect
