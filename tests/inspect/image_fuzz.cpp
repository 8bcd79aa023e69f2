// SPDX-License-Identifier: MIT
//
// A process image made of bytes (image.hpp), as `ums ps`, `ums stack --locks` and `ums trace` look
// at it.
#include "image.hpp"

#include <stdexcept>

#include "inspect/lock_graph.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/wait_words.hpp"
#include "trace/fiber_times.hpp"
#include "trace/live_rings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace tool;
    const image::process of{{reinterpret_cast<const char*>(data), size}};
    try {
        const inspect::layout how{of};
        inspect::snapshot s{of, how};
        inspect::descriptors none;
        std::size_t length = s.warning.size();
        for (const inspect::fiber_record& f : s.fibers)
            length += inspect::wait_in_words(s, f, none).size();
        for (const inspect::worker_record& w : s.workers)
            length += inspect::wait_of(w).size() + std::string{inspect::state_of(w)}.size();
        const inspect::lock_graph graph{s};
        length += graph.in_words().size() + graph.json().size();
        tracing::live_rings rings{of, how};
        tracing::recording what;
        (void)rings.collect(what);
        (void)rings.collect(what);
        const bool have_begun = tracing::have_all_busy_begun(s, what);
        s.taken_at = std::min(s.taken_at, what.now.ns);
        (void)tracing::set_times(s.fibers, s.taken_at, have_begun, std::move(what));
        volatile std::size_t seen = length;  // So that nothing is left out.
        (void)seen;
    } catch (const std::runtime_error&) {  // In one line, why not.
    }
    return 0;
}
