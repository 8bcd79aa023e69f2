// SPDX-License-Identifier: MIT
//
// workers: a program of the UMS API to be inspected. One worker has yielded, one is blocked in a
// call that it announced, and the scheduler's thread waits. The program says so in one line, then
// ends when standard input does.
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <ums/scheduling.hpp>

namespace {

int resumed = 0;

void yielding() {
    ums::yield_worker();
    ++resumed;  // So the call above is no tail call.
}

// The scheduler's thread itself is blocked until both are in place.
void announcing(int from) {
    const ums::worker_blocking blocking;
    char byte;
    (void)!::read(from, &byte, 1);  // Nothing ever writes.
}

}  // namespace

int main() {
    int never[2];
    if (::pipe(never) != 0) return 1;
    ums::completion_list list;
    ums::worker a{list, yielding}, b{list, announcing, never[0]};
    std::deque<ums::worker_ref> ready;
    int begun = 0;
    ums::schedule(list, [&](const ums::scheduler_event&) {
        // Called anew whenever a worker stops.
        while (begun < 2) {
            while (ready.empty())
                for (const ums::worker_ref w : list.dequeue()) ready.push_back(w);
            const ums::worker_ref next = ready.front();
            ready.pop_front();
            ++begun;
            static_cast<void>(next.execute());
        }
        std::puts("0 fibers");
        std::fflush(stdout);
        char byte;
        (void)!::read(0, &byte, 1);
        ::_exit(0);
    });
}
