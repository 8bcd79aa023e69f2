// SPDX-License-Identifier: MIT
#include "ums/mode.hpp"

#include "arch/sanitizer.hpp"
#include "arch/x86_64/thread_pointer.hpp"
#include "rt/environment.hpp"

namespace ums::scheduling {

namespace {

struct choice {
    switch_mode mode;
    const char* why;
};

choice choose() noexcept {
    if (!rt::environment::fsgsbase())
        return {switch_mode::futex, "futex: asked for by UMS_FSGSBASE=off"};
    if (!arch::can_write_thread_pointer())
        return {switch_mode::futex, "futex: no FSGSBASE (a CPU or a kernel without it)"};
    if (arch::under_valgrind())
        return {switch_mode::futex, "futex: Valgrind does not know WRFSBASE"};
    return {switch_mode::user, "fsgsbase: in user mode, by WRFSBASE"};
}

const choice& chosen() noexcept {
    static const choice once = choose();
    return once;
}

}  // namespace

switch_mode mode() noexcept { return chosen().mode; }
const char* describe_mode() noexcept { return chosen().why; }

}  // namespace ums::scheduling
