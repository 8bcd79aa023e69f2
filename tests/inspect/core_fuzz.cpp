// SPDX-License-Identifier: MIT
//
// A core file made of bytes, as `ums ps` and `ums stack --locks` look at it.
#include <stdexcept>

#include "bytes_file.hpp"
#include "inspect/core_file.hpp"
#include "inspect/lock_graph.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/wait_words.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace tool::inspect;
    const bytes_file core{data, size};
    try {
        const core_file of{core.path()};
        std::size_t length = of.title().size() + of.warning().size();
        const layout how{of};
        const snapshot s{of, how};
        descriptors none;
        for (const fiber_record& f : s.fibers) length += wait_in_words(s, f, none).size();
        length += lock_graph{s}.in_words().size();
        volatile std::size_t seen = length;  // So that nothing is left out.
        (void)seen;
    } catch (const std::runtime_error&) {  // In one line, why not.
    }
    return 0;
}
