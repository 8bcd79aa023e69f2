// SPDX-License-Identifier: MIT
#include "unwinder.hpp"

#include <dwarf.h>

#include <cassert>
#include <cstring>

namespace tool::inspect {

namespace {

constexpr std::size_t frames_most = 256, plans_most = 100'000;

}  // namespace

const unwind_plan& unwinder::plan_for(address pc) {
    if (plans_.size() >= plans_most) plans_.clear();
    const auto [at, is_new] = plans_.try_emplace(pc);
    if (is_new) at->second = tables_.plan(pc);
    return at->second;
}

bool unwinder::load(const stack_copy& copy, address at, std::uint64_t& value) const {
    // Not by a sum, which wraps for the last addresses there are.
    if (at >= copy.begin && copy.bytes.size() >= sizeof value &&
        at - copy.begin <= copy.bytes.size() - sizeof value) {
        std::memcpy(&value, copy.bytes.data() + (at - copy.begin), sizeof value);
        return true;
    }
    return of_.read(at, &value, sizeof value);
}

bool unwinder::evaluate(std::span<const unwind_op> ops, const registers& r, const stack_copy& copy,
                        address cfa, std::uint64_t& result, bool& is_value) const {
    std::uint64_t stack[16];
    std::size_t depth = 0;
    is_value = false;
    const auto push = [&](std::uint64_t v) {
        if (depth == std::size(stack)) return false;
        stack[depth++] = v;
        return true;
    };
    const auto push_register = [&](unsigned number, std::uint64_t offset) {
        return number < registers::count && r.is_known[number] && push(r.value[number] + offset);
    };
    for (const unwind_op& op : ops) {
        bool done = true;
        if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
            done = push_register(op.atom - DW_OP_breg0, op.number);
        } else if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
            done = push(op.atom - DW_OP_lit0);
        } else if (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) {
            done = push_register(op.atom - DW_OP_reg0, 0);
            is_value = true;
        } else {
            const auto two = [&](auto f) {
                if (depth < 2) return false;
                --depth;
                stack[depth - 1] = f(stack[depth - 1], stack[depth]);
                return true;
            };
            using word = std::uint64_t;
            switch (op.atom) {
                case DW_OP_bregx:
                    done = push_register(static_cast<unsigned>(op.number), op.number2);
                    break;
                case DW_OP_regx:
                    done = push_register(static_cast<unsigned>(op.number), 0);
                    is_value = true;
                    break;
                case DW_OP_call_frame_cfa:
                    done = push(cfa);
                    break;
                case DW_OP_stack_value:
                    is_value = true;
                    break;
                case DW_OP_plus_uconst:
                    done = depth != 0;
                    if (done) stack[depth - 1] += op.number;
                    break;
                case DW_OP_deref:
                    done = depth != 0 && load(copy, stack[depth - 1], stack[depth - 1]);
                    break;
                case DW_OP_const1u:
                case DW_OP_const1s:
                case DW_OP_const2u:
                case DW_OP_const2s:
                case DW_OP_const4u:
                case DW_OP_const4s:
                case DW_OP_const8u:
                case DW_OP_const8s:
                case DW_OP_constu:
                case DW_OP_consts:
                case DW_OP_addr:
                    done = push(op.number);
                    break;
                case DW_OP_dup:
                    done = depth != 0 && push(stack[depth - 1]);
                    break;
                case DW_OP_plus:
                    done = two([](word a, word b) { return a + b; });
                    break;
                case DW_OP_minus:
                    done = two([](word a, word b) { return a - b; });
                    break;
                case DW_OP_and:
                    done = two([](word a, word b) { return a & b; });
                    break;
                case DW_OP_or:
                    done = two([](word a, word b) { return a | b; });
                    break;
                case DW_OP_mul:
                    done = two([](word a, word b) { return a * b; });
                    break;
                case DW_OP_shl:
                    done = two([](word a, word b) { return b < 64 ? a << b : 0; });
                    break;
                case DW_OP_shr:
                    done = two([](word a, word b) { return b < 64 ? a >> b : 0; });
                    break;
                case DW_OP_ge:
                    done = two([](word a, word b) {
                        return static_cast<word>(static_cast<std::int64_t>(a) >=
                                                 static_cast<std::int64_t>(b));
                    });
                    break;
                default:
                    done = false;
            }
        }
        if (!done) return false;
    }
    assert(depth <= std::size(stack) && "an expression overran its stack");
    if (depth == 0) return false;
    result = stack[depth - 1];
    return true;
}

bool unwinder::step(const unwind_plan& p, registers& r, const stack_copy& copy, bool& ended) const {
    assert(p.is_there && "a step by rules that were not found");
    ended = false;
    if (p.rules[registers::ip].is == unwind_rule::undefined) {
        ended = true;
        return false;
    }
    std::uint64_t cfa = 0;
    bool is_value = false;
    if (!evaluate(p.cfa, r, copy, 0, cfa, is_value)) return false;
    registers out;
    for (unsigned i = 0; i < registers::count; ++i) {
        const unwind_rule& how = p.rules[i];
        if (how.is == unwind_rule::same && i != registers::sp && i != registers::ip) {
            out.value[i] = r.value[i];
            out.is_known[i] = r.is_known[i];
        } else if (how.is == unwind_rule::expression) {
            std::uint64_t v = 0;
            if (!evaluate(how.ops, r, copy, cfa, v, is_value)) continue;
            if (is_value || load(copy, v, v)) out.set(i, v);
        }
    }
    if (!out.is_known[registers::sp]) out.set(registers::sp, cfa);
    if (!out.is_known[registers::ip]) return false;
    // A stack that does not shrink has no end, except at the step off a signal's own stack.
    if (!p.is_signal && out.value[registers::sp] <= r.value[registers::sp]) return false;
    r = out;
    return true;
}

call_stack unwinder::unwind(registers r, const stack_copy& copy) {
    call_stack found;
    bool is_return = false;
    while (found.frames.size() < frames_most && r.is_known[registers::ip] &&
           r.value[registers::ip] != 0) {
        const address pc = r.value[registers::ip];
        // One byte into the call, so that addr2line need not be told which frames are returns.
        found.frames.push_back(is_return ? pc - 1 : pc);
        const unwind_plan& p = plan_for(is_return ? pc - 1 : pc);
        bool ended = false;
        if (!p.is_there || !step(p, r, copy, ended)) {
            found.is_cut_off = !ended;
            return found;
        }
        is_return = !p.is_signal;
    }
    found.is_cut_off = found.frames.size() == frames_most;
    return found;
}

}  // namespace tool::inspect
